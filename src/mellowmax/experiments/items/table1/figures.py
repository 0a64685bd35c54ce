"""How the table of section 7.1 is drawn: iterations and shares, the paper's as lines."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ... import style
from .printed import PRINTED, SAMPLE

__all__ = ["draw_rates"]

_OPERATORS = ("boltz", "mm")


def draw_rates(rates: pd.DataFrame) -> dict[str, Figure]:
    """Mean iterations and shares against beta, for each discount and some deltas.

    Args:
        rates: the rows of one kind of sweeps.
    """
    return {
        "iterations": _draw_by_delta(rates, "iterations", "mean iterations"),
        "unterminated": _draw_by_delta(rates, "unterminated", "% not terminated"),
        "several": _draw_several(rates[rates.operator == "boltz"]),
    }


def _draw_by_delta(rates: pd.DataFrame, name: str, label: str) -> Figure:
    """A row of panels for each discount, a panel for each operator, a line for some deltas."""
    shown = [delta for delta in sorted(rates.delta.unique()) if round(np.log10(delta), 6) % 2 == 0]
    shades = [colormaps["viridis"](x) for x in np.linspace(0, 0.85, len(shown))]
    discounts = sorted(rates.discount.unique())
    figure = Figure(figsize=(8.0, 2.3 * len(discounts) + 0.8), layout="constrained")
    axes = figure.subplots(len(discounts), 2, sharex=True, sharey=True, squeeze=False)
    for row, discount in zip(axes, discounts, strict=True):
        for axis, operator in zip(row, _OPERATORS, strict=True):
            mine = rates[(rates.discount == discount) & (rates.operator == operator)]
            for delta, colour, mark in zip(shown, shades, "o^sDv<>", strict=False):
                part = mine[mine.delta == delta].sort_values("beta")
                y = part[name] if name == "iterations" else 100 * part[name] / part.mdps
                exponent = f"{np.log10(delta):.0f}"
                look = {"color": colour, "marker": mark, "ms": 4}
                axis.plot(part.beta, y, label=f"delta $10^{{{exponent}}}$", **look)
            printed = PRINTED[operator, name] * (1 if name == "iterations" else 100 / SAMPLE)
            axis.axhline(printed, color=style.PAPER["color"], lw=2, label="the paper")
            axis.set_title(f"{operator}, discount {discount:g}", fontsize=11)
        row[0].set(ylabel=label)
    for axis in axes[-1]:
        _name_betas(axis, rates)
        axis.set(xlabel="beta" if axis is axes[-1, 0] else "omega")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _draw_several(rates: pd.DataFrame) -> Figure:
    """The share of MDPs with several fixed points, a line for each discount."""
    figure, axis = style.figure(height=4.4)
    points = rates.drop_duplicates(["discount", "beta"])
    looks = zip("^vso", ("#999999", "#009E73", "#0072B2", "#D55E00"), strict=True)
    groups = zip(points.groupby("discount"), looks, strict=False)
    for i, ((discount, mine), (mark, colour)) in enumerate(groups):
        mine = mine.sort_values("beta")
        share, low, high = (
            100 * x for x in (mine.several / mine.mdps, mine.several_low, mine.several_high)
        )
        axis.errorbar(
            mine.beta * 1.03 ** (i - 1.5),  # side by side
            share,
            (share - low, high - share),
            color=colour,
            marker=mark,
            ms=5,
            capsize=2,
            label=f"discount {discount:g}",
        )
    printed = 100 * PRINTED["boltz", "several"] / SAMPLE
    axis.axhline(printed, color=style.PAPER["color"], lw=2, label="the paper: 3 of 200")
    axis.set(xlabel="beta", ylabel="% of MDPs with several fixed points", ylim=(0, None))
    _name_betas(axis, rates)
    figure.legend(loc="outside lower center", ncols=2)
    return figure


def _name_betas(axis: Axes, rates: pd.DataFrame) -> None:
    """A logarithmic axis with the betas that were run."""
    betas = sorted(rates.beta.unique())
    axis.set(xscale="log")
    axis.set_xticks(betas, [f"{beta:.3g}" for beta in betas], fontsize=8)
    axis.minorticks_off()
