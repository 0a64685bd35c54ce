"""How far training has come, for a callback: one report over all blocks of runs."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Sequence

import numpy as np

from .episodes import EpisodeLog

__all__ = ["ProgressReporter", "TrainProgress"]


@dataclasses.dataclass(frozen=True)
class TrainProgress:
    """How far training has come."""

    episodes: int
    """Done in all runs together, those of a resumed checkpoint included."""
    total: int
    """To be done."""
    mean_return: float
    """Of the last batch of each run that has played one."""
    seconds: float
    """Since the start."""
    played: int
    """Episodes since the start."""


class ProgressReporter:
    """Reports the progress of all blocks to a callback, and knows when they must stop.

    Blocks are trained in threads; the callback is called by one of them at a time.

    Args:
        callback: what returns True stops the training; None for no reports.
        logs: of all blocks; they grow while the blocks are trained.
        batch: how many episodes a batch has.
    """

    def __init__(
        self,
        callback: Callable[[TrainProgress], bool | None] | None,
        logs: Sequence[EpisodeLog],
        batch: int,
    ) -> None:
        self._callback, self._logs, self._batch = callback, logs, batch
        self._total = sum(log.returns.size for log in logs)
        self._before = self._count()
        self._since = time.monotonic()
        self._lock = threading.Lock()
        self._stopped = False

    def report(self) -> bool:
        """Some batches have been played. Must the training stop?"""
        with self._lock:
            if self._callback is not None and not self._stopped:
                self._stopped = bool(self._callback(self._progress()))
            return self._stopped

    def stop(self) -> None:
        """Let every block stop after its batch."""
        self._stopped = True

    def _count(self) -> int:
        return self._batch * sum(sum(log.done) for log in self._logs)

    def _progress(self) -> TrainProgress:
        last = [
            log.returns[lane, (done - 1) * self._batch : done * self._batch].mean()
            for log in self._logs
            for lane, done in enumerate(log.done)
            if done
        ]
        return TrainProgress(
            episodes=self._count(),
            total=self._total,
            mean_return=float(np.mean(last)),
            seconds=time.monotonic() - self._since,
            played=self._count() - self._before,
        )
