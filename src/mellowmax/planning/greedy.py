"""The maximum in main memory, without the care that rows of any library and dtype need.

It takes finite NumPy arrays `[S, A]` and a mask. A solve of a few states under the maximum spends
most of its time in such calls, and the public functions take ten times as long.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from .._typing import Bools, Floats
from ..softmax import Max

__all__ = ["Greedy", "maximum"]

FEW_ACTIONS = 40
"""The most actions whose maximum NumPy takes faster one by one than row by row."""


@dataclasses.dataclass(frozen=True)
class Greedy(Max):
    """The maximum of action values `[S, A]` in main memory."""

    def value(self, q: Any, *, axis: int = -1, where: Any = None) -> Any:
        """The largest of each state."""
        return maximum(q, where)

    def gradient(self, q: Any, *, axis: int = -1, where: Any = None) -> Any:
        """The greedy policy, ties shared equally."""
        best = q == maximum(q, where)[:, None]
        if where is not None:
            best &= where
        weights = best.astype(np.float64)
        if np.count_nonzero(best) != len(q):
            weights /= np.maximum(best.sum(axis=1, keepdims=True), 1)
        return weights


def maximum(q: Floats, where: Bools | None = None) -> Floats:
    """`max(q[s, a])` over the actions `a` of a state that `where` has."""
    if where is not None:
        q = np.where(where, q, -np.inf)
    if q.shape[1] > FEW_ACTIONS:
        return q.max(axis=1)
    return functools.reduce(np.maximum, q.T[1:], q[:, 0].copy())
