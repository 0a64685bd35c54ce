"""A worker trains a block of runs in one thread: it has them play and learn, logs and saves."""

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

from .checkpoint import BlockState, block_path, load, save
from .description import describe
from .episodes import Round
from .keys import run_keys
from .learner import Learner
from .log import EpisodeLog
from .network import Policy
from .play import Player
from .play.player import first_states
from .progress import ProgressReporter

__all__ = ["Checkpoints", "Lanes", "Worker"]


class Lanes(NamedTuple):
    """Every run of every setting, the runs of a setting side by side."""

    learners: Learner
    """The learners, with an axis of lanes first."""
    key_data: npt.NDArray[np.uint32]
    """The data of the keys of their settings."""
    numbers: npt.NDArray[np.uint32]
    """The numbers of the runs."""

    def of_block(self, first: int, width: int) -> Lanes:
        """The lanes of a block; a block that is not full repeats its last run."""
        chosen = np.minimum(first + np.arange(width), len(self.numbers) - 1)
        return jax.tree.map(lambda x: x[chosen], self)


class Checkpoints(NamedTuple):
    """Where checkpoints are written, and how often."""

    directory: Path
    environment: str
    """The name of the environment."""
    seconds: float
    """The time between two checkpoints."""


class Worker:
    """Trains a block of runs, which have one program and one checkpoint.

    Args:
        lanes: the lanes of all blocks.
        first: the first lane of this block.
        width: the number of its lanes, of which the last may have no run.
        device: where it is trained.
        player: plays for it.
        empty_log: makes a log for a number of runs.
        checkpoints: where to save it, or None. If there is a checkpoint, it is resumed.
    """

    def __init__(
        self,
        lanes: Lanes,
        first: int,
        width: int,
        device: jax.Device,
        player: Player[Learner],
        empty_log: Callable[[int], EpisodeLog],
        checkpoints: Checkpoints | None,
    ) -> None:
        self.runs = min(width, len(lanes.numbers) - first)
        learners, data, numbers = lanes.of_block(first, width)
        self.first, self.device, self.player = first, device, player
        self.checkpoints = checkpoints
        with jax.default_device(device):
            self.learners = jax.tree.map(jnp.asarray, learners)
            self.keys = run_keys(jnp.asarray(data), jnp.asarray(numbers))
            states = first_states(self.learners, self.keys, player.environment)
            playing = player.begin(self.keys, self.learners)
            self.state = BlockState(states, empty_log(self.runs), first, playing)
            if checkpoints is not None:
                self.path = block_path(checkpoints.directory, first)
                self.description = describe(
                    learners,
                    checkpoints.environment,
                    data,
                    numbers,
                    player.environment,
                    self.state.log,
                )
                if self.path.exists():
                    self.state = load(self.path, self.description, self.state)

    def train(self, reporter: ProgressReporter) -> None:
        """Train all runs to the end, or until the reporter says to stop."""
        saved = -math.inf  # the first round is saved at once
        with contextlib.ExitStack() as held:
            held.enter_context(jax.default_device(self.device))
            rounds = self.player.play(self.learners, self.keys, self.state)
            held.enter_context(contextlib.closing(rounds))
            try:
                for round in rounds:
                    self._take(round)
                    assert round.steps is not None
                    stopped = reporter.report(int(round.steps.sum()), round.computed)
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
        """The policies that the runs have learned."""
        policies = self.learners.policy(self.state.states)
        return jax.tree.map(lambda x: np.asarray(x)[: self.runs], policies)

    def _take(self, round: Round) -> None:
        """Take over what has been learned, and log the episodes."""
        assert round.returns is not None
        assert round.lengths is not None
        assert round.steps is not None
        self.state.states, self.state.playing = round.states, round.playing
        self.state.log.add(round.lanes, round.returns, round.lengths)
        self.state.log.taken += round.steps[: self.runs]

    def _save(self) -> None:
        if self.checkpoints:
            save(self.path, self.description, self.state)
