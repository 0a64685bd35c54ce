"""The transitions of an MDP in main memory: a matrix that multiplies values."""

from __future__ import annotations

import dataclasses
import functools
import weakref
from collections.abc import Callable
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from ..._common.private_names import added_product
from ..._typing import Floats, Integers, Shape
from ...mdp import MDP

__all__ = ["Transitions", "once", "rows_of", "states_of"]

T = TypeVar("T")


def once(function: Callable[[MDP], T]) -> Callable[[MDP], T]:
    """The function, called once for an MDP; the result is kept as long as the MDP is alive."""
    results: weakref.WeakKeyDictionary[MDP, T] = weakref.WeakKeyDictionary()

    @functools.wraps(function)
    def cached(mdp: MDP) -> T:
        try:
            return results[mdp]
        except KeyError:
            return results.setdefault(mdp, function(mdp))

    return cached


@once
def rows_of(mdp: MDP) -> csr_array:
    """`[S * A, S]`, the branches of a sparse MDP by pairs of a state and an action; not the end.

    Several branches may lead to the same state.
    """
    assert mdp.successors is not None
    n_states, n_actions, n_branches = mdp.probabilities.shape
    probabilities = np.ascontiguousarray(mdp.probabilities).reshape(-1)
    successors = np.ascontiguousarray(mdp.successors).reshape(-1)
    counts: npt.NDArray[Any] = np.full(n_states * n_actions, n_branches)
    kept = (probabilities != 0) & (successors < n_states)
    if not kept.all():
        counts = kept.reshape(-1, n_branches).sum(1)
        probabilities, successors = probabilities[kept], successors[kept]
    starts: npt.NDArray[Any]
    starts = np.zeros(counts.size + 1, np.int32 if probabilities.size < 2**31 else np.int64)
    np.cumsum(counts, out=starts[1:])
    return csr_array((probabilities, successors, starts), (counts.size, n_states))


def states_of(mdp: MDP) -> Integers:
    """`[N]`, the state that each of the branches of `rows_of` leads from."""
    counts = np.diff(rows_of(mdp).indptr[:: mdp.n_actions])
    return np.repeat(np.arange(mdp.n_states, dtype=np.int32), counts)


@dataclasses.dataclass(frozen=True, eq=False)
class Transitions:
    """The matrix `P`, whose product with values `[S]` is `[S, A]`."""

    rows: csr_array | Floats  # [S * A, S]
    shape: Shape  # (S, A)

    @classmethod
    def of(cls, mdp: MDP) -> Self:
        """The transitions of an MDP."""
        dense = mdp.successors is None
        rows = mdp.probabilities.reshape(-1, mdp.n_states) if dense else rows_of(mdp)
        return cls(rows, (mdp.n_states, mdp.n_actions))

    def __matmul__(self, values: Floats) -> Floats:
        if isinstance(self.rows, np.ndarray) or (added := added_product()) is None:
            product: Floats = self.rows @ values
        else:
            product = np.zeros(self.rows.shape[0])
            indices = self.rows.indptr, self.rows.indices
            added(*self.rows.shape, *indices, self.rows.data, values, product)
        return product.reshape(self.shape)
