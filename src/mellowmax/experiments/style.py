"""How figures look: colours that survive colour-blindness and print, and dashes too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from .._common.files import replacing

__all__ = ["COLOURS", "PAPER", "figure", "save", "styled"]

COLOURS: dict[str, dict[str, Any]] = {  # Okabe and Ito's, and Tol's
    "max": {"color": "#000000", "linestyle": ":"},
    "mean": {"color": "#999999", "linestyle": "-."},
    "epsilon-greedy": {"color": "#009E73", "linestyle": "-."},
    "boltzmann": {"color": "#D55E00", "linestyle": "--"},
    "mellowmax": {"color": "#0072B2", "linestyle": "-"},
    "log-sum-exp": {"color": "#56B4E9", "linestyle": "--"},
    "free-energy": {"color": "#117733", "linestyle": "-"},
    "sparsemax": {"color": "#661100", "linestyle": ":"},
    "resmax": {"color": "#882255", "linestyle": "-."},
}
PAPER: dict[str, Any] = {"color": "#CC79A7", "marker": "x", "linewidth": 1.2, "markersize": 5}
"""The paper's own numbers, wherever they are drawn with ours."""

_SETTINGS: Any = {
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "svg.hashsalt": "mellowmax",
    "svg.fonttype": "path",
    "savefig.facecolor": "white",
}


@contextmanager
def styled() -> Iterator[None]:
    """Draw in this style, without a display."""
    with matplotlib.rc_context(_SETTINGS):
        yield


def figure(columns: int = 1, rows: int = 1, *, height: float = 3.6) -> tuple[Figure, Any]:
    """A figure and its axes; two columns fill the width of the report."""
    result = Figure(figsize=(5.0 * columns, height * rows), layout="constrained")
    return result, result.subplots(rows, columns)


def save(figure: Figure, path: Path) -> None:
    """Write a figure as SVG to `path` and as PNG beside it; the same figure gives the same bytes.

    Args:
        figure: drawn within `styled`, and saved within it.
        path: of the SVG file, in a directory that exists.
    """
    with replacing(path) as file:
        figure.savefig(file, format="svg", metadata={"Date": None})
    with replacing(path.with_suffix(".png")) as file:
        figure.savefig(file, format="png", dpi=150, metadata={"Software": None})
