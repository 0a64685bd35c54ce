"""How figure 2 is drawn: one run of each policy, and the statistics of many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ... import style

__all__ = ["draw_runs", "draw_spread"]


def draw_runs(
    runs: pd.DataFrame, theirs: pd.DataFrame, marks: Mapping[str, Sequence[float]]
) -> Figure:
    """One run of each policy, that of Boltzmann over the paper's.

    Args:
        runs: ours.
        theirs: the paper's run.
        marks: for each policy, Q(s1, b) at the stable fixed points of planning.
    """
    figure, axes = style.figure(2)
    for axis, (name, values) in zip(axes, marks.items(), strict=True):
        ours = runs[runs["policy"] == name]
        if name == "boltzmann":
            for action in "ab":
                points = theirs[theirs["action"] == action]
                label = "the paper's run, both" if action == "b" else None
                colour = style.PAPER["color"]
                axis.plot(points["episode"], points["q"], color=colour, lw=0.8, label=label)
        colour = style.COLOURS[name]["color"]
        axis.plot(ours["episode"], ours["q_b"], color=colour, lw=1.2, label="Q(s1, b), here")
        axis.plot(
            ours["episode"], ours["q_a"], color=colour, lw=1.2, ls=":", label="Q(s1, a), here"
        )
        for i, value in enumerate(values):
            label = None if i else "Q(s1, b) at a stable fixed point"
            axis.axhline(value, color="#555555", lw=0.8, ls="--", label=label)
        axis.set(title=f"One run with {name}", xlabel="episode", ylabel="value", ylim=(0, 1.35))
        axis.legend(loc="lower right", ncols=2, fontsize=8)
    return figure


def draw_spread(runs: pd.DataFrame, crossings: int, distance: float) -> Figure:
    """How often runs cross from one fixed point to the other, and how far their values range.

    Args:
        runs: the statistics of ours.
        crossings: those of the paper's run.
        distance: between the two stable fixed points.
    """
    figure, axes = style.figure(2)
    for name, rows in runs.groupby("policy"):
        look = {"color": style.COLOURS[name]["color"], "alpha": 0.75, "label": name}
        most = int(runs["crossings"].max())
        axes[0].hist(rows["crossings"], bins=np.arange(-0.5, most + 1.5), **look)
        axes[1].hist(rows["range_b"], bins=np.linspace(0, 1.2, 49), **look)
    axes[0].axvline(crossings, color=style.PAPER["color"], label="the paper's run")
    axes[0].set(xlabel="crossings from fixed point to fixed point", ylabel="runs")
    axes[1].axvline(distance, color="#555555", ls="--", label="between the fixed points")
    axes[1].set(xlabel="range of Q(s1, b) in the second half", ylabel="runs")
    for axis in axes:
        axis.legend()
    return figure
