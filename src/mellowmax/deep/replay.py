"""A replay buffer: the last steps of a run, from which minibatches are drawn."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax

__all__ = ["Replay", "Transitions"]


class Transitions(NamedTuple):
    """Steps in an environment: one, or many with an axis of them first."""

    observation: jax.Array
    """`[D]`: the observation before the action."""
    action: jax.Array
    """The number of the action."""
    reward: jax.Array
    """The reward of the step."""
    terminated: jax.Array
    """Did the episode end with this step? False if a limit of steps cut it off."""
    next_observation: jax.Array
    """`[D]`: the observation after the action."""


class Replay(eqx.Module):
    """The last steps of a run; when it is full, a new step replaces the oldest.

    Examples:
        >>> replay = Replay.empty(capacity=2, n_observations=1)
        >>> for t in range(3):
        ...     observation = jnp.full(1, t, jnp.float32)
        ...     replay = replay.add(Transitions(observation, 0, -1.0, False, observation + 1))
        >>> print(replay.count, replay.rows[:, 0])
        3 [2. 1.]
    """

    rows: jax.Array
    """`[capacity, 2 D + 3]`: the fields of `Transitions` side by side in one array, so that a step
    is written at once."""
    count: jax.Array
    """The number of steps added so far, including those that were replaced."""

    @classmethod
    def empty(cls, capacity: int, n_observations: int) -> Replay:
        """A buffer with room for `capacity` steps."""
        return cls(jnp.zeros((capacity, 2 * n_observations + 3), jnp.float32), jnp.uint32(0))

    def add(self, step: Transitions, counts: jax.Array | bool = True) -> Replay:
        """The buffer with one more step; unchanged if the step does not count."""
        numbers = (jnp.asarray(x).astype(jnp.float32) for x in step[1:4])
        row = jnp.concatenate([step.observation, jnp.stack([*numbers]), step.next_observation])
        capacity = jnp.uint32(len(self.rows))
        index = jnp.where(counts, self.count % capacity, capacity)
        # Without the barrier XLA fuses the write into what reads it: done twice, and not in place.
        rows = lax.optimization_barrier(self.rows.at[index].set(row, mode="drop"))
        return Replay(rows, self.count + jnp.asarray(counts).astype(jnp.uint32))

    def sample(self, key: jax.Array, size: int) -> Transitions:
        """Steps drawn with equal probability and with replacement, `[size, ...]` each.

        There must be a step in the buffer.
        """
        filled = jnp.minimum(self.count, jnp.uint32(len(self.rows))).astype(jnp.int32)
        chosen = jax.random.randint(key, (size,), 0, filled, jnp.int32)
        rows = self.rows[chosen]
        n = (rows.shape[1] - 3) // 2
        middle = (rows[:, n].astype(jnp.int32), rows[:, n + 1], rows[:, n + 2] != 0)
        return Transitions(rows[:, :n], *middle, rows[:, n + 3 :])
