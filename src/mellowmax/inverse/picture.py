"""An estimate as a picture: each parameter with its 95 % interval."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .._common.extras import needed_by
from .._common.text import shortened, visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["NORMAL", "picture"]

NORMAL = 1.959963984540054
"""A normal variable is within this many standard deviations of its mean 95 % of the time."""
COLOUR = "#0072B2"
MOST_NAMES = 30
"""The most names on the axis."""


def picture(fields: Mapping[str, Any]) -> Figure:
    """The figure of an estimate, from its fields."""
    with needed_by("plot", "experiments"):
        figures = importlib.import_module("matplotlib.figure")
    names = [visible(shortened(name, 30)) for name in fields["names"]]
    estimates, errors = fields["parameters"], fields["standard_errors"]
    known = np.isfinite(errors)
    places = np.arange(len(names))
    height = 1.2 + 0.3 * min(len(names), MOST_NAMES)
    figure: Figure = figures.Figure(figsize=(5.0, height), layout="constrained")
    axes = figure.subplots()
    axes.axvline(0.0, color="#999999", linewidth=0.8)
    reach = NORMAL * errors[known]
    axes.errorbar(estimates[known], places[known], xerr=reach, fmt="o", color=COLOUR)
    axes.plot(estimates[~known], places[~known], "o", color=COLOUR, markerfacecolor="white")
    step = -(-len(names) // MOST_NAMES)
    axes.set_yticks(places[::step], names[::step])
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlabel("estimate, with its 95 % interval")
    return figure
