"""A dense matrix and its LU factorisation, for a few states."""

from __future__ import annotations

import dataclasses
from typing import Self

import numpy as np
from scipy.linalg import lapack
from scipy.sparse import csr_array

from ..._typing import Floats, Integers
from ...mdp import MDP
from .form import Factors, Form, assembly
from .transitions import rows_of, states_of

__all__ = ["Dense"]


class Dense(Form):
    """A dense matrix."""

    def __init__(self, mdp: MDP, assembly: csr_array | Floats) -> None:
        self.n_states, self.discount = mdp.n_states, mdp.discount
        self.assembly = assembly  # [S * S, S * A], or dense transitions [S, A, S]

    @classmethod
    def of(cls, mdp: MDP) -> Self:
        """The form for an MDP of a few states."""
        if mdp.successors is None:
            return cls(mdp, mdp.probabilities)
        places = rows_of(mdp).indices * np.int64(mdp.n_states) + states_of(mdp)
        return cls(mdp, assembly(mdp, places, mdp.n_states**2))

    @property
    def words(self) -> str:
        """What it is called in the reason of a solution."""
        return f"its linear systems are small, with {self.n_states} states, and solved exactly"

    def factors(self, weights: Floats) -> Factors:
        """The factorised matrix."""
        n = self.n_states
        if isinstance(self.assembly, csr_array):
            transposed = (self.assembly @ weights.reshape(-1)).reshape(n, n)
        else:
            transposed = np.matmul(weights[:, None], self.assembly)[:, 0].T
        matrix = np.multiply(transposed.T, -self.discount, order="F")
        matrix.reshape(-1, order="F")[:: n + 1] += 1.0
        return _DenseFactors(*lapack.dgetrf(matrix, overwrite_a=True)[:2])


@dataclasses.dataclass(frozen=True, eq=False)
class _DenseFactors:
    """The LU factorisation of a dense matrix."""

    lu: Floats
    pivots: Integers

    def solve(self, b: Floats, transposed: bool = False) -> Floats:
        return lapack.dgetrs(self.lu, self.pivots, b, trans=int(transposed))[0]
