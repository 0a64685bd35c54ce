"""Progress of long work: a bar on a terminal, a line every five seconds elsewhere.

Both say the same text. It goes to stderr, so that stdout has the result alone.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import os
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Generic, Protocol, TypeVar

from .._common.sudden_end import before_sudden_end, forget
from .._common.terminal import say

__all__ = ["Bar", "Pace", "ProgressDisplay", "progress_display", "time_left"]

SECONDS_BETWEEN_LINES = 5.0
WIDEST_BAR = 40
"""Columns of a bar; on most terminals it takes a quarter, and the text wraps in the rest."""


@dataclasses.dataclass(frozen=True)
class Bar:
    """A bar, as it is before any progress."""

    name: str = ""
    """What stands before the bar and the lines; a bar without a name is gone at the end."""
    share: float | None = None
    """How much of the work is done; None while that is not known."""
    text: str = "compiling"


class ProgressDisplay(Protocol):
    """Shows how far a piece of work has come."""

    def __call__(self, share: float, text: str, name: str = "") -> None:
        """Show progress.

        Args:
            share: how much of the work is done, from 0 to 1.
            text: the numbers, and the time left.
            name: of the bar, where there are several.
        """


@contextlib.contextmanager
def progress_display(bars: Sequence[Bar] = (Bar(),)) -> Iterator[ProgressDisplay]:
    """A function that shows the progress of some work, within which it is on display.

    Args:
        bars: one for each piece of the work.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn
    from rich.table import Column

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines()
        return
    names = [bar.name for bar in bars]
    text = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=False))
    columns: list[ProgressColumn] = [BarColumn(min(WIDEST_BAR, console.width // 4)), text]
    if any(names):
        columns.insert(0, TextColumn("{task.fields[name]}", markup=False))
    with Progress(*columns, console=console, transient=not any(names)) as display:
        tasks = {bar.name: display.add_task(bar.text, name=bar.name, total=None) for bar in bars}
        for bar in bars:
            if bar.share is not None:
                display.update(tasks[bar.name], completed=bar.share, total=1.0)

        def report(share: float, text: str, name: str = "") -> None:
            display.update(tasks[name], completed=share, total=1.0, description=text)

        before_sudden_end(_show_cursor)
        try:
            yield report
        finally:
            forget(_show_cursor)


def _show_cursor() -> None:
    """Leave a terminal with its cursor, below the bars."""
    os.write(2, b"\n\x1b[?25h")


class _Lines:
    """A line every five seconds, and one at the end of each piece of work that has a name."""

    def __init__(self) -> None:
        self.last = time.monotonic()

    def __call__(self, share: float, text: str, name: str = "") -> None:
        now = time.monotonic()
        if now - self.last >= SECONDS_BETWEEN_LINES or (name and share >= 1):
            self.last = now
            say(f"{name}: {text}" if name else text, file=sys.stderr)


class _EpisodeProgress(Protocol):
    """How far episodes have come, in training or in evaluation."""

    @property
    def episodes(self) -> int:
        """The number of episodes so far, including those from before a command was resumed."""

    @property
    def total(self) -> int | None:
        """The number of episodes at the end; None if nobody knows."""

    @property
    def share(self) -> float:
        """The part that is done, from 0 to 1."""

    @property
    def mean_return(self) -> float:
        """The mean return of the last ones, or of all."""

    @property
    def seconds(self) -> float:
        """The time since the start."""


_ProgressT = TypeVar("_ProgressT", bound=_EpisodeProgress)


class Pace(Generic[_ProgressT]):
    """How fast episodes are played, and how long the rest takes.

    The episodes of the first report wait for programs to be compiled, so the pace is that of the
    episodes after it.
    """

    def __init__(self) -> None:
        self.first: _ProgressT | None = None
        self.rate: float | None = None
        """Episodes a second; None until some were played after the first report."""

    def __call__(self, progress: _ProgressT) -> str:
        """The numbers, and the time left as far as it can be told."""
        of_all = "" if progress.total is None else f" of {progress.total}"
        text = f"{progress.episodes}{of_all} episodes"
        if progress.episodes:
            text += f", mean return {progress.mean_return:.4g}"
        first = self.first = self.first or progress
        since = progress.episodes - first.episodes
        if since == 0:
            return text
        seconds = max(progress.seconds - first.seconds, 1e-9)
        self.rate = since / seconds
        left = time_left(seconds * (1 - progress.share) / max(progress.share - first.share, 1e-9))
        return f"{text}, {self.rate:.3g} episodes/s, {left}"


def time_left(seconds: float) -> str:
    """The time left in words, such as "about 0:01:20 left"."""
    whole = round(min(seconds, 3e9))  # a century is as good as forever, and `timedelta` has an end
    return f"about {datetime.timedelta(seconds=whole)} left"
