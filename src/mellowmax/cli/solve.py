"""`mellowmax solve`: plan in an MDP, and write its values with their bounds to a file."""

from __future__ import annotations

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
    WITH_PRIOR,
    choose_softmax,
    errors_in_one_sentence,
    exit_interrupted,
)
from .csv_files import has_columns, write_csv
from .describe import describe_solution, sizes
from .models import load_model
from .options import AsJson, Discount, Force, Parameter, Quiet, completion, paths
from .progress import time_left
from .result import Result, print_result, progress_unless

if TYPE_CHECKING:
    from ..planning import SolveProgress

__all__ = ["solve"]

DEFAULT = "mellowmax"
METHODS = ("auto", "in-place", "synchronous", "shifted", "newton")
"""The methods of `planning.solve`; to import it for their names would take a second."""
COLUMNS = ("state", "action", "allowed", "q", "policy", "value")
"""The columns of the table."""


def solve(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="A saved MDP, or the id of a Gymnasium environment.",
            autocompletion=paths(".npz"),
        ),
    ],
    softmax: Annotated[
        str,
        typer.Option(help=f"The softmax: {SOFTMAX_NAMES}.", autocompletion=completion(KINDS)),
    ] = DEFAULT,
    parameter: Parameter = None,
    prior: Annotated[
        str | None,
        typer.Option(
            help=f"Weights of the actions, such as 0.5,0.25,0.25, for {' or '.join(WITH_PRIOR)}.",
            show_default="equal ones",
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(help=f"One of {', '.join(METHODS)}.", autocompletion=completion(METHODS)),
    ] = "auto",
    discount: Discount = 0.99,
    tolerance: Annotated[float, typer.Option(help="Stop when no value changes by more.")] = 1e-8,
    max_iterations: Annotated[int, typer.Option(help="The most iterations to take.")] = 100_000,
    out: Annotated[
        Path,
        typer.Option(help="Where to write the solution.", autocompletion=paths(".npz")),
    ] = Path("solution.npz"),
    csv: Annotated[
        Path | None,
        typer.Option(
            help="Also write it to this file, a row for each state and action.",
            autocompletion=paths(".csv"),
        ),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    operator: Annotated[str | None, typer.Option(hidden=True)] = None,
    force: Force = False,
) -> None:
    """Solve an MDP under a softmax, with error bounds.

    Example: mellowmax solve FrozenLake-v1 --softmax mellowmax --parameter 16.55

    Example: mellowmax solve model.npz --softmax max --csv solution.csv

    Example: mellowmax solve Taxi-v4 --softmax free-energy --parameter 5 --prior 4,4,4,4,1,1

    For a small model, the values and the policy are printed. The file has `q`, `value`, `policy`,
    `allowed` and the printed numbers. `numpy.load` reads it, `mellowmax show` prints it. With
    `--csv`, a spreadsheet has a row for each state and action, by their labels where the model has
    some: is it allowed, its value `q` (-inf if it is not), its probability, and the state's value.
        Ctrl-C stops early and writes the values so far. The exit code is 0 if the solve converged,
        1 if it did not, 130 after Ctrl-C, and 2 for a wrong argument.
    """
    with errors_in_one_sentence():
        pair = choose_softmax(_one_name(softmax, operator), parameter, prior)
        check_output(
            "--out", out, lambda path: npz.kind_of(path) == "solution", source=model, force=force
        )
        if csv is not None:
            _check_csv(csv, out, model, force=force)
        mdp = load_model(model, discount)
        from .. import planning
        from ..planning.table import columns

        with early_end("nothing was written") as stop, progress_unless(quiet) as report:
            way = _Way()

            def callback(progress: SolveProgress) -> bool:
                report(way.share(progress), way.text(progress))
                return stop.is_set()

            solution = planning.solve(
                mdp,
                pair,
                method=method,
                tolerance=tolerance,
                max_iterations=max_iterations,
                throw=False,
                callback=callback,
            )
            solution.save(out)
            if csv is not None:
                write_csv(csv, columns(solution, "value", solution.value))
    found = describe_solution(solution.fields())
    written = [str(path) for path in (out, csv) if path is not None]
    rows = [
        ("model", f"{model}: {sizes(mdp)}"),
        *solution.rows(),
        ("written", " and ".join(written)),
    ]
    data = {"model": model, **found.data, "seconds": solution.seconds, "written": str(out)}
    if csv is not None:
        data["csv"] = str(csv)
    print_result(Result(rows, data, found.table), as_json=as_json, quiet=quiet)
    if stop.is_set():
        exit_interrupted(f"{out} has the values as far as they came")
    if not solution.converged:
        raise typer.Exit(1)


def _check_csv(csv: Path, out: Path, model: str, *, force: bool) -> None:
    """Raise unless the table may be written."""
    check_output("--csv", csv, lambda path: has_columns(path, COLUMNS), source=model, force=force)
    if os.path.realpath(csv) == os.path.realpath(out):
        raise ValueError(f"`--csv` must be another file than `--out`, got {str(csv)!r}")


def _one_name(softmax: str, operator: str | None) -> str:
    """The name of the softmax; `--operator` is the former name of `--softmax`."""
    if operator is not None and softmax not in (DEFAULT, operator):
        rule = "`--softmax` must be given without `--operator`, its former name"
        raise ValueError(f"{rule}, got {softmax!r} and {operator!r}")
    return softmax if operator is None else operator


class _Way:
    """The way from the first change down to the tolerance, in orders of magnitude."""

    def __init__(self) -> None:
        self.first: float | None = None
        """The first change."""

    def share(self, progress: SolveProgress) -> float:
        """How much of the way is done."""
        change, tolerance = progress.change, progress.tolerance
        if self.first is None:
            self.first = change
        if not (0 < tolerance < self.first < math.inf and 0 < change < math.inf):
            return 0.0
        return max(0.0, math.log(self.first / change) / math.log(self.first / tolerance))

    def text(self, progress: SolveProgress) -> str:
        """The numbers, and the time left as far as it can be told."""
        share = self.share(progress)
        text = f"{progress.method}: {progress.iterations} iterations, change {progress.change:.1e}"
        text += f", {progress.seconds:.0f} s"
        if not 0 < share < 1:
            return text
        return f"{text}, {time_left(progress.seconds * (1 - share) / share)}"
