"""`mellowmax infer`: the rewards under which demonstrations are most probable."""

from __future__ import annotations

import dataclasses
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .._common import npz
from .._common.files import check_output
from .._common.signals import early_end
from .console import (
    KINDS,
    SOFTMAX_NAMES,
    check_choice,
    choose_softmax,
    errors_in_one_sentence,
    exit_interrupted,
)
from .csv_files import has_columns, write_csv
from .demonstration_files import read_demonstrations, read_features
from .describe import ESTIMATE_COLUMNS, describe_estimate, estimate_columns, sizes
from .models import load_model
from .options import AsJson, Discount, Force, Parameter, Quiet, completion, paths
from .pictures import ENDINGS, check_picture, save_picture
from .progress import time_left
from .result import Result, print_result, progress_unless

if TYPE_CHECKING:
    from ..inverse import Demonstrator, FitProgress

__all__ = ["infer"]

DEFAULT = "log-sum-exp"
METHODS = ("auto", "newton", "fisher", "bfgs")
"""The methods of `inverse.fit`; to import it for their names would take a second."""
ERRORS = ("hessian", "outer", "sandwich")
"""The kinds of standard errors."""


def infer(
    mdp: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="A saved MDP, or the id of a Gymnasium environment.",
            autocompletion=paths(".npz"),
        ),
    ],
    demonstrations: Annotated[
        Path,
        typer.Argument(
            metavar="DEMONSTRATIONS",
            help="A CSV file with the columns state and action, and perhaps episode.",
            autocompletion=paths(".csv"),
        ),
    ],
    features: Annotated[
        Path | None,
        typer.Option(
            help="A CSV file: state, perhaps action, and a column for each feature.",
            autocompletion=paths(".csv"),
        ),
    ] = None,
    softmax: Annotated[
        str,
        typer.Option(help=f"The softmax: {SOFTMAX_NAMES}.", autocompletion=completion(KINDS)),
    ] = DEFAULT,
    plans: Annotated[
        str | None,
        typer.Option(
            help="The softmax that plans, with the same parameter.",
            show_default="the one that acts",
            autocompletion=completion(KINDS),
        ),
    ] = None,
    parameter: Parameter = None,
    drop_rewards: Annotated[
        bool, typer.Option("--drop-rewards", help="Leave out the model's own rewards.")
    ] = False,
    penalty: Annotated[
        float, typer.Option(help="A ridge: half of it times the squares is subtracted.")
    ] = 0.0,
    method: Annotated[
        str,
        typer.Option(help=f"One of {', '.join(METHODS)}.", autocompletion=completion(METHODS)),
    ] = "auto",
    errors: Annotated[
        str,
        typer.Option(
            help=f"The standard errors: {', '.join(ERRORS)}.", autocompletion=completion(ERRORS)
        ),
    ] = "hessian",
    discount: Discount = 0.99,
    tolerance: Annotated[
        float, typer.Option(help="Stop when a step promises to gain no more.")
    ] = 1e-8,
    max_iterations: Annotated[int, typer.Option(help="The most steps to take.")] = 200,
    out: Annotated[
        Path,
        typer.Option(help="Where to write the estimates.", autocompletion=paths(".npz")),
    ] = Path("estimate.npz"),
    csv: Annotated[
        Path | None,
        typer.Option(
            help="Also write them to this file, a row for each parameter.",
            autocompletion=paths(".csv"),
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="Draw the estimates into this file, .svg or .png.",
            autocompletion=paths(*ENDINGS),
        ),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Infer rewards from demonstrations.

    Example: mellowmax infer model.npz decisions.csv --features features.csv

    Example: mellowmax infer FrozenLake-v1 decisions.csv --features features.csv --drop-rewards
    --softmax boltzmann --plans max --parameter 5 --plot estimate.svg

    The rewards are those of the model and, for each feature, a parameter times the feature. The
    parameters are those under which the decisions are most probable, if their maker plans and acts
    by the softmax. Its own parameter is 1 by default for log-sum-exp. A table has each estimate
    with its standard error and its 95 % interval, and nan where no demonstrations could tell. The
    file has all that is printed: `numpy.load` reads it, `mellowmax show` prints it. States and
    actions are called by their labels where the model has some, and otherwise by their numbers.
    Ctrl-C stops early and writes the estimates so far. The exit code is 0 if the fit converged, 1
    if it did not, 130 after Ctrl-C, and 2 for a wrong argument.
    """
    with errors_in_one_sentence():
        who = _demonstrator(softmax, plans, parameter)
        check_choice("--errors", errors, ERRORS)
        if features is None:
            raise ValueError("`--features` must be given, got none")
        written = _check_outputs(out, csv, plot, [mdp, demonstrations, features], force=force)
        world = load_model(mdp, discount)
        if drop_rewards:
            world = dataclasses.replace(world, rewards=0.0 * world.expected_rewards)
        seen = read_demonstrations(demonstrations, world)
        reward = read_features(features, world)
        from .. import inverse

        with early_end("nothing was written") as stop, progress_unless(quiet) as report:
            way = _Way()

            def callback(progress: FitProgress) -> bool:
                report(way.share(progress), way.text(progress))
                return stop.is_set()

            estimate = inverse.fit(
                world,
                seen,
                reward,
                who,
                penalty=penalty,
                method=method,
                tolerance=tolerance,
                max_iterations=max_iterations,
                throw=False,
                callback=callback,
            )
            estimate.save(out, errors)
            found = describe_estimate(estimate.fields(errors))
            if csv is not None:
                write_csv(csv, estimate_columns(estimate.fields(errors)))
            if plot is not None:
                save_picture(estimate.plot(errors), plot)
    acts, planning = who.acts, who.plans
    rows = [
        ("model", f"{mdp}: {sizes(world)}"),
        ("decisions", f"{len(seen.states)} in {len(set(seen.episodes.tolist()))} episodes"),
        ("softmax", str(acts) if acts == planning else f"{acts}, and plans with {planning}"),
        *found.rows,
        ("written", ", ".join(map(str, written))),
    ]
    data = {
        "model": mdp,
        "demonstrations": str(demonstrations),
        "features": str(features),
        "softmax": str(acts),
        "plans": str(planning),
        **found.data,
        "written": str(out),
    }
    data |= {name: str(path) for name, path in (("csv", csv), ("plot", plot)) if path}
    print_result(Result(rows, data, found.table), as_json=as_json, quiet=quiet)
    if stop.is_set():
        exit_interrupted(f"{out} has the estimates as far as they came")
    if not estimate.converged:
        raise typer.Exit(1)


def _demonstrator(softmax: str, plans: str | None, parameter: float | None) -> Demonstrator:
    """Who plans with one softmax and acts by another."""
    from ..inverse import Demonstrator

    if softmax == DEFAULT and parameter is None:
        parameter = 1.0
    acts = choose_softmax(softmax, parameter)
    if plans is None:
        return Demonstrator(acts, acts)
    check_choice("--plans", plans, KINDS)
    has_parameter = bool(dataclasses.fields(KINDS[plans]))  # type: ignore[arg-type]
    return Demonstrator(choose_softmax(plans, parameter if has_parameter else None), acts)


def _check_outputs(
    out: Path, csv: Path | None, plot: Path | None, sources: list[str | Path], *, force: bool
) -> list[Path]:
    """The files to write; raise unless they may be."""
    for source in sources:
        check_output(
            "--out", out, lambda path: npz.kind_of(path) == "estimate", source=source, force=force
        )
        if csv is not None:
            check_output(
                "--csv", csv, lambda p: has_columns(p, ESTIMATE_COLUMNS), source=source, force=force
            )
    if plot is not None:
        check_picture("--plot", plot, force=force)
    given = {"--out": out, "--csv": csv, "--plot": plot}
    written: list[Path] = []
    for name, path in given.items():
        if path is None:
            continue
        if any(os.path.realpath(path) == os.path.realpath(other) for other in written):
            raise ValueError(f"`{name}` must be a file of its own, got {str(path)!r}")
        written.append(path)
    return written


class _Way:
    """The way from what the first step promises down to the tolerance, in orders of magnitude."""

    def __init__(self) -> None:
        self.first: float | None = None

    def share(self, progress: FitProgress) -> float:
        """How much of the way is done."""
        decrement, tolerance = progress.decrement, progress.tolerance
        if self.first is None:
            self.first = decrement
        if not (0 < tolerance < self.first < math.inf and 0 < decrement < math.inf):
            return 0.0
        done = math.log(self.first / decrement) / math.log(self.first / tolerance)
        return min(1.0, max(0.0, done))

    def text(self, progress: FitProgress) -> str:
        """The numbers, and the time left as far as it can be told."""
        share = self.share(progress)
        text = f"{progress.iterations} steps, log-likelihood {progress.log_likelihood:.6g}"
        text += f", {progress.seconds:.0f} s"
        if not 0 < share < 1:
            return text
        return f"{text}, {time_left(progress.seconds * (1 - share) / share)}"
