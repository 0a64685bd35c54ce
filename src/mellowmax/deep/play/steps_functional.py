"""Single steps in environments that are pure JAX functions: playing and learning in one program."""

from __future__ import annotations

import dataclasses
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
from ..replay import Replay, ReplayLearner, ReplayState, Transitions
from .functional import begin, draw
from .player import LAUNCHED_AT_ONCE, check_finite, room

__all__ = ["FunctionalSteps", "steps_to_begin"]

STEPS = 512
"""About how many steps of each lane a round of playing has."""
ACCELERATOR_WIDTH = 512
"""The number of lanes of a block on an accelerator, even where some have no run: matrix products
round differently at other widths, and a step takes about as long for few lanes as for many."""
MOST_STEPS_TO_BEGIN = 8
"""The most steps from the end of an episode to the beginning of the next."""
ENDED = -2
"""The number of the next step after the end of an episode, when there is none."""


class _Episode(NamedTuple):
    """The present episode of a run."""

    state: object
    """The state of the environment."""
    observation: PyTree
    """The observation of the state."""
    step: jax.Array
    """The number of the next step; -1 for the step that ends a reset, `ENDED` if there is none."""
    number: jax.Array
    """The number of the episode: how many the run has ended."""
    reward: jax.Array
    """The sum of the rewards so far."""


class _Played(NamedTuple):
    """Steps of a run, with an entry for each of them in every array."""

    counts: jax.Array
    """Is it a step of an episode, and not computed in vain?"""
    ends: jax.Array
    """Has an episode ended with it?"""
    total: jax.Array
    """The return of the episode so far."""
    length: jax.Array
    """The length of the episode so far."""


class _Run(NamedTuple):
    """A run between two steps."""

    learned: ReplayState
    episode: _Episode


class FunctionalSteps:
    """Single steps in a functional environment, of which the runs learn as they play.

    On a CPU a block is one run, and the blocks share the cores. On an accelerator a block is
    512 runs side by side, or fewer if their replay buffers need too much memory.

    Args:
        environment: the environment.
    """

    def __init__(self, environment: FunctionalEnvironment) -> None:
        self.environment = environment

    def width(self, learner: ReplayLearner, lanes: int, devices: Sequence[jax.Device]) -> int:
        """One lane on a CPU; a power of two on an accelerator."""
        if devices[0].platform == "cpu":
            return 1
        one = jax.eval_shape(lambda: Replay.empty(1, self.environment.observation))
        of_lane = one.packing.bytes * learner.capacity
        width = ACCELERATOR_WIDTH
        while width > 1 and width * of_lane > room(devices[0]):
            width //= 2
        return width

    def begin(self, keys: jax.Array, learner: ReplayLearner) -> _Episode:
        """The first episodes of a block."""
        params = jax.device_put(self.environment.params)
        return _first_episodes(self.environment.functions, params, keys)

    def play(self, learners: ReplayLearner, keys: jax.Array, block: BlockState) -> Generator[Round]:
        """Play and learn; a round is a few hundred steps of every lane."""
        log, width, environment = block.log, len(keys), self.environment
        params = jax.device_put(environment.params)
        until = log.limits(width)
        stride = steps_to_begin(learners.train_frequency, width)
        while log.unfinished().any():
            (states, episodes), played = _play(
                environment.functions,
                environment.max_steps,
                stride,
                params,
                learners,
                keys,
                until,
                _Run(block.states, block.playing),
            )
            counts, ends, returns, lengths = (np.asarray(x).reshape(width, -1) for x in played)
            at = lanes, _ = np.nonzero(ends)  # lane by lane, in the order of its episodes
            yield Round(
                lanes.astype(np.int32),
                computed=counts.size,
                returns=returns[at][:, None],
                lengths=lengths[at][:, None],
                states=states,
                playing=episodes,
                steps=counts.sum(1),
            )
            check_finite(states, block)


def steps_to_begin(frequency: int, width: int) -> int:
    """The number of steps after which episodes may begin: a divisor of the steps between updates.

    One run by itself begins an episode at once. Lanes side by side wait for each other, since the
    beginning of an episode is computed for all of them, whether theirs have ended or not. What a
    run learns is the same.

    Examples:
        >>> [steps_to_begin(frequency, width=512) for frequency in (1, 4, 10, 100)]
        [1, 4, 5, 5]
    """
    most = 1 if width == 1 else MOST_STEPS_TO_BEGIN
    return max(n for n in range(1, most + 1) if frequency % n == 0)


@functools.partial(jax.jit, static_argnums=0)
def _first_episodes(functions: EnvironmentFunctions, params: object, keys: jax.Array) -> _Episode:
    """The first episode of each run of a block."""
    first = jnp.int32(0)
    return jax.vmap(lambda key: _begin(functions, params, key, first))(keys)


def _begin(
    functions: EnvironmentFunctions, params: object, key: jax.Array, number: jax.Array
) -> _Episode:
    """Begin an episode of a run, by the run's key and the number of the episode."""
    state, observation, step = begin(functions, random_keys.episode(key, number), params)
    return _Episode(state, observation, step, number, jnp.float32(0))


@functools.partial(
    jax.jit, static_argnums=(0, 1, 2), donate_argnums=7, compiler_options=LAUNCHED_AT_ONCE
)
def _play(
    functions: EnvironmentFunctions,
    max_steps: int,
    stride: int,
    params: object,
    learners: ReplayLearner,
    keys: jax.Array,
    until: tuple[jax.Array, jax.Array],
    runs: _Run,
) -> tuple[_Run, _Played]:
    """Some steps of all lanes.

    Args:
        functions: those of the environment.
        max_steps: where an episode is cut off.
        stride: the number of steps after which episodes may begin.
        params: the parameters of the environment.
        learners: those of all lanes.
        keys: the keys of their runs.
        until: how many episodes each lane plays at most, and how many steps.
        runs: the runs as they are.

    Returns:
        The runs after these steps, and the steps of each lane.
    """
    lanes = (learners, keys, until, runs)
    one = functools.partial(_some_steps, functions, max_steps, stride, params)
    if len(keys) > 1:
        return jax.vmap(one)(*lanes)
    result = one(*jax.tree.map(lambda x: x[0], lanes))  # an axis of one would be slower
    return jax.tree.map(lambda x: x[None], result)


def _some_steps(
    functions: EnvironmentFunctions,
    max_steps: int,
    stride: int,
    params: object,
    learner: ReplayLearner,
    key: jax.Array,
    until: tuple[jax.Array, jax.Array],
    run: _Run,
) -> tuple[_Run, _Played]:
    """Some steps of one run, which learns whenever an update is due.

    The steps are played in bouts: `train_frequency` steps, and then an update. A run may come into
    a bout with some of its steps done, if it was stopped there or waited for an episode; once the
    update is due, it rests until the bout is over. When an episode has ended, the run waits for the
    next one, which begins after `stride` steps at most.
    """
    frequency, (episodes, steps) = learner.train_frequency, until
    of_learning = random_keys.learning(key)

    def one_step(
        carry: tuple[_Run, jax.Array], draws: tuple[jax.Array, jax.Array]
    ) -> tuple[tuple[_Run, jax.Array], _Played]:
        (learned, episode), stepped = carry
        uniform, of_step = draws
        complete = stepped & (learned.replay.count % jnp.uint32(frequency) == 0)
        busy = learned.finite & (episode.number < episodes) & (learned.replay.count < steps)
        busy &= (episode.step != ENDED) & ~complete
        action = learner.act(learned.network, learned.replay.count, uniform, episode.observation)
        state, reward, terminated = functions.step(of_step, episode.state, action, params)
        reward, terminated = jnp.asarray(reward, jnp.float32), jnp.asarray(terminated, jnp.bool_)
        observation = observe(functions, state, params)
        counts = busy & (episode.step >= 0)
        finite = learned.finite & (~counts | jnp.isfinite(reward))
        counts, busy = counts & finite, busy & finite
        step = Transitions(episode.observation, action, reward, terminated, observation)
        replay = learned.replay.add(step, counts)
        learned = dataclasses.replace(learned, finite=finite, replay=replay)
        total = episode.reward + jnp.where(counts, reward, 0)
        length = episode.step + 1
        ends = counts & (terminated | (length >= max_steps))
        next_step, number = jnp.where(ends, ENDED, length), episode.number + ends.astype(jnp.int32)
        later = _Episode(state, observation, next_step, number, total)
        episode = jax.tree.map(
            lambda x, y: jnp.where(busy, jnp.asarray(x, y.dtype), y), later, episode
        )
        return (_Run(learned, episode), stepped | counts), _Played(counts, ends, total, length)

    def steps_of_a_stride(
        carry: tuple[_Run, jax.Array], _: None
    ) -> tuple[tuple[_Run, jax.Array], _Played]:
        (learned, episode), stepped = carry
        episode = lax.cond(
            episode.step == ENDED,
            lambda episode: _begin(functions, params, key, episode.number),
            lambda episode: episode,
            episode,
        )
        draws = draw(random_keys.episode(key, episode.number), episode.step, stride)
        return lax.scan(one_step, (_Run(learned, episode), stepped), draws)

    def bout(run: _Run, _: None) -> tuple[_Run, _Played]:
        beginning = (run, jnp.bool_(False))
        (run, stepped), played = lax.scan(steps_of_a_stride, beginning, length=frequency // stride)
        of_update = random_keys.minibatch(of_learning, run.learned.replay.count)
        return _Run(learner.learn(run.learned, of_update, stepped), run.episode), played

    return lax.scan(bout, run, length=max(1, STEPS // frequency))
