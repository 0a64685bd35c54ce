"""How the item on uniqueness is drawn: the answers in the game, and counts in random games."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from ... import style

__all__ = ["draw_answers", "draw_shares"]

_TICKS = (0.001, 0.003, 0.01, 0.03, 0.1)
_NAMES = {"boltzmann": "logit", "mellowmax": "mellowmax"}


def draw_answers(answers: pd.DataFrame, points: pd.DataFrame) -> Figure:
    """How far each answer is above what it answers: everywhere, and near the equilibria."""
    figure, (whole, near) = style.figure(2)
    edge = 0.3 * float(points["left"].max() - points["left"].min())
    span = points["left"].min() - edge, points["left"].max() + edge
    for axis in (whole, near):
        axis.axhline(0, color="#555555", lw=1)
        for name, rows in answers.groupby("softmax", sort=False):
            look = style.COLOURS[str(name)]
            axis.plot(rows["left"], rows["away"], **look, label=_NAMES[str(name)])
        axis.set(xlabel="probability of left")
    for point in points.to_dict("records"):
        colour = style.COLOURS[point["softmax"]]["color"]
        fill = colour if point["radius"] < 1 else "white"
        near.plot(point["left"], 0, "o", color=colour, mfc=fill, ms=7, zorder=3)
    whole.set(ylabel="answer minus probability", xlim=(0, 1), title="everywhere")
    near.set(xlim=span, ylim=(-0.03, 0.03), title="near the equilibria")
    whole.legend()
    return figure


def draw_shares(counts: pd.DataFrame) -> Figure:
    """The share of games with several equilibria against their mean regret, for each kind."""
    kinds = list(counts["kind"].unique())
    figure, axes = style.figure(len(kinds))
    for axis, kind in zip(axes, kinds, strict=True):
        for name, rows in counts[counts["kind"] == kind].groupby("softmax", sort=False):
            share, low, high = (100 * rows[column] for column in ("share", "low", "high"))
            look = style.COLOURS[str(name)] | {"marker": "o", "ms": 5, "capsize": 2}
            error = (share - low, high - share)
            axis.errorbar(rows["regret"], share, yerr=error, **look, label=_NAMES[str(name)])
        axis.set(xscale="log", title=kind, xlabel="mean regret")
        axis.set_xticks(_TICKS, [f"{tick:g}" for tick in _TICKS])
        axis.minorticks_off()
        axis.set_ylim(0, max(5.0, axis.get_ylim()[1]))
    axes[0].set(ylabel="% of games with several equilibria")
    axes[0].legend()
    return figure
