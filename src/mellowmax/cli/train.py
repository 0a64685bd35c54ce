"""`mellowmax train`: a policy network by REINFORCE, with its learning curve at the end.

OUT/runs-*.npz                  the checkpoint, from which the same command resumes
OUT/episodes.csv                every episode that was played
OUT/learning_curve.svg, .png    the returns of these episodes
"""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import numpy.typing as npt
import typer

from .._common.files import check_directory, replacing
from .._common.signals import early_end
from .console import (
    RESUMES,
    SOFTMAX_NAMES,
    choose_softmax,
    errors_in_one_sentence,
    exit_interrupted,
    keep_compiled_programs,
)
from .options import AsJson, Environment, Force, MaxSteps, Parameter, Quiet, Seed, Workers
from .progress import time_left
from .result import Result, print_result, progress_unless

if TYPE_CHECKING:
    from .. import deep

__all__ = ["train"]

FILES = ("episodes.csv", "learning_curve.svg", "learning_curve.png")
LAST = 100
"""The mean return at the end is of so many episodes of each run."""


def train(
    environment: Environment,
    softmax: Annotated[str, typer.Option(help=f"The last layer: {SOFTMAX_NAMES}.")] = "mellowmax",
    parameter: Parameter = None,
    episodes: Annotated[
        int, typer.Option(help="How many a run plays: a multiple of the batch.")
    ] = 2000,
    runs: Annotated[int, typer.Option(help="How many runs, side by side.")] = 1,
    seed: Seed = 0,
    out: Annotated[
        Path, typer.Option(help="The directory of the checkpoint, the table and the figure.")
    ] = Path("training"),
    learning_rate: Annotated[float, typer.Option(help="Of Adam.")] = 0.005,
    discount: Annotated[float, typer.Option(help="From 0 to 1.")] = 0.99,
    batch: Annotated[int, typer.Option(help="How many episodes there are in an update.")] = 10,
    hidden: Annotated[int, typer.Option(help="How many units a hidden layer has.")] = 16,
    depth: Annotated[int, typer.Option(help="How many hidden layers there are.")] = 1,
    baseline: Annotated[
        str, typer.Option(help="Subtracted from what was earned: none, others or network.")
    ] = "none",
    normalise: Annotated[
        bool, typer.Option(help="Bring the advantages of a batch to mean 0 and deviation 1.")
    ] = False,
    reward_to_go: Annotated[
        bool, typer.Option(help="Weigh an action with what was earned from it on.")
    ] = True,
    through_temperature: Annotated[
        bool, typer.Option(help="Let the gradient flow through mellowmax's temperature.")
    ] = True,
    max_steps: MaxSteps = None,
    workers: Workers = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Train a policy network by REINFORCE.

    Example: mellowmax train CartPole-v1 --parameter 5 --out cart

    The directory has a checkpoint, `episodes.csv` with every episode, and the learning curve as
    `learning_curve.svg` and `.png`. Stopped by Ctrl-C or killed at any moment, the same command
    resumes from the checkpoint and ends with the same numbers; with more `--episodes` it plays on.
    The exit code is 0 when all episodes are played, 1 if the training diverges or an environment
    fails, 2 for an argument that is wrong, 74 for a full disk, 130 after Ctrl-C.
    """
    remark = RESUMES.format(out)
    with errors_in_one_sentence((RuntimeError, FloatingPointError)):
        last_layer = choose_softmax(softmax, parameter)
        check_directory("--out", out, FILES, _is_training, force=force)
        keep_compiled_programs()
        from .. import deep
        from .learning_curve import draw

        learner = deep.reinforce(
            last_layer,
            learning_rate,
            discount=discount,
            batch=batch,
            hidden=hidden,
            depth=depth,
            reward_to_go=reward_to_go,
            baseline=baseline,
            normalise=normalise,
            through_temperature=through_temperature,
        )
        pace = _Pace()
        with early_end(remark) as stop:
            with progress_unless(quiet) as report:

                def callback(progress: deep.TrainProgress) -> bool:
                    report(progress.episodes / progress.total, pace(progress))
                    return stop.is_set()

                result = deep.train(
                    learner,
                    environment,
                    episodes=episodes,
                    runs=runs,
                    seed=seed,
                    max_steps=max_steps,
                    workers=workers,
                    checkpoint=out,
                    callback=callback,
                )
            _write_episodes(out / "episodes.csv", result)
            rows = [
                ("environment", environment),
                ("softmax", str(learner.softmax)),
                *_rows(result, pace),
                ("written", str(out)),
            ]
            data = {
                "environment": environment,
                "softmax": str(learner.softmax),
                "runs": runs,
                "episodes": episodes,
                "played": [len(run) for run in _returns(result)],
                "mean_returns": _last_means(result),
                "episodes_per_second": pace.rate,
                "written": str(out),
            }
            print_result(Result(rows, data), as_json=as_json, quiet=quiet)
            title = f"{environment}, {learner.softmax}"
            draw(out / "learning_curve.svg", _returns(result), batch, softmax, title)
    if stop.is_set():
        exit_interrupted(remark)


def _is_training(out: Path) -> bool:
    """Is there a checkpoint?"""
    return any(out.glob("runs-*.npz"))


class _Pace:
    """How fast episodes are played, and how long it still takes."""

    def __init__(self) -> None:
        self.first: deep.TrainProgress | None = None
        self.rate: float | None = None
        """Episodes a second, without the compiling before; None if none was played."""

    def __call__(self, progress: deep.TrainProgress) -> str:
        """The numbers, and the time left as far as it can be told."""
        text = f"{progress.episodes} of {progress.total} episodes"
        text += f", mean return {progress.mean_return:.4g}"
        first = self.first = self.first or progress
        since = progress.played - first.played
        if since == 0:  # the first batches wait for programs to be compiled
            self.rate = progress.played / progress.seconds
            return text
        self.rate = since / max(progress.seconds - first.seconds, 1e-9)
        left = time_left((progress.total - progress.episodes) / self.rate)
        return f"{text}, {self.rate:.3g} episodes/s, {left}"


def _returns(result: deep.DeepResult) -> list[npt.NDArray[np.float32]]:
    """The returns of the episodes that each run has played."""
    counts = (result.lengths > 0).sum(1)
    return [run[:count] for run, count in zip(result.returns, counts, strict=True)]


def _last_means(result: deep.DeepResult) -> list[float]:
    """The mean return of the last episodes of each run that has played some."""
    return [float(run[-LAST:].mean(dtype=np.float64)) for run in _returns(result) if len(run)]


def _rows(result: deep.DeepResult, pace: _Pace) -> list[tuple[str, str]]:
    """What came of the episodes, as names and texts."""
    runs, episodes = result.returns.shape
    returns, ends = _returns(result), _last_means(result)
    mean = f"{np.mean(ends):.4g}"
    if len(ends) > 1:
        mean += f", standard error {np.std(ends, ddof=1) / len(ends) ** 0.5:.2g}"
    last = min(LAST, max(map(len, returns)))
    played = f"{sum(map(len, returns))} of {runs * episodes}"
    first = pace.first
    if before := result.lengths.size if first is None else first.episodes - first.played:
        played += f", {before} of them from before"
    speed = "nothing was left to play"
    if pace.rate is not None:
        speed = f"{pace.rate:.3g} episodes a second"
    return [
        ("episodes", played),
        ("runs", str(runs)),
        ("mean return", f"{mean} (the last {last} episodes of a run)"),
        ("speed", speed),
    ]


def _write_episodes(path: Path, result: deep.DeepResult) -> None:
    """A row for each episode that was played; runs and episodes are counted from 0."""
    run, episode = np.nonzero(result.lengths)
    columns = (run, episode, result.returns[run, episode], result.lengths[run, episode])
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["run", "episode", "return", "length"])
    writer.writerows(zip(*columns, strict=True))
    with replacing(path) as file:
        file.write(text.getvalue().encode())
