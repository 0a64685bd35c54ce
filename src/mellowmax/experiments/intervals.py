"""Intervals that hold the truth 95 times in 100."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

__all__ = ["mean_interval", "share_interval"]

LEVEL = 0.95


def mean_interval(values: Any) -> tuple[float, float, float]:
    """`(mean, low, high)`: Student's interval for the mean of independent values."""
    values = np.asarray(values, np.float64)
    mean = float(values.mean())
    if len(values) < 2:
        return mean, -np.inf, np.inf
    width = float(stats.t.ppf((1 + LEVEL) / 2, len(values) - 1)) * stats.sem(values)
    return mean, mean - width, mean + width


def share_interval(count: int, total: int) -> tuple[float, float, float]:
    """`(share, low, high)`: Clopper and Pearson's interval for a probability."""
    interval = stats.binomtest(int(count), int(total)).proportion_ci(LEVEL, method="exact")
    return count / total, float(interval.low), float(interval.high)
