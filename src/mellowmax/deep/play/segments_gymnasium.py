"""Segments in Gymnasium environments: a call of a compiled program for every step of all of them.

The environments of a run are stepped side by side, in a `Fleet` or in a vector environment.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np
import numpy.typing as npt

from ..._typing import Bools, Integers, PyTree
from .. import keys as random_keys
from ..checkpoint import BlockState
from ..environment import GymnasiumEnvironment, VectorEnvironment
from ..episodes import Round
from ..network import Policy
from ..observation import in_arrays
from ..ppo import Ppo, PpoState
from ..replay import Transitions
from ..segments import Segment
from .segments import learn, round_of

if TYPE_CHECKING:
    from ...environments.fleet.fleet import Fleet
    from ...environments.fleet.vector_adapter import VectorAdapter

__all__ = ["GymnasiumSegments"]

CHUNK = 64
"""For how many steps the random numbers are drawn at once: a call takes longer than the numbers."""
NONE = -1
"""Stands for an action that has not been taken."""


class _Episodes(NamedTuple):
    """The present episodes of a run, with an axis of one lane first.

    An environment cannot be saved, but an episode depends on its seed and its actions alone: a run
    is resumed by taking the actions of the present episodes once more.
    """

    number: npt.NDArray[np.int32]
    """`[1, E]`: the numbers of the episodes: how many each environment has ended."""
    actions: npt.NDArray[np.int32]
    """`[1, E, max_steps]`: the actions so far."""


class GymnasiumSegments:
    """Segments of a Gymnasium environment or a vector environment, from which a run learns.

    A block is one run, on any device.

    Args:
        environment: the environment.
    """

    def __init__(self, environment: GymnasiumEnvironment | VectorEnvironment) -> None:
        self.environment = environment

    def width(self, learner: Ppo, lanes: int, devices: Sequence[jax.Device]) -> int:
        """The number of lanes: one, since a block is one run."""
        return 1

    def begin(self, keys: jax.Array, learner: Ppo) -> _Episodes:
        """The first episodes of a block."""
        count = learner.environments
        actions = np.full((1, count, self.environment.max_steps), NONE, np.int32)
        return _Episodes(np.zeros((1, count), np.int32), actions)

    def play(self, learners: Ppo, keys: jax.Array, block: BlockState) -> Generator[Round]:
        """Play and learn; a round is a segment."""
        if not block.log.unfinished().any():
            return
        with contextlib.closing(self.environment.fleet(learners.environments)) as fleet:
            games = _Games(fleet, keys, block.playing, self.environment)
            while block.log.unfinished().any():
                segment, totals, lengths = games.play(learners, block.states)
                states, finite = _learn(learners, block.states, keys, segment)
                playing = _Episodes(games.numbers[None], games.actions[None].copy())
                played = (np.asarray(x)[None, None] for x in (segment.ended, totals, lengths))
                yield round_of(block, learners, (states, playing, finite), *played)


class _Games:
    """The environments of a run, and the episodes in them that are under way."""

    def __init__(
        self,
        fleet: Fleet | VectorAdapter,
        keys: jax.Array,
        episodes: _Episodes,
        environment: GymnasiumEnvironment | VectorEnvironment,
    ) -> None:
        from ...environments.fleet.worker import REST

        self.fleet, self.keys = fleet, keys
        self.max_steps, self.like = environment.max_steps, environment.observation
        self.numbers, self.actions = (np.array(array[0]) for array in episodes)
        count = len(self.numbers)
        self.lengths, self.totals = np.zeros(count, np.int32), np.zeros(count, np.float32)
        self.draws: Iterator[npt.NDArray[np.float32]] = iter(())
        before = self.actions.copy()
        taken = (before != NONE).sum(1)
        self._begin(np.ones(count, np.bool_))
        # The actions of a run that is resumed. Shorter episodes begin later, so that all get to
        # their last action together: some vector environments cannot leave one alone after it.
        for left in range(taken.max(), 0, -1):
            actions = before[np.arange(count), np.maximum(taken - left, 0)]
            self._step(np.where(taken >= left, actions, REST))
            if (begins := taken == left - 1).any():
                self._begin(begins)

    def play(
        self, learners: Ppo, states: PpoState
    ) -> tuple[Segment, npt.NDArray[np.float32], npt.NDArray[np.int32]]:
        """Play a segment: the steps, and the return and the length of the episode of each."""
        leaves, tree = jax.tree.flatten(learners.policy(states))  # modules are flattened slowly
        present = jax.device_put(leaves)
        columns: list[tuple[Any, ...]] = []
        for _ in range(learners.steps):
            before = self.observations
            actions = np.asarray(_act(tree, present, self._uniforms(), before))
            rewards, terminated, truncated = self._step(actions)
            ended = terminated | truncated | (self.lengths >= self.max_steps)
            step = (before, actions, rewards, terminated, self.observations)
            columns.append((*step, ended, self.totals.copy(), self.lengths.copy()))
            if ended.any():
                self.numbers = self.numbers + ended
                self._begin(ended)
        stacked: Iterator[Any] = map(_stacked, zip(*columns, strict=True))
        *steps, ended, totals, lengths = stacked
        return Segment(Transitions(*steps), ended), totals, lengths

    def _uniforms(self) -> npt.NDArray[np.float32]:
        """Uniform random numbers that choose the next actions, `[E]`."""
        if (uniforms := next(self.draws, None)) is None:
            at = np.stack([self.numbers, self.lengths])
            self.draws = iter(np.asarray(_draws(self.keys, at)))
            uniforms = next(self.draws)
        return uniforms

    def _begin(self, which: Bools) -> None:
        """Begin the next episode in some of the environments."""
        self.actions[which] = NONE
        self.lengths[which], self.totals[which] = 0, 0.0
        self.draws = iter(())  # those of the others are drawn once more
        seeds = np.asarray(_seeds(self.keys, self.numbers))
        observations, _ = self.fleet.reset(seed=seeds, options={"reset_mask": which})
        self.observations = in_arrays(self.like, observations)

    def _step(self, actions: Integers) -> tuple[npt.NDArray[np.float32], Bools, Bools]:
        """Take actions: the rewards, and which episodes have terminated or were truncated."""
        acts = actions >= 0
        observations, rewards, terminated, truncated, _ = self.fleet.step(actions)
        self.observations = in_arrays(self.like, observations)
        self.actions[acts, self.lengths[acts]] = actions[acts]
        self.lengths += acts
        single = rewards.astype(np.float32)
        self.totals += single
        return single, terminated, truncated


def _stacked(trees: Sequence[PyTree]) -> PyTree:
    """Arrays of many steps, with an axis of steps first."""
    return jax.tree.map(lambda *arrays: np.stack(arrays), *trees)


@jax.jit
def _seeds(keys: jax.Array, numbers: jax.Array) -> jax.Array:
    """The seeds of the present episodes of a run, `[E]`; `keys` has an axis of one lane."""
    of_environments = random_keys.environments(keys[0], len(numbers))
    return random_keys.seeds(jax.vmap(random_keys.episode)(of_environments, numbers), 1)[:, 0]


@jax.jit
def _draws(keys: jax.Array, at: jax.Array) -> jax.Array:
    """Uniform random numbers for the next steps of the present episodes of a run, `[CHUNK, E]`.

    Args:
        keys: the key of the run, with an axis of one lane first.
        at: the numbers of the episodes, and how many steps each has had, `[2, E]`.
    """
    of_environments = random_keys.environments(keys[0], at.shape[1])
    of_episodes = jax.vmap(random_keys.episode)(of_environments, at[0])
    return jax.vmap(random_keys.uniforms, (0, 0, None), 1)(of_episodes, at[1], CHUNK)


@functools.partial(jax.jit, static_argnums=0)
def _act(
    tree: jax.tree_util.PyTreeDef,
    policy: list[jax.Array],
    uniforms: jax.Array,
    observations: PyTree,
) -> jax.Array:
    """The actions of a run in its environments, `[E]`.

    Args:
        tree: the structure of its policy.
        policy: the arrays of its policy, with an axis of one lane first.
        uniforms: the random numbers that choose, `[E]`.
        observations: the present observations, `[E, ...]`.
    """
    one: Policy = jax.tree.unflatten(tree, [x[0] for x in policy])
    return jax.vmap(one.act)(uniforms, observations)


@jax.jit
def _learn(
    learners: Ppo, states: PpoState, keys: jax.Array, segment: Segment
) -> tuple[PpoState, jax.Array]:
    """What a run has learned from a segment, and whether it is finite; with an axis of one lane."""
    learner, state, key = jax.tree.map(lambda x: x[0], (learners, states, keys))
    return jax.tree.map(lambda x: x[None], learn(learner, state, key, segment))
