"""Single steps in Gymnasium environments: a call of a compiled program for every step."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import lax

from ..._typing import PyTree
from .. import keys as random_keys
from ..checkpoint import BlockState
from ..environment import GymnasiumEnvironment, VectorEnvironment
from ..episodes import Round
from ..observation import in_arrays
from ..replay import Replay, ReplayLearner, ReplayState, Transitions
from .player import check_finite

if TYPE_CHECKING:
    from ...environments.fleet.fleet import Fleet
    from ...environments.fleet.vector_adapter import VectorAdapter

__all__ = ["GymnasiumSteps"]

STEPS = 256
"""About how many steps a round of playing has."""
CHUNK = 64
"""For how many steps the random numbers are drawn at once: a call takes longer than the numbers."""
NONE = -1
"""Stands for an action that has not been taken."""


class _Episode(NamedTuple):
    """The present episode of a run, with an axis of one lane first.

    An environment cannot be saved, but an episode depends on its seed and its actions alone: a run
    is resumed by taking the actions of the present episode once more.
    """

    number: npt.NDArray[np.int32]
    """The number of the episode: how many the run has ended."""
    actions: npt.NDArray[np.int32]
    """`[1, max_steps]`: the actions so far."""


class GymnasiumSteps:
    """Single steps in a Gymnasium environment, of which a run learns as it plays.

    A block is one run, on any device.

    Args:
        environment: the environment.
    """

    def __init__(self, environment: GymnasiumEnvironment | VectorEnvironment) -> None:
        self.environment = environment

    def width(self, learner: ReplayLearner, lanes: int, devices: Sequence[jax.Device]) -> int:
        """The number of lanes: one, since a block is one run."""
        return 1

    def begin(self, keys: jax.Array, learner: ReplayLearner) -> _Episode:
        """The first episode of a block."""
        actions = np.full((1, self.environment.max_steps), NONE, np.int32)
        return _Episode(np.zeros(1, np.int32), actions)

    def play(self, learners: ReplayLearner, keys: jax.Array, block: BlockState) -> Generator[Round]:
        """Play and learn; a round is a few hundred steps."""
        log = block.log
        if not log.unfinished().any():
            return
        (most_episodes,), (most_steps,) = (limit.tolist() for limit in log.limits(1))
        left = most_episodes - int(log.done[0])
        check_finite(block.states, block)
        with contextlib.closing(self.environment.fleet(1)) as fleet:
            steps = int(np.asarray(block.states.replay.count)[0])
            game = _Game(fleet, keys, steps, block.playing, self.environment)
            flat = _Flat.of(learners, block.states)
            while left > 0 and game.steps < most_steps:
                ended: list[tuple[float, int]] = []
                before, finite = game.steps, True
                until = min(before + STEPS, most_steps)
                while finite and game.steps < until and len(ended) < left:
                    bout = game.play(flat, learners.train_frequency, left - len(ended), most_steps)
                    learned, is_finite = _learn(*flat, keys, bout.arrays())
                    flat = flat._replace(learned=learned)
                    ended += bout.ended
                    finite = bool(is_finite)
                left -= len(ended)
                states = flat.unflattened()
                yield Round(
                    np.zeros(len(ended), np.int32),
                    returns=np.array([[x] for x, _ in ended], np.float32).reshape(-1, 1),
                    lengths=np.array([[n] for _, n in ended], np.int32).reshape(-1, 1),
                    states=states,
                    playing=_Episode(game.number, game.actions),
                    steps=np.array([game.steps - before]),
                )
                check_finite(states, block)


class _Flat(NamedTuple):
    """A learner and what it has learned as lists of arrays.

    A compiled program takes long to flatten modules that it is called with.
    """

    tree: jax.tree_util.PyTreeDef
    """The structure of both together."""
    learner: list[jax.Array]
    """The arrays of the learner."""
    learned: list[jax.Array]
    """The arrays of its state, the network's first."""

    @classmethod
    def of(cls, learners: ReplayLearner, learned: ReplayState) -> _Flat:
        """Flatten both; they have an axis of one lane first."""
        tree = jax.tree.structure((learners, learned))
        return cls(tree, *map(jax.tree.leaves, (learners, learned)))

    def unflattened(self) -> ReplayState:
        """The learned state as one object, with an axis of one lane first."""
        return jax.tree.unflatten(self.tree, [*self.learner, *self.learned])[1]


class _Bout:
    """The steps from one update to the next, and the episodes that ended with them."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.steps: list[tuple[Any, ...]] = []
        self.ended: list[tuple[float, int]] = []
        """The return and the length of each of these episodes."""

    def arrays(self) -> tuple[Transitions, npt.NDArray[np.bool_]]:
        """The steps, padded to the most there can be, and which of them are no padding."""
        count = len(self.steps)
        rows = self.steps + [self.steps[-1]] * (self.most - count)
        before, actions, rewards, terminated, after = zip(*rows, strict=True)
        kinds = ((actions, np.int32), (rewards, np.float32), (terminated, np.bool_))
        middle: Iterator[Any] = (np.array(column, kind) for column, kind in kinds)
        columns = Transitions(*(_stacked(before), *middle, _stacked(after)))
        return columns, np.arange(self.most) < count


def _stacked(trees: Sequence[PyTree]) -> PyTree:
    """Arrays `[1, ...]` of many steps one after another."""
    return jax.tree.map(lambda *arrays: np.concatenate(arrays), *trees)


class _Game:
    """An environment, and the episode in it that is under way."""

    def __init__(
        self,
        fleet: Fleet | VectorAdapter,
        keys: jax.Array,
        steps: int,
        episode: _Episode,
        environment: GymnasiumEnvironment | VectorEnvironment,
    ) -> None:
        self.fleet, self.keys, self.steps = fleet, keys, steps
        self.max_steps, self.like = environment.max_steps, environment.observation
        self.number, self.actions = np.array(episode.number), np.array(episode.actions)
        self.draws: Iterator[np.float32] = iter(())
        before = self.actions[0][self.actions[0] != NONE]
        self._begin()
        for action in before.tolist():  # those of a run that is resumed
            self._step(action)

    def play(self, flat: _Flat, frequency: int, episodes: int, steps: int) -> _Bout:
        """Play until an update may be due, or the run has trained enough.

        Args:
            flat: the learner and what it has learned.
            frequency: the number of steps from one update to the next.
            episodes: how many episodes may end.
            steps: how many steps the run may have taken at the end.
        """
        bout = _Bout(frequency)
        while len(bout.ended) < episodes and self.steps < steps:
            before = self.observation
            choice = _act(*flat, np.int32(self.steps), self._uniform(), before)
            action = int(np.asarray(choice)[0])
            reward, terminated, truncated = self._step(action)
            bout.steps.append((before, action, reward, terminated, self.observation))
            self.steps += 1
            if terminated or truncated or self.length == self.max_steps:
                bout.ended.append((self.reward, self.length))
                self.number = self.number + np.int32(1)
                self._begin()
            if self.steps % frequency == 0:
                break
        return bout

    def _uniform(self) -> np.float32:
        """The uniform random number that chooses the next action."""
        if (uniform := next(self.draws, None)) is None:
            first = np.array([self.number[0], self.length], np.int32)
            self.draws = iter(np.asarray(_draws(self.keys, first)))
            uniform = next(self.draws)
        return uniform

    def _begin(self) -> None:
        self.actions[:] = NONE
        self.length, self.reward = 0, 0.0
        self.draws = iter(())
        seeds = np.asarray(random_keys.seeds(_episode_keys(self.keys, self.number), 1))
        self.observation = in_arrays(self.like, self.fleet.reset(seed=seeds[0])[0])

    def _step(self, action: int) -> tuple[float, bool, bool]:
        """Take an action: the reward, and whether the episode has terminated or was truncated."""
        observation, rewards, terminated, truncated, _ = self.fleet.step(np.array([action]))
        self.observation = in_arrays(self.like, observation)
        self.actions[0, self.length] = action
        self.length += 1
        self.reward += float(rewards[0])
        return float(rewards[0]), bool(terminated[0]), bool(truncated[0])


_episode_keys = jax.jit(jax.vmap(random_keys.episode))


@jax.jit
def _draws(keys: jax.Array, first: jax.Array) -> jax.Array:
    """Uniform random numbers for some steps of an episode, `[CHUNK]`.

    Args:
        keys: the key of the run, with an axis of one lane first.
        first: the number of the episode, and that of the first of the steps.
    """
    return random_keys.uniforms(random_keys.episode(keys[0], first[0]), first[1], CHUNK)


@functools.partial(jax.jit, static_argnums=0)
def _act(
    tree: jax.tree_util.PyTreeDef,
    learner: list[jax.Array],
    learned: list[jax.Array],
    step: jax.Array,
    uniform: jax.Array,
    observation: PyTree,
) -> jax.Array:
    """An action of a run, with an axis of one lane first.

    Args:
        tree: the first part of a `_Flat`.
        learner: its second part.
        learned: its third part.
        step: how many steps the run has taken.
        uniform: the random number that chooses.
        observation: the present observation.
    """
    lane = (jax.tree.unflatten(tree, [*learner, *learned]), observation)
    (one, state), observation = jax.tree.map(lambda x: x[0], lane)
    action: jax.Array = one.act(state.network, step, uniform, observation)
    return action[None]


@functools.partial(jax.jit, static_argnums=0, donate_argnums=2)
def _learn(
    tree: jax.tree_util.PyTreeDef,
    learner: list[jax.Array],
    learned: list[jax.Array],
    keys: jax.Array,
    steps: tuple[Transitions, jax.Array],
) -> tuple[list[jax.Array], jax.Array]:
    """Record the steps of a run, and let it learn if an update is due.

    Args:
        tree: the first part of a `_Flat`.
        learner: its second part.
        learned: its third part.
        keys: the key of the run.
        steps: its steps since the last call, and which of them are no padding.

    Returns:
        What it has learned by then, and whether everything is finite: a number, without an axis.
    """
    lane = (jax.tree.unflatten(tree, [*learner, *learned]), keys)
    (one, state), key = jax.tree.map(lambda x: x[0], lane)

    def record(
        carry: tuple[Replay, jax.Array], steps: tuple[Transitions, jax.Array]
    ) -> tuple[tuple[Replay, jax.Array], None]:
        (replay, finite), (step, counts) = carry, steps
        finite &= ~counts | jnp.isfinite(step.reward)
        return (replay.add(step, counts & finite), finite), None

    (replay, finite), _ = lax.scan(record, (state.replay, state.finite), steps)
    state = dataclasses.replace(state, finite=finite, replay=replay)
    of_update = random_keys.minibatch(random_keys.learning(key), replay.count)
    state = one.learn(state, of_update)
    return [x[None] for x in jax.tree.leaves(state)], state.finite
