"""A batch of episodes as arrays, padded to the longest."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy.typing as npt
from jax import lax

from .._rows.pytrees import pytree

__all__ = ["CHUNK", "Episodes", "padded_length"]

CHUNK = 128
"""Steps are worked on so many at a time. Sums over steps are sums over chunks, so that a run adds
up the same numbers in the same order whatever the padding is."""


@pytree
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Episodes:
    """`B` episodes of at most `T` steps, of one run; arrays of many runs have another axis first.

    Whatever stands behind the end of an episode counts for nothing.
    """

    observations: jax.Array | npt.NDArray[Any]
    """`[T, B, D]`: what was seen before each action."""
    actions: jax.Array | npt.NDArray[Any]
    """`[T, B]`"""
    rewards: jax.Array | npt.NDArray[Any]
    """`[T, B]`"""
    lengths: jax.Array | npt.NDArray[Any]
    """`[B]`: how many steps each episode has."""

    def live(self) -> jax.Array:
        """`[T, B]`: is this a step of its episode?"""
        steps = jnp.arange(self.actions.shape[0], dtype=self.lengths.dtype)
        return steps[:, None] < self.lengths[None]

    def earned(self, discount: jax.Array | float) -> jax.Array:
        """The discounted return from each step on, `[T, B]`; 0 after the end of an episode.

        Examples:
            >>> rewards = jnp.array([[1.0], [0.0], [2.0], [9.0]])
            >>> nothing = jnp.zeros((4, 1))
            >>> episodes = Episodes(nothing[..., None], nothing, rewards, lengths=jnp.array([3]))
            >>> print(episodes.earned(0.5)[:, 0])
            [1.5 1.  2.  0. ]
        """
        rewards = jnp.where(self.live(), self.rewards, 0)
        discounts = jnp.full_like(rewards, discount)
        earned: jax.Array = lax.platform_dependent(
            discounts, rewards, cpu=_earned_step_by_step, default=_earned_by_halves
        )
        return earned

    def returns(self) -> jax.Array:
        """The sum of the rewards of each episode, `[B]`."""
        return self.earned(jnp.ones((), self.rewards.dtype))[0]

    def __repr__(self) -> str:
        return f"Episodes(observations={self.observations.shape}, actions={self.actions.shape})"


def _earned_step_by_step(discounts: jax.Array, rewards: jax.Array) -> jax.Array:
    """What is earned from each step on, from the last step back to the first."""

    def back(later: jax.Array, now: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        discount, reward = now
        earned = reward + discount * later
        return earned, earned

    nothing = jnp.zeros_like(rewards[0])
    earned: jax.Array = lax.scan(back, nothing, (discounts, rewards), reverse=True)[1]
    return earned


def _earned_by_halves(discounts: jax.Array, rewards: jax.Array) -> jax.Array:
    """The same in as many parts as it takes to halve the steps down to one: an accelerator takes
    as long for a part as for a step.
    """

    def join(later: Any, earlier: Any) -> tuple[jax.Array, jax.Array]:
        (later_discount, later_earned), (discount, earned) = later, earlier
        return discount * later_discount, earned + discount * later_earned

    earned: jax.Array = lax.associative_scan(join, (discounts, rewards), reverse=True)[1]
    return earned


def padded_length(steps: int) -> int:
    """How long arrays are that have room for so many steps: few lengths, few programs to compile.

    Examples:
        >>> [padded_length(n) for n in (1, 256, 257, 1000)]
        [256, 256, 1024, 1024]
    """
    length = 2 * CHUNK
    while length < steps:
        length *= 4
    return length
