"""Intervals that hold the truth 95 times in 100."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt
from scipy import stats

from .._typing import Floats

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["LEVEL", "difference", "mean_interval", "share_interval"]

LEVEL = 0.95


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
    low = np.where(k == 0, 0.0, stats.beta.ppf(tail, k, n - k + 1))
    high = np.where(k == n, 1.0, stats.beta.ppf(1 - tail, k + 1, n - k))
    return k / n, low[()], high[()]


def mean_interval(numbers: Floats) -> tuple[Any, Any, Any]:
    """The mean over the first axis, and Student's interval for it: `(mean, low, high)`."""
    mean, count = numbers.mean(0), len(numbers)
    half = stats.t.ppf((1 + LEVEL) / 2, count - 1) * numbers.std(0, ddof=1) / count**0.5
    return mean, mean - half, mean + half


def difference(one: pd.Series[Any], other: pd.Series[Any]) -> dict[str, Any]:
    """How much larger the mean of some numbers is than that of others, by Welch's test.

    Returns:
        `difference`, the ends of its interval `low` and `high`, `p_value`, and `runs`: how many
        numbers each side has, at least.
    """
    test = stats.ttest_ind(one, other, equal_var=False)
    low, high = test.confidence_interval(LEVEL)
    return {
        "difference": one.mean() - other.mean(),
        "low": low,
        "high": high,
        "p_value": test.pvalue,
        "runs": min(len(one), len(other)),
    }
