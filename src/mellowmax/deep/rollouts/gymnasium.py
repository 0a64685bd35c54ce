"""Episodes of Gymnasium environments, stepped side by side."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..._common import checks
from ...environments.fleet.fleet import Fleet
from ...environments.fleet.worker import NOTHING, flat
from ..episodes import CHUNK, Episodes, padded_length
from ..network import Policy
from ..reinforce import Reinforce, State
from .rollouts import WIDTH, Advance, batch_keys

__all__ = ["Vector"]

LONGEST = 1000
"""Where an episode is cut off if the environment has no limit of its own."""


class Vector:
    """A source of episodes of a Gymnasium environment with discrete actions.

    Every episode of a batch of every run has an environment of its own in a `Fleet`, and at each
    step one call of the networks chooses the actions of all that are under way. A run whose batch
    is whole learns from it and begins the next, whatever the other runs are at: none waits for
    another's longest episode.

    Args:
        environment: an id, or a function without arguments that makes an environment. Observations
            are flattened, and states that are numbers become one-hot.
        workers: how many processes to spread the environments over; 0 for none but this one.
        max_steps: where an episode is cut off; None for the environment's own limit, or 1000.

    Raises:
        ValueError: for an environment that there is not, or whose actions are not discrete.
    """

    def __init__(
        self,
        environment: str | Callable[[], Any],
        *,
        workers: int = 0,
        max_steps: int | None = None,
    ) -> None:
        self.workers = checks.whole("workers", workers, 0)
        self._make = functools.partial(flat, environment)
        env = self._make()
        self.n_actions = int(env.action_space.n)
        self.n_observations = int(env.observation_space.shape[0])
        own = None if env.spec is None else env.spec.max_episode_steps
        limit = own or LONGEST if max_steps is None else max_steps
        self.max_steps = checks.whole("max_steps", limit, 1)
        env.close()
        self._fleet: Fleet | None = None

    def advance(
        self, learners: Reinforce, states: State, keys: Any, done: list[int], until: int
    ) -> Iterator[Advance]:
        """As `Source` has it: a run learns as soon as its batch is whole."""
        runs, batch = len(done), learners.batch
        sizes = (runs, batch, self.n_observations)
        games = _Games(self._fleet_of(runs * batch), sizes)
        numbers = np.array([*done, *[until] * (WIDTH - runs)], np.uint32)
        beginning = np.flatnonzero(numbers < until).tolist()
        while True:
            if beginning:
                of_batch = _batch_keys(keys, numbers)
                # Once for all steps until the next batch: a call walks through modules slowly.
                leaves, tree = jax.tree.flatten(learners.policy(states))
                policies = jax.device_put(leaves)
                games.begin(beginning, np.asarray(_seeds(of_batch, batch)))
            if not games.live.any():
                return
            uniforms = games.uniforms(of_batch)
            games.step(np.asarray(_act(tree, policies, uniforms, games.seen)))
            whole = games.whole(self.max_steps)
            for lane in whole:
                episodes = games.episodes(lane)
                states, returns = _learn(learners, states, lane, episodes)
                numbers[lane] += 1
                one = range(lane, lane + 1)
                yield Advance(one, states, np.asarray(returns)[None], episodes.lengths[None])
            beginning = [lane for lane in whole if numbers[lane] < until]

    def close(self) -> None:
        """Close the environments."""
        if self._fleet is not None:
            self._fleet.close()
            self._fleet = None

    def _fleet_of(self, count: int) -> Fleet:
        if self._fleet is None or self._fleet.num_envs != count:
            self.close()
            self._fleet = Fleet(self._make, count, workers=self.workers)
        return self._fleet


class _Games:
    """The episodes that are under way: `B` of each lane that has a run, each at its own step."""

    def __init__(self, fleet: Fleet, sizes: tuple[int, int, int]) -> None:
        self.fleet = fleet
        self.runs, batch, size = sizes
        self.seen = np.zeros((WIDTH, batch, size), np.float32)
        self.live = np.zeros((WIDTH, batch), np.bool_)
        self.lengths = np.zeros((WIDTH, batch), np.int32)
        self.at = np.zeros(WIDTH, np.int64)
        """The step that each lane is at."""
        self.draws = np.zeros((WIDTH, CHUNK, batch), np.float32)
        shape = (WIDTH, padded_length(1), batch)
        self.observations = np.zeros((*shape, size), np.float32)
        self.actions = np.zeros(shape, np.int32)
        self.rewards = np.zeros(shape, np.float32)

    def begin(self, lanes: Any, seeds: Any) -> None:
        """Begin a batch in some lanes, with a seed for each episode of all lanes."""
        self.live[lanes], self.lengths[lanes], self.at[lanes] = True, 0, 0
        mask = np.zeros((self.runs, seeds.shape[1]), np.bool_)
        mask[lanes] = True
        options = {"reset_mask": mask.reshape(-1)}
        observations, _ = self.fleet.reset(seed=seeds[: self.runs].reshape(-1), options=options)
        self._see(observations)

    def uniforms(self, keys: Any) -> Any:
        """Random numbers that decide on the actions, `[WIDTH, B]`."""
        within = self.at % CHUNK
        for lane in np.flatnonzero(self.live.any(1) & (within == 0)).tolist():
            self.draws[lane] = _draws(keys, lane, self.at[lane] // CHUNK, self.live.shape[1])
        return self.draws[EVERY, within]

    def step(self, actions: Any) -> None:
        """Take an action in every episode that is under way."""
        if self.at.max() == self.actions.shape[1]:
            more = padded_length(self.actions.shape[1] + 1) - self.actions.shape[1]
            for name in ("observations", "actions", "rewards"):
                had = getattr(self, name)
                room = np.zeros((WIDTH, more, *had.shape[2:]), had.dtype)
                setattr(self, name, np.concatenate([had, room], 1))
        self.observations[EVERY, self.at] = self.seen
        self.actions[EVERY, self.at] = actions
        chosen = np.where(self.live, actions, NOTHING)[: self.runs].reshape(-1)
        observations, rewards, terminated, truncated, _ = self.fleet.step(chosen)
        self._see(observations)
        self.rewards[EVERY[: self.runs], self.at[: self.runs]] = rewards.reshape(self.runs, -1)
        self.lengths += self.live
        self.at += self.live.any(1)
        self.live[: self.runs] &= ~(terminated | truncated).reshape(self.runs, -1)

    def whole(self, max_steps: int) -> list[int]:
        """The lanes whose batch has just become whole."""
        result = (self.at > 0) & (~self.live.any(1) | (self.at == max_steps))
        self.live[result] = False
        return np.flatnonzero(result).tolist()

    def episodes(self, lane: int) -> Episodes:
        """The episodes of a lane, which ends with this."""
        length = padded_length(int(self.at[lane]))
        self.at[lane] = 0
        return Episodes(
            self.observations[lane, :length],
            self.actions[lane, :length],
            self.rewards[lane, :length],
            self.lengths[lane].copy(),
        )

    def _see(self, observations: Any) -> None:
        self.seen[: self.runs] = observations.reshape(self.runs, *self.seen.shape[1:])


EVERY = np.arange(WIDTH)

_batch_keys = jax.jit(batch_keys)


@functools.partial(jax.jit, static_argnums=1)
def _seeds(keys: Any, batch: int) -> Any:
    """Of the environments, `[WIDTH, B]`."""

    def draw(key: Any) -> Any:
        bits = jax.random.bits(jax.random.fold_in(key, 0), (batch,), jnp.uint32)
        return (bits >> 1).astype(jnp.int32)

    return jax.vmap(draw)(keys)


@functools.partial(jax.jit, static_argnums=3)
def _draws(keys: Any, lane: Any, chunk: Any, batch: int) -> Any:
    """Uniform numbers for the actions of a lane in a chunk of steps, `[CHUNK, B]`."""
    key = jax.random.fold_in(jax.random.fold_in(keys[lane], 1), chunk)
    return jax.random.uniform(key, (CHUNK, batch), jnp.float32)


@functools.partial(jax.jit, static_argnums=0)
def _act(tree: Any, policies: Any, uniforms: Any, seen: Any) -> Any:
    """An action for each episode of each lane, `[WIDTH, B]`, by a flattened tree of policies."""
    act = jax.vmap(jax.vmap(Policy.act, (None, 0, 0)))
    return act(jax.tree.unflatten(tree, policies), uniforms, seen)


@functools.partial(jax.jit)
def _learn(learners: Reinforce, states: State, lane: Any, episodes: Episodes) -> tuple[State, Any]:
    """One lane learns from its batch: the states of all lanes, and the returns of the batch."""
    learner, state = jax.tree.map(lambda x: x[lane], (learners, states))
    learned = learner.update(state, episodes)
    return jax.tree.map(lambda x, y: x.at[lane].set(y), states, learned), episodes.returns()
