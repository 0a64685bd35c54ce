"""What a loop is: it plays and learns, round by round, and leaves everything else to others.

A block of runs is trained by a loop: `Loop.rounds` yields what each round has learned. After every
round the block takes over the states, logs the episodes that ended in it, reports, and saves what
has been learned, from which the loop can be resumed.

A learner that learns from whole episodes has `BatchLoop`. One that learns while it plays has
`CompiledLoop` in environments that are pure functions, and `SteppedLoop` in Gymnasium's.
"""

from __future__ import annotations

import functools
from collections.abc import Generator, Sequence
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np
import numpy.typing as npt

from ..._typing import Integers
from ..checkpoint import BlockState
from ..network import Policy
from ..rollouts.rollouts import Rollouts

__all__ = ["Ended", "Learned", "Loop", "diverged", "initial_states", "room"]

INITIAL = 2**32 - 1
"""What a run's key is folded with for its first weights; batches and episodes have the numbers from
0 on."""
SHARE_OF_MEMORY = 0.25
"""How much of an accelerator's memory the records or the replay buffers of a block may have."""


class Ended(NamedTuple):
    """Episodes of some lanes that have ended, as many of each."""

    lanes: Integers
    """`[L]`, each once. Those without a run may be among them."""
    returns: npt.NDArray[np.float32]
    """`[L, B]`"""
    lengths: npt.NDArray[np.int32]
    """`[L, B]`"""


class Learned(NamedTuple):
    """What has come of a round."""

    states: Any
    """What all lanes have learned by now."""
    ended: Sequence[Ended]
    """The episodes that ended, in the order of each lane."""
    steps: int
    """How many steps of runs were played."""
    computed: int = 0
    """How many were computed for them; 0 if nobody counts them."""


class Loop(Protocol):
    """Plays and learns, for a block of runs."""

    @property
    def rollouts(self) -> Rollouts:
        """Of the environment."""

    def width(self, lanes: int, devices: Sequence[jax.Device]) -> int:
        """How many lanes a block has, of so many in all."""

    def init(self, learners: Any, keys: jax.Array) -> Any:
        """What the lanes of a block begin with: arrays with an axis of lanes first, and first among
        them those of the network.
        """

    def policies(self, learners: Any, states: Any) -> Policy:
        """What has been learned."""

    def rounds(self, learners: Any, keys: jax.Array, block: BlockState) -> Generator[Learned]:
        """Play and learn until each run has the episodes that the block's log has room for.

        Args:
            learners: of all lanes.
            keys: of their runs.
            block: where it begins. Whoever takes a round puts its states and episodes in here
                before the next round. What was in here before may be overwritten by then.

        Raises:
            FloatingPointError: when a run has diverged. What the block has is from before that.
        """


@functools.partial(jax.jit, static_argnums=(2, 3))
def initial_states(learners: Any, keys: jax.Array, n_observations: int, n_actions: int) -> Any:
    """What the learners of a block begin with."""

    def one(learner: Any, key: jax.Array) -> Any:
        return learner.init(jax.random.fold_in(key, INITIAL), n_observations, n_actions)

    return jax.vmap(one)(learners, keys)


def room(device: jax.Device) -> float:
    """How many bytes of an accelerator's memory they may have."""
    memory = (device.memory_stats() or {}).get("bytes_limit", 1 << 33)
    return float(SHARE_OF_MEMORY * memory)


def diverged(run: int, what: str, when: str) -> FloatingPointError:
    """The error of a run with something that is not finite."""
    return FloatingPointError(
        f"the training has diverged: run {run} has a {what} that is not finite {when}; "
        "a smaller learning rate may help"
    )
