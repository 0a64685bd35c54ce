"""How figure 11 is drawn: learning curves and means by parameter, the paper's and ours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ... import style
from .parts import FIGURE, HELD, SMALLER_RATE

__all__ = ["draw_curves", "draw_means", "draw_parts", "of_setting"]

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
    figure, axes = style.figure(2, height=4.6)
    for axis, policy in zip(axes, _POLICIES, strict=True):
        parameters = sorted(theirs.loc[theirs["policy"] == policy, "parameter"].unique())
        shades = np.linspace(0.0, 0.9, len(parameters))
        for parameter, shade in zip(parameters, shades, strict=True):
            colour = colormaps["viridis"](shade)
            printed = of_setting(theirs, policy, parameter)
            axis.plot(printed["episode"], printed["paper"], color=colour, ls=":", lw=1.4)
            ours = of_setting(curves, policy, parameter)
            axis.errorbar(
                ours["episode"],
                ours["mean_return"],
                1.96 * ours["standard_error"],
                color=colour,
                marker="." if len(ours) < 20 else None,
                capsize=2 if len(ours) < 20 else 0,
                elinewidth=0.8,
                label=f"{_POLICIES[policy]} = {parameter:g}",
            )
        axis.set(title=policy, xlabel="episode", ylabel="mean return of an episode")
        handles = axis.get_legend_handles_labels()
        axis.legend(*handles, fontsize=9, loc="lower right", bbox_to_anchor=(1, 0.02))
    axes[1].sharey(axes[0])
    axes[0].autoscale(axis="y")
    kinds = {"the paper": ":", "here, with 95 % intervals": "-"}
    lines = [Line2D([], [], color="black", ls=line, label=name) for name, line in kinds.items()]
    figure.legend(handles=lines, loc="outside lower center", ncols=2)
    return figure


def draw_means(means: pd.DataFrame) -> Figure:
    """The mean return over all episodes that were run, and the share of runs that solve."""
    figure, axes = style.figure(2, height=3.6)
    for policy in _POLICIES:
        ours = means[means["policy"] == policy].sort_values("parameter")
        look = _points(axes[0], ours, policy, f"{policy}, here, 95 %")
        mark = {"color": look["color"], "marker": "x", "ls": "none", "ms": 8, "mew": 2}
        axes[0].plot(ours["parameter"], ours["paper"], label=f"{policy}, the paper", **mark)
        share = ours["solved"]
        ends = np.maximum(0, [share - ours["solved_low"], ours["solved_high"] - share])
        axes[1].errorbar(ours["parameter"], share, ends, label=policy, **look)
    axes[0].set(ylabel=_ylabel(means))
    axes[1].set(ylabel="share of runs that solve", ylim=(-0.02, 1.02))
    for axis in axes:
        axis.set(xlabel="beta or omega", xlim=(0, 12))
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def draw_parts(means: pd.DataFrame) -> Figure:
    """The mean return over all episodes in each part but the figure's own.

    Beside the part with mellowmax's inverse temperature held fixed is the one that it is from.

    Args:
        means: of all parts.
    """
    parts = [part for part in means["part"].unique() if part != FIGURE]
    figure, axes = style.figure(2, -(-len(parts) // 2), height=3.4)
    ylabel = _ylabel(means)
    for axis, part in zip(np.ravel(axes), parts, strict=False):
        for policy in _POLICIES:
            ours = means[(means["policy"] == policy) & (means["part"] == part)]
            if len(ours):
                _points(axis, ours.sort_values("parameter"), policy, policy)
        if part == HELD:
            through = means[(means["policy"] == "mellowmax") & (means["part"] == SMALLER_RATE)]
            label = "mellowmax, through the inverse temperature"
            grey = {"color": "#999999", "linestyle": ":"}
            _points(axis, through.sort_values("parameter"), "mellowmax", label, **grey)
        axis.set(title=part, xlabel="beta or omega", ylabel=ylabel)
        axis.legend(fontsize=8)
    for axis in np.ravel(axes)[len(parts) :]:
        axis.remove()
    return figure


def _ylabel(means: pd.DataFrame) -> str:
    return f"mean return,\nfirst {means['episodes'].max():,} episodes"


def _points(axis: Any, ours: pd.DataFrame, policy: str, label: str, **other: str) -> dict[str, Any]:
    """Mean returns with 95 % intervals; what they look like."""
    look = style.COLOURS[policy] | {"marker": "o", "markersize": 4, "capsize": 2} | other
    error = 1.96 * ours["standard_error"]
    axis.errorbar(ours["parameter"], ours["mean_return"], error, label=label, **look)
    return look
