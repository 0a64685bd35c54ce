"""`mellowmax report`: the report of a reproduction, from the cells that are there.

DIR/run.json                    the scale of the last `mellowmax reproduce`
DIR/report.html, report.md      every item whose cells are all there
"""

from __future__ import annotations

import dataclasses
import json
import shlex
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .. import __version__
from .._common.files import replacing
from .._common.schema import Field, json_object
from ..experiments.item import ITEMS, SCALES
from .console import errors_in_one_sentence
from .options import AsJson, Quiet
from .result import Result, print_result

if TYPE_CHECKING:
    from ..experiments import Finished, Plan
    from ..report import Entry

__all__ = ["Summary", "print_summary", "record_scale", "recorded_scale", "report", "write_report"]

RECORD = "run.json"


def report(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="The `--out` of a reproduction.")
    ],
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write the report of a reproduction again.

    Example: mellowmax report reproduction

    It is made from the finished cells. The exit code is 0, and 2 for a wrong argument.
    """
    with errors_in_one_sentence():
        summary = write_report(directory, recorded_scale(directory))
    print_summary(summary, _begun(directory), as_json=as_json, quiet=quiet)


@dataclasses.dataclass(frozen=True)
class Summary:
    """What is in a report."""

    finished: list[Finished]
    missing: list[str]
    """The items of which cells are missing."""
    page: Path
    """The HTML file."""


def record_scale(out: Path, scale: str) -> None:
    """Note the scale of a reproduction in its directory, which is made if it does not exist."""
    out.mkdir(parents=True, exist_ok=True)
    with replacing(out / RECORD) as file:
        file.write(json.dumps({"scale": scale}).encode())


def recorded_scale(out: Path) -> str:
    """The scale that was noted in a directory.

    Raises:
        ValueError: for a directory without one.
    """
    fields = {"scale": Field("text", among=SCALES)}
    try:
        return str(json_object(RECORD, (out / RECORD).read_bytes(), fields)["scale"])
    except (OSError, ValueError) as error:
        rule = "`DIR` must be the directory of a reproduction"
        raise ValueError(f"{rule}, got {str(out)!r}") from error


def _begun(out: Path) -> list[str]:
    """The items that have cells in a directory."""
    return [name for name in ITEMS if (out / "cells" / name).is_dir()]


def write_report(out: Path, scale: str, plans: Sequence[Plan] = ()) -> Summary:
    """Write the tables, figures and report of every item whose cells are all there.

    An item whose cells are all there at the quick scale alone is shown at that scale. An item that
    has no cells is not even imported.

    Args:
        out: the directory of the cells.
        scale: `"quick"` or `"paper"`.
        plans: at that scale, of items that are planned already.
    """
    from ..experiments import assemble, plan
    from ..report import write_markdown, write_page

    planned = {one.name: one for one in plans}
    shown = []
    for name in ITEMS:
        if name not in _begun(out):
            continue
        one = planned[name] if name in planned else plan([name], scale, out)[0]
        if one.missing and scale != "quick":
            [one] = plan([name], "quick", out)
        if not one.missing:
            shown.append(one)
    finished = [assemble(one, out) for one in shown]
    missing = [name for name in ITEMS if name not in {one.name for one in shown}]
    entries = [_entry(one, out) for one in finished]
    page = out / "report.html"
    write_page(page, entries, missing=missing, version=__version__)
    write_markdown(out / "report.md", entries, missing=missing, version=__version__)
    return Summary(finished, missing, page)


def _entry(finished: Finished, out: Path) -> Entry:
    from ..report import Entry

    one = finished.plan
    return Entry(
        name=one.name,
        title=one.item.TITLE,
        source=one.item.SOURCE,
        rule=one.item.RULE,
        scale=one.scale,
        config={
            one.item.SETTINGS[name]: value for name, value in dataclasses.asdict(one.config).items()
        },
        verdict=finished.verdict,
        figures=finished.figures,
        captions=one.item.CAPTIONS,
        tables=finished.tables,
        columns=one.item.COLUMNS,
        deviations=one.item.DEVIATIONS,
        seconds=finished.seconds,
        device=finished.device,
        command=f"mellowmax reproduce {one.name} --scale {one.scale} --out {shlex.quote(str(out))}",
    )


def print_summary(
    summary: Summary, names: Collection[str], *, as_json: bool = False, quiet: bool = False
) -> None:
    """Print the verdicts of the items that were asked for, and the path of the report."""
    verdicts = {one.plan.name: one.verdict for one in summary.finished if one.plan.name in names}
    missing = [name for name in summary.missing if name in names]
    rows = [
        (f"{name:10s} {verdict.outcome.value:20s}", verdict.summary)
        for name, verdict in verdicts.items()
    ]
    rows += [(f"{name:10s} not finished", "") for name in missing]
    items = {
        name: {"verdict": verdict.outcome.value, "summary": verdict.summary}
        for name, verdict in verdicts.items()
    }
    data = {"items": items, "missing": missing, "report": str(summary.page)}
    result = Result(rows, data, last=str(summary.page))
    print_result(result, as_json=as_json, quiet=quiet)
