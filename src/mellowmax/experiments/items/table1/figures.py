"""How the table of section 7.1 is drawn: iterations and shares, the paper's as lines."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ... import style
from ...data import OPERATORS
from .printed import PRINTED, SAMPLE

__all__ = ["draw_rates"]

_OPERATORS = ("boltz", "mm")


def draw_rates(rates: pd.DataFrame) -> dict[str, Figure]:
    """Mean iterations and shares against beta, for each discount and some deltas.

    Args:
        rates: the rows of one kind of sweeps.
    """
    figures = {}
    for name, label in (
        ("iterations", "mean iterations"),
        ("unterminated", "share that did not terminate"),
    ):
        figures[name], axes = style.figure(columns=2, rows=2)
        for axis, (discount, mine) in zip(axes.flat, rates.groupby("discount"), strict=False):
            _by_delta(axis, mine, name)
            axis.set_title(f"discount {discount:g}", fontsize=11)
            axis.set(xscale="log", xlabel="beta = omega", ylabel=label)
        for axis in axes.flat[1:]:
            axis.sharey(axes.flat[0])
        axes.flat[0].autoscale(axis="y")
        handles, labels = axes.flat[0].get_legend_handles_labels()
        figures[name].legend(handles, labels, loc="outside right center")
    figures["several"], axis = style.figure()
    points = rates[rates.operator == "boltz"].drop_duplicates(["discount", "beta"])
    looks = zip((":", "-.", "--", "-"), ("#999999", "#009E73", "#0072B2", "#D55E00"), strict=True)
    for i, ((discount, mine), (line, colour)) in enumerate(
        zip(points.groupby("discount"), looks, strict=False)
    ):
        share = mine.several / mine.mdps
        axis.errorbar(
            mine.beta * 1.03 ** (i - 1.5),  # side by side
            share,
            [share - mine.several_low, mine.several_high - share],
            color=colour,
            linestyle=line,
            capsize=2,
            label=f"discount {discount:g}",
        )
    axis.axhline(3 / SAMPLE, color=style.PAPER["color"], label="the paper: 3 of 200")
    axis.set(xscale="log", xlabel="beta", ylabel="share with several fixed points")
    figures["several"].legend(loc="outside right center")
    return figures


def _by_delta(axis: Axes, rates: pd.DataFrame, name: str) -> None:
    """One line for each operator and every second decade of delta, and the paper's as lines."""
    shown = [delta for delta in sorted(rates.delta.unique()) if round(np.log10(delta), 6) % 2 == 0]
    for operator in _OPERATORS:
        look = style.COLOURS[OPERATORS[operator]]
        for i, delta in enumerate(shown):
            mine = rates[(rates.operator == operator) & (rates.delta == delta)]
            y = mine[name] if name == "iterations" else mine[name] / mine.mdps
            axis.plot(
                mine.beta,
                y,
                marker="o^sD"[i % 4],
                markersize=4,
                label=f"{operator}, delta {delta:.0e}",
                **look,
            )
        printed = PRINTED[operator, name] / (1 if name == "iterations" else SAMPLE)
        line = look["linestyle"]
        axis.axhline(
            printed, color=style.PAPER["color"], linestyle=line, label=f"the paper, {operator}"
        )
