"""How figure 3 is drawn: how far apart operators move pairs of vectors."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from ... import style

__all__ = ["draw_pairs"]


def draw_pairs(pairs: pd.DataFrame, ratios: pd.DataFrame, most: float) -> Figure:
    """The pairs of each operator against the line of slope 1, and the largest ratios.

    Args:
        pairs: a row for each random pair.
        ratios: a row for each operator.
        most: the largest ratio of a non-expansion, with the rounding allowed for.
    """
    figure, axes = style.figure(2, 3, height=3.0)
    ratios = ratios.set_index("operator")
    for axis, name in zip(axes.flat, ratios.index, strict=False):
        own, worst = pairs[pairs["operator"] == name], ratios.loc[name]
        colour = style.COLOURS[name]["color"]
        above = own["moved"] > most * own["distance"]
        axis.plot([0, 0.5], [0, 0.5], color="#555555", lw=1, zorder=3)
        for rows, alpha in ((own[~above], 0.25), (own[above], 1.0)):
            look = {"color": colour, "ms": 2.5, "alpha": alpha, "mew": 0, "rasterized": True}
            axis.plot(rows["distance"], rows["moved"], "o", **look)
        setting = "" if worst["parameter"] == "none" else f", {worst['parameter']}"
        axis.set(title=name + setting, xlim=(0, 0.5), ylim=(0, 0.56))
        axis.set(xlabel="$\\max |x - y|$", ylabel="$|f(x) - f(y)|$")
        if worst["largest"] > most:
            at = worst["distance"], worst["moved"]
            axis.plot(*at, "*", color="black", ms=11, clip_on=False, zorder=4)
            arrow = {"arrowstyle": "-", "shrinkB": 5}
            text = f"largest ratio\n{worst['largest']:.4f}"
            axis.annotate(text, at, xytext=(0.03, 0.36), arrowprops=arrow)
    bars, last = ratios["largest"], axes.flat[5]
    colours = [style.COLOURS[name]["color"] for name in bars.index]
    last.bar_label(last.bar(list(bars.index), bars, color=colours, width=0.6), fmt="%.4f")
    last.axhline(1, color="#555555", lw=1)
    last.set(title="largest ratio found", ylim=(0, 1.45))
    last.set_xticks(range(len(bars)), [name.replace("-", "-\n") for name in bars.index], fontsize=9)
    return figure
