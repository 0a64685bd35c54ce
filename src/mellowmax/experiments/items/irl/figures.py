"""How the item on inverse reinforcement learning is drawn."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...._typing import Floats
from ... import style
from ...intervals import share_interval
from .comparisons import BEST, QUANTITIES, RIVALS
from .verdict import MODELS, WORDS

__all__ = ["draw_curves", "draw_differences"]

_MARKS = {"boltzmann": "o", "mellowmax": "D", "log-sum-exp": "s"}
_PANELS = {
    "failing": "% of fits that fail",
    "sweeps": "sweeps",
    "held_out": "held-out nats a decision",
    "loss": "loss of the policy",
}
_TITLES = {
    "stable": "failures avoided, points",
    "efficient": "ratio of sweeps",
    "loss": "loss, mellowmax minus the other",
    "likelihood": "nats lost on held-out decisions",
}


def draw_curves(curves: pd.DataFrame) -> Figure:
    """A row of panels for each kind of world, a line for each softmax."""
    kinds = list(curves["kind"].unique())
    figure, axes = style.figure(len(_PANELS), len(kinds), height=2.8)
    figure.set_figwidth(12)
    axes = np.reshape(axes, (len(kinds), len(_PANELS)))
    for kind, row in zip(kinds, axes, strict=True):
        for (column, label), axis in zip(_PANELS.items(), row, strict=True):
            _curve(axis, curves[curves["kind"] == kind], column)
            axis.set_title(f"{kind}: {label}", fontsize=10)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


def _curve(axis: Axes, rows: pd.DataFrame, column: str) -> None:
    places = list(rows["at"].unique())
    for aside, model in zip((-0.12, 0.0, 0.12), MODELS, strict=True):
        own = rows[rows["model"] == model].set_index("at").loc[places]
        x = np.arange(len(places)) + aside
        look = {**style.COLOURS[model], "marker": _MARKS[model], "ms": 5, "label": model}
        if column == "failing":
            share, low, high = share_interval(own["failing"].to_numpy(), own["fits"].to_numpy())
            ends = np.array([share - low, high - share])
            axis.errorbar(x, 100 * share, yerr=100 * ends, capsize=2, clip_on=False, **look)
        else:
            axis.plot(x, own[column], **look)
    axis.set_xticks(range(len(places)), places)
    axis.set_xlabel("parameter")
    if column in ("failing", "sweeps"):
        axis.set_ylim(0, None)


def draw_differences(compared: pd.DataFrame) -> Figure:
    """The four comparisons at the best parameters, with the margins of the rule."""
    best = compared[(compared["at"] == BEST) & compared["kind"].isin(WORDS)]
    figure, axes = style.figure(2, 2, height=2.6)
    kinds = [kind for kind in WORDS if kind in set(best["kind"])]
    for axis, (quantity, margin) in zip(np.ravel(axes), QUANTITIES.items(), strict=True):
        own = best[best["quantity"] == quantity].set_index(["rival", "kind"])
        for aside, rival in zip((-0.12, 0.12), RIVALS, strict=True):
            rows = own.loc[rival].loc[kinds]
            mean, low, high = (
                _shown(quantity, rows[name].to_numpy()) for name in ("mean", "low", "high")
            )
            look = {"color": style.COLOURS[rival]["color"], "marker": _MARKS[rival], "ls": "none"}
            places = np.arange(len(kinds)) + aside
            ends = np.array([mean - low, high - mean])
            axis.errorbar(mean, places, xerr=ends, capsize=3, label=f"against {rival}", **look)
        axis.axvline(float(_shown(quantity, np.asarray(margin))), color="#999999", ls=":")
        axis.set_yticks(range(len(kinds)), [WORDS[kind] for kind in kinds])
        axis.set_ylim(len(kinds) - 0.5, -0.5)
        axis.set_xlabel(_TITLES[quantity])
        if quantity != "stable":
            axis.invert_xaxis()
    handles, labels = np.ravel(axes)[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


def _shown(quantity: str, numbers: Floats) -> Floats:
    """In percentage points, or as ratios."""
    if quantity == "efficient":
        return np.asarray(np.exp(numbers))
    return 100 * numbers if quantity == "stable" else numbers
