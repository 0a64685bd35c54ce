"""The log of a training: the returns and lengths of its episodes, one by one or in bins.

It also knows when a run has trained enough: after some number of episodes, or of steps.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from .._typing import Bools, Integers

__all__ = ["NEVER", "SOLVED_EPISODES", "EpisodeLog"]

SOLVED_EPISODES = 100
"""An environment is solved when the mean return of this many episodes in a row is above a given
number."""
NEVER = 2**31 - 1
"""Stands for no limit."""
ARRAYS = ("done", "taken", "last", "returns", "lengths", "recent", "solved")


@dataclasses.dataclass
class EpisodeLog:
    """The returns and lengths of the episodes of some runs, batch by batch.

    Examples:
        >>> log = EpisodeLog.empty(runs=2, episodes=4, batch=2)
        >>> log.add([1], np.float32([[5.0, 7.0]]), np.int32([[3, 4]]))
        >>> print(log.done, log.mean_returns()[1], log.mean_lengths()[1])
        [0 1] [ 5.  7. nan nan] [3 4 0 0]

        The same in bins of four episodes:

        >>> log = EpisodeLog.empty(runs=2, episodes=8, batch=2, bin=4)
        >>> for number in (1.0, 2.0, 3.0):
        ...     log.add([1], np.float32([[number, number]]), np.int32([[3, 4]]))
        >>> print(log.mean_returns()[1], log.mean_lengths()[1])
        [1.5 nan] [3.5 0. ]
    """

    episodes: int | None
    """The number of episodes of each run; None if steps are counted."""
    steps: int | None
    """The number of steps of each run; None if episodes are counted."""
    batch: int
    """How many episodes are added at a time."""
    bin: int
    """How many episodes share an entry."""
    solved_return: float | None
    """The mean return above which the environment is solved; None to record no such thing."""
    done: npt.NDArray[np.int64]
    """`[runs]`: how many batches each run has played."""
    taken: npt.NDArray[np.int64]
    """`[runs]`: how many steps each run has taken, those of unfinished episodes included."""
    last: npt.NDArray[np.float64]
    """`[runs]`: the mean return of the last batch; NaN before the first."""
    returns: npt.NDArray[Any]
    """`[runs, bins]`: the sum of the returns of a bin; NaN where none has been played."""
    lengths: npt.NDArray[Any]
    """`[runs, bins]`: the sum of the lengths of a bin; 0 where none has been played."""
    recent: npt.NDArray[np.float32]
    """`[runs, 99]`: the returns of the last episodes, NaN before the first. Empty if
    `solved_return` is None."""
    solved: npt.NDArray[np.int64]
    """`[runs]`: after how many episodes a run had solved the environment; 0 if it has not."""

    @classmethod
    def empty(
        cls,
        runs: int,
        episodes: int | None,
        batch: int,
        bin: int = 1,
        solved_return: float | None = None,
        steps: int | None = None,
    ) -> EpisodeLog:
        """A log of episodes that are yet to be played.

        Args:
            runs: the number of runs.
            episodes: the number of episodes of each run: whole bins. None if steps are counted.
            batch: how many episodes are added at a time.
            bin: how many episodes share an entry: 1, or whole batches.
            solved_return: the mean return above which the environment is solved, or None.
            steps: the number of steps of each run; None if episodes are counted.
        """
        shape = (runs, 0 if episodes is None else episodes // bin)
        of_returns, of_lengths = (np.float32, np.int32) if bin == 1 else (np.float64, np.int64)
        recent = 0 if solved_return is None else SOLVED_EPISODES - 1
        return cls(
            episodes,
            steps,
            batch,
            bin,
            solved_return,
            np.zeros(runs, np.int64),
            np.zeros(runs, np.int64),
            np.full(runs, np.nan),
            np.full(shape, np.nan, of_returns),
            np.zeros(shape, of_lengths),
            np.full((runs, recent), np.nan, np.float32),
            np.zeros(runs, np.int64),
        )

    def limits(self, lanes: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint32]]:
        """After how many episodes, and after how many steps, each of some lanes has trained enough.

        A lane without a run has trained enough at once.

        Args:
            lanes: how many there are.
        """
        episodes, steps = np.zeros(lanes, np.int32), np.zeros(lanes, np.uint32)
        runs = slice(len(self.done))
        episodes[runs] = NEVER if self.episodes is None else self.episodes
        steps[runs] = NEVER if self.steps is None else self.steps
        return episodes, steps

    def unfinished(self) -> Bools:
        """`[runs]`: which runs have not trained enough yet."""
        if self.steps is None:
            assert self.episodes is not None
            return np.asarray(self.done * self.batch < self.episodes)
        return np.asarray(self.taken < self.steps)

    @property
    def share(self) -> float:
        """The part of the training of all runs that is done, from 0 to 1."""
        if self.steps is None:
            assert self.episodes is not None
            return float((self.done * self.batch / self.episodes).mean())
        return float(np.minimum(self.taken / self.steps, 1).mean())

    @property
    def entries(self) -> int:
        """The number of entries: of all episodes, or of the most that a run has played."""
        if self.episodes is not None:
            return self.returns.shape[1]
        return int(-(-self.done.max() * self.batch // self.bin))

    def add(
        self,
        lanes: Integers | list[int],
        returns: npt.NDArray[np.float32],
        lengths: npt.NDArray[np.int32],
    ) -> None:
        """Add batches of some lanes; those of lanes without a run are left out.

        Args:
            lanes: `[N]`, the lane of each batch. A lane's own batches are in order.
            returns: `[N, B]`
            lengths: `[N, B]`
        """
        lane = np.asarray(lanes)
        with_run = np.flatnonzero(lane < len(self.done))
        for turn in _turns(lane[with_run]):
            chosen = with_run[turn]
            self._add(lane[chosen], returns[chosen], lengths[chosen])

    def _add(
        self,
        lane: Integers,
        returns: npt.NDArray[np.float32],
        lengths: npt.NDArray[np.int32],
    ) -> None:
        """Add one batch of each of some lanes."""
        before = self.done[lane] * self.batch
        if self.solved_return is not None:
            window = np.concatenate([self.recent[lane], returns], axis=1)
            means = np.lib.stride_tricks.sliding_window_view(window, SOLVED_EPISODES, 1).mean(-1)
            above = means > self.solved_return  # never where an episode is missing
            first = before + 1 + above.argmax(1)
            solves = above.any(1) & (self.solved[lane] == 0)
            self.solved[lane] = np.where(solves, first, self.solved[lane])
            self.recent[lane] = window[:, self.batch :]
        self._make_room(int(-(-(before.max() + self.batch) // self.bin)))
        together = min(self.bin, self.batch)
        entry = (lane[:, None], before[:, None] // self.bin + np.arange(self.batch // together))
        begins = (before % self.bin == 0)[:, None]
        for kept, new in ((self.returns, returns), (self.lengths, lengths)):
            sums = new.reshape(len(lane), -1, together).sum(-1, dtype=kept.dtype)
            kept[entry] = np.where(begins, sums, kept[entry] + sums)
        self.last[lane] = returns.mean(1, dtype=np.float64)
        self.done[lane] += 1

    def mean_returns(self, entries: int | None = None) -> npt.NDArray[np.float32]:
        """`[runs, bins]`: the mean return of each bin; NaN if not all of it has been played.

        Args:
            entries: the number of bins; None for as many as there are.
        """
        return self._means("returns", np.nan, entries).astype(np.float32, copy=False)

    def mean_lengths(self, entries: int | None = None) -> npt.NDArray[Any]:
        """`[runs, bins]`: the mean length of each bin; 0 if not all of it has been played."""
        return self._means("lengths", 0, entries)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays of a checkpoint."""
        arrays = {name: getattr(self, name) for name in ARRAYS}
        asked = {} if self.steps is None else {"steps": np.asarray(self.steps)}
        played = {name: arrays[name][:, : self.entries] for name in ("returns", "lengths")}
        return arrays | asked | played

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over the arrays of a checkpoint, of no more episodes than there is room for."""
        if self.episodes is None:
            self._make_room(arrays["returns"].shape[1])
        for name in ARRAYS:
            here, there = getattr(self, name), arrays[name]
            both = tuple(map(slice, np.minimum(here.shape, there.shape)))
            here[both] = there[both]

    def _means(self, name: str, missing: float, entries: int | None) -> npt.NDArray[Any]:
        entries = self.entries if entries is None else entries
        self._make_room(entries)
        sums: npt.NDArray[Any] = getattr(self, name)[:, :entries]
        if self.bin == 1:
            return sums
        ends = (np.arange(sums.shape[1]) + 1) * self.bin
        played = self.done[:, None] * self.batch >= ends
        return np.where(played, sums / self.bin, missing)

    def _make_room(self, entries: int) -> None:
        """Let there be this many entries, or a few more."""
        here = self.returns.shape[1]
        if entries <= here:
            return
        more = ((0, 0), (0, max(entries, 2 * here) - here))
        self.returns = np.pad(self.returns, more, constant_values=np.nan)
        self.lengths = np.pad(self.lengths, more)


def _turns(lanes: Integers) -> list[Integers]:
    """The entries in turns: the first of every lane, then the second of every lane, and so on.

    Args:
        lanes: `[N]`, the lane of each entry.

    Examples:
        >>> [turn.tolist() for turn in _turns(np.array([3, 5, 3, 3]))]
        [[0, 1], [2], [3]]
    """
    counts: dict[int, int] = {}
    turns: list[list[int]] = []
    for entry, lane in enumerate(lanes.tolist()):
        turn = counts.get(lane, 0)
        counts[lane] = turn + 1
        if turn == len(turns):
            turns.append([])
        turns[turn].append(entry)
    return [np.array(turn) for turn in turns]
