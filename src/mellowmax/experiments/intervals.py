"""Intervals that hold the truth 95 times in 100, and the tests that go with them.

Quantiles are those of `scipy.special`. `scipy.stats`, which takes half a second to import, is
imported by the tests alone: `mellowmax train` needs an interval for its learning curve.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt
from scipy import special

from .._typing import Floats

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "LEVEL",
    "POWER",
    "difference",
    "holm",
    "mean_interval",
    "share_difference",
    "share_interval",
]

LEVEL = 0.95
POWER = 0.8
"""How often an experiment is to show the smallest difference that it is said to be able to show."""


@overload
def share_interval(count: int, total: int) -> tuple[float, float, float]: ...


@overload
def share_interval(count: npt.ArrayLike, total: npt.ArrayLike) -> tuple[Floats, Floats, Floats]: ...


def share_interval(count: npt.ArrayLike, total: npt.ArrayLike) -> tuple[Any, Any, Any]:
    """Clopper and Pearson's interval for a probability, or for many of them.

    Its ends are the probabilities at which a count at least as large, or at most as large, as the
    one seen has a chance of 2.5 %.

    Args:
        count: how often it happened.
        total: how often it could have happened.

    Returns:
        `(share, low, high)`.
    """
    k, n = np.asarray(count), np.asarray(total)
    tail = (1 - LEVEL) / 2
    low = np.where(k == 0, 0.0, special.betaincinv(k, n - k + 1, tail))
    high = np.where(k == n, 1.0, special.betaincinv(k + 1, n - k, 1 - tail))
    return k / n, low[()], high[()]


def share_difference(
    count: int, total: int, other_count: int, other_total: int
) -> dict[str, float]:
    """How much larger one share is than another, by Fisher's exact test.

    The interval is made of those of the two shares (Zou and Donner, 2008).

    Args:
        count: how often it happened.
        total: how often it could have happened.
        other_count: how often it happened among the others.
        other_total: how often it could have happened among them.

    Returns:
        `difference`, the ends of its interval `low` and `high`, and `p_value`.
    """
    from scipy import stats

    share, low, high = share_interval(count, total)
    other, other_low, other_high = share_interval(other_count, other_total)
    table = [[count, total - count], [other_count, other_total - other_count]]
    return {
        "difference": share - other,
        "low": share - other - math.hypot(share - low, other_high - other),
        "high": share - other + math.hypot(high - share, other - other_low),
        "p_value": float(stats.fisher_exact(table).pvalue),
    }


def mean_interval(numbers: Floats) -> tuple[Any, Any, Any]:
    """The mean over the first axis, and Student's interval for it: `(mean, low, high)`."""
    mean, count = numbers.mean(0), len(numbers)
    half = special.stdtrit(count - 1, (1 + LEVEL) / 2) * numbers.std(0, ddof=1) / count**0.5
    return mean, mean - half, mean + half


def difference(one: pd.Series[Any], other: pd.Series[Any], tests: int = 1) -> dict[str, Any]:
    """How much larger the mean of some numbers is than that of others, by Welch's test.

    Args:
        one: some numbers.
        other: others.
        tests: the number of tests that share the error rate of 5 %, this one included.

    Returns:
        `difference`, the ends of its interval `low` and `high`, `p_value`, `detectable`: the true
        difference that a test with an error rate of 5 % / `tests` finds in 80 % of experiments with
        as much scatter, and `runs`: how many numbers each side has, at least.
    """
    from scipy import stats

    test = stats.ttest_ind(one, other, equal_var=False)
    low, high = test.confidence_interval(LEVEL)
    error = (high - low) / 2 / special.stdtrit(test.df, (1 + LEVEL) / 2)
    quantiles = special.stdtrit(test.df, [1 - (1 - LEVEL) / (2 * tests), POWER])
    return {
        "difference": one.mean() - other.mean(),
        "low": low,
        "high": high,
        "p_value": test.pvalue,
        "detectable": error * quantiles.sum(),
        "runs": min(len(one), len(other)),
    }


def holm(p_values: npt.ArrayLike) -> Floats:
    """P values of several tests after Holm's correction.

    If those below 5 % are called findings, the chance of any false one is at most 5 %, however the
    tests depend on each other.
    """
    p = np.asarray(p_values, np.float64)
    order = np.argsort(p)
    corrected = np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1))
    result = np.empty_like(p)
    result[order] = np.minimum(corrected, 1)
    return result
