"""The arrays of an MDP for functions that are differentiated or mapped over.

An `MDP` is checked when it is made, so it cannot hold what JAX traces. A `Model` can: it is a tree
of arrays, and nothing about it is checked.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from .._common.pytrees import pytree

__all__ = ["Model"]


@pytree
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Model:
    """The arrays of an MDP, as JAX sees them; `MDP.model()` makes it.

    `dataclasses.replace(model, rewards=...)` is the same MDP with other rewards.
    """

    rewards: Any
    """`[S, A]`, the expected reward."""
    probabilities: Any
    """`[S, A, K]`, or `[S, A, S]` of a dense MDP."""
    successors: Any
    """`[S, A, K]`, where each branch leads, `S` for the end; None for a dense MDP."""
    discount: Any
    """A number."""
    allowed: Any
    """`[S, A]`, the actions there are; None for all."""
    terminal: Any
    """`[S]`, where an episode ends."""

    def __repr__(self) -> str:
        kind = "dense" if self.successors is None else "sparse"
        return f"Model({kind}, rewards {tuple(self.rewards.shape)})"
