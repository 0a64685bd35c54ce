"""Intervals that hold the truth 95 times in 100."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

__all__ = ["share_interval"]

LEVEL = 0.95


def share_interval(count: Any, total: Any) -> tuple[Any, Any, Any]:
    """`(share, low, high)`: Clopper and Pearson's interval for a probability, or for many."""
    k, n = np.asarray(count), np.asarray(total)
    tail = (1 - LEVEL) / 2
    low = np.where(k == 0, 0.0, stats.beta.ppf(tail, k, n - k + 1))
    high = np.where(k == n, 1.0, stats.beta.ppf(1 - tail, k + 1, n - k))
    return k / n, low, high
