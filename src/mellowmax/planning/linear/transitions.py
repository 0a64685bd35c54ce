"""The transitions of an MDP in main memory: as a list, and as a matrix that multiplies values."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from ..._typing import Floats, Integers, Shape
from ...mdp import MDP

__all__ = ["Branches", "Transitions"]


class Branches(NamedTuple):
    """What a sparse MDP can come to, by pairs of a state and an action; not the end."""

    probabilities: Floats  # [N]
    successors: Integers  # [N]
    starts: npt.NDArray[np.integer[Any]]  # [S * A + 1], where each pair begins

    @classmethod
    def of(cls, mdp: MDP) -> Self:
        """The branches of an MDP."""
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
        return cls(probabilities, successors, starts)


@dataclasses.dataclass(frozen=True, eq=False)
class Transitions:
    """The matrix `P`, whose product with values `[S]` is `[S, A]`."""

    rows: csr_array | Floats  # [S * A, S]
    shape: Shape  # (S, A)

    @classmethod
    def of(cls, mdp: MDP) -> Self:
        """The transitions of an MDP."""
        n_states, n_actions = mdp.n_states, mdp.n_actions
        if mdp.successors is None:
            rows = mdp.probabilities.reshape(-1, n_states)
        else:
            branches = Branches.of(mdp)
            rows = csr_array(tuple(branches), (n_states * n_actions, n_states))
        return cls(rows, (n_states, n_actions))

    def __matmul__(self, values: Floats) -> Floats:
        product: Floats = (self.rows @ values).reshape(self.shape)
        return product
