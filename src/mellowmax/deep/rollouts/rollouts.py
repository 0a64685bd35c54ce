"""Where episodes come from: one small interface, so that a learner need not know.

`Functional` plays environments that are pure JAX functions, and compiles the whole training run.
`Vector` plays any Gymnasium environment with discrete actions, with one call of the networks for
all runs at each step. What an episode is depends on the policy, the key of its batch and its number
there alone: nothing is left over from one batch to the next, so a run can be stopped and gone on
with at any batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import jax

from ..reinforce import Reinforce, State

__all__ = ["WIDTH", "Advance", "Source", "batch_keys"]

WIDTH = 32
"""How many lanes a block has, whether there is a run in each or not: matrix products and
exponentials round differently at other widths, and a run is to have the same numbers in any batch.
"""


class Advance(NamedTuple):
    """Some lanes have learned from some batches."""

    lanes: range
    states: State
    """Of all lanes of the block."""
    returns: Any
    """`[lanes, batches * B]`: the sums of the rewards of the episodes."""
    lengths: Any
    """`[lanes, batches * B]`: how many steps they have."""


class Source(Protocol):
    """Plays episodes and lets runs learn from them."""

    @property
    def n_observations(self) -> int:
        """The size of an observation."""

    @property
    def n_actions(self) -> int:
        """How many actions there are."""

    @property
    def max_steps(self) -> int:
        """Where an episode is cut off."""

    def advance(
        self, learners: Reinforce, states: State, keys: Any, done: list[int], until: int
    ) -> Iterator[Advance]:
        """Let runs play batches of episodes and learn from each.

        Args:
            learners: a `Reinforce` whose arrays have an axis of `WIDTH` lanes first.
            states: what they have learned so far, with the same axis.
            keys: `[WIDTH]`: the key of each run, of which `batch_keys` makes that of a batch.
            done: how many batches each run has learned from; it has an entry for each lane that has
                a run.
            until: how many it is to have learned from at the end.

        Yields:
            What has been learned, as it is learned.
        """

    def close(self) -> None:
        """Let go of what playing needs."""


def batch_keys(keys: Any, numbers: Any) -> Any:
    """The key of a batch of each run, from the keys of the runs and the number of the batch."""
    return jax.vmap(jax.random.fold_in)(keys, numbers)
