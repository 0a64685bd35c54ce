"""How the matrix `I - J` of an MDP is stored and factorised, and which form suits which MDP.

A form is made once for an MDP. The entries of `J = discount * W P` are sums: for a state and a
successor, those of the weight of an action times the probability of a branch. Which sums go into
which entry does not depend on the weights, so a form keeps a sparse matrix whose product with the
weights is `J`, entry by entry, each in its place. That takes one pass over the branches, where a
product of sparse matrices would take ten.
"""

from __future__ import annotations

import dataclasses
import weakref
from abc import ABC, abstractmethod
from typing import Protocol, Self

import numpy as np
from scipy.linalg import lapack
from scipy.sparse import csr_array

from ..._typing import Floats, Integers
from ...mdp import MDP
from ...mdp.operator import Operator
from .transitions import Branches

__all__ = ["Banded", "Dense", "Factors", "Form", "form_of"]

FEW_STATES = 400
"""Up to so many states the matrix is dense: its factorisation takes about a millisecond."""
NARROW = 40
"""Up to so many diagonals beside the main one the matrix is banded."""


class Factors(Protocol):
    """A matrix `I - J`, ready to solve with."""

    def solve(self, b: Floats, transposed: bool = False) -> Floats:
        """`x` with `(I - J) x = b`, or with `(I - J)^T x = b`."""
        ...


class Form(ABC):
    """A way to store `I - J` and to solve with it."""

    @property
    @abstractmethod
    def words(self) -> str:
        """What it is, for the reason of a solution."""

    @abstractmethod
    def factors(self, weights: Floats) -> Factors:
        """The matrix for the weights `[S, A]` of the actions."""


def form_of(mdp: MDP) -> Form | None:
    """The form that suits an MDP; None if no factorisation promises to be quick."""
    if mdp not in _forms:
        _forms[mdp] = _form_of(mdp)
    return _forms[mdp]


_forms: weakref.WeakKeyDictionary[MDP, Form | None] = weakref.WeakKeyDictionary()


def _form_of(mdp: MDP) -> Form | None:
    if isinstance(mdp.probabilities, Operator):
        return None
    if mdp.n_states <= FEW_STATES:
        return Dense.of(mdp)
    if mdp.successors is None:
        return None
    branches = Branches.of(mdp)
    states = _states_of(branches, mdp)
    steps = branches.successors - states
    lower, upper = max(0, -int(steps.min(initial=0))), max(0, int(steps.max(initial=0)))
    if lower + upper > NARROW:
        return None
    return Banded.of(mdp, branches, states, lower, upper)


# A dense matrix.


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
        branches = Branches.of(mdp)
        places = branches.successors * np.int64(mdp.n_states) + _states_of(branches, mdp)
        return cls(mdp, _assembly(mdp, branches, places, mdp.n_states**2))

    @property
    def words(self) -> str:
        """What it is."""
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
        x: Floats = lapack.dgetrs(self.lu, self.pivots, b, trans=int(transposed))[0]
        return x


# A banded matrix.


@dataclasses.dataclass(frozen=True, eq=False)
class Banded(Form):
    """A matrix with all its entries near to the main diagonal."""

    assembly: csr_array  # [diagonals * S, S * A]
    discount: float
    lower: int  # how many diagonals there are below the main one
    upper: int  # and how many above

    @classmethod
    def of(cls, mdp: MDP, branches: Branches, states: Integers, lower: int, upper: int) -> Self:
        """The form for an MDP whose branches lead `lower` states down and `upper` up at most."""
        n = mdp.n_states
        places = (upper + states - branches.successors) * np.int64(n) + branches.successors
        assembly = _assembly(mdp, branches, places, (lower + upper + 1) * n)
        return cls(assembly, mdp.discount, lower, upper)

    @property
    def words(self) -> str:
        """What it is."""
        return (
            f"its linear systems are banded, with {self.lower} diagonals below the main one and "
            f"{self.upper} above, and solved exactly"
        )

    def factors(self, weights: Floats) -> Factors:
        """The factorised matrix; with some weights it has fewer diagonals."""
        diagonals = (self.assembly @ weights.reshape(-1)).reshape(self.lower + self.upper + 1, -1)
        there = np.flatnonzero(diagonals.any(1))
        first, last = min(int(there.min(initial=self.upper)), self.upper), self.upper
        last = max(int(there.max(initial=self.upper)), self.upper)
        upper, lower = self.upper - first, last - self.upper
        band = np.zeros((2 * lower + upper + 1, diagonals.shape[1]), order="F")
        np.multiply(diagonals[first : last + 1], -self.discount, out=band[lower:])
        band[lower + upper] += 1.0
        lu, pivots, _ = lapack.dgbtrf(band, lower, upper, overwrite_ab=True)
        return _BandedFactors(lu, pivots, lower, upper)


@dataclasses.dataclass(frozen=True, eq=False)
class _BandedFactors:
    """The LU factorisation of a banded matrix."""

    lu: Floats
    pivots: Integers
    lower: int
    upper: int

    def solve(self, b: Floats, transposed: bool = False) -> Floats:
        x: Floats = lapack.dgbtrs(
            self.lu, self.lower, self.upper, b, self.pivots, trans=int(transposed)
        )[0]
        return x


def _states_of(branches: Branches, mdp: MDP) -> Integers:
    """`[N]`, the state of each branch."""
    counts = np.diff(branches.starts[:: mdp.n_actions])
    return np.repeat(np.arange(mdp.n_states, dtype=np.int32), counts)


def _assembly(mdp: MDP, branches: Branches, places: Integers, size: int) -> csr_array:
    """The matrix whose product with weights `[S * A]` adds up each branch in its place."""
    by_pair = csr_array(
        (branches.probabilities, places, branches.starts),
        (mdp.n_states * mdp.n_actions, size),
    )
    return by_pair.tocsc().T
