"""A block of runs that is trained in one thread: what it plays, learns, logs and saves."""

from __future__ import annotations

import contextlib
import functools
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import lax

from .._common.runs import run_keys
from .checkpoint import BlockState, block_path, describe, load, save
from .episode_log import EpisodeLog
from .episodes import Episodes
from .network import Policy
from .progress import ProgressReporter
from .reinforce import Reinforce, ReinforceState
from .rollouts.rollouts import LAUNCHED_AT_ONCE, Played, Rollouts, batch_keys

__all__ = ["Block", "Checkpoints", "Lanes"]

INITIAL = 2**32 - 1
"""What a run's key is folded with for its first weights; batches have the numbers from 0 on."""
AT_A_TIME = 256
"""How many lanes learn side by side. On an accelerator matrix products round differently for other
numbers of them, and a run must learn the same whatever runs are beside it; and what is computed for
so many stays in its cache."""
LEARNING = 2**32 - 1
"""What a batch's key is folded with for what is random in learning from it."""


class Lanes(NamedTuple):
    """Every run of every setting, the runs of a setting side by side."""

    learners: Reinforce
    key_data: npt.NDArray[np.uint32]
    numbers: npt.NDArray[np.uint32]

    def of_block(self, first: int, width: int) -> Lanes:
        """The lanes of a block from its first one on; a block that is not full repeats its last."""
        chosen = np.minimum(first + np.arange(width), len(self.numbers) - 1)
        return jax.tree.map(lambda x: x[chosen], self)  # type: ignore[no-any-return]


class Checkpoints(NamedTuple):
    """Where checkpoints are written, of which environment, and how often."""

    directory: Path
    environment: str
    seconds: float


class Block:
    """A block of runs: what they have learned and played, and their checkpoint.

    Args:
        lanes: of all blocks.
        first: the first lane of this one.
        width: how many lanes it has, whether there is a run for each of them or not.
        device: where it is trained.
        rollouts: of the environment.
        empty_log: makes a log for so many runs.
        checkpoints: where to save it, if anywhere; what is there is resumed.
    """

    def __init__(
        self,
        lanes: Lanes,
        first: int,
        width: int,
        device: jax.Device,
        rollouts: Rollouts,
        empty_log: Callable[[int], EpisodeLog],
        checkpoints: Checkpoints | None,
    ) -> None:
        self.runs = min(width, len(lanes.numbers) - first)
        learners, data, numbers = lanes.of_block(first, width)
        self.first, self.device, self.rollouts = first, device, rollouts
        self.checkpoints = checkpoints
        with jax.default_device(device):
            self.learners: Reinforce = jax.tree.map(jnp.asarray, learners)
            self.keys = run_keys(jnp.asarray(data), jnp.asarray(numbers))
            sizes = (rollouts.n_observations, rollouts.n_actions)
            self.state = BlockState(_init(self.learners, self.keys, *sizes), empty_log(self.runs))
            if checkpoints is not None:
                self.path = block_path(checkpoints.directory, first)
                self.description = describe(
                    learners, checkpoints.environment, data, numbers, rollouts, self.state.log
                )
                if self.path.exists():
                    self.state = load(self.path, self.description, self.state)

    def train(self, reporter: ProgressReporter) -> None:
        """Train all runs to the end, or until the reporter says to stop."""
        state, batch = self.state, self.learners.batch
        saved = -math.inf  # the first batch is saved at once
        with contextlib.ExitStack() as held:
            held.enter_context(jax.default_device(self.device))
            batches = self.rollouts.play(
                lambda: self.learners.policy(state.states),
                self.keys,
                tuple(state.log.done.tolist()),
                state.log.episodes // batch,
                batch,
            )
            for played in held.enter_context(contextlib.closing(batches)):
                steps = self._learn(played)
                stopped = reporter.report(steps, played.computed)
                if self.checkpoints and time.monotonic() - saved >= self.checkpoints.seconds:
                    self._save()
                    saved = time.monotonic()
                if stopped:
                    break
        self._save()

    def policies(self) -> Policy:
        """Those of the lanes that have a run."""
        policies = self.learners.policy(self.state.states)
        return jax.tree.map(lambda x: np.asarray(x)[: self.runs], policies)  # type: ignore[no-any-return]

    def _learn(self, played: Played) -> int:
        """Learn from a batch of some lanes, and log it. How many steps did it have?"""
        state = self.state
        numbers = np.pad(state.log.done, (0, len(self.keys) - self.runs)).astype(np.uint32)
        learned, returns, finite = _update(
            self.learners, state.states, self.keys, numbers, played.lanes, played.episodes
        )
        returns, lengths = np.asarray(returns), np.asarray(played.episodes.lengths)
        with_run = played.lanes < self.runs
        wrong = with_run & ~(np.asarray(finite) & np.isfinite(returns).all(1))
        if wrong.any():
            self._save()
            at = int(wrong.argmax())
            lane, what = played.lanes[at], "weight" if np.isfinite(returns[at]).all() else "return"
            raise FloatingPointError(
                f"the training has diverged: run {self.first + lane} has a {what} that is not "
                f"finite after {state.log.done[lane] + 1} batches; a smaller learning rate may help"
            )
        state.states = learned
        state.log.add(played.lanes, returns, lengths)
        return int(lengths[with_run].sum())

    def _save(self) -> None:
        if self.checkpoints:
            save(self.path, self.description, self.state)


@functools.partial(jax.jit, static_argnums=(2, 3))
def _init(
    learners: Reinforce, keys: jax.Array, n_observations: int, n_actions: int
) -> ReinforceState:
    """What the runs of a block begin with."""

    def one(learner: Reinforce, key: jax.Array) -> ReinforceState:
        return learner.init(jax.random.fold_in(key, INITIAL), n_observations, n_actions)

    states: ReinforceState = jax.vmap(one)(learners, keys)
    return states


@functools.partial(jax.jit, compiler_options=LAUNCHED_AT_ONCE)
def _update(
    learners: Reinforce,
    states: ReinforceState,
    keys: jax.Array,
    numbers: jax.Array,
    lanes: jax.Array,
    episodes: Episodes,
) -> tuple[ReinforceState, jax.Array, jax.Array]:
    """Let some lanes learn from a batch each; lanes that there are not learn nothing.

    Args:
        learners: of all lanes.
        states: what they have learned so far.
        keys: of their runs.
        numbers: of their batches.
        lanes: those that learn.
        episodes: of these.

    Returns:
        The states of all lanes, the returns of the batch's episodes, and whether all is finite that
        each of the lanes has learned.
    """

    def one(learner: Reinforce, state: ReinforceState, key: jax.Array, episodes: Episodes) -> Any:
        learned = learner.update(state, episodes, jax.random.fold_in(key, LEARNING))
        finite = [jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(learned)]
        return learned, episodes.returns(), jnp.stack(finite).all()

    of_all = (learners, states, batch_keys(keys, numbers))
    some = jax.tree.map(lambda x: x.at[lanes].get(mode="clip"), of_all)
    if len(lanes) == 1:  # without an axis of one lane, at which matrix products are slower
        results = one(*jax.tree.map(lambda x: x[0], (*some, episodes)))
        learned, returns, finite = jax.tree.map(lambda x: x[None], results)
    else:
        learned, returns, finite = lax.map(
            lambda lane: one(*lane), (*some, episodes), batch_size=AT_A_TIME
        )
    states = jax.tree.map(lambda x, y: x.at[lanes].set(y, mode="drop"), states, learned)
    return states, returns, finite
