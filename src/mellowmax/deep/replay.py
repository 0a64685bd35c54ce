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
from .observation import as_shapes
from .packing import Packed, Packing

__all__ = ["Replay", "ReplayLearner", "ReplayState", "Transitions", "learn_when_due"]

StateT = TypeVar("StateT", bound="ReplayState")


class Transitions(NamedTuple):
    """Steps in an environment: one, or many with an axis of them first.

    An observation is an array, a tree of arrays, or a `Seen` where not every action is legal.
    """

    observation: PyTree
    """The observation before the action."""
    action: jax.Array
    """The number of the action."""
    reward: jax.Array
    """The reward of the step."""
    terminated: jax.Array
    """Did the episode end with this step? False if a limit of steps cut it off."""
    next_observation: PyTree
    """The observation after the action."""


class Replay(eqx.Module):
    """The last steps of a run; when it is full, a new step replaces the oldest.

    Examples:
        >>> replay = Replay.empty(capacity=2, observation=1)
        >>> for t in range(3):
        ...     observation = jnp.full(1, t, jnp.float32)
        ...     replay = replay.add(Transitions(observation, 0, -1.0, False, observation + 1))
        >>> print(replay.count, replay.rows["float32"][:, 0])
        3 [2. 1.]
    """

    rows: Packed
    """`[capacity, n]` for each dtype: the fields of `Transitions` side by side, so that a step is
    written at once; actions and `terminated` are float32, as rewards are."""
    count: jax.Array
    """The number of steps added so far, including those that were replaced."""
    packing: Packing = eqx.field(static=True)

    @classmethod
    def empty(cls, capacity: int, observation: int | PyTree) -> Replay:
        """A buffer with room for `capacity` steps.

        Args:
            capacity: how many steps it can hold.
            observation: the shapes and dtypes of an observation, or the size of a vector.
        """
        number: Any = jax.ShapeDtypeStruct((), jnp.float32)
        seen = as_shapes(observation)
        packing = Packing.of(Transitions(seen, number, number, number, seen))
        return cls(packing.empty(capacity), jnp.uint32(0), packing)

    @property
    def capacity(self) -> int:
        """How many steps it can hold."""
        return len(self.rows["float32"])

    def add(self, step: Transitions, counts: jax.Array | bool = True) -> Replay:
        """The buffer with one more step; unchanged if the step does not count."""
        before, *numbers, after = step
        action, reward, terminated = (jnp.asarray(x).astype(jnp.float32) for x in numbers)
        row = self.packing.pack(Transitions(before, action, reward, terminated, after))
        capacity = jnp.uint32(self.capacity)
        index = jnp.where(counts, self.count % capacity, capacity)
        rows = jax.tree.map(lambda rows, new: rows.at[index].set(new, mode="drop"), self.rows, row)
        # Without the barrier XLA fuses the write into what reads it: done twice, and not in place.
        count = self.count + jnp.asarray(counts).astype(jnp.uint32)
        return Replay(lax.optimization_barrier(rows), count, self.packing)

    def sample(self, key: jax.Array, size: int) -> Transitions:
        """Steps drawn with equal probability and with replacement, `[size, ...]` each.

        There must be a step in the buffer.
        """
        filled = jnp.minimum(self.count, jnp.uint32(self.capacity)).astype(jnp.int32)
        chosen = jax.random.randint(key, (size,), 0, filled, jnp.int32)
        steps: Transitions = self.packing.unpack({name: x[chosen] for name, x in self.rows.items()})
        action, terminated = steps.action.astype(jnp.int32), steps.terminated != 0
        return steps._replace(action=action, terminated=terminated)


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
