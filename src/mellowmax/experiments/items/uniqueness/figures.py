"""How the item on uniqueness is drawn: the answers in the game, and counts in random games."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from ... import style

__all__ = ["draw_answers", "draw_shares"]

_NAMES = {"boltzmann": "logit", "mellowmax": "mellowmax"}


def draw_answers(answers: pd.DataFrame, points: pd.DataFrame) -> Figure:
    """How far each answer is above what it answers: everywhere, and near the equilibria."""
    figure, axes = style.figure(2)
    near = points["left"].min() - 0.03, points["left"].max() + 0.03
    for axis, (low, high) in zip(axes, ((0.0, 1.0), near), strict=True):
        axis.axhline(0, color="#555555", lw=1)
        for name, rows in answers.groupby("softmax", sort=False):
            shown = rows[rows["left"].between(low, high)]
            look = style.COLOURS[str(name)]
            axis.plot(shown["left"], shown["away"], **look, label=_NAMES[str(name)])
        for point in points[points["left"].between(low, high)].to_dict("records"):
            colour = style.COLOURS[point["softmax"]]["color"]
            fill = colour if point["radius"] < 1 else "white"
            axis.plot(point["left"], 0, "o", color=colour, mfc=fill, ms=6)
        axis.set(xlabel="probability of left", xlim=(low, high))
    axes[0].set(ylabel="answer minus probability")
    axes[0].legend()
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
            letter = "$\\beta$" if name == "boltzmann" else "$\\omega$"
            for row in rows.to_dict("records"):
                at = row["regret"], 100 * row["share"]
                text = f"{letter} {row['parameter']:g}"
                axis.annotate(text, at, (4, 4), textcoords="offset points", fontsize=8)
        axis.set(xscale="log", title=kind, xlabel="mean regret")
        axis.set_ylim(bottom=0)
    axes[0].set(ylabel="% of games with several equilibria")
    axes[0].legend()
    return figure
