"""Learning while playing, in Gymnasium environments: a call of a program for every step."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import lax

from ..checkpoint import BlockState
from ..dqn import Dqn, DqnState
from ..network import Policy
from ..replay import Replay, Transitions
from ..rollouts.gymnasium import GymnasiumRollouts, episode_seeds
from .compiled import LEARNING, check_sound
from .loop import Ended, Learned, initial_states

if TYPE_CHECKING:
    from ...environments.fleet.fleet import Fleet
    from ...environments.fleet.resting import Resting

__all__ = ["SteppedLoop"]

STEPS = 256
"""How many steps there are between two reports, about."""
NONE = -1
"""In the place of an action that has not been taken."""


class _Run(NamedTuple):
    """A run between two steps, with an axis of one lane first.

    An environment cannot be saved, but what an episode is depends on its seed and its actions
    alone: a run is resumed by taking the actions of the episode under way once more.
    """

    learned: DqnState
    number: npt.NDArray[np.int32]
    """How many episodes it has ended."""
    actions: npt.NDArray[np.int32]
    """`[1, max_steps]`: those of the episode under way."""


class SteppedLoop:
    """The loop of deep Q-learning in a Gymnasium environment. A block is one run.

    Args:
        rollouts: of the environment.
    """

    def __init__(self, rollouts: GymnasiumRollouts) -> None:
        self.rollouts = rollouts

    def width(self, lanes: int, devices: Sequence[jax.Device]) -> int:
        """As `Loop` has it."""
        return 1

    def init(self, learners: Dqn, keys: jax.Array) -> _Run:
        """As `Loop` has it."""
        rollouts = self.rollouts
        learned = initial_states(learners, keys, rollouts.n_observations, rollouts.n_actions)
        actions = np.full((1, rollouts.max_steps), NONE, np.int32)
        return _Run(learned, np.zeros(1, np.int32), actions)

    def policies(self, learners: Dqn, states: _Run) -> Policy:
        """As `Loop` has it."""
        return learners.policy(states.learned)

    def rounds(self, learners: Dqn, keys: jax.Array, block: BlockState) -> Generator[Learned]:
        """As `Loop` has it, every few hundred steps."""
        log, run = block.log, block.states
        left = int(log.episodes - log.done[0])
        if left == 0:
            return
        check_sound(run.learned, block)
        with contextlib.closing(self.rollouts.fleet(1)) as fleet:
            game = _Game(fleet, keys, run, self.rollouts.max_steps)
            flat = _Flat.of(learners, run.learned)
            while left > 0:
                ended: list[Ended] = []
                begin, sound = game.steps, True
                while sound and game.steps - begin < STEPS and len(ended) < left:
                    moved = game.play(flat, learners.train_frequency, left - len(ended))
                    learned, is_sound = _learn(*flat, keys, moved.arrays())
                    flat = flat._replace(learned=learned)
                    ended += moved.ended
                    sound = bool(is_sound)
                left -= len(ended)
                states = _Run(flat.unflattened(), game.number, game.actions)
                yield Learned(states, ended, game.steps - begin)
                check_sound(states.learned, block)


class _Flat(NamedTuple):
    """A learner and what it has learned as lists of arrays: a call walks through modules slowly."""

    tree: jax.tree_util.PyTreeDef
    """Of both."""
    learner: list[jax.Array]
    learned: list[jax.Array]
    """The network's come first."""

    @classmethod
    def of(cls, learners: Dqn, learned: DqnState) -> _Flat:
        """With an axis of one lane first."""
        tree = jax.tree.structure((learners, learned))
        return cls(tree, *map(jax.tree.leaves, (learners, learned)))

    def unflattened(self) -> DqnState:
        """What has been learned."""
        learned: DqnState = jax.tree.unflatten(self.tree, [*self.learner, *self.learned])[1]
        return learned


class _Moved:
    """The steps from one update to the next."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.steps: list[tuple[Any, ...]] = []
        self.ended: list[Ended] = []

    def arrays(self) -> tuple[Transitions, npt.NDArray[np.bool_]]:
        """The steps, as many as there can be, and which of them there are."""
        count = len(self.steps)
        rows = self.steps + [self.steps[-1]] * (self.most - count)
        kinds = (np.float32, np.int32, np.float32, np.bool_, np.float32)
        columns: Any = map(np.array, zip(*rows, strict=True), kinds)
        return Transitions(*columns), np.arange(self.most) < count


class _Game:
    """An environment, and the episode in it that is under way."""

    def __init__(self, fleet: Fleet | Resting, keys: jax.Array, run: _Run, max_steps: int) -> None:
        self.fleet, self.keys, self.max_steps = fleet, keys, max_steps
        self.number, self.actions = np.array(run.number), np.array(run.actions)
        self.steps = int(np.asarray(run.learned.replay.count)[0])
        before = self.actions[0][self.actions[0] != NONE]
        self._begin()
        for action in before.tolist():  # those of a run that is resumed
            self._take(action)

    def play(self, flat: _Flat, frequency: int, episodes: int) -> _Moved:
        """Steps until an update may be due, or so many episodes have ended."""
        moved = _Moved(frequency)
        while len(moved.ended) < episodes:
            before = self.seen
            at = np.array([self.steps, self.number[0], self.taken], np.int32)
            action = int(np.asarray(_act(*flat, self.keys, at, before))[0])
            reward, terminated, truncated = self._take(action)
            moved.steps.append((before[0], action, reward, terminated, self.seen[0]))
            self.steps += 1
            if terminated or truncated or self.taken == self.max_steps:
                moved.ended.append(self._end())
            if self.steps % frequency == 0:
                break
        return moved

    def _begin(self) -> None:
        self.actions[:] = NONE
        self.taken, self.earned = 0, 0.0
        seeds = np.asarray(episode_seeds(_episode_keys(self.keys, self.number), 1))
        self.seen = self.fleet.reset(seed=seeds[0])[0].astype(np.float32)

    def _take(self, action: int) -> tuple[float, bool, bool]:
        seen, rewards, terminated, truncated, _ = self.fleet.step(np.array([action]))
        self.seen = seen.astype(np.float32)
        self.actions[0, self.taken] = action
        self.taken += 1
        self.earned += float(rewards[0])
        return float(rewards[0]), bool(terminated[0]), bool(truncated[0])

    def _end(self) -> Ended:
        """End an episode, and begin the next."""
        returns = np.full((1, 1), self.earned, np.float32)
        ended = Ended(np.zeros(1, np.int32), returns, np.full((1, 1), self.taken, np.int32))
        self.number = self.number + np.int32(1)
        self._begin()
        return ended


@functools.partial(jax.jit)
def _episode_keys(keys: jax.Array, numbers: jax.Array) -> jax.Array:
    episodes: jax.Array = jax.vmap(jax.random.fold_in)(keys, numbers)
    return episodes


@functools.partial(jax.jit, static_argnums=0)
def _act(
    tree: jax.tree_util.PyTreeDef,
    learner: list[jax.Array],
    learned: list[jax.Array],
    keys: jax.Array,
    at: jax.Array,
    seen: jax.Array,
) -> jax.Array:
    """An action of a run, with an axis of one lane first.

    Args:
        tree: as `_Flat` has it, as the next two.
        learner: that of the run.
        learned: what it has learned so far.
        keys: of the run.
        at: how many steps the run has taken, the number of its episode, and how many steps that
            has had.
        seen: what is seen then.
    """
    lane = (jax.tree.unflatten(tree, [*learner, *learned]), keys, seen)
    (one, state), key, seen = jax.tree.map(lambda x: x[0], lane)
    of_step = jax.random.fold_in(jax.random.fold_in(key, at[1]), at[2] + 1)
    uniform = jax.random.uniform(of_step, dtype=jnp.float32)
    action: jax.Array = one.act(state.network, at[0], uniform, seen)
    return action[None]


@functools.partial(jax.jit, static_argnums=0, donate_argnums=2)
def _learn(
    tree: jax.tree_util.PyTreeDef,
    learner: list[jax.Array],
    learned: list[jax.Array],
    keys: jax.Array,
    moved: tuple[Transitions, jax.Array],
) -> tuple[list[jax.Array], jax.Array]:
    """Record the steps of a run, and let it learn if an update is due.

    Args:
        tree: as `_Flat` has it, as the next two.
        learner: that of the run.
        learned: what it has learned so far.
        keys: of the run.
        moved: its steps since the last time, and which of them count.

    Returns:
        What it has learned by then, and whether all is finite: a number, and no axis.
    """
    lane = (jax.tree.unflatten(tree, [*learner, *learned]), keys)
    (one, state), key = jax.tree.map(lambda x: x[0], lane)

    def record(
        carry: tuple[Replay, jax.Array], moved: tuple[Transitions, jax.Array]
    ) -> tuple[tuple[Replay, jax.Array], None]:
        (replay, sound), (step, counts) = carry, moved
        sound &= ~counts | jnp.isfinite(step.reward)
        return (replay.add(step, counts & sound), sound), None

    (replay, sound), _ = lax.scan(record, (state.replay, state.sound), moved)
    state = dataclasses.replace(state, sound=sound, replay=replay)
    of_update = jax.random.fold_in(jax.random.fold_in(key, LEARNING), replay.count)
    state = one.learn(state, of_update)
    return [x[None] for x in jax.tree.leaves(state)], state.sound
