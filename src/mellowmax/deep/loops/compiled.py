"""Learning while playing, in environments that are pure JAX functions: both in one program."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Generator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import lax

from ..checkpoint import BlockState
from ..dqn import Dqn, DqnState
from ..network import Policy
from ..replay import Transitions
from ..rollouts.environment import FunctionalEnvironment, begin, draw, observe
from ..rollouts.functional import FunctionalRollouts
from ..rollouts.rollouts import LAUNCHED_AT_ONCE
from .loop import Ended, Learned, diverged, initial_states, room

__all__ = ["LEARNING", "CompiledLoop", "check_sound", "steps_to_begin"]

STEPS = 512
"""How many steps of each lane a round has, about."""
ACCELERATOR_WIDTH = 512
"""How many lanes a block has on an accelerator, whether there is a run for each of them or not:
matrix products round differently at other widths, and a step takes about as long for few."""
MOST_STEPS_TO_BEGIN = 8
"""The most steps that a run waits for its next episode."""
ENDED = -2
"""The number of the next step where there is none, since the episode has ended."""
LEARNING = 2**32 - 2
"""What a run's key is folded with for what is random in learning; episodes have the numbers from 0
on, and the first weights the last number."""


class _Episode(NamedTuple):
    """The episode of a run that is under way."""

    state: Any
    """Of the environment."""
    seen: jax.Array
    """`[D]`: what is seen of it."""
    step: jax.Array
    """The number of the next step; -1 for that of a reset, `ENDED` where there is none."""
    number: jax.Array
    """How many episodes the run has ended."""
    earned: jax.Array


class _Run(NamedTuple):
    """A run between two steps."""

    learned: DqnState
    episode: _Episode


class CompiledLoop:
    """The loop of deep Q-learning in a functional environment.

    On a CPU a block is one run, and the blocks share the cores. On an accelerator a block is
    512 runs side by side, or fewer where their replay buffers would not fit.

    Args:
        rollouts: of the environment.
        learner: of any lane.
    """

    def __init__(self, rollouts: FunctionalRollouts, learner: Dqn) -> None:
        self.rollouts, self.capacity = rollouts, learner.capacity

    def width(self, lanes: int, devices: Sequence[jax.Device]) -> int:
        """As `Loop` has it."""
        if devices[0].platform == "cpu":
            return 1
        of_lane = 4 * (2 * self.rollouts.n_observations + 3) * self.capacity
        width = ACCELERATOR_WIDTH
        while width > 1 and width * of_lane > room(devices[0]):
            width //= 2
        return width

    def init(self, learners: Dqn, keys: jax.Array) -> _Run:
        """As `Loop` has it."""
        rollouts = self.rollouts
        learned = initial_states(learners, keys, rollouts.n_observations, rollouts.n_actions)
        params = jax.device_put(rollouts.params)
        return _Run(learned, _first_episodes(rollouts.environment, params, keys))

    def policies(self, learners: Dqn, states: _Run) -> Policy:
        """As `Loop` has it."""
        return learners.policy(states.learned)

    def rounds(self, learners: Dqn, keys: jax.Array, block: BlockState) -> Generator[Learned]:
        """As `Loop` has it, every few hundred steps."""
        log, width = block.log, len(keys)
        rollouts, params = self.rollouts, jax.device_put(self.rollouts.params)
        until = np.zeros(width, np.int32)
        until[: len(log.done)] = log.episodes
        stride = steps_to_begin(learners.train_frequency, width)
        while (log.done < log.episodes).any():
            states, played = _play(
                rollouts.environment,
                rollouts.max_steps,
                stride,
                params,
                learners,
                keys,
                until,
                block.states,
            )
            counts, *ended = (np.asarray(x).reshape(width, -1) for x in played)
            yield Learned(states, _in_turn(*ended), int(counts.sum()), counts.size)
            check_sound(states.learned, block)


def steps_to_begin(frequency: int, width: int) -> int:
    """Every so many steps episodes begin: a divisor of the steps of a round.

    One run by itself begins an episode at once. In lanes side by side what begins an episode is
    computed for all of them, whether theirs have ended or not, so they wait for each other. What a
    run learns is the same.

    Examples:
        >>> [steps_to_begin(frequency, width=512) for frequency in (1, 4, 10, 100)]
        [1, 4, 5, 5]
    """
    most = 1 if width == 1 else MOST_STEPS_TO_BEGIN
    return max(n for n in range(1, most + 1) if frequency % n == 0)


def check_sound(learned: DqnState, block: BlockState) -> None:
    """Raise if a run of a block has diverged."""
    wrong = ~np.asarray(learned.sound)[: len(block.log.done)]
    if wrong.any():
        lane = int(wrong.argmax())
        steps = int(np.asarray(learned.replay.count)[lane])
        raise diverged(block.first + lane, "weight or a reward", f"after {steps} steps")


def _in_turn(
    ends: npt.NDArray[np.bool_],
    returns: npt.NDArray[np.float32],
    lengths: npt.NDArray[np.int32],
) -> list[Ended]:
    """The first episodes of all lanes that ended, `[W, T]`, then the second ones, and so on."""
    rank = np.where(ends, ends.cumsum(1), 0)
    found = (np.nonzero(rank == turn) for turn in range(1, int(rank.max()) + 1))
    return [
        Ended(at[0].astype(np.int32), returns[at][:, None], lengths[at][:, None]) for at in found
    ]


@functools.partial(jax.jit, static_argnums=0)
def _first_episodes(environment: FunctionalEnvironment, params: Any, keys: jax.Array) -> _Episode:
    """Those that the runs of a block begin with."""
    first = jnp.int32(0)
    episodes: _Episode = jax.vmap(lambda key: _begun(environment, params, key, first))(keys)
    return episodes


def _begun(
    environment: FunctionalEnvironment, params: Any, key: jax.Array, number: jax.Array
) -> _Episode:
    """An episode of a run, by the run's key and the number of the episode."""
    state, seen, step = begin(environment, jax.random.fold_in(key, number), params)
    return _Episode(state, seen, step, number, jnp.float32(0))


@functools.partial(
    jax.jit, static_argnums=(0, 1, 2), donate_argnums=7, compiler_options=LAUNCHED_AT_ONCE
)
def _play(
    environment: FunctionalEnvironment,
    max_steps: int,
    stride: int,
    params: Any,
    learners: Dqn,
    keys: jax.Array,
    until: jax.Array,
    runs: _Run,
) -> Any:
    """Some steps of all lanes.

    Args:
        environment: as for `FunctionalRollouts`.
        max_steps: where an episode is cut off.
        stride: every so many steps episodes begin.
        params: of the environment.
        learners: of all lanes.
        keys: of their runs.
        until: how many episodes they play.
        runs: where they are.

    Returns:
        Where they are then, and of every step of every lane whether it counts, whether an episode
        ended with it, and the return and the length of that.
    """
    lanes = (learners, keys, until, runs)
    one = functools.partial(_some_rounds, environment, max_steps, stride, params)
    if len(keys) > 1:
        return jax.vmap(one)(*lanes)
    result = one(*jax.tree.map(lambda x: x[0], lanes))  # an axis of one would be slower
    return jax.tree.map(lambda x: x[None], result)


def _some_rounds(
    environment: FunctionalEnvironment,
    max_steps: int,
    stride: int,
    params: Any,
    learner: Dqn,
    key: jax.Array,
    until: jax.Array,
    run: _Run,
) -> Any:
    """Some steps of one run, which learns whenever an update is due.

    A round has `train_frequency` steps and then an update. A run that has begun in the middle of a
    round, since it stopped there earlier or its episode ended there, rests at the end of it. When
    an episode has ended the run waits for the next one, which begins after `stride` steps at most.
    """
    frequency = learner.train_frequency
    of_learning = jax.random.fold_in(key, LEARNING)

    def one_step(carry: tuple[_Run, jax.Array], draws: tuple[jax.Array, jax.Array]) -> Any:
        (learned, episode), stepped = carry
        uniform, of_step = draws
        whole = stepped & (learned.replay.count % jnp.uint32(frequency) == 0)
        busy = learned.sound & (episode.number < until) & (episode.step != ENDED) & ~whole
        action = learner.act(learned.network, learned.replay.count, uniform, episode.seen)
        state, reward, terminated = environment.step(of_step, episode.state, action, params)
        reward, terminated = jnp.asarray(reward, jnp.float32), jnp.asarray(terminated, jnp.bool_)
        after = observe(environment, state, params)
        counts = busy & (episode.step >= 0)
        sound = learned.sound & (~counts | jnp.isfinite(reward))
        counts, busy = counts & sound, busy & sound
        moved = Transitions(episode.seen, action, reward, terminated, after)
        replay = learned.replay.add(moved, counts)
        learned = dataclasses.replace(learned, sound=sound, replay=replay)
        earned = episode.earned + jnp.where(counts, reward, 0)
        length = episode.step + 1
        ends = counts & (terminated | (length >= max_steps))
        step, number = jnp.where(ends, ENDED, length), episode.number + ends.astype(jnp.int32)
        later = _Episode(state, after, step, number, earned)
        episode = jax.tree.map(
            lambda x, y: jnp.where(busy, jnp.asarray(x, y.dtype), y), later, episode
        )
        return (_Run(learned, episode), stepped | counts), (counts, ends, earned, length)

    def some_steps(carry: tuple[_Run, jax.Array], i: jax.Array) -> Any:
        (learned, episode), stepped = carry
        episode = lax.cond(
            episode.step == ENDED,
            lambda episode: _begun(environment, params, key, episode.number),
            lambda episode: episode,
            episode,
        )
        draws = draw(jax.random.fold_in(key, episode.number), episode.step, stride)
        return lax.scan(one_step, (_Run(learned, episode), stepped), draws)

    def one_round(run: _Run, i: jax.Array) -> Any:
        beginning = (run, jnp.bool_(False))
        (run, stepped), played = lax.scan(some_steps, beginning, length=frequency // stride)
        of_update = jax.random.fold_in(of_learning, run.learned.replay.count)
        return _Run(learner.learn(run.learned, of_update, stepped), run.episode), played

    return lax.scan(one_round, run, length=max(1, STEPS // frequency))
