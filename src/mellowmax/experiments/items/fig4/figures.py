"""How figure 4 is drawn: the branches of fixed points over beta, under the paper's points."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from ... import style

__all__ = ["draw_branches"]


def draw_branches(tables: Mapping[str, pd.DataFrame], beta: float, middle: float) -> Figure:
    """Q(s1, a) and Q(s1, b) at the fixed points, under the points of the paper's figure.

    Args:
        tables: those of the item.
        beta: the paper's, which is marked.
        middle: a beta between the two folds.
    """
    figure, axes = style.figure(2, height=4.4)
    fitted = style.COLOURS["boltzmann"]["color"]
    for axis, action in zip(axes, "ab", strict=True):
        column = f"q_{action}"
        for labels, colour, width in (("printed", "#999999", 1.0), ("fitted", fitted, 2.0)):
            branches = tables["branches"].query("labels == @labels")
            for _, rows in branches.groupby("branch"):
                look = {"color": colour, "lw": width}
                solid = rows[column].where(rows["stable"])
                axis.plot(rows["beta"], solid, **look, label=f"{labels}, stable")
                look["ls"] = (0, (3, 2))  # below the solid line, where there is one
                axis.plot(rows["beta"], rows[column], **look, label=f"{labels}, unstable")
        for fold in tables["folds"].query("labels == 'fitted'").itertuples():
            at = fold.beta, getattr(fold, column)
            low = fold.beta < middle
            label = "fitted, where it folds" if low else None
            axis.plot(*at, "o", color="black", ms=5, zorder=4, label=label)
            look = {"ha": "right" if low else "left", "va": "center", "zorder": 5}
            shift = (-7, 0) if low else (7, 0)
            axis.annotate(f"{fold.beta:.3f}", at, xytext=shift, textcoords="offset points", **look)
        points = tables["distances"].query("action == @action")
        look = style.PAPER | {"ls": "none", "label": "the paper's figure 4", "zorder": 3}
        axis.plot(points["beta"], points["paper"], **look)
        label = rf"the paper's $\beta$, {beta:g}"
        axis.axvline(beta, color="#555555", lw=0.8, ls=":", label=label)
        axis.set(xlabel=r"$\beta$", ylabel=f"$Q(s_1, {action})$", xlim=(16.2, 17.2))
        axis.set_ylim(0.44, 1.04)
        axis.set_title(f"Fixed points, action {action}")
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=3)
    return figure
