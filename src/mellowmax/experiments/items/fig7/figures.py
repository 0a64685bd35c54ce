"""How figure 7 is drawn: iterations by parameter, over the paper's points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ... import style
from ...data import OPERATORS, paper
from .choices import curve

__all__ = ["draw_distances", "draw_iterations", "title"]

_MARKS = {"max": "s", "boltz": "o", "mm": "^"}
"""The paper's points, in the colour of our line."""


def title(words: str, points: pd.DataFrame) -> str:
    """The title of a panel: words, and what the choice is."""
    best = points.iloc[0]
    return (
        f"{words}: Q(s1, a) = {best.initial_a:.3g},\nQ(s1, b) = {best.initial_b:.3g} at first, "
        f"delta {best.delta:.2g}, {best.labels} labels"
    )


def draw_iterations(shown: Sequence[tuple[str, pd.DataFrame]]) -> Figure:
    """Four panels of one scale, each with the curves of a choice over the paper's points.

    Args:
        shown: the title and the table of each panel.
    """
    points = paper("fig7_iterations")
    figure, axes = style.figure(columns=2, rows=2)
    for axis, (title, table) in zip(axes.flat, shown, strict=True):
        for operator, colour in OPERATORS.items():
            x, y = curve(table, operator)
            if operator == "max":
                axis.axhline(y[0], label="max, here", **style.COLOURS[colour])
            else:
                axis.plot(x, y, label=f"{operator}, here", **style.COLOURS[colour])
        for operator, mark in _MARKS.items():
            theirs = points[points.operator == operator]
            axis.plot(
                theirs.parameter,
                theirs.iterations,
                mark,
                color=style.COLOURS[OPERATORS[operator]]["color"],
                mfc="none",
                ms=5,
                label=f"{operator}, the paper",
            )
        axis.set(yscale="log", xlabel="beta of boltz, omega of mm", ylabel="iterations")
        axis.set(ylim=(10, 10_000))
        axis.set_title(title, fontsize=10)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def draw_distances(choices: pd.DataFrame, words: Mapping[str, str]) -> Figure:
    """How far the nearest initial values are from the paper's points, by delta and rule.

    Args:
        choices: the nearest choice for each rule, kind of sweeps, labels and delta.
        words: of each rule.
    """
    figure, axis = style.figure()
    colours = dict(zip(words, ("#0072B2", "#D55E00"), strict=True))
    for (rule, kind), rows in choices.groupby(["rule", "sweeps"], sort=False):
        least = rows.groupby("delta").distance.min()
        look = {"color": colours[rule], "linestyle": "-" if kind == "in-place" else "--"}
        axis.plot(least.index, np.exp(least), label=f"{words[rule]}, {kind}", **look)
    axis.set(xscale="log", xlabel="delta", ylabel="mean factor to the paper's points")
    axis.set(ylim=(1, None))
    axis.legend(fontsize=8)
    return figure
