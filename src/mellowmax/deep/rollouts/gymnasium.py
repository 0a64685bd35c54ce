"""Episodes of Gymnasium environments, stepped side by side."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from ..._common import checks
from ..._common.discount import discount_of
from ..._common.evaluation import MAX_STEPS
from ..._common.extras import needed_by
from ..._typing import Bools, Integers
from ..episodes import CHUNK, Episodes, padded_length
from ..network import Policy
from .rollouts import EVERY_LANE, WIDTH, Played, batch_keys, name_of

if TYPE_CHECKING:
    import gymnasium

    from ...environments.fleet.fleet import Fleet
    from ...environments.fleet.resting import Resting

__all__ = ["GymnasiumRollouts", "episode_seeds"]


class GymnasiumRollouts:
    """Rollouts of a Gymnasium environment with discrete actions.

    Every episode of a batch of every run has an environment of its own in a `Fleet`, and at each
    step one call of the networks chooses the actions of all that are under way. A batch is yielded
    as soon as it is whole, and its lane begins the next, whatever the other lanes are at: no run
    waits for another's longest episode.

    Args:
        environment: an id, or a function without arguments that makes an environment. Observations
            are flattened, and states that are numbers become one-hot.
        workers: how many processes to spread the environments over; 0 for none but this one.
        max_steps: where an episode is cut off; None for the environment's own limit, or 1000.

    Raises:
        ValueError: for an environment that there is not, or whose actions are not discrete.

    Examples:
        >>> rollouts = GymnasiumRollouts("CartPole-v1")
        >>> rollouts.n_observations, rollouts.n_actions, rollouts.max_steps
        (4, 2, 500)
    """

    def __init__(
        self,
        environment: str | Callable[[], gymnasium.Env[Any, Any]],
        *,
        workers: int = 0,
        max_steps: int | None = None,
    ) -> None:
        with needed_by(name_of(environment), "gymnasium"):
            from gymnasium.spaces import flatdim

            from ...environments.fleet.flatten import make_flat

        self.environment = environment
        self.workers = checks.whole("workers", workers, 0)
        if max_steps is not None:
            max_steps = checks.whole("max_steps", max_steps, 1)
        self._make = functools.partial(make_flat, environment)
        with contextlib.closing(self._make()) as env:
            self.n_actions = flatdim(env.action_space)
            self.n_observations = flatdim(env.observation_space)
            self.discount = discount_of(env)
            own = None if env.spec is None else env.spec.max_episode_steps
        self.max_steps = own or MAX_STEPS if max_steps is None else max_steps

    @property
    def name(self) -> str:
        """The id, or the name of the function that makes the environment."""
        return name_of(self.environment)

    def fleet(self, count: int) -> Fleet | Resting:
        """So many of the environments, side by side."""
        from ...environments.fleet.fleet import Fleet

        return Fleet(self._make, count, workers=self.workers)

    def play(
        self,
        policies: Callable[[], Policy],
        keys: jax.Array,
        done: Sequence[int],
        until: int,
        batch: int,
    ) -> Generator[Played]:
        """As `Rollouts` has it, one lane at a time: each as soon as its batch is whole."""
        runs = len(done)
        numbers = np.array([*done, *[until] * (WIDTH - runs)], np.uint32)
        beginning = np.flatnonzero(numbers < until).tolist()
        if not beginning:
            return
        with contextlib.closing(self.fleet(runs * batch)) as fleet:
            games = _Games(fleet, (runs, batch, self.n_observations))
            while True:
                if beginning:
                    of_batch = _batch_keys(keys, numbers)
                    # Once for all steps until the next batch: a call walks through modules slowly.
                    leaves, tree = jax.tree.flatten(policies())
                    present = jax.device_put(leaves)
                    games.begin(beginning, np.asarray(episode_seeds(of_batch, batch)))
                if not games.live.any():
                    return
                uniforms = games.uniforms(of_batch)
                games.step(np.asarray(_act(tree, present, uniforms, games.seen)))
                whole = games.whole(self.max_steps)
                for lane in whole:
                    numbers[lane] += 1
                    yield games.end(lane)
                beginning = [lane for lane in whole if numbers[lane] < until]


class _Games:
    """The episodes that are under way: `B` of each lane that has a run, each at its own step."""

    def __init__(self, fleet: Fleet | Resting, sizes: tuple[int, int, int]) -> None:
        from ...environments.fleet.worker import REST

        self.fleet = fleet
        self.rest = REST
        self.runs, batch, n_observations = sizes
        self.seen = np.zeros((WIDTH, batch, n_observations), np.float32)
        self.live = np.zeros((WIDTH, batch), np.bool_)
        self.lengths = np.zeros((WIDTH, batch), np.int32)
        self.at = np.zeros(WIDTH, np.int64)
        """The step that each lane is at."""
        self.draws = np.zeros((WIDTH, CHUNK, batch), np.float32)
        shape = (WIDTH, padded_length(1), batch)
        self.observations = np.zeros((*shape, n_observations), np.float32)
        self.actions = np.zeros(shape, np.int32)
        self.rewards = np.zeros(shape, np.float32)

    def begin(self, lanes: list[int], seeds: npt.NDArray[np.int32]) -> None:
        """Begin a batch in some lanes, with a seed for each episode of all lanes."""
        self.live[lanes], self.lengths[lanes], self.at[lanes] = True, 0, 0
        mask: Bools = np.zeros((self.runs, seeds.shape[1]), np.bool_)
        mask[lanes] = True
        options = {"reset_mask": mask.reshape(-1)}
        observations, _ = self.fleet.reset(seed=seeds[: self.runs].reshape(-1), options=options)
        self._see(observations)

    def uniforms(self, keys: jax.Array) -> npt.NDArray[np.float32]:
        """Random numbers that decide on the actions, `[WIDTH, B]`."""
        within = self.at % CHUNK
        for lane in np.flatnonzero(self.live.any(1) & (within == 0)).tolist():
            self.draws[lane] = _draws(keys, lane, self.at[lane] // CHUNK, self.live.shape[1])
        return self.draws[EVERY_LANE, within]

    def step(self, actions: Integers) -> None:
        """Take an action in every episode that is under way."""
        if self.at.max() == self.actions.shape[1]:
            more = padded_length(self.actions.shape[1] + 1) - self.actions.shape[1]
            for name in ("observations", "actions", "rewards"):
                had = getattr(self, name)
                room = np.zeros((WIDTH, more, *had.shape[2:]), had.dtype)
                setattr(self, name, np.concatenate([had, room], 1))
        self.observations[EVERY_LANE, self.at] = self.seen
        self.actions[EVERY_LANE, self.at] = actions
        chosen = np.where(self.live, actions, self.rest)[: self.runs].reshape(-1)
        observations, rewards, terminated, truncated, _ = self.fleet.step(chosen)
        self._see(observations)
        with_run = EVERY_LANE[: self.runs]
        self.rewards[with_run, self.at[with_run]] = rewards.reshape(self.runs, -1)
        self.lengths += self.live
        self.at += self.live.any(1)
        self.live[: self.runs] &= ~(terminated | truncated).reshape(self.runs, -1)

    def whole(self, max_steps: int) -> list[int]:
        """The lanes whose batch has just become whole."""
        result = (self.at > 0) & (~self.live.any(1) | (self.at == max_steps))
        self.live[result] = False
        return np.flatnonzero(result).tolist()

    def end(self, lane: int) -> Played:
        """The batch of a lane, which ends with this."""
        length = padded_length(int(self.at[lane]))
        self.at[lane] = 0
        one = slice(lane, lane + 1)
        episodes = Episodes(
            self.observations[one, :length],
            self.actions[one, :length],
            self.rewards[one, :length],
            self.lengths[one],
        )
        return Played(EVERY_LANE[one], episodes)

    def _see(self, observations: npt.NDArray[Any]) -> None:
        self.seen[: self.runs] = observations.reshape(self.runs, *self.seen.shape[1:])


_batch_keys = jax.jit(batch_keys)


@functools.partial(jax.jit, static_argnums=1)
def episode_seeds(keys: jax.Array, batch: int) -> jax.Array:
    """Of the environments of each run, `[runs, B]`, from the keys of their batches."""

    def draw(key: jax.Array) -> jax.Array:
        bits = jax.random.bits(jax.random.fold_in(key, 0), (batch,), jnp.uint32)
        return (bits >> 1).astype(jnp.int32)

    seeds: jax.Array = jax.vmap(draw)(keys)
    return seeds


@functools.partial(jax.jit, static_argnums=3)
def _draws(keys: jax.Array, lane: int, chunk: int, batch: int) -> jax.Array:
    """Uniform numbers for the actions of a lane in a chunk of steps, `[CHUNK, B]`."""
    key = jax.random.fold_in(jax.random.fold_in(keys[lane], 1), chunk)
    return jax.random.uniform(key, (CHUNK, batch), jnp.float32)


@functools.partial(jax.jit, static_argnums=0)
def _act(
    tree: jax.tree_util.PyTreeDef,
    policies: list[jax.Array],
    uniforms: jax.Array,
    seen: jax.Array,
) -> jax.Array:
    """An action for each episode of each lane, `[WIDTH, B]`, by a flattened tree of policies."""
    act = jax.vmap(jax.vmap(Policy.act, (None, 0, 0)))
    actions: jax.Array = act(jax.tree.unflatten(tree, policies), uniforms, seen)
    return actions
