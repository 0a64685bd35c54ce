"""What a form of the matrix `I - J` of an MDP is.

A form is made once for an MDP. The entries of `J = discount * W P` are sums: for a state and a
successor, those of the weight of an action times the probability of a branch. Which sums go into
which entry does not depend on the weights, so a form keeps a sparse matrix whose product with the
weights is `J`, entry by entry, each in its place. That takes one pass over the branches, where a
product of sparse matrices would take ten.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol

from scipy.sparse import csr_array

from ..._typing import Floats, Integers
from ...mdp import MDP
from .transitions import rows_of

__all__ = ["Factors", "Form", "assembly"]


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
        """What it is called in the reason of a solution."""

    @abstractmethod
    def factors(self, weights: Floats) -> Factors:
        """The matrix for the weights `[S, A]` of the actions."""


def assembly(mdp: MDP, places: Integers, size: int) -> csr_array:
    """The matrix whose product with weights `[S * A]` adds up each branch in its place."""
    rows = rows_of(mdp)
    by_pair = csr_array((rows.data, places, rows.indptr), (rows.shape[0], size))
    return by_pair.tocsc().T
