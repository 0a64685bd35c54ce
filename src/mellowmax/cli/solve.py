"""`mellowmax solve`: plan in an MDP, and write its values with their bounds to files."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
from .describe import SOLUTIONS, describe_solution, sizes
from .models import load_model
from .options import AsJson, Discount, Force, Parameter, Quiet, completion, paths
from .pictures import ENDINGS, check_picture, save_picture
from .progress import time_left
from .result import Result, print_result, progress_unless

if TYPE_CHECKING:
    from ..planning import SolveProgress
    from ..planning.any_solution import AnySolution

__all__ = ["solve"]

DEFAULT = "mellowmax"
METHODS = ("auto", "in-place", "synchronous", "shifted", "newton")
"""The methods of `planning.solve`; to import it for their names would take a second."""
COLUMNS = ("state", "action", "allowed", "q", "policy")
"""The columns of every table; that of a horizon begins with the time."""


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
    horizon: Annotated[
        int | None,
        typer.Option(
            help="The values of this many steps, by backward induction.", show_default="no end"
        ),
    ] = None,
    average: Annotated[
        bool,
        typer.Option("--average", help="The average reward of a step in place of values."),
    ] = False,
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
    plot: Annotated[
        Path | None,
        typer.Option(
            help="Draw the values and the policy into this file, .svg or .png.",
            autocompletion=paths(*ENDINGS),
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

    Example: mellowmax solve FrozenLake-v1 --parameter 50 --horizon 30 --discount 1 --plot lake.svg

    Example: mellowmax solve model.npz --softmax max --average

    For a small model, the values and the policy are printed. The file has `q`, `value`, `policy`,
    `allowed` and the printed numbers. `numpy.load` reads it, `mellowmax show` prints it. With
    `--csv`, a spreadsheet has a row for each state and action, by their labels where the model has
    some: is it allowed, its value `q` (-inf if it is not), its probability, and the state's value.
    With `--horizon` all of this is for each step, and what is printed for the first. With
    `--average` there are the gain, which is the reward of a step on average, and the bias in the
    place of values; the discount has no part in it. With `--plot` a picture has the values, the
    policy, and the change of each iteration.
    Ctrl-C stops early and writes the values
    so far. The exit code is 0 if the solve converged, 1 if it did not, 130 after Ctrl-C, and 2 for
    a wrong argument.
    """
    with errors_in_one_sentence():
        pair = choose_softmax(_one_name(softmax, operator), parameter, prior)
        _check_outputs(out, csv, plot, model, force=force)
        mdp = load_model(model, discount)
        from .. import planning

        with early_end("nothing was written") as stop, progress_unless(quiet) as report:
            way = _Way(horizon)

            def callback(progress: SolveProgress) -> bool:
                report(way.share(progress), way.text(progress))
                return stop.is_set()

            options: dict[str, Any] = {
                "horizon": horizon,
                "average": average,
                "method": method,
                "tolerance": tolerance,
                "max_iterations": max_iterations,
                "throw": False,
                "callback": callback,
                "history": plot is not None,
            }
            solution: AnySolution = planning.solve(mdp, pair, **options)
            solution.save(out)
            if csv is not None:
                write_csv(csv, solution.columns())
            if plot is not None:
                save_picture(solution.plot(), plot)
    found = describe_solution(solution.fields())
    files = [str(path) for path in (out, csv, plot) if path is not None]
    written = " and ".join([*filter(None, [", ".join(files[:-1])]), files[-1]])
    rows = [
        ("model", f"{model}: {sizes(mdp)}"),
        *solution.rows(),
        ("written", written),
    ]
    data = {"model": model, **found.data, "seconds": solution.seconds, "written": str(out)}
    others = {"csv": csv, "plot": plot}
    data |= {name: str(path) for name, path in others.items() if path is not None}
    print_result(Result(rows, data, found.table), as_json=as_json, quiet=quiet)
    if stop.is_set():
        exit_interrupted(f"{out} has the values as far as they came")
    if not found.data.get("converged", True):
        raise typer.Exit(1)


def _check_outputs(
    out: Path, csv: Path | None, plot: Path | None, model: str, *, force: bool
) -> None:
    """Raise unless each file may be written."""
    check_output("--out", out, _is_solution, source=model, force=force)
    if csv is not None:
        check_output("--csv", csv, _is_table, source=model, force=force)
        _check_other("--csv", csv, "`--out`", out)
    if plot is not None:
        check_picture("--plot", plot, force=force)
        for name, other in (("`--out`", out), ("`--csv`", csv), ("is read", model)):
            if other is not None:
                _check_other("--plot", plot, name, other)


def _check_other(name: str, path: Path, than: str, other: Path | str) -> None:
    if os.path.realpath(path) == os.path.realpath(other):
        raise ValueError(f"`{name}` must be another file than {than}, got {str(path)!r}")


def _is_solution(path: Path) -> bool:
    return npz.kind_of(path) in SOLUTIONS


def _is_table(path: Path) -> bool:
    begins = ((*COLUMNS, "value"), (*COLUMNS, "bias"), ("time", *COLUMNS, "value"))
    return any(has_columns(path, names) for names in begins)


def _one_name(softmax: str, operator: str | None) -> str:
    """The name of the softmax; `--operator` is the former name of `--softmax`."""
    if operator is not None and softmax not in (DEFAULT, operator):
        rule = "`--softmax` must be given without `--operator`, its former name"
        raise ValueError(f"{rule}, got {softmax!r} and {operator!r}")
    return softmax if operator is None else operator


class _Way:
    """The way from the first change down to the tolerance, in orders of magnitude.

    With a horizon, the way back from it.
    """

    def __init__(self, horizon: int | None = None) -> None:
        self.horizon = horizon
        self.first: float | None = None
        """The first change."""

    def share(self, progress: SolveProgress) -> float:
        """How much of the way is done."""
        if self.horizon is not None:
            return progress.iterations / self.horizon
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
