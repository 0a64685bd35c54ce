"""A replay buffer: the last steps of a run, from which minibatches are drawn, and when."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax

from .._typing import PyTree
from .learner import Learner

__all__ = ["Replay", "ReplayLearner", "ReplayState", "Transitions", "learn_when_due"]

StateT = TypeVar("StateT", bound="ReplayState")


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


class ReplayState(Protocol):
    """The state of a run that learns from a replay buffer: a dataclass, and a JAX pytree."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def network(self) -> Any:
        """The network that actions are chosen by."""

    @property
    def trained(self) -> PyTree:
        """All that the optimiser changes."""

    @property
    def finite(self) -> jax.Array:
        """Have all weights and rewards been finite so far?"""

    @property
    def replay(self) -> Replay:
        """The replay buffer."""


class ReplayLearner(Learner, Protocol):
    """A learner of single steps, from a replay buffer."""

    @property
    def capacity(self) -> int:
        """Steps that the buffer can hold."""

    @property
    def minibatch(self) -> int:
        """Steps in an update."""

    @property
    def learning_starts(self) -> int:
        """Steps before the first update."""

    @property
    def train_frequency(self) -> int:
        """Steps from one update to the next."""

    def act(
        self, network: Any, step: jax.Array, uniform: jax.Array, observation: PyTree, /
    ) -> jax.Array:
        """The action that a uniform random number chooses, at a step of the run."""

    def learn(self, state: Any, key: jax.Array, stepped: jax.Array | bool = True) -> Any:
        """Make an update, if the number of steps makes one due."""

    def update(self, state: Any, steps: Transitions, /) -> Any:
        """The state after learning from a minibatch."""


def learn_when_due(
    learner: ReplayLearner, state: StateT, key: jax.Array, stepped: jax.Array | bool
) -> StateT:
    """Make an update, if the number of steps in the replay buffer makes one due.

    An update that would make a weight infinite or NaN is not made, and is the last.

    Args:
        learner: the learner.
        state: what has been learned so far.
        key: a JAX key, which draws the minibatch.
        stepped: was a step added to the buffer since the last call?
    """
    steps = state.replay.count
    due = stepped & state.finite & (steps % jnp.uint32(learner.train_frequency) == 0)
    due &= steps >= jnp.uint32(max(1, learner.learning_starts))

    # `cond` would copy the buffer if it were among its operands.
    def update(rest: StateT) -> StateT:
        learned = learner.update(rest, state.replay.sample(key, learner.minibatch))
        leaves = jax.tree.leaves(learned.trained)
        finite = jnp.stack([jnp.isfinite(leaf).all() for leaf in leaves]).all()
        kept = jax.tree.map(lambda x, y: jnp.where(finite, x, y), learned, rest)
        return dataclasses.replace(kept, finite=finite)

    rest = dataclasses.replace(state, replay=None)
    learned = lax.cond(due, update, lambda rest: rest, rest)
    return dataclasses.replace(learned, replay=state.replay)
