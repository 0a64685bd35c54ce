"""`mellowmax report`: the report of a reproduction, from the cells that are there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .console import errors_in_one_sentence
from .options import AsJson, Quiet, paths
from .result import Result, print_result

if TYPE_CHECKING:
    from ..experiments import Finished

__all__ = ["print_summary", "report"]


def report(
    directory: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="The `--out` of a reproduction.", autocompletion=paths()
        ),
    ],
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write the report of a reproduction again.

    Example: mellowmax report reproduction

    It is made from the finished cells. The exit code is 0, and 2 for a wrong argument.
    """
    with errors_in_one_sentence():
        from ..experiments import assemble_all
        from ..experiments.reproduction import begun
        from ..report import write

        finished = assemble_all(directory)
        page = write(finished, directory)
    print_summary(finished, begun(directory), page, as_json=as_json, quiet=quiet)


def print_summary(
    finished: Sequence[Finished],
    names: Sequence[str],
    page: Path,
    *,
    as_json: bool = False,
    quiet: bool = False,
) -> None:
    """Print the verdicts of some items, and the path of the report.

    Args:
        finished: the items that are finished.
        names: the items to print, finished or not.
        page: the HTML file of the report.
        as_json: print JSON?
        quiet: print nothing?
    """
    verdicts = {one.plan.name: one.verdict for one in finished if one.plan.name in names}
    missing = [name for name in names if name not in verdicts]
    rows = [
        (f"{name:10s} {verdict.outcome.value:20s}", verdict.summary)
        for name, verdict in verdicts.items()
    ]
    rows += [(f"{name:10s} not finished", "") for name in missing]
    items = {
        name: {"verdict": verdict.outcome.value, "summary": verdict.summary}
        for name, verdict in verdicts.items()
    }
    data = {"items": items, "missing": missing, "report": str(page)}
    print_result(Result(rows, data, last=str(page)), as_json=as_json, quiet=quiet)
