"""A banded matrix and its LU factorisation by LAPACK.

The states of inventories, queues and ageing lead to states with numbers near their own. If they are
numbered in another way, the reverse order of Cuthill and McKee (1969) finds such a numbering where
there is one.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import NamedTuple, Self

import numpy as np
from scipy.linalg import lapack
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from ..._typing import Floats, Integers
from ...mdp import MDP
from .entries import Entries, Weights, entries_of, scattered
from .form import LEFT, Factors, Form
from .transitions import rows_of, states_of

__all__ = ["Banded"]

NARROW, WIDEST = 40, 128
"""A matrix with at most this many diagonals, besides the main one, is banded. One with more
is, up to the second number, if it has at least one entry in `SPARSE` places of its band."""
SPARSE = 8


@dataclasses.dataclass(frozen=True, eq=False)
class Banded(Form):
    """A matrix with all its entries near the main diagonal."""

    entries: Entries
    discount: float
    lower: int  # how many diagonals there are below the main one
    upper: int  # and how many above
    order: Integers | None  # [S], the states in the order of the matrix; None for their own
    rank: Integers | None  # [S], where each state comes in that order

    @classmethod
    def of(cls, mdp: MDP) -> Self | None:
        """The form for a sparse MDP, if there is a narrow band."""
        states, successors = states_of(mdp), rows_of(mdp).indices
        steps, order, rank = successors - states, None, None
        if not _is_narrow(mdp, steps):
            order = _order(mdp)
            if order is None:
                return None
            rank = np.empty_like(order)
            rank[order] = np.arange(len(order), dtype=order.dtype)
            steps = rank[successors] - rank[states]
            if not _is_narrow(mdp, steps):
                return None
        lower, upper = max(0, -int(steps.min(initial=0))), max(0, int(steps.max(initial=0)))
        return cls(entries_of(mdp), mdp.discount, lower, upper, order, rank)

    @property
    def words(self) -> str:
        """What it is called in the reason of a solution."""
        numbered = "" if self.order is None else " in another order"
        return (
            f"its linear systems are banded{numbered}, with {self.lower} diagonals below the main "
            f"one and {self.upper} above, and solved exactly"
        )

    def factors(self, weights: Weights) -> Factors:
        """The factorised matrix; where few actions have a weight, it may have fewer diagonals."""
        few = self.entries.few(weights)
        if few is None:
            band, values = self._whole, self.entries.merged.values(weights)
        else:
            band, values = self._stored(few.rows, few.columns), few.values
        values *= -self.discount
        columns = scattered(band.places, values, band.height * len(weights))
        columns[band.lower + band.upper :: band.height] += 1.0
        matrix = columns.reshape(len(weights), band.height).T
        lu, pivots, _ = lapack.dgbtrf(matrix, band.lower, band.upper, overwrite_ab=True)
        return _Factors(lu, pivots, band.lower, band.upper, self.order)

    @functools.cached_property
    def _whole(self) -> _Band:
        merged = self.entries.merged
        return self._stored(merged.rows, merged.columns)

    def _stored(self, rows: Integers, columns: Integers) -> _Band:
        if self.rank is not None:
            rows, columns = self.rank[rows], self.rank[columns]
        return _Band.of(rows, columns)


class _Band(NamedTuple):
    """Where entries are in LAPACK's storage: column by column, with room for the pivots."""

    lower: int
    upper: int
    height: int  # how many numbers there are for each column
    places: Integers  # [N]

    @classmethod
    def of(cls, rows: Integers, columns: Integers) -> Self:
        """The storage of a matrix with the main diagonal and these entries."""
        below = rows - columns
        lower, upper = max(0, int(below.max(initial=0))), max(0, -int(below.min(initial=0)))
        height = 2 * lower + upper + 1
        return cls(lower, upper, height, columns * np.int64(height) + (below + (lower + upper)))


@dataclasses.dataclass(frozen=True, eq=False)
class _Factors:
    """The LU factorisation of a banded matrix."""

    lu: Floats
    pivots: Integers
    lower: int
    upper: int
    order: Integers | None

    def solve(self, b: Floats, transposed: bool = False, left: float = LEFT) -> Floats:
        own = b if self.order is None else b[self.order]
        shape = self.lower, self.upper
        x: Floats = lapack.dgbtrs(self.lu, *shape, own, self.pivots, trans=int(transposed))[0]
        if self.order is None:
            return x
        result = np.empty_like(x)
        result[self.order] = x
        return result


def _is_narrow(mdp: MDP, steps: Integers) -> bool:
    """Is the band of these steps from states to successors worth a factorisation?"""
    width = int(steps.max(initial=0)) - int(steps.min(initial=0))
    if width <= NARROW or width > WIDEST:
        return width <= NARROW
    sample = _graph(mdp)[:: max(1, mdp.n_states // 1000)]
    sample.sum_duplicates()
    return bool(width * sample.shape[0] <= SPARSE * sample.nnz)


def _graph(mdp: MDP) -> csr_array:
    """Which state leads to which."""
    rows, n = rows_of(mdp), mdp.n_states
    branches = (np.ones(rows.nnz, np.bool_), rows.indices, rows.indptr[:: mdp.n_actions])
    return csr_array(branches, (n, n), copy=True)


def _order(mdp: MDP) -> Integers | None:
    """An order in which states may lead to near ones; None if there can be none.

    In a narrow band at most as many states lead to one state as the band has diagonals, and `d`
    steps from a state reach at most `d` times as many. Random transitions reach most states in a
    few steps, which is noticed before any work goes into an order.
    """
    rows = rows_of(mdp)
    starts = rows.indptr[:: mdp.n_actions]
    reached = frontier = np.zeros(1, rows.indices.dtype)
    for steps in range(1, 9):
        leads = [rows.indices[starts[s] : starts[s + 1]] for s in frontier]
        frontier = np.setdiff1d(np.concatenate(leads), reached)
        reached = np.union1d(reached, frontier)
        if len(reached) > 1 + steps * WIDEST:
            return None
        if not len(frontier):
            break
    most = WIDEST + 1
    if np.bincount(rows.indices).max() > most * mdp.n_actions * mdp.n_branches:
        return None
    graph = _graph(mdp)
    graph.sum_duplicates()
    if np.bincount(graph.indices).max() > most:
        return None
    return np.asarray(reverse_cuthill_mckee(graph), np.int32)
