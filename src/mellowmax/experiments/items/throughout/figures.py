"""How the item on all of reinforcement learning is drawn: differences, and performance profiles."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ... import style
from .verdict import MARGIN, NAMES

__all__ = ["draw_differences", "draw_profiles"]


def draw_differences(differences: pd.DataFrame) -> Figure:
    """The difference of each algorithm with its interval, and the margin around none."""
    figure, axis = style.figure(height=2.8)
    at = np.arange(len(differences))[::-1]
    for ending, offset, label in (("", 0.12, "as chosen"), ("_of_all", -0.12, "all settings")):
        middle = differences[f"difference{ending}"].to_numpy()
        ends = [middle - differences[f"low{ending}"], differences[f"high{ending}"] - middle]
        look = style.COLOURS["mellowmax" if ending == "" else "boltzmann"]
        axis.errorbar(
            middle, at + offset, xerr=ends, fmt="o", color=look["color"], capsize=3, label=label
        )
    axis.axvspan(-MARGIN, MARGIN, color="0.9", lw=0)
    axis.axvline(0, color="0.6", lw=0.8)
    axis.set_yticks(at, [NAMES[name] for name in differences["algorithm"]])
    axis.set_xlabel("mellowmax minus Boltzmann: interquartile means of normalised scores")
    axis.legend(fontsize=8)
    return figure


def draw_profiles(profiles: pd.DataFrame) -> Figure:
    """The share of runs above each score, a panel for each algorithm."""
    names = list(profiles["algorithm"].unique())
    figure, axes = style.figure(len(names), height=2.8)
    for axis, name in zip(np.atleast_1d(axes), names, strict=True):
        rows = profiles[profiles["algorithm"] == name]
        for softmax, part in rows.groupby("softmax", sort=False):
            look = style.COLOURS[str(softmax)]
            axis.plot(part["threshold"], part["share"], label=softmax, **look)
            ends = (part["threshold"], part["low"], part["high"])
            axis.fill_between(*ends, color=look["color"], alpha=0.15, lw=0)
        axis.set(title=NAMES[name], xlabel="score", ylabel="share of runs above")
    np.atleast_1d(axes)[0].legend(fontsize=8)
    return figure
