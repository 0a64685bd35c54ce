"""Whole episodes in Gymnasium environments, which are stepped side by side.

Every episode of a batch of every run has an environment of its own in a `Fleet`, or in a vector
environment, and at each step one call of the networks chooses the actions of all that are under
way. A batch is yielded as soon as it is complete, and its lane begins the next, whatever the other
lanes do: no run waits for another's longest episode.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import numpy.typing as npt

from ..._typing import Bools, Integers, PyTree
from .. import keys as random_keys
from ..checkpoint import BlockState
from ..environment import GymnasiumEnvironment, VectorEnvironment
from ..episodes import CHUNK, Episodes, Round, padded_length
from ..network import Policy
from ..observation import in_arrays
from ..reinforce import Reinforce
from .episodes import go_on, learn_in_between
from .player import EVERY_LANE, WIDTH

if TYPE_CHECKING:
    from ...environments.fleet.fleet import Fleet
    from ...environments.fleet.vector_adapter import VectorAdapter

__all__ = ["GymnasiumEpisodes"]


class GymnasiumEpisodes:
    """Whole episodes in a Gymnasium environment or a vector environment.

    Args:
        environment: the environment.
    """

    def __init__(self, environment: GymnasiumEnvironment | VectorEnvironment) -> None:
        self.environment = environment

    def width(self, learner: Reinforce, lanes: int, devices: Sequence[jax.Device]) -> int:
        """The number of lanes of a block, on any device."""
        return WIDTH

    def begin(self, keys: jax.Array, learner: Reinforce) -> None:
        """No episode is saved: a batch that was cut short is played again."""

    def play(self, learners: Reinforce, keys: jax.Array, block: BlockState) -> Generator[Round]:
        """Play and learn; a round is the complete batch of one lane."""
        return learn_in_between(self, learners, keys, block)

    def episodes(
        self,
        policies: Callable[[], Policy],
        keys: jax.Array,
        done: Sequence[int],
        until: int,
        batch: int,
        unfinished: Callable[[], Bools] | None = None,
    ) -> Generator[Round]:
        """Play batches of episodes; each lane's is yielded as soon as it is complete."""
        runs, environment = len(done), self.environment
        numbers = np.array([*done, *[until] * (WIDTH - runs)], np.uint32)
        beginning = np.flatnonzero(go_on(numbers, until, runs, unfinished)).tolist()
        if not beginning:
            return
        with contextlib.closing(environment.fleet(runs * batch)) as fleet:
            games = _Games(fleet, runs, batch, environment.observation)
            while True:
                if beginning:
                    of_batch = _batch_keys(keys, numbers)
                    # Flattened once until the next batch: each call would flatten modules slowly.
                    leaves, tree = jax.tree.flatten(policies())
                    present = jax.device_put(leaves)
                    games.begin(beginning, np.asarray(random_keys.seeds(of_batch, batch)))
                if not games.busy.any():
                    return
                uniforms = games.uniforms(of_batch)
                games.step(np.asarray(_act(tree, present, uniforms, games.observation)))
                complete = games.complete(environment.max_steps)
                for lane in complete:
                    numbers[lane] += 1
                    yield games.end(lane)
                going = go_on(numbers, until, runs, unfinished)
                beginning = [lane for lane in complete if going[lane]]


class _Games:
    """The episodes that are under way: `B` of each lane that has a run, each at its own step."""

    def __init__(self, fleet: Fleet | VectorAdapter, runs: int, batch: int, like: PyTree) -> None:
        from ...environments.fleet.worker import REST

        self.fleet = fleet
        self.rest = REST
        self.runs, self.like = runs, like
        self.observation = _zeros(like, (WIDTH, batch))
        self.busy = np.zeros((WIDTH, batch), np.bool_)
        self.lengths = np.zeros((WIDTH, batch), np.int32)
        self.at = np.zeros(WIDTH, np.int64)
        """The number of the next step of each lane."""
        self.draws = np.zeros((WIDTH, CHUNK, batch), np.float32)
        shape = (WIDTH, padded_length(1), batch)
        self.observations = _zeros(like, shape)
        self.actions = np.zeros(shape, np.int32)
        self.rewards = np.zeros(shape, np.float32)

    def begin(self, lanes: list[int], seeds: npt.NDArray[np.int32]) -> None:
        """Begin a batch in some lanes; `seeds` has one for each episode of all lanes."""
        self.busy[lanes], self.lengths[lanes], self.at[lanes] = True, 0, 0
        mask: Bools = np.zeros((self.runs, seeds.shape[1]), np.bool_)
        mask[lanes] = True
        options = {"reset_mask": mask.reshape(-1)}
        observations, _ = self.fleet.reset(seed=seeds[: self.runs].reshape(-1), options=options)
        self._observe(observations)

    def uniforms(self, keys: jax.Array) -> npt.NDArray[np.float32]:
        """Uniform random numbers that choose the actions, `[WIDTH, B]`."""
        within = self.at % CHUNK
        for lane in np.flatnonzero(self.busy.any(1) & (within == 0)).tolist():
            self.draws[lane] = _draws(keys, lane, self.at[lane] // CHUNK, self.busy.shape[1])
        return self.draws[EVERY_LANE, within]

    def step(self, actions: Integers) -> None:
        """Take an action in every episode that is under way."""
        if self.at.max() == self.actions.shape[1]:
            more = padded_length(self.actions.shape[1] + 1) - self.actions.shape[1]

            def longer(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
                room = np.zeros((WIDTH, more, *array.shape[2:]), array.dtype)
                return np.concatenate([array, room], 1)

            for name in ("observations", "actions", "rewards"):
                setattr(self, name, jax.tree.map(longer, getattr(self, name)))
        pairs = zip(*map(jax.tree.leaves, (self.observations, self.observation)), strict=True)
        for record, seen in pairs:
            record[EVERY_LANE, self.at] = seen
        self.actions[EVERY_LANE, self.at] = actions
        chosen = np.where(self.busy, actions, self.rest)[: self.runs].reshape(-1)
        observations, rewards, terminated, truncated, _ = self.fleet.step(chosen)
        self._observe(observations)
        with_run = EVERY_LANE[: self.runs]
        self.rewards[with_run, self.at[with_run]] = rewards.reshape(self.runs, -1)
        self.lengths += self.busy
        self.at += self.busy.any(1)
        self.busy[: self.runs] &= ~(terminated | truncated).reshape(self.runs, -1)

    def complete(self, max_steps: int) -> list[int]:
        """The lanes whose batch has just become complete."""
        result = (self.at > 0) & (~self.busy.any(1) | (self.at == max_steps))
        self.busy[result] = False
        return np.flatnonzero(result).tolist()

    def end(self, lane: int) -> Round:
        """End the batch of a lane, and return it."""
        length = padded_length(int(self.at[lane]))
        self.at[lane] = 0
        one = slice(lane, lane + 1)
        episodes = Episodes(
            jax.tree.map(lambda x: x[one, :length], self.observations),
            self.actions[one, :length],
            self.rewards[one, :length],
            self.lengths[one],
        )
        return Round(EVERY_LANE[one], episodes)

    def _observe(self, observations: PyTree) -> None:
        now = in_arrays(self.like, observations)
        for seen, array in zip(*map(jax.tree.leaves, (self.observation, now)), strict=True):
            seen[: self.runs] = array.reshape(self.runs, *seen.shape[1:])


def _zeros(like: PyTree, axes: tuple[int, ...]) -> PyTree:
    """Room for many observations."""
    return jax.tree.map(lambda x: np.zeros((*axes, *x.shape), x.dtype), like)


_batch_keys = jax.jit(random_keys.batches)


@functools.partial(jax.jit, static_argnums=3)
def _draws(keys: jax.Array, lane: int, chunk: int, batch: int) -> jax.Array:
    """Uniform numbers for the actions of a lane in a chunk of steps, `[CHUNK, B]`."""
    key = random_keys.actions(keys[lane], chunk)
    return jax.random.uniform(key, (CHUNK, batch), np.float32)


@functools.partial(jax.jit, static_argnums=0)
def _act(
    tree: jax.tree_util.PyTreeDef,
    policies: list[jax.Array],
    uniforms: jax.Array,
    observations: PyTree,
) -> jax.Array:
    """An action for each episode of each lane, `[WIDTH, B]`; the policies are flattened."""
    act = jax.vmap(jax.vmap(Policy.act, (None, 0, 0)))
    return act(jax.tree.unflatten(tree, policies), uniforms, observations)
