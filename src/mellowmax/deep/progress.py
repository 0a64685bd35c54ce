"""How far training has come, for a callback: one report over all blocks of runs."""

from __future__ import annotations

import dataclasses
import math
import threading
import time
from collections.abc import Callable, Sequence

import numpy as np

from .episode_log import EpisodeLog

__all__ = ["ProgressReporter", "TrainProgress"]


@dataclasses.dataclass(frozen=True)
class TrainProgress:
    """How far training has come."""

    episodes: int
    """Done in all runs together, those of a resumed checkpoint included."""
    total: int
    """To be done."""
    mean_return: float
    """Of the last batch of each run that has played one; NaN if none has. A batch of `dqn` is an
    episode."""
    seconds: float
    """Since the start."""
    played: int
    """Episodes since the start."""
    steps: int = 0
    """Of the episodes that were played since the start."""
    computed: int = 0
    """Steps that were computed for them, those that count for nothing included; 0 where nobody
    counts them."""


class ProgressReporter:
    """Reports the progress of all blocks to a callback, and knows when they must stop.

    Blocks are trained in threads; the callback is called by one of them at a time.

    Args:
        callback: what returns True stops the training; None for no reports.
        logs: of all blocks; they grow while the blocks are trained.
    """

    def __init__(
        self,
        callback: Callable[[TrainProgress], bool | None] | None,
        logs: Sequence[EpisodeLog],
    ) -> None:
        self._callback, self._logs = callback, logs
        self._total = sum(len(log.done) * log.episodes for log in logs)
        self._steps = self._computed = 0
        self._before = self._count()
        self._since = time.monotonic()
        self._lock = threading.Lock()
        self._stopped = False

    def report(self, steps: int, computed: int) -> bool:
        """Some batches have been played. Must the training stop?

        Args:
            steps: of their episodes.
            computed: how many were computed for them.
        """
        with self._lock:
            self._steps, self._computed = self._steps + steps, self._computed + computed
            if self._callback is not None and not self._stopped:
                self._stopped = bool(self._callback(self._progress()))
            return self._stopped

    def stop(self) -> None:
        """Let every block stop after its batch."""
        self._stopped = True

    def _count(self) -> int:
        return int(sum(log.batch * log.done.sum() for log in self._logs))

    def _progress(self) -> TrainProgress:
        episodes = self._count()
        last = np.concatenate([log.last for log in self._logs])
        last = last[~np.isnan(last)]
        return TrainProgress(
            episodes=episodes,
            total=self._total,
            mean_return=float(last.mean()) if last.size else math.nan,
            seconds=time.monotonic() - self._since,
            played=episodes - self._before,
            steps=self._steps,
            computed=self._computed,
        )
