"""How figure 9 is drawn: mean rewards by parameter and by learning rate, on one scale."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib import colormaps
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
    figure, axes = style.figure(3, height=3.8)
    for axis, policy in zip(axes, _SYMBOLS, strict=True):
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
            label="SARSA here, 95 %, at its best learning rate (the small number)",
            **look,
        )
        if policy == "mellowmax":
            guess = {"color": "#555555", "marker": "^", "ls": ":", "markersize": 6}
            label = "a hypothesis: a root finder that falls back silently"
            axis.plot(fallback["parameter"], fallback["mean_reward"], label=label, **guess)
        planned = {"color": "#555555", "marker": "_", "ls": "none", "markersize": 10}
        axis.plot(
            ours["parameter"],
            ours["planned"],
            label="the policy of planning's fixed point",
            **planned,
        )
        for row in ours.itertuples():
            place = (row.parameter, row.mean_reward)
            text = f"{row.learning_rate:g}"
            axis.annotate(text, place, xytext=(0, 7), textcoords="offset points", fontsize=7)
        axis.set(xscale="log", title=policy, xlabel=_SYMBOLS[policy])
        axis.set(ylabel="mean reward of a step", ylim=(0, height))
        ticks = [0.01, 0.1, 0.5] if policy == "epsilon-greedy" else [0.5, 1, 2, 5, 20]
        axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks], minor=False)
        axis.minorticks_off()
        handles = axis.get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=2)
    return figure


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
