"""The picture of a learning curve: the mean over runs, with each run behind it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .._typing import Floats
from ..experiments import style
from ..experiments.intervals import mean_interval

__all__ = ["block_means", "draw"]

POINTS, FINE_POINTS = 25, 200
"""How many points a curve has at most: that of the mean, and that of a run."""


def draw(
    path: Path, returns: Sequence[npt.NDArray[Any]], batch: int, softmax: str, title: str
) -> None:
    """Draw what runs have returned, as SVG and as PNG.

    Args:
        path: of the SVG file.
        returns: of the episodes that each run has played.
        batch: how many episodes an update has; a point is the mean of whole batches.
        softmax: the name of the last layer, for the colour.
        title: above the picture.
    """
    look = style.COLOURS[softmax]
    longest, shortest = max(map(len, returns)), min(map(len, returns))
    coarse, fine = (batch * math.ceil(longest / batch / n) for n in (POINTS, FINE_POINTS))
    with style.styled():
        figure, axis = style.figure()
        faint = {"color": look["color"], "alpha": 0.3, "linewidth": 0.8}
        axis.plot([], [], label=f"a run, mean of {fine} episodes", **faint)
        for run in returns:
            axis.plot(*block_means(run, fine), **faint)
        # The mean is over the episodes that all runs have played.
        blocks = [block_means(run[:shortest], coarse) for run in returns]
        at, curves = blocks[0][0], np.stack([means for _, means in blocks])
        label = f"mean of {coarse} episodes"
        if len(curves) > 1:
            label += f" of {len(curves)} runs, 95 %"
            _, low, high = mean_interval(curves)
            axis.fill_between(at, low, high, color=look["color"], alpha=0.2, lw=0)
        axis.plot(at, curves.mean(0), label=label, **look)
        axis.set(title=title, xlabel="episode", ylabel="return")
        axis.legend(fontsize=8)
        style.save(figure, path)


def block_means(returns: npt.NDArray[Any], size: int) -> tuple[Floats, Floats]:
    """The middles and the means of blocks of `size` episodes; the last may be shorter."""
    ends = np.append(np.arange(0, len(returns), size), len(returns))
    sums = np.append(0, np.cumsum(returns, dtype=np.float64))
    return (ends[1:] + ends[:-1]) / 2, np.diff(sums[ends]) / np.diff(ends)
