"""How the item on averagers is drawn: shares that fail by beta, and how they fail."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ... import style
from .verdict import WORDS

__all__ = ["draw_shares"]

_LOOKS = {
    "random": {"color": "#000000", "linestyle": "-", "marker": "o"},
    "large": {"color": "#999999", "linestyle": "-", "marker": "s"},
    "gaussian": {"color": "#D55E00", "linestyle": "--", "marker": "^"},
    "nearest": {"color": "#E69F00", "linestyle": "--", "marker": "v"},
    "fine line": {"color": "#0072B2", "linestyle": "-", "marker": "D"},
    "coarse line": {"color": "#56B4E9", "linestyle": "--", "marker": "d"},
}
_OF_WAYS = ("#D55E00", "#E69F00", "#0072B2")


def draw_shares(shares: pd.DataFrame, beta: float) -> Figure:
    """The share of problems in which Boltzmann's softmax fails, by beta; and how, at one beta."""
    ours = shares[shares["operator"] == "boltzmann"]
    figure, (left, right) = style.figure(2, height=4.0)
    for i, (kind, look) in enumerate(_LOOKS.items()):
        rows = ours[ours["problem"] == kind]
        ends = 100 * (rows["share"] - rows["low"]), 100 * (rows["high"] - rows["share"])
        aside = 1.03 ** (i - 2.5)  # side by side
        left.errorbar(
            aside * rows["parameter"],
            100 * rows["share"],
            ends,
            **look,
            capsize=2,
            label=WORDS[kind],
        )
    left.set(xscale="log", xlabel="beta", ylabel="% of the problems that fail", ylim=(0, None))
    betas = sorted(ours["parameter"].unique())
    left.set_xticks(betas, [f"{b:g}" for b in betas])
    left.minorticks_off()
    left.legend(fontsize=8)
    _draw_ways(right, ours[ours["parameter"] == beta].set_index("problem").loc[[*_LOOKS]])
    right.set_title(f"beta {beta:g}", fontsize=11)
    return figure


def _draw_ways(axis: Axes, rows: pd.DataFrame) -> None:
    """A bar for each kind of problem, made of the ways in which they fail."""
    ways = {
        "no stable fixed point": rows["endless"],
        "slow, or round a stable one": rows["unsettled"] - rows["endless"],
        "several limits": rows["failing"] - rows["unsettled"],
    }
    done = pd.Series(0.0, index=rows.index)
    for (name, counts), colour in zip(ways.items(), _OF_WAYS, strict=True):
        part = 100 * counts / rows["problems"]
        axis.barh(range(len(rows)), part, left=done, color=colour, label=name)
        done += part
    axis.set_yticks(range(len(rows)), [WORDS[kind] for kind in rows.index], fontsize=8)
    axis.invert_yaxis()
    axis.set(xlabel="% of the problems that fail")
    axis.legend(fontsize=8)
