"""How the item on target networks is drawn: learning curves, and means by omega."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.figure import Figure

from ... import style

__all__ = ["draw_curves", "draw_means"]

OF_MAX = ({"color": "#000000", "linestyle": "-"}, {"color": "#D55E00", "linestyle": "--"})
"""With a target network, and without one."""


def draw_curves(curves: pd.DataFrame, mellowmax: str) -> Figure:
    """The mean return by episode, a panel for each environment.

    Args:
        curves: of each setting, with intervals.
        mellowmax: the method that has an omega.
    """
    figure, panels = _panels(curves)
    for axis, (_, rows) in zip(panels, curves.groupby("environment", sort=False), strict=True):
        omegas = sorted(rows.loc[rows["method"] == mellowmax, "omega"].unique())
        shades = dict(zip(omegas, np.linspace(0.1, 0.9, len(omegas)), strict=True))
        others = iter(OF_MAX)
        for (method, omega), part in rows.groupby(["method", "omega"], sort=False):
            if method == mellowmax:
                look: dict[str, Any] = {"color": colormaps["viridis"](shades[omega]), "lw": 1.2}
                look["label"] = f"{method}, omega = {omega:g}"
            else:
                look = {**next(others), "label": method}
            axis.plot(part["episode"], part["mean_return"], **look)
            ends = (part["episode"], part["low"], part["high"])
            axis.fill_between(*ends, color=look["color"], alpha=0.12, lw=0)
        axis.set(xlabel="episode", ylabel="mean return of an episode")
        axis.legend(fontsize=7)
    return figure


def draw_means(means: pd.DataFrame, mellowmax: str) -> Figure:
    """The mean return over all episodes by omega, a panel for each environment."""
    figure, panels = _panels(means)
    for axis, (_, rows) in zip(panels, means.groupby("environment", sort=False), strict=True):
        ours = rows[rows["method"] == mellowmax]
        half = (ours["high"] - ours["low"]) / 2
        look = style.COLOURS["mellowmax"] | {"marker": "o", "capsize": 3, "label": mellowmax}
        axis.errorbar(ours["omega"], ours["mean_return"], half, **look)
        for look, (_, row) in zip(
            OF_MAX, rows[rows["method"] != mellowmax].iterrows(), strict=True
        ):
            axis.axhline(row["mean_return"], **look, label=row["method"])
            axis.axhspan(row["low"], row["high"], color=look["color"], alpha=0.1, lw=0)
        axis.set(xscale="log", xlabel="omega", ylabel="mean return over all episodes")
        axis.set_xticks(ours["omega"], [f"{omega:g}" for omega in ours["omega"]])
        axis.minorticks_off()
        axis.legend(fontsize=7)
    return figure


def _panels(table: pd.DataFrame) -> tuple[Figure, list[Any]]:
    """A figure with a panel for each environment, named above it."""
    names = list(table["environment"].unique())
    figure, axes = style.figure(len(names), height=4.0)
    panels = list(np.atleast_1d(axes))
    for axis, name in zip(panels, names, strict=True):
        axis.set_title(name.replace("_", " "))
    return figure, panels
