"""The maximum in main memory, without the care that rows of any library and dtype need.

It takes NumPy's `[S, A]` and a mask of them. A solve of a few states under the maximum spends most
of its time in such calls, and the public functions take ten times as long.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .._typing import Bools, Floats, Integers

__all__ = ["greedy_weights", "maximum"]

FEW_ACTIONS = 40
"""With at most this number of actions NumPy takes their maximum faster one by one than by rows."""


def maximum(q: Any, where: Bools | None = None) -> Any:
    """`max(q[s, a])` over the actions `a` of a state that `where` has."""
    if where is not None:
        q = np.where(where, q, -np.inf)
    if q.shape[1] > FEW_ACTIONS:
        return q.max(axis=1)
    return functools.reduce(np.maximum, q.T[1:], q[:, 0].copy())


def greedy_weights(q: Any, where: Bools | None = None) -> Floats | Integers:
    """The best action of each state `[S]`; where some tie, weights `[S, A]`, shared equally."""
    if where is not None:
        q = np.where(where, q, -np.inf)
    best: Integers = q.argmax(axis=1)
    tied = q == q[np.arange(len(q)), best][:, None]
    if np.count_nonzero(tied) == len(q):
        return best
    weights: Floats = tied / np.maximum(tied.sum(axis=1, keepdims=True), 1)
    return weights
