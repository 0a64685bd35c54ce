"""How the item on averagers is drawn: the shares of problems that fail, and how they fail."""

from __future__ import annotations

import textwrap

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ... import style
from .verdict import WORDS

__all__ = ["draw_shares", "draw_ways"]

_OF_BOLTZMANN = ("#E69F00", "v"), ("#D55E00", "o"), ("#6B2E00", "^")
"""Colour and mark for each beta, from the lowest."""
_OF_WAYS = ("#D55E00", "#E69F00", "#0072B2")


def draw_shares(shares: pd.DataFrame, omega: float) -> Figure:
    """The share of problems that fail, for each beta, and for mellowmax at one omega."""
    figure, axis = style.figure(height=5.6)
    _name_kinds(axis)
    boltzmann = shares[shares["operator"] == "boltzmann"]
    betas = sorted(boltzmann["parameter"].unique())
    series = [
        (f"Boltzmann, beta = {beta:g}", boltzmann[boltzmann["parameter"] == beta], look)
        for beta, look in zip(betas, _OF_BOLTZMANN, strict=True)
    ]
    ours = shares[(shares["operator"] == "mellowmax") & (shares["parameter"] == omega)]
    series.append(
        (f"mellowmax, omega = {omega:g}", ours, (style.COLOURS["mellowmax"]["color"], "D"))
    )
    aside = np.linspace(-0.27, 0.27, len(series))  # one below the other
    for (name, rows, (colour, mark)), by in zip(series, aside, strict=True):
        rows = rows.set_index("problem").loc[[*WORDS]]
        share, low, high = (100 * rows[column] for column in ("share", "low", "high"))
        look = {
            "color": colour,
            "marker": mark,
            "ls": "none",
            "capsize": 2,
            "ms": 5,
            "clip_on": False,
        }
        places = np.arange(len(rows)) + by
        axis.errorbar(share, places, xerr=(share - low, high - share), **look, label=name)
    axis.set(xlabel="% of the problems that fail", xlim=(0, None))
    figure.legend(loc="outside lower center", ncols=2, fontsize=10)
    return figure


def draw_ways(shares: pd.DataFrame, beta: float) -> Figure:
    """The ways in which problems fail under Boltzmann's softmax at one beta."""
    ours = shares[(shares["operator"] == "boltzmann") & (shares["parameter"] == beta)]
    rows = ours.set_index("problem").loc[[*WORDS]]
    figure, axis = style.figure(height=4.6)
    _name_kinds(axis)
    ways = {
        "no stable fixed point": rows["endless"],
        "slow, or round a stable one": rows["unsettled"] - rows["endless"],
        "several limits": rows["failing"] - rows["unsettled"],
    }
    done = pd.Series(0.0, index=rows.index)
    for (name, counts), colour in zip(ways.items(), _OF_WAYS, strict=True):
        part = 100 * counts / rows["problems"]
        axis.barh(range(len(rows)), part, left=done, height=0.6, color=colour, label=name)
        done += part
    axis.set(xlabel=f"% of the problems that fail at beta = {beta:g}")
    figure.legend(loc="outside lower center", ncols=2, fontsize=10)
    return figure


def _name_kinds(axis: Axes) -> None:
    """A row for each kind of problem, the first one above; a line below what is compared."""
    names = [textwrap.fill(words, 15) for words in WORDS.values()]
    axis.set_yticks(range(len(names)), names, fontsize=10)
    axis.set_ylim(len(names) - 0.5, -0.5)
    axis.axhline([*WORDS].index("fine line") - 0.5, color="#999999", lw=0.8)
