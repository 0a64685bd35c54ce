"""The entries of `W P`, from which each form makes its matrix.

Each entry is a sum over the branches from a state to a successor, of the weight of the action times
the probability of the branch. Which sums go into which entry does not depend on the weights, so a
sparse matrix is kept whose product with the weights is the entries. That takes one pass over the
branches, where a product of sparse matrices would take ten. Where few actions have a weight, as
under the maximum, only their branches are visited.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from ..._typing import Floats, Integers
from ...mdp import MDP
from .transitions import once, rows_of

__all__ = ["Entries", "Few", "Merged", "Weights", "entries_of", "row_starts", "scattered"]

Weights: TypeAlias = npt.NDArray[Any]
"""Weights of the actions, `[S, A]`; or one action `[S]` a state, which has all the weight."""


class Few(NamedTuple):
    """A sparse matrix `[S, S]` in the order of its rows; entries with the same place add up."""

    rows: Integers  # [N]
    columns: Integers  # [N]
    values: Floats  # [N]


class Merged(NamedTuple):
    """One entry for all branches from one state to another, row by row, with ascending columns."""

    starts: Integers  # [S + 1], where each row begins
    rows: Integers  # [N]
    columns: Integers  # [N]
    assembly: csr_array  # [N, S * A]

    def values(self, weights: Weights) -> Floats:
        """`[N]`, for the weights `[S, A]` of the actions."""
        return self.assembly @ weights.reshape(-1)


@dataclasses.dataclass(frozen=True, eq=False)
class Entries:
    """The entries of `W P` for a sparse MDP."""

    pairs: csr_array  # [S * A, S], see `rows_of`
    n_actions: int

    def few(self, weights: Weights) -> Few | None:
        """The entries where at most half of the actions have a weight; None where more have."""
        if weights.ndim == 1:
            states = np.arange(len(weights), dtype=np.int32)
            return self._of_pairs(states, states * np.int64(self.n_actions) + weights, None)
        flat = weights.reshape(-1)
        taken = np.flatnonzero(flat)
        if 2 * len(taken) > len(flat):
            return None
        return self._of_pairs((taken // self.n_actions).astype(np.int32), taken, flat[taken])

    def _of_pairs(self, states: Integers, taken: npt.NDArray[Any], weights: Floats | None) -> Few:
        if self._is_even:
            n_pairs = self.pairs.shape[0]
            each = self.pairs.nnz // n_pairs
            columns, values = (
                np.take(x.reshape(n_pairs, each), taken, axis=0).reshape(-1)
                for x in (self.pairs.indices, self.pairs.data)
            )
            counts: Any = each
        else:
            chosen = self.pairs[taken]
            columns, values, counts = chosen.indices, chosen.data, np.diff(chosen.indptr)
        if weights is not None:
            values = values * np.repeat(weights, counts)
        return Few(np.repeat(states, counts), columns, values)

    @functools.cached_property
    def _is_even(self) -> bool:
        """Have all pairs the same number of branches?"""
        counts = np.diff(self.pairs.indptr)
        return bool((counts == counts[0]).all())

    @functools.cached_property
    def merged(self) -> Merged:
        """The entries of all actions, each once."""
        pairs, n = self.pairs, self.pairs.shape[1]
        starts = pairs.indptr[:: self.n_actions].copy()
        numbers = np.arange(pairs.nnz, dtype=starts.dtype)
        by_state = csr_array((numbers, pairs.indices.copy(), starts), (n, n))
        by_state.sort_indices()
        columns, numbers = by_state.indices, by_state.data
        first = np.ones(pairs.nnz, np.bool_)  # of those that lead from a state to the same one
        first[1:] = columns[1:] != columns[:-1]
        first[starts[:-1][np.diff(starts) > 0]] = True
        entries = np.append(np.flatnonzero(first), pairs.nnz).astype(starts.dtype)
        of_pair = np.repeat(np.arange(pairs.shape[0], dtype=starts.dtype), np.diff(pairs.indptr))
        shape = len(entries) - 1, pairs.shape[0]
        assembly = csr_array((pairs.data[numbers], of_pair[numbers], entries), shape)
        merged = np.searchsorted(entries, starts).astype(np.int32)
        rows = np.repeat(np.arange(n, dtype=np.int32), np.diff(merged))
        return Merged(merged, rows, columns[entries[:-1]], assembly)


@once
def entries_of(mdp: MDP) -> Entries:
    """The entries for a sparse MDP."""
    return Entries(rows_of(mdp), mdp.n_actions)


def scattered(places: npt.NDArray[Any], values: Floats, size: int) -> Floats:
    """An array with the sums of the values in their places."""
    sums: Any = np.bincount(places, values, size)
    result: Floats = sums.astype(np.float64, copy=False)  # without a value it is of integers
    return result


def row_starts(rows: Integers, n: int) -> Integers:
    """`[n + 1]`, where each row begins among entries in the order of their rows."""
    starts = np.zeros(n + 1, np.int32)
    np.cumsum(np.bincount(rows, minlength=n), out=starts[1:])
    return starts
