"""What playing hands on to learning: a batch of episodes as arrays, and a round of playing."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import lax

from .._common.pytrees import pytree
from .._typing import Integers, PyTree

__all__ = ["CHUNK", "Episodes", "Round", "padded_length"]

CHUNK = 128
"""Arrays of steps are worked on in chunks of this many. A sum over steps is a sum over chunks, so a
run adds up the same numbers in the same order whatever the padding is."""


@pytree
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Episodes:
    """`B` episodes of at most `T` steps, of one run; arrays of many runs have another axis first.

    The entries after the end of an episode are padding: no result depends on them.
    """

    observations: PyTree
    """`[T, B, ...]`: the observation before each action, an array or a tree of arrays; a `Seen`
    where not every action is legal."""
    actions: jax.Array | npt.NDArray[Any]
    """`[T, B]`"""
    rewards: jax.Array | npt.NDArray[Any]
    """`[T, B]`"""
    lengths: jax.Array | npt.NDArray[Any]
    """`[B]`: how many steps each episode has."""

    def mask(self) -> jax.Array:
        """`[T, B]`: is this a step of its episode, and not padding?"""
        steps = jnp.arange(self.actions.shape[0], dtype=self.lengths.dtype)
        return steps[:, None] < self.lengths[None]

    def returns_to_go(self, discount: jax.Array | float) -> jax.Array:
        """The discounted return from each step on, `[T, B]`; 0 after the end of an episode.

        Examples:
            >>> rewards = jnp.array([[1.0], [0.0], [2.0], [9.0]])
            >>> nothing = jnp.zeros((4, 1))
            >>> episodes = Episodes(nothing[..., None], nothing, rewards, lengths=jnp.array([3]))
            >>> print(episodes.returns_to_go(0.5)[:, 0])
            [1.5 1.  2.  0. ]
        """
        rewards = jnp.where(self.mask(), self.rewards, 0)
        discounts = jnp.full_like(rewards, discount)
        return lax.platform_dependent(
            discounts, rewards, cpu=_returns_step_by_step, default=_returns_by_halves
        )

    def returns(self) -> jax.Array:
        """The sum of the rewards of each episode, `[B]`."""
        return self.returns_to_go(jnp.ones((), self.rewards.dtype))[0]

    def live(self) -> jax.Array:
        """The former name of `mask`."""
        _warn("live", "mask")
        return self.mask()

    def earned(self, discount: jax.Array | float) -> jax.Array:
        """The former name of `returns_to_go`."""
        _warn("earned", "returns_to_go")
        return self.returns_to_go(discount)

    def __repr__(self) -> str:
        shapes = jax.tree.map(np.shape, self.observations)
        return f"Episodes(observations={shapes}, actions={self.actions.shape})"


class Round(NamedTuple):
    """A round of playing: episodes that have ended, and what was learned meanwhile.

    A player of whole episodes yields the first three fields; the others are filled in when a
    learner has learned from the episodes. A player of single steps, whose learner has learned
    already, yields all fields but `episodes`.
    """

    lanes: Integers
    """`[N]`: the lane that has played each of the `N` entries below. A lane with several entries
    has them in the order in which it has played them. Lanes without a run may be among them, and
    padding: a number that is no lane's, at least as large as their count."""
    episodes: Episodes | None = None
    """Whole episodes to learn from, with an axis of `N` first. They may be overwritten when the
    next round is asked for."""
    computed: int = 0
    """How many steps were computed in this round, wasted ones included; 0 if they are not
    counted."""
    returns: npt.NDArray[np.float32] | None = None
    """`[N, B]`: the sum of the rewards of each episode."""
    lengths: npt.NDArray[np.int32] | None = None
    """`[N, B]`: how many steps each episode has."""
    states: PyTree = None
    """What all lanes have learned by now."""
    playing: PyTree = None
    """The episodes that are still under way, if the player can be stopped within an episode."""
    steps: npt.NDArray[np.int64] | None = None
    """`[lanes]`: how many steps of its run each lane has played."""


def _returns_step_by_step(discounts: jax.Array, rewards: jax.Array) -> jax.Array:
    """The return from each step on, from the last step back to the first."""

    def back(later: jax.Array, now: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        discount, reward = now
        result = reward + discount * later
        return result, result

    nothing = jnp.zeros_like(rewards[0])
    return lax.scan(back, nothing, (discounts, rewards), reverse=True)[1]


def _returns_by_halves(discounts: jax.Array, rewards: jax.Array) -> jax.Array:
    """The same as an associative scan, in as many parts as the steps can be halved.

    An accelerator takes as long for a part as for a step.
    """

    def join(
        later: tuple[jax.Array, jax.Array], earlier: tuple[jax.Array, jax.Array]
    ) -> tuple[jax.Array, jax.Array]:
        (later_discount, later_return), (discount, reward) = later, earlier
        return discount * later_discount, reward + discount * later_return

    return lax.associative_scan(join, (discounts, rewards), reverse=True)[1]


def _warn(old: str, new: str) -> None:
    message = f"`Episodes.{old}` is now `Episodes.{new}`; the old name will go"
    warnings.warn(message, DeprecationWarning, stacklevel=3)


def padded_length(steps: int) -> int:
    """The length of arrays with room for this many steps.

    There are few such lengths, so few programs are compiled.

    Examples:
        >>> [padded_length(n) for n in (1, 256, 257, 1000)]
        [256, 256, 1024, 1024]
    """
    length = 2 * CHUNK
    while length < steps:
        length *= 4
    return length
