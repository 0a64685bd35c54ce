"""How far training has come, for a callback: one report over all blocks of runs."""

from __future__ import annotations

import dataclasses
import math
import threading
import time
from collections.abc import Callable, Sequence

import numpy as np

from .log import EpisodeLog

__all__ = ["ProgressReporter", "TrainProgress"]


@dataclasses.dataclass(frozen=True)
class TrainProgress:
    """How far training has come."""

    episodes: int
    """The number of episodes of all runs so far, including those of a resumed checkpoint."""
    total: int | None
    """The number of episodes of all runs at the end; None if steps are counted."""
    share: float
    """The part of the training that is done, from 0 to 1."""
    mean_return: float
    """The mean return of the last batch of each run that has played one; NaN if none has. A batch
    of `dqn` or `ppo` is an episode."""
    seconds: float
    """The time since the start."""
    played: int
    """The number of episodes since the start."""
    steps: int = 0
    """The number of steps since the start."""
    computed: int = 0
    """The number of steps that were computed for them, including wasted ones; 0 if they are not
    counted."""


class ProgressReporter:
    """Reports the progress of all blocks to a callback, and knows when they must stop.

    Blocks are trained in threads; the callback is called by one of them at a time.

    Args:
        callback: is called with each report, and returns True to stop the training; or None.
        logs: the logs of all blocks, which grow while the blocks are trained.
    """

    def __init__(
        self,
        callback: Callable[[TrainProgress], bool | None] | None,
        logs: Sequence[EpisodeLog],
    ) -> None:
        self._callback, self._logs = callback, logs
        counts = [log.episodes for log in logs for _ in log.done]
        self._total = None if None in counts else sum(filter(None, counts))
        self._runs = [len(log.done) for log in logs]
        self._steps = self._computed = 0
        self._before = self._count()
        self._since = time.monotonic()
        self._lock = threading.Lock()
        self._stopped = False

    def report(self, steps: int, computed: int) -> bool:
        """Report a round of playing. Must the training stop?

        Args:
            steps: the steps of the round.
            computed: the steps that were computed for it.
        """
        with self._lock:
            self._steps, self._computed = self._steps + steps, self._computed + computed
            if self._callback is not None and not self._stopped:
                self._stopped = bool(self._callback(self._progress()))
            return self._stopped

    def stop(self) -> None:
        """Let every block stop after its present round."""
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
            share=float(np.average([log.share for log in self._logs], weights=self._runs)),
            mean_return=float(last.mean()) if last.size else math.nan,
            seconds=time.monotonic() - self._since,
            played=episodes - self._before,
            steps=self._steps,
            computed=self._computed,
        )
