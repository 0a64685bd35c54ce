"""Training many runs at once: rollouts play a batch of episodes, the learner learns from it.

Runs are cut into blocks of 32, which are trained side by side in threads. In each block

    states, returns = update(learners, states, episodes)        for every batch that is played,

and the next batch of a run is played by what it has learned by then. The rollouts decide on how
episodes are played and on which runs end their batch first; they never learn. The learner knows
nothing of environments.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from .._common import checks
from .._common.locks import only_one
from .._common.runs import (
    gather_settings,
    key_data,
    run_keys,
    run_numbers,
    setting_of_each_run,
    settings_shape,
)
from .._common.threads import cores, side_by_side
from .._rows.arguments import check_parameter
from .._typing import Key, Shape
from .checkpoint import BlockState, block_path, describe, load, save
from .episodes import EpisodeLog, Episodes
from .network import Policy
from .progress import ProgressReporter, TrainProgress
from .reinforce import Reinforce, ReinforceState
from .result import DeepResult
from .rollouts.make import Environment, make_rollouts
from .rollouts.rollouts import WIDTH, Rollouts

__all__ = ["train"]

IN_FLIGHT = 2
"""How many blocks for each core are under way: while one learns or waits, others play."""
INITIAL = 2**32 - 1
"""What a run's key is folded with for its first weights; batches have the numbers from 0 on."""


def train(
    learner: Reinforce,
    environment: Environment,
    *,
    episodes: int,
    runs: int | Sequence[int] = 1,
    seed: int | Key = 0,
    max_steps: int | None = None,
    workers: int | None = None,
    checkpoint: str | Path | None = None,
    seconds_between_checkpoints: float = 2.0,
    callback: Callable[[TrainProgress], bool | None] | None = None,
) -> DeepResult:
    """Let runs learn in an environment, for every setting.

    The learner's parameters, learning rates and discounts may be arrays: they broadcast to a grid
    of settings, and every setting has the same `runs`. What a run learns depends on its setting,
    its seed and its number alone, bit for bit: not on the settings and runs beside it, nor on when
    it was stopped and resumed.

    Args:
        learner: from `reinforce`.
        environment: the parameters of a functional environment of the library, such as
            `taxi.params()` of `mellowmax.environments`, or an `MDP`; the id of a Gymnasium
            environment with discrete actions, or a function without arguments that makes one; or
            `Rollouts`, such as `FunctionalRollouts` of an environment of your own.
        episodes: how many a run plays: a multiple of the learner's batch.
        runs: how many, or their numbers.
        seed: a whole number, a JAX key, or keys that broadcast to the grid of settings.
        max_steps: where an episode is cut off; None for the environment's own limit, or 1000.
            Rollouts have their own.
        workers: how many processes the Gymnasium environments of 32 runs are spread over; 0 for
            this process, None for what suits the cores. Rollouts have their own.
        checkpoint: a directory where what has been learned is kept; a run whose checkpoint is there
            is resumed. Nothing is lost but the last seconds when the process is killed. No other
            process can train in the same directory meanwhile.
        seconds_between_checkpoints: how often.
        callback: is called after each batch of episodes; what returns True stops, and the episodes
            that were not played have the return NaN.

    Returns:
        The returns and lengths of all episodes, and the policies.

    Raises:
        TypeError: for an argument of the wrong kind.
        ValueError: for one that does not fit, such as a checkpoint of another training, or
            one in which another process is training.
        FloatingPointError: when what a run has learned, or a return, is not finite any more. The
            checkpoint has what was learned up to the batch before.

    Examples:
        >>> from mellowmax import Boltzmann
        >>> from mellowmax.deep import reinforce, train
        >>> train(reinforce(Boltzmann(5.0)), "CartPole-v1", episodes=20, runs=3, workers=0)
        DeepResult(returns=(3, 20), lengths=(3, 20))
    """
    checks.instance("learner", learner, Reinforce, "made by `reinforce`")
    n_episodes = checks.whole("episodes", episodes, learner.batch)
    if n_episodes % learner.batch:
        rule = f"`episodes` must be a multiple of the batch of {learner.batch}"
        raise ValueError(f"{rule}, got {episodes}")
    check_parameter("seconds_between_checkpoints", seconds_between_checkpoints, 0.0)
    if not (callback is None or callable(callback)):
        raise TypeError(f"`callback` must be a function or None, got {callback!r}")
    settings = settings_shape([np.shape(x) for x in jax.tree.leaves(learner)])
    numbers = run_numbers(runs)
    setting = setting_of_each_run(settings, len(numbers))
    firsts = range(0, len(setting), WIDTH)
    at_once = min(IN_FLIGHT * cores(), len(firsts))
    rollouts = make_rollouts(
        environment, max_steps, workers, default_workers=max(1, cores() // at_once)
    )
    if learner.discount is None:
        learner = dataclasses.replace(learner, discount=rollouts.discount)
    lanes = _Lanes(
        jax.tree.map(lambda leaf: gather_settings(leaf, settings, setting), learner),
        key_data(seed, settings)[setting],
        np.tile(numbers, len(setting) // len(numbers)),
    )
    with contextlib.ExitStack() as held:
        checkpoints = None
        if checkpoint is not None:
            directory = Path(checkpoint)
            directory.mkdir(parents=True, exist_ok=True)
            held.enter_context(only_one("checkpoint", directory))
            name = environment if isinstance(environment, str) else rollouts.name
            checkpoints = _Checkpoints(directory, name, seconds_between_checkpoints)
        blocks = [_Block(lanes, first, rollouts, n_episodes, checkpoints) for first in firsts]
        reporter = ProgressReporter(callback, [block.state.log for block in blocks], learner.batch)
        side_by_side(lambda block: block.train(reporter), blocks, at_once, reporter.stop)
    return _gather(blocks, (*settings, len(numbers)))


class _Lanes(NamedTuple):
    """Every run of every setting, the runs of a setting side by side."""

    learners: Reinforce
    key_data: npt.NDArray[np.uint32]
    numbers: npt.NDArray[np.uint32]

    def of_block(self, first: int) -> _Lanes:
        """The lanes of a block from its first one on; a block that is not full repeats its last."""
        chosen = np.minimum(first + np.arange(WIDTH), len(self.numbers) - 1)
        return jax.tree.map(lambda x: x[chosen], self)  # type: ignore[no-any-return]


class _Checkpoints(NamedTuple):
    """Where checkpoints are written, of which environment, and how often."""

    directory: Path
    environment: str
    seconds: float


class _Block:
    """A block of runs: what they have learned and played, and their checkpoint."""

    def __init__(
        self,
        lanes: _Lanes,
        first: int,
        rollouts: Rollouts,
        episodes: int,
        checkpoints: _Checkpoints | None,
    ) -> None:
        runs = min(WIDTH, len(lanes.numbers) - first)
        learners, data, numbers = lanes.of_block(first)
        self.learners: Reinforce = jax.tree.map(jnp.asarray, learners)
        self.keys = run_keys(jnp.asarray(data), jnp.asarray(numbers))
        self.first, self.rollouts, self.episodes = first, rollouts, episodes
        self.checkpoints = checkpoints
        states = _init(self.learners, self.keys, rollouts.n_observations, rollouts.n_actions)
        self.state = BlockState(states, EpisodeLog.empty(runs, episodes))
        if checkpoints is not None:
            self.path = block_path(checkpoints.directory, first)
            self.description = describe(learners, checkpoints.environment, data, numbers, rollouts)
            if self.path.exists():
                self.state = load(self.path, self.description, self.state)

    def train(self, reporter: ProgressReporter) -> None:
        """Train all runs to the end, or until the reporter says to stop."""
        state, batch = self.state, self.learners.batch
        batches = self.rollouts.play(
            lambda: self.learners.policy(state.states),
            self.keys,
            tuple(state.log.done),
            self.episodes // batch,
            batch,
        )
        saved = -math.inf  # the first batch is saved at once
        with contextlib.closing(batches):
            for lanes, episodes in batches:
                learned, returns = _update(self.learners, state.states, lanes, episodes)
                if diverged := self._diverged(lanes, learned, returns):
                    if self.checkpoints:
                        save(self.path, self.description, state)
                    raise FloatingPointError(diverged)
                state.states = learned
                state.log.add(lanes, np.asarray(returns), np.asarray(episodes.lengths))
                stopped = reporter.report()
                if self.checkpoints and time.monotonic() - saved >= self.checkpoints.seconds:
                    save(self.path, self.description, state)
                    saved = time.monotonic()
                if stopped:
                    break
        if self.checkpoints:
            save(self.path, self.description, state)

    def _diverged(
        self, lanes: Iterable[int], learned: ReinforceState, returns: jax.Array
    ) -> str | None:
        """A sentence about the first run that has learned or earned something not finite."""
        if _all_finite((learned, returns)):
            return None
        for lane, earned in zip(lanes, returns, strict=True):
            if lane >= len(self.state.log.done):  # it has no run
                continue
            for what, numbers in (
                ("return", earned),
                ("weight", jax.tree.map(lambda x, lane=lane: x[lane], learned)),
            ):
                if not _all_finite(numbers):
                    return (
                        f"the training has diverged: run {self.first + lane} has a {what} that is "
                        f"not finite after {self.state.log.done[lane] + 1} batches; a smaller "
                        "learning rate may help"
                    )
        return None

    def policies(self) -> Policy:
        """Those of the lanes that have a run."""
        policies = self.learners.policy(self.state.states)
        runs = len(self.state.log.done)
        return jax.tree.map(lambda x: np.asarray(x)[:runs], policies)  # type: ignore[no-any-return]


@functools.partial(jax.jit, static_argnums=(2, 3))
def _init(
    learners: Reinforce, keys: jax.Array, n_observations: int, n_actions: int
) -> ReinforceState:
    """What the runs of a block begin with."""

    def one(learner: Reinforce, key: jax.Array) -> ReinforceState:
        return learner.init(jax.random.fold_in(key, INITIAL), n_observations, n_actions)

    states: ReinforceState = jax.vmap(one)(learners, keys)
    return states


@functools.partial(jax.jit)
def _update(
    learners: Reinforce, states: ReinforceState, lanes: jax.Array, episodes: Episodes
) -> tuple[ReinforceState, jax.Array]:
    """Let some lanes learn from a batch each: the states of all lanes, and the batch's returns."""

    def one(learner: Reinforce, state: ReinforceState, episodes: Episodes) -> Any:
        return learner.update(state, episodes), episodes.returns()

    some = jax.tree.map(lambda x: x[lanes], (learners, states))
    if len(lanes) == 1:  # without an axis of one lane, at which matrix products are slower
        results = one(*jax.tree.map(lambda x: x[0], (*some, episodes)))
        learned, returns = jax.tree.map(lambda x: x[None], results)
    else:
        learned, returns = jax.vmap(one)(*some, episodes)
    return jax.tree.map(lambda x, y: x.at[lanes].set(y), states, learned), returns


def _all_finite(tree: object) -> bool:
    return all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(tree))


def _gather(blocks: list[_Block], shape: Shape) -> DeepResult:
    """The runs of all blocks, with the axes of settings and runs first."""

    def joined(*parts: Any) -> Any:
        whole = np.concatenate(parts)
        return whole.reshape(*shape, *whole.shape[1:])

    return DeepResult(
        joined(*(block.state.log.returns for block in blocks)),
        joined(*(block.state.log.lengths for block in blocks)),
        jax.tree.map(joined, *(block.policies() for block in blocks)),
    )
