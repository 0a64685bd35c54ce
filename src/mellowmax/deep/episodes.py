"""Episodes as arrays: a batch of them, padded to the longest, and a log of all that were played."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import lax

from .._rows.pytrees import pytree

__all__ = ["CHUNK", "EpisodeLog", "Episodes", "padded_length"]

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
        """What is earned from each step on, discounted, `[T, B]`; 0 behind the end of an episode.

        Examples:
            >>> rewards = jnp.array([[1.0], [0.0], [2.0], [9.0]])
            >>> nothing = jnp.zeros((4, 1))
            >>> episodes = Episodes(nothing[..., None], nothing, rewards, lengths=jnp.array([3]))
            >>> print(episodes.earned(0.5)[:, 0])
            [1.5 1.  2.  0. ]
        """
        rewards = jnp.where(self.live(), self.rewards, 0)

        def back(later: jax.Array, reward: jax.Array) -> tuple[jax.Array, jax.Array]:
            now = reward + discount * later
            return now, now

        earned: jax.Array = lax.scan(back, jnp.zeros_like(rewards[0]), rewards, reverse=True)[1]
        return earned

    def returns(self) -> jax.Array:
        """The sum of the rewards of each episode, `[B]`."""
        return self.earned(jnp.ones((), self.rewards.dtype))[0]

    def __repr__(self) -> str:
        return f"Episodes(observations={self.observations.shape}, actions={self.actions.shape})"


@dataclasses.dataclass
class EpisodeLog:
    """The returns and lengths of the episodes of some runs, batch by batch."""

    done: list[int]
    """How many batches each run has played."""
    returns: npt.NDArray[np.float32]
    """`[runs, episodes]`; NaN where an episode has not been played."""
    lengths: npt.NDArray[np.int32]
    """`[runs, episodes]`; 0 where an episode has not been played."""

    @classmethod
    def empty(cls, runs: int, episodes: int) -> EpisodeLog:
        """A log with room for so many episodes of so many runs.

        Examples:
            >>> log = EpisodeLog.empty(runs=2, episodes=4)
            >>> log.add([1], np.float32([[5.0, 7.0]]), np.int32([[3, 4]]))
            >>> print(log.done, log.returns[1], log.lengths[1])
            [0, 1] [ 5.  7. nan nan] [3 4 0 0]
        """
        shape = (runs, episodes)
        return cls([0] * runs, np.full(shape, np.nan, np.float32), np.zeros(shape, np.int32))

    def add(
        self,
        lanes: Iterable[int],
        returns: npt.NDArray[np.float32],
        lengths: npt.NDArray[np.int32],
    ) -> None:
        """Add a batch of some lanes, `[L, B]`; lanes without a run are left out."""
        batch = returns.shape[1]
        for lane, *of_lane in zip(lanes, returns, lengths, strict=True):
            if lane < len(self.done):
                at = slice(self.done[lane] * batch, (self.done[lane] + 1) * batch)
                self.returns[lane, at], self.lengths[lane, at] = of_lane
                self.done[lane] += 1


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
