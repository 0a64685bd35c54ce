"""Normalised scores of runs in several environments: aggregates, and how sure they are.

Scores are arrays `[..., runs, environments]`, where 0 is what a random policy earns and 1 a
reference. Few runs say little of one environment, so what is said is of all of them together, with
an interval of the stratified bootstrap: the runs of each environment are drawn again, with
replacement, as if they were the population. The conventions are those of rliable, whose numbers the
tests have.

    >>> from mellowmax.experiments.scores import bootstrap, interquartile_mean, normalised
    >>> scores = normalised([[200.0, -100.0], [450.0, -90.0]], [20.0, -500.0], [500.0, -80.0])
    >>> print(scores.round(2))
    [[0.38 0.95]
     [0.9  0.98]]
    >>> float(interquartile_mean(scores).round(3))
    0.924
    >>> low, high = bootstrap(interquartile_mean, scores, resamples=1000)
    >>> bool(low < interquartile_mean(scores) < high)
    True

References:
    Agarwal, Schwarzer, Castro, Courville and Bellemare, "Deep reinforcement learning at the edge of
    the statistical precipice" (2021).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from .._typing import Floats
from .intervals import LEVEL

__all__ = [
    "bootstrap",
    "improvement",
    "interquartile_mean",
    "normalised",
    "profile",
]

AT_A_TIME = 500
"""How many resamples are computed at a time, so that they need little memory."""


def normalised(returns: npt.ArrayLike, random: npt.ArrayLike, reference: npt.ArrayLike) -> Floats:
    """Returns as scores: 0 for those of a random policy, 1 for those of a reference.

    Args:
        returns: `[..., runs, environments]`.
        random: what a random policy earns in each environment.
        reference: what a reference earns there.
    """
    zero, one = np.asarray(random, np.float64), np.asarray(reference, np.float64)
    return (np.asarray(returns, np.float64) - zero) / (one - zero)


def interquartile_mean(scores: Floats) -> Floats:
    """The mean of the middle half of all scores, which no outlier moves far."""
    pooled = scores.reshape(*scores.shape[:-2], -1)
    return np.asarray(stats.trim_mean(pooled, 0.25, axis=-1))[()]


def profile(scores: Floats, thresholds: npt.ArrayLike) -> Floats:
    """A performance profile: the share of scores above each threshold, `[..., thresholds]`."""
    above = scores[..., None] > np.asarray(thresholds, np.float64)
    return np.asarray(above.mean((-3, -2)))[()]


def improvement(scores: Floats, others: Floats) -> Floats:
    """The probability that a run scores higher than one of the others in the same environment.

    It is the mean over the environments; a tie counts as a half.
    """
    one, other = scores[..., :, None, :], others[..., None, :, :]
    return np.asarray(((one > other) + 0.5 * (one == other)).mean((-3, -2, -1)))[()]


def bootstrap(
    statistic: Callable[..., Floats],
    *scores: Floats,
    level: float = LEVEL,
    resamples: int = 10_000,
    seed: int = 0,
) -> tuple[Any, Any]:
    """A percentile interval of a statistic, by the stratified bootstrap.

    Args:
        statistic: a function of arrays like `scores`, with more axes first.
        scores: one or more arrays `[runs, environments]`. Each is resampled by itself.
        level: how often the interval is to hold the truth.
        resamples: how often the runs are drawn.
        seed: of the draws.

    Returns:
        `(low, high)`, each of the shape of the statistic.
    """
    rng = np.random.default_rng(seed)
    parts = []
    for first in range(0, resamples, AT_A_TIME):
        count = min(AT_A_TIME, resamples - first)
        drawn = [
            np.take_along_axis(x[None], rng.integers(0, len(x), (count, *x.shape)), axis=1)
            for x in scores
        ]
        parts.append(statistic(*drawn))
    tail = (1 - level) / 2
    low, high = np.quantile(np.concatenate(parts), [tail, 1 - tail], axis=0)
    return low, high
