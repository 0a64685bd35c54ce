"""Segments in environments that are pure JAX functions: playing and learning in one program."""

from __future__ import annotations

import functools
from collections.abc import Generator, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..._typing import PyTree
from .. import keys as random_keys
from ..checkpoint import BlockState
from ..environment import EnvironmentFunctions, FunctionalEnvironment, observe
from ..episodes import Round
from ..observation import n_bytes
from ..ppo import Ppo, PpoState
from ..replay import Transitions
from ..segments import Segment
from .player import LAUNCHED_AT_ONCE, room
from .segments import learn, round_of

__all__ = ["FunctionalSegments"]

SEGMENTS = 8
"""How many segments of each lane a round of playing has: to call a program takes as long as a third
of a small segment."""
ACCELERATOR_WIDTH = 256
"""The number of lanes of a block on an accelerator, even where some have no run: matrix products
round differently at other widths, and a step takes about as long for few lanes as for many."""


class _Games(NamedTuple):
    """The present episodes of a run, `[E]` each: one in each of its environments."""

    state: object
    """The states of the environments."""
    observation: PyTree
    """`[E, ...]`: the observations of the states."""
    step: jax.Array
    """The numbers of the next steps."""
    number: jax.Array
    """The numbers of the episodes: how many each environment has ended."""
    reward: jax.Array
    """The sums of the rewards so far."""


class _Played(NamedTuple):
    """The steps of a segment, `[T, E]` each."""

    segment: Segment
    total: jax.Array
    """The return of the episode so far."""
    length: jax.Array
    """The length of the episode so far."""


class FunctionalSegments:
    """Segments of a functional environment, from which the runs learn.

    On a CPU a block is one run, and the blocks share the cores. On an accelerator a block is 256
    runs side by side, or fewer if their segments need too much memory.

    Args:
        environment: the environment.
    """

    def __init__(self, environment: FunctionalEnvironment) -> None:
        self.environment = environment

    def width(self, learner: Ppo, lanes: int, devices: Sequence[jax.Device]) -> int:
        """One lane on a CPU; a power of two on an accelerator."""
        if devices[0].platform == "cpu":
            return 1
        of_step = 2 * n_bytes(self.environment.observation) + 32  # with what is learned from it
        of_lane, width = of_step * learner.steps * learner.environments, ACCELERATOR_WIDTH
        while width > 1 and width * of_lane > room(devices[0]):
            width //= 2
        return width

    def begin(self, keys: jax.Array, learner: Ppo) -> _Games:
        """The first episodes of a block."""
        params = jax.device_put(self.environment.params)
        return _first_games(self.environment.functions, learner.environments, params, keys)

    def play(self, learners: Ppo, keys: jax.Array, block: BlockState) -> Generator[Round]:
        """Play and learn; a round is a few segments of every lane."""
        environment, log = self.environment, block.log
        params = jax.device_put(environment.params)
        _, steps = log.limits(len(keys))
        until = -(-steps.astype(np.int64) // (learners.environments * learners.steps))
        while log.unfinished().any():
            learned, played = _play_and_learn(
                environment.functions,
                environment.max_steps,
                params,
                learners,
                keys,
                until.astype(np.uint32),
                block.states,
                block.playing,
            )
            yield round_of(block, learners, learned, *played)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _first_games(
    functions: EnvironmentFunctions, environments: int, params: object, keys: jax.Array
) -> _Games:
    """The first episodes of each run of a block."""
    none = jnp.zeros(environments, jnp.int32)

    def one(key: jax.Array) -> _Games:
        of_environments = random_keys.environments(key, environments)
        return _begin(functions, params, of_environments, none)

    return jax.vmap(one)(keys)


def _begin(
    functions: EnvironmentFunctions, params: object, keys: jax.Array, numbers: jax.Array
) -> _Games:
    """Begin an episode in each environment of a run, by its key and the number of the episode."""

    def one(key: jax.Array, number: jax.Array) -> _Games:
        of_reset = random_keys.reset(random_keys.episode(key, number))
        state = functions.reset(of_reset, params)
        observation = observe(functions, state, params)
        return _Games(state, observation, jnp.int32(0), number, jnp.float32(0))

    return jax.vmap(one)(keys, numbers)


@functools.partial(jax.jit, static_argnums=(0, 1), compiler_options=LAUNCHED_AT_ONCE)
def _play_and_learn(
    functions: EnvironmentFunctions,
    max_steps: int,
    params: object,
    learners: Ppo,
    keys: jax.Array,
    until: jax.Array,
    states: PpoState,
    games: _Games,
) -> tuple[tuple[PpoState, _Games, jax.Array], tuple[jax.Array, jax.Array, jax.Array]]:
    """Some segments of all lanes, from which each learns.

    Args:
        functions: those of the environment.
        max_steps: where an episode is cut off.
        params: the parameters of the environment.
        learners: those of all lanes.
        keys: the keys of their runs.
        until: after how many segments each has trained enough; then it stays as it is.
        states: what all lanes have learned.
        games: the episodes under way.

    Returns:
        What all lanes have learned then, the episodes under way, and whether what a lane has
        learned is finite. Then of each step whether an episode has ended with it, and the return
        and the length of the episode so far, `[W, SEGMENTS, T, E]`.
    """

    def one(
        learner: Ppo, key: jax.Array, until: jax.Array, state: PpoState, games: _Games
    ) -> tuple[tuple[PpoState, _Games, jax.Array], tuple[jax.Array, jax.Array, jax.Array]]:
        def segment(
            carry: tuple[PpoState, _Games, jax.Array], _: None
        ) -> tuple[tuple[PpoState, _Games, jax.Array], tuple[jax.Array, jax.Array, jax.Array]]:
            state, games, finite = carry
            active = finite & (state.updates < until)
            later, played = _segment(functions, max_steps, params, learner, key, state, games)
            learned, is_finite = learn(learner, state, key, played.segment)
            kept = jax.tree.map(
                lambda x, y: jnp.where(active, x, y), (learned, later), (state, games)
            )
            ended = played.segment.ended & active
            return (*kept, finite & (is_finite | ~active)), (ended, played.total, played.length)

        return lax.scan(segment, (state, games, jnp.bool_(True)), length=SEGMENTS)

    lanes = (learners, keys, until, states, games)
    if len(keys) > 1:
        return jax.vmap(one)(*lanes)
    result = one(*jax.tree.map(lambda x: x[0], lanes))  # an axis of one would be slower
    return jax.tree.map(lambda x: x[None], result)


def _segment(
    functions: EnvironmentFunctions,
    max_steps: int,
    params: object,
    learner: Ppo,
    key: jax.Array,
    state: PpoState,
    games: _Games,
) -> tuple[_Games, _Played]:
    """A segment of one run, and the episodes under way after it."""
    policy = learner.policy(state)
    keys = random_keys.environments(key, learner.environments)

    def one_game(
        key: jax.Array, game: _Games
    ) -> tuple[jax.Array, jax.Array, object, PyTree, jax.Array]:
        of_action, of_step = random_keys.step(random_keys.episode(key, game.number), game.step)
        action = policy.act(jax.random.uniform(of_action, dtype=jnp.float32), game.observation)
        state, reward, terminated = functions.step(of_step, game.state, action, params)
        state = jax.tree.map(lambda x, y: jnp.asarray(x, y.dtype), state, game.state)
        observation = observe(functions, state, params)
        reward, terminated = jnp.asarray(reward, jnp.float32), jnp.asarray(terminated, jnp.bool_)
        return action, reward, state, observation, terminated

    def one_step(games: _Games, _: None) -> tuple[_Games, _Played]:
        action, reward, state, observation, terminated = jax.vmap(one_game)(keys, games)
        total, length = games.reward + reward, games.step + 1
        ended = terminated | (length >= max_steps)
        steps = Transitions(games.observation, action, reward, terminated, observation)
        later = _Games(state, observation, length, games.number, total)

        def begin(later: _Games) -> _Games:
            others = _begin(functions, params, keys, later.number + 1)
            return jax.tree.map(
                lambda x, y: jax.vmap(jnp.where)(ended, x, y.astype(x.dtype)), others, later
            )

        later = lax.cond(ended.any(), begin, lambda later: later, later)
        return later, _Played(Segment(steps, ended), total, length)

    return lax.scan(one_step, games, length=learner.steps)
