"""Layer 7: training as a command does it, with a live display and files at the end.

OUT/runs-*.npz                  the checkpoint, from which a training is gone on with
OUT/episodes.csv                every episode that was played
OUT/learning_curve.svg, .png    what they returned
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .. import deep
from .._common.files import replacing

__all__ = ["Practised", "practise"]

LAST = 100
"""How many episodes of a run the mean return at the end is of."""
POINTS, FINE = 25, 200
"""How many points a learning curve has at most: the mean, and each run behind it."""


@dataclasses.dataclass(frozen=True, eq=False)
class Practised:
    """How a training has ended."""

    learner: deep.Reinforce
    environment: str
    training: deep.Training
    speed: float | None
    """Episodes a second, without the compiling before; None if there were none left to play."""
    before: int
    """How many episodes were in the checkpoint that was gone on with."""

    @property
    def played(self) -> list[Any]:
        """The returns of the episodes that each run has played."""
        counts = (self.training.lengths > 0).sum(1)
        return [run[:n] for run, n in zip(self.training.returns, counts, strict=True)]

    def rows(self) -> list[tuple[str, str]]:
        """What there is to say, as names and texts."""
        runs, episodes = self.training.returns.shape
        ends = [run[-LAST:].mean(dtype=np.float64) for run in self.played if len(run)]
        mean = f"{np.mean(ends):.4g}"
        if len(ends) > 1:
            mean += f", standard error {np.std(ends, ddof=1) / len(ends) ** 0.5:.2g}"
        last = min(LAST, max(map(len, self.played)))
        episodes_of = f"{sum(map(len, self.played))} of {runs * episodes}"
        if self.before:
            episodes_of += f", {self.before} of them from before"
        speed = "nothing was left to play"
        if self.speed is not None:
            speed = f"{self.speed:.3g} episodes a second"
        return [
            ("environment", self.environment),
            ("softmax", str(self.learner.softmax)),
            ("episodes", episodes_of),
            ("runs", str(runs)),
            ("mean return", f"{mean} (the last {last} episodes of a run)"),
            ("speed", speed),
        ]


def practise(
    learner: deep.Reinforce,
    environment: str,
    *,
    episodes: int,
    runs: int,
    seed: int,
    out: Path,
    stop: Callable[[], bool],
    max_steps: int | None = None,
    workers: int | None = None,
) -> Practised:
    """Train, or go on with what is in a directory, and write there what came of it.

    Args:
        learner: from `deep.reinforce`.
        environment: the id of a Gymnasium environment.
        episodes: how many a run plays.
        runs: how many.
        seed: a whole number.
        out: the directory; it is made if it does not exist.
        stop: is asked after each batch; what has been played by then is written.
        max_steps: as for `deep.train`.
        workers: as for `deep.train`.

    Raises:
        ValueError: for an argument that does not fit; nothing is written then.
        OSError: when a file cannot be written.
        RuntimeError: when an environment fails in its process.
    """
    _check_directory(out)
    pace = _Pace()
    with _display(pace) as tell:
        training = deep.train(
            learner,
            environment,
            episodes=episodes,
            runs=runs,
            seed=seed,
            max_steps=max_steps,
            workers=workers,
            checkpoint=out,
            callback=lambda progress: tell(progress) or stop(),
        )
    first = pace.first
    before = training.lengths.size if first is None else first.episodes - first.played
    result = Practised(learner, environment, training, pace.rate, before)
    _write_episodes(out / "episodes.csv", training)
    _draw(out / "learning_curve.svg", result)
    return result


def _check_directory(out: Path) -> None:
    """Raise unless files can be written there, or a directory made for them."""
    there = next(path for path in (out.absolute(), *out.absolute().parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        rule = "`--out` must be a directory that can be written to"
        raise ValueError(f"{rule}, got {str(out)!r}: {error.strerror}") from error


class _Pace:
    """How fast episodes are played, and how long it still takes, in words."""

    def __init__(self) -> None:
        self.first: deep.Progress | None = None
        self.rate: float | None = None

    def __call__(self, progress: deep.Progress) -> str:
        said = f"mean return {progress.mean_return:.4g}"
        first = self.first = self.first or progress
        since = progress.played - first.played
        if since == 0:  # the first batches wait for programs to be compiled
            self.rate = progress.played / progress.seconds
            return said
        self.rate = since / max(progress.seconds - first.seconds, 1e-9)
        left = (progress.total - progress.episodes) / self.rate
        return f"{said}, {self.rate:.3g} episodes/s, about {left:.0f} s left"


@contextlib.contextmanager
def _display(pace: _Pace) -> Iterator[Callable[[deep.Progress], None]]:
    """A function that shows progress: a bar on a terminal, lines elsewhere."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bars

    console = Console(stderr=True)
    if not console.is_terminal:
        yield functools.partial(_tell_in_lines, pace, [time.monotonic()])
        return
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Bars(*columns, console=console, transient=True) as bars:
        task = bars.add_task("compiling", total=None)

        def tell(p: deep.Progress) -> None:
            bars.update(task, completed=p.episodes, total=p.total, description=pace(p))

        yield tell


def _tell_in_lines(pace: _Pace, last: list[float], progress: deep.Progress) -> None:
    """A line every five seconds."""
    said, now = pace(progress), time.monotonic()
    if now - last[0] >= 5:
        last[0] = now
        counted = f"{progress.episodes} of {progress.total} episodes"
        print(f"{counted}, {said}", file=sys.stderr, flush=True)


def _write_episodes(path: Path, training: deep.Training) -> None:
    """A row for each episode that was played; runs and episodes are counted from 0."""
    import pandas as pd

    run, episode = np.nonzero(training.lengths)
    table = {"run": run, "episode": episode}
    table |= {"return": training.returns[run, episode], "length": training.lengths[run, episode]}
    with replacing(path) as file:
        pd.DataFrame(table).to_csv(file, index=False, lineterminator="\n", mode="wb")


def _draw(path: Path, result: Practised) -> None:
    """The learning curve, as SVG and as PNG."""
    from scipy import stats

    from ..experiments import style

    kind = type(result.learner.softmax).__name__
    names = {"EpsilonGreedy": "epsilon-greedy", "HeldTemperature": "mellowmax"}
    look = style.COLOURS[names.get(kind, kind.lower())]
    played, batch = result.played, result.learner.batch
    coarse, fine = (batch * math.ceil(max(map(len, played)) / batch / n) for n in (POINTS, FINE))
    with style.styled():
        figure, axis = style.figure()
        faint = {"color": look["color"], "alpha": 0.3, "linewidth": 0.8}
        axis.plot([], [], label=f"a run, mean of {fine} episodes", **faint)
        for run in played:
            axis.plot(*_means(run, fine), **faint)
        shortest = min(map(len, played))  # where all runs have come to
        whole = [_means(run[:shortest], coarse) for run in played]
        at, curves = whole[0][0], np.stack([curve for _, curve in whole])
        mean = curves.mean(0)
        label = f"mean of {coarse} episodes"
        if len(curves) > 1:
            label += f" of {len(curves)} runs, 95 %"
            error = stats.sem(curves, 0) * stats.t.ppf(0.975, len(curves) - 1)
            axis.fill_between(at, mean - error, mean + error, color=look["color"], alpha=0.2, lw=0)
        axis.plot(at, mean, label=label, **look)
        title = f"{result.environment}, {result.learner.softmax}"
        axis.set(title=title, xlabel="episode", ylabel="return")
        axis.legend(fontsize=8)
        with replacing(path) as file:
            figure.savefig(file, format="svg", metadata={"Date": None})
        with replacing(path.with_suffix(".png")) as file:
            figure.savefig(file, format="png", dpi=150, metadata={"Software": None})


def _means(returns: Any, size: int) -> tuple[Any, Any]:
    """The middles and the means of `size` episodes each; the last may be of fewer."""
    ends = np.append(np.arange(0, len(returns), size), len(returns))
    sums = np.append(0, np.cumsum(returns, dtype=np.float64))
    return (ends[1:] + ends[:-1]) / 2, np.diff(sums[ends]) / np.diff(ends)
