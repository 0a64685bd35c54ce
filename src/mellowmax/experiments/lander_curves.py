"""How figure 11 is drawn: learning curves, and means by parameter, with the paper's beside ours."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.figure import Figure

from . import style

__all__ = ["draw_curves", "draw_means", "of_setting"]

_POLICIES = {"boltzmann": "beta", "mellowmax": "omega"}  # and their parameters


def of_setting(table: pd.DataFrame, policy: str, parameter: float) -> pd.DataFrame:
    """The rows of a policy at a parameter."""
    return table[(table["policy"] == policy) & (table["parameter"] == parameter)]


def draw_curves(curves: pd.DataFrame, theirs: pd.DataFrame, width: int) -> Figure:
    """The mean return by episode, one panel for each policy.

    Args:
        curves: ours, with standard errors.
        theirs: the paper's, of which at least the first 3000 episodes are drawn.
        width: of a bin of episodes.
    """
    last = curves["episode"].max() + width / 2
    theirs = theirs[theirs["episode"] <= max(last, 3000)]
    figure, axes = style.figure(2, height=4.0)
    for axis, policy in zip(axes, _POLICIES, strict=True):
        parameters = sorted(theirs.loc[theirs["policy"] == policy, "parameter"].unique())
        shades = np.linspace(0.0, 0.9, len(parameters))
        for parameter, shade in zip(parameters, shades, strict=True):
            colour = colormaps["viridis"](shade)
            printed = of_setting(theirs, policy, parameter)
            label = f"the paper, {_POLICIES[policy]} = {parameter:g}"
            look = {"color": colour, "linestyle": ":", "linewidth": 1.4, "label": label}
            axis.plot(printed["episode"], printed["paper"], **look)
            ours = of_setting(curves, policy, parameter)
            if ours.empty:
                continue
            axis.errorbar(
                ours["episode"],
                ours["mean_return"],
                1.96 * ours["standard_error"],
                color=colour,
                marker="." if len(ours) < 20 else None,
                capsize=2 if len(ours) < 20 else 0,
                elinewidth=0.8,
                label=f"here, {_POLICIES[policy]} = {parameter:g}, with 95 % intervals",
            )
        axis.set(title=policy, xlabel="episode", ylabel="mean return of an episode")
        axis.legend(fontsize=7, loc="lower right")
    axes[1].sharey(axes[0])
    axes[0].autoscale(axis="y")
    return figure


def draw_means(means: pd.DataFrame) -> Figure:
    """The mean return over all episodes that were run, and the share of runs that solve."""
    figure, axes = style.figure(2, height=3.6)
    for policy in _POLICIES:
        ours = means[means["policy"] == policy].sort_values("parameter")
        look = style.COLOURS[policy] | {"marker": "o", "markersize": 4, "capsize": 2}
        error = 1.96 * ours["standard_error"]
        axes[0].errorbar(
            ours["parameter"], ours["mean_return"], error, label=f"{policy}, here, 95 %", **look
        )
        axes[0].plot(ours["parameter"], ours["paper"], **style.PAPER | {"linestyle": "none"})
        share = ours["solved"]
        ends = np.maximum(0, [share - ours["solved_low"], ours["solved_high"] - share])
        axes[1].errorbar(ours["parameter"], share, ends, label=policy, **look)
    axes[0].plot(
        [], [], label="the paper at the same parameters", **style.PAPER | {"linestyle": "none"}
    )
    axes[0].set(ylabel=f"mean return, first {means['episodes'].max():,} episodes")
    axes[1].set(ylabel="share of runs that solve", ylim=(-0.02, 1.02))
    for axis in axes:
        axis.set(xlabel="beta or omega", xlim=(0, 12))
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure
