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


def share_interval(count: Any, total: Any) -> tuple[Any, Any, Any]:
    """`(share, low, high)`: Clopper and Pearson's interval for a probability, or for many."""
    k, n = np.asarray(count), np.asarray(total)
    tail = (1 - LEVEL) / 2
    low = np.where(k == 0, 0.0, stats.beta.ppf(tail, k, n - k + 1))
    high = np.where(k == n, 1.0, stats.beta.ppf(1 - tail, k + 1, n - k))
    return k / n, low, high
