"""A block of runs that is trained in one thread: what it learns, logs and saves."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from .._common.runs import run_keys
from .checkpoint import BlockState, block_path, describe, load, save
from .dqn import Dqn
from .episode_log import EpisodeLog
from .loops import Learned, Loop
from .network import Policy
from .progress import ProgressReporter
from .reinforce import Reinforce

__all__ = ["Block", "Checkpoints", "Lanes"]


class Lanes(NamedTuple):
    """Every run of every setting, the runs of a setting side by side."""

    learners: Reinforce | Dqn
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
        loop: how it plays and learns.
        empty_log: makes a log for so many runs.
        checkpoints: where to save it, if anywhere; what is there is resumed.
    """

    def __init__(
        self,
        lanes: Lanes,
        first: int,
        width: int,
        device: jax.Device,
        loop: Loop,
        empty_log: Callable[[int], EpisodeLog],
        checkpoints: Checkpoints | None,
    ) -> None:
        self.runs = min(width, len(lanes.numbers) - first)
        learners, data, numbers = lanes.of_block(first, width)
        self.first, self.device, self.loop = first, device, loop
        self.checkpoints = checkpoints
        with jax.default_device(device):
            self.learners = jax.tree.map(jnp.asarray, learners)
            self.keys = run_keys(jnp.asarray(data), jnp.asarray(numbers))
            states = loop.init(self.learners, self.keys)
            self.state = BlockState(states, empty_log(self.runs), first)
            if checkpoints is not None:
                self.path = block_path(checkpoints.directory, first)
                self.description = describe(
                    learners, checkpoints.environment, data, numbers, loop.rollouts, self.state.log
                )
                if self.path.exists():
                    self.state = load(self.path, self.description, self.state)

    def train(self, reporter: ProgressReporter) -> None:
        """Train all runs to the end, or until the reporter says to stop."""
        saved = -math.inf  # the first round is saved at once
        with contextlib.ExitStack() as held:
            held.enter_context(jax.default_device(self.device))
            rounds = self.loop.rounds(self.learners, self.keys, self.state)
            held.enter_context(contextlib.closing(rounds))
            try:
                for learned in rounds:
                    self._take(learned)
                    stopped = reporter.report(learned.steps, learned.computed)
                    if self.checkpoints and time.monotonic() - saved >= self.checkpoints.seconds:
                        self._save()
                        saved = time.monotonic()
                    if stopped:
                        break
            except FloatingPointError:
                self._save()
                raise
        self._save()

    def policies(self) -> Policy:
        """Those of the lanes that have a run."""
        policies = self.loop.policies(self.learners, self.state.states)
        return jax.tree.map(lambda x: np.asarray(x)[: self.runs], policies)  # type: ignore[no-any-return]

    def _take(self, learned: Learned) -> None:
        """Take over what has been learned, and log the episodes."""
        self.state.states = learned.states
        for ended in learned.ended:
            self.state.log.add(*ended)

    def _save(self) -> None:
        if self.checkpoints:
            save(self.path, self.description, self.state)
