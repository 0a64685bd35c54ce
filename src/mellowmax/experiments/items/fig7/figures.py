"""The curves of figure 7: which choice comes nearest by a rule, what it gives, how it is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ...._typing import Floats
from ... import style
from ...data import OPERATORS, paper

__all__ = ["curve", "draw_distances", "draw_iterations", "nearest", "of_a_rule", "title"]


def curve(table: pd.DataFrame, operator: str) -> tuple[Floats, Floats]:
    """The parameters of an operator and its iterations."""
    rows = table[table.operator == operator]
    return rows.parameter.to_numpy(), rows.iterations.to_numpy()


def nearest(table: pd.DataFrame, rule: str, sweeps: str) -> pd.DataFrame:
    """The points of the choice that is nearest to the figure by a rule."""
    rows = table[(table.rule == rule) & (table.sweeps == sweeps)]
    best = rows.loc[rows.distance.idxmin()]
    return rows[(rows.labels == best.labels) & (rows.delta == best.delta)]


def of_a_rule(points: pd.DataFrame) -> dict[str, object]:
    """What the nearest choice by a rule gives."""
    factor = np.exp(abs(np.log(points.iterations / points.paper)).groupby(points.operator).mean())
    x, y = curve(points, "boltz")
    numbers = {
        "factor": np.exp(points.distance.iloc[0]),
        "factor_boltz": factor["boltz"],
        "factor_mm": factor["mm"],
        "max": curve(points, "max")[1][0],
        "peak": y.max(),
        "peak_beta": x[y.argmax()],
    }
    return {**points.iloc[0].to_dict(), **numbers}


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
            theirs = points[points.operator == operator]
            axis.plot(
                theirs.parameter,
                theirs.iterations,
                **style.PAPER | {"linestyle": "none"},
                label="the paper, all three" if operator == "max" else None,
            )
        axis.set(yscale="log", xlabel="beta of boltz, omega of mm", ylabel="iterations")
        axis.set(ylim=(10, 10_000))
        axis.set_title(title, fontsize=10)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
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
