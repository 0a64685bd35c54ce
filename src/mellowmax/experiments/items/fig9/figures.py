"""How figure 9 is drawn: mean rewards by parameter and by learning rate, on one scale."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ... import style

__all__ = ["draw_rates", "draw_rewards"]

_SYMBOLS = {"epsilon-greedy": "epsilon", "boltzmann": "beta", "mellowmax": "omega"}


def draw_rewards(best: pd.DataFrame, fallback: pd.DataFrame, theirs: pd.DataFrame) -> Figure:
    """A panel for each policy: ours at its best learning rate, and the paper's.

    Args:
        best: ours.
        fallback: what the hypothesis of a silent fallback earns, for the panel of mellowmax.
        theirs: the paper's points.
    """
    height = 1.1 * max(best["mean_reward"].max(), best["planned"].max(), best["paper"].max())
    figure = Figure(figsize=(15.0, 5.4), layout="constrained")
    axes = figure.subplots(2, 3, sharex="col", sharey="row", height_ratios=(3, 1))
    for axis, below, policy in zip(*axes, _SYMBOLS, strict=True):
        ours = best[best["policy"] == policy]
        look = style.COLOURS[policy]
        printed = theirs[theirs["policy"] == policy]
        axis.plot(printed["parameter"], printed["mean_reward"], label="the paper", **style.PAPER)
        axis.errorbar(
            ours["parameter"],
            ours["mean_reward"],
            1.96 * ours["standard_error"],
            marker="o",
            markersize=4,
            capsize=2,
            label="SARSA here, 95 %, at its best learning rate",
            **look,
        )
        if policy == "mellowmax":
            _draw_hypotheses(axis, fallback)
        planned = {"color": "#555555", "marker": "_", "ls": "none", "markersize": 10}
        axis.plot(
            ours["parameter"],
            ours["planned"],
            label="the policy of planning's fixed point",
            **planned,
        )
        below.plot(ours["parameter"], ours["learning_rate"], "o", color=look["color"], ms=4)
        axis.set(xscale="log", title=policy, ylim=(0, height))
        below.set(xlabel=_SYMBOLS[policy], ylim=(0, 1.1))
        ticks = [0.01, 0.1, 0.5] if policy == "epsilon-greedy" else [0.5, 1, 2, 5, 20]
        below.set_xticks(ticks, [f"{tick:g}" for tick in ticks], minor=False)
        below.minorticks_off()
        axis.minorticks_off()
        handles = axis.get_legend_handles_labels()
    axes[0, 0].set(ylabel="mean reward of a step")
    axes[1, 0].set(ylabel="best\nlearning rate")
    figure.legend(*handles, loc="outside lower center", ncols=2)
    return figure


def _draw_hypotheses(axis: Axes, fallback: pd.DataFrame) -> None:
    """What root finders that fall back silently earn, for each bracket."""
    groups = fallback.groupby(["low", "high"], sort=False)
    looks = (("#333333", "^"), ("#888888", "s"))
    for ((low, high), rows), (colour, mark) in zip(groups, looks, strict=False):
        look: dict[str, Any] = {"color": colour, "marker": mark, "ls": ":", "mfc": "none"}
        label = f"a hypothesis: a silent fallback, bracket [{low:g}, {high:g}]"
        axis.plot(rows["parameter"], rows["mean_reward"], label=label, **look)


def draw_rates(rates: pd.DataFrame) -> Figure:
    """The mean reward by learning rate, a curve for each parameter."""
    height = 1.25 * rates["mean_reward"].max()
    figure, axes = style.figure(3, height=3.6)
    for axis, policy in zip(axes, _SYMBOLS, strict=True):
        groups = list(rates[rates["policy"] == policy].groupby("parameter"))
        for (parameter, rows), shade in zip(
            groups, np.linspace(0.0, 0.9, len(groups)), strict=True
        ):
            look = {"color": colormaps["viridis"](shade), "marker": ".", "label": f"{parameter:g}"}
            axis.plot(rows["learning_rate"], rows["mean_reward"], **look)
        axis.set(title=policy, xlabel="learning rate", ylabel="mean reward of a step")
        axis.set_ylim(0, height)
        axis.legend(fontsize=7, ncols=3, title=_SYMBOLS[policy], loc="upper left")
    return figure
