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

    seen: jax.Array
    """`[D]`: what was seen before the action."""
    action: jax.Array
    reward: jax.Array
    terminated: jax.Array
    """Did the episode end with this step? Not if it was cut off by a limit of steps."""
    after: jax.Array
    """`[D]`: what was seen after it."""


class Replay(eqx.Module):
    """The last steps of a run; beyond its capacity a new one takes the place of the oldest.

    Examples:
        >>> replay = Replay.empty(capacity=2, n_observations=1)
        >>> for t in range(3):
        ...     seen = jnp.full(1, t, jnp.float32)
        ...     replay = replay.add(Transitions(seen, 0, -1.0, False, seen + 1))
        >>> print(replay.count, replay.rows[:, 0])
        3 [2. 1.]
    """

    rows: jax.Array
    """`[capacity, 2 D + 3]`: what was seen, the action, the reward, whether the episode ended, and
    what was seen then: one array, so that a step is written at once."""
    count: jax.Array
    """How many steps have been added, those that are gone included."""

    @classmethod
    def empty(cls, capacity: int, n_observations: int) -> Replay:
        """A buffer with room for so many steps."""
        return cls(jnp.zeros((capacity, 2 * n_observations + 3), jnp.float32), jnp.uint32(0))

    def add(self, step: Transitions, counts: jax.Array | bool = True) -> Replay:
        """The buffer with one more step; as it is where the step does not count."""
        numbers = (jnp.asarray(x).astype(jnp.float32) for x in step[1:4])
        row = jnp.concatenate([step.seen, jnp.stack([*numbers]), step.after])
        capacity = jnp.uint32(len(self.rows))
        index = jnp.where(counts, self.count % capacity, capacity)
        # Compiled into what reads it, the writing would be done twice, and not in place.
        rows = lax.optimization_barrier(self.rows.at[index].set(row, mode="drop"))
        return Replay(rows, self.count + jnp.asarray(counts).astype(jnp.uint32))

    def sample(self, key: jax.Array, size: int) -> Transitions:
        """Steps drawn with equal probability and with replacement, `[size, ...]` each.

        There must be a step in the buffer.
        """
        there = jnp.minimum(self.count, jnp.uint32(len(self.rows))).astype(jnp.int32)
        chosen = jax.random.randint(key, (size,), 0, there, jnp.int32)
        rows = self.rows[chosen]
        n = (rows.shape[1] - 3) // 2
        middle = (rows[:, n].astype(jnp.int32), rows[:, n + 1], rows[:, n + 2] != 0)
        return Transitions(rows[:, :n], *middle, rows[:, n + 3 :])
