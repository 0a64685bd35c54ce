"""A dense matrix and its LU factorisation, for a few states."""

from __future__ import annotations

import dataclasses
import functools
from typing import Self

import numpy as np
from scipy.linalg import lapack

from ..._typing import Floats, Integers
from ...mdp import MDP
from .entries import Entries, Weights, entries_of, scattered
from .form import LEFT, Factors, Form

__all__ = ["Dense"]


@dataclasses.dataclass(frozen=True, eq=False)
class Dense(Form):
    """A dense matrix."""

    rows: Entries | Floats  # or transitions [S, A, S]
    n_states: int
    discount: float

    @classmethod
    def of(cls, mdp: MDP) -> Self:
        """The form for an MDP of a few states."""
        rows = mdp.probabilities if mdp.successors is None else entries_of(mdp)
        return cls(rows, mdp.n_states, mdp.discount)

    @property
    def words(self) -> str:
        """What it is called in the reason of a solution."""
        return f"its linear systems are small, with {self.n_states} states, and solved exactly"

    def factors(self, weights: Weights) -> Factors:
        """The factorised matrix."""
        n = self.n_states
        matrix = np.multiply(self._mixed(weights), -self.discount, order="F")
        matrix.reshape(-1, order="F")[:: n + 1] += 1.0
        return _DenseFactors(*lapack.dgetrf(matrix, overwrite_a=True)[:2])

    def _mixed(self, weights: Weights) -> Floats:
        """`W P`."""
        n = self.n_states
        if isinstance(self.rows, Entries):
            few = self.rows.few(weights) if weights.ndim == 1 else None
            places = self._places if few is None else few.columns * np.int64(n) + few.rows
            values = self.rows.merged.values(weights) if few is None else few.values
            mixed = scattered(places, values, n * n).reshape(n, n).T
        elif weights.ndim == 1:
            mixed = self.rows[np.arange(n), weights]
        else:
            mixed = np.matmul(weights[:, None], self.rows)[:, 0]
        return mixed

    @functools.cached_property
    def _places(self) -> Integers:
        """Where the entries are, column by column."""
        assert isinstance(self.rows, Entries)
        merged = self.rows.merged
        return merged.columns * np.int64(self.n_states) + merged.rows


@dataclasses.dataclass(frozen=True, eq=False)
class _DenseFactors:
    """The LU factorisation of a dense matrix."""

    lu: Floats
    pivots: Integers

    def solve(self, b: Floats, transposed: bool = False, left: float = LEFT) -> Floats:
        return lapack.dgetrs(self.lu, self.pivots, b, trans=int(transposed))[0]
