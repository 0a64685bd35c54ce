"""Layer 7: the reproduction as a command runs it, with a live display and a report at the end."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import functools
import json
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import jax

from .. import __version__
from .._common.files import replacing
from ..experiments import Finished, Plan, Progress, assemble, plan, run
from ..report import page as report

__all__ = ["Summary", "chosen", "described", "make_report", "reproduce", "scale_of"]

RECORD = "run.json"
AN_HOUR = 3600.0


@dataclasses.dataclass(frozen=True)
class Summary:
    """How a reproduction ended."""

    finished: list[Finished]
    missing: list[str]
    """The items that are not whole."""
    report: Path


def chosen(names: Sequence[str], scale: str, out: Path, agree: Callable[[str], bool]) -> list[Plan]:
    """The items to make.

    Args:
        names: the items; none for all.
        scale: `"quick"` or `"paper"`.
        out: the directory.
        agree: is asked, with a sentence, about an item that takes more than an hour; one that is
            not agreed to is left out.
    """
    plans = plan(names, scale, out)
    return [one for one in plans if one.estimate < AN_HOUR or agree(_estimated(one))]


def reproduce(
    plans: Sequence[Plan], scale: str, out: Path, stop: Callable[[], bool]
) -> Summary | None:
    """Make the missing cells of items, then the report of all that is there.

    Args:
        plans: of the items, from `chosen`.
        scale: `"quick"` or `"paper"`.
        out: the directory; it is made if it does not exist.
        stop: is asked after each cell, and within one that takes long.

    Returns:
        The summary; None if it was stopped, and on all processes but the first.
    """
    out.mkdir(parents=True, exist_ok=True)
    with replacing(out / RECORD) as file:
        file.write(json.dumps({"scale": scale}).encode())
    for one in plans:
        if one.foreign:
            print(
                f"{one.name}: {one.foreign} cells in {out} were made by another version or config; "
                "they are left alone and not used",
                file=sys.stderr,
            )
    with _display(plans) as tell:
        for one in plans:
            run(one, lambda progress: tell(progress) or stop())
            if stop():
                return None
    if jax.process_count() > 1:
        from jax.experimental import multihost_utils

        multihost_utils.sync_global_devices("cells")
        if jax.process_index():
            return None
    return make_report(scale, out)


def _estimated(one: Plan) -> str:
    days = one.estimate / (24 * AN_HOUR)
    long = f"{days:.0f} days" if days >= 2 else f"{one.estimate / AN_HOUR:.0f} hours"
    cells = f"{len(one.missing)} of {len(one.cells)} cells are to be made"
    return f"{one.name} takes about {long} on two cores: {cells}, and it can be stopped at any time"


def scale_of(out: Path) -> str:
    """The scale of the last reproduction in a directory.

    Raises:
        ValueError: if there is none.
    """
    try:
        return str(json.loads((out / RECORD).read_text())["scale"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        rule = "`DIR` must be the directory of a reproduction"
        raise ValueError(f"{rule}, got {str(out)!r}") from error


def make_report(scale: str, out: Path) -> Summary:
    """The tables, figures and report of every item whose cells are all there.

    An item that is whole at the quick scale alone is shown at that, whatever the scale.
    """
    quick = {one.name: one for one in plan((), "quick", out)}
    plans = [
        quick[one.name] if one.missing and not quick[one.name].missing else one
        for one in plan((), scale, out)
    ]
    finished = [assemble(one, out) for one in plans if not one.missing]
    missing = [one.name for one in plans if one.missing]
    page = out / "report.html"
    entries = [_entry(one, out) for one in finished]
    report.write(page, entries, missing=missing, version=__version__)
    with replacing(out / "report.md") as file:
        file.write(report.markdown(entries, missing=missing, version=__version__).encode())
    return Summary(finished, missing, page)


def _entry(finished: Finished, out: Path) -> report.Entry:
    one = finished.plan
    where = shlex.quote(str(out))
    return report.Entry(
        name=one.name,
        title=one.item.TITLE,
        source=one.item.SOURCE,
        rule=one.item.RULE,
        scale=one.scale,
        config=dataclasses.asdict(one.config),
        verdict=finished.verdict,
        figures=finished.figures,
        tables=finished.tables,
        columns=one.item.COLUMNS,
        deviations=one.item.DEVIATIONS,
        seconds=finished.seconds,
        device=finished.device,
        command=f"mellowmax reproduce {one.name} --scale {one.scale} --out {where}",
    )


@contextlib.contextmanager
def _display(plans: Sequence[Plan]) -> Iterator[Callable[[Progress], None]]:
    """A function that shows progress: a bar for each item on a terminal, lines elsewhere."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bars

    console = Console(stderr=True)
    if not console.is_terminal:
        yield functools.partial(_tell_in_lines, [time.monotonic()])
        return
    name, said = TextColumn("{task.description:7s}"), TextColumn("{task.fields[said]}")
    with Bars(name, BarColumn(), MofNCompleteColumn(), said, console=console) as bars:
        tasks = {}
        for one in plans:
            there = len(one.cells) - len(one.missing)
            said_first = "" if one.missing else "on disk"
            tasks[one.name] = bars.add_task(
                one.name, total=len(one.cells), completed=there, said=said_first
            )

        def tell(progress: Progress) -> None:
            bars.update(tasks[progress.item], completed=progress.done, said=_pace(progress))

        yield tell


def _pace(progress: Progress) -> str:
    """How fast an item goes, and how long it still takes, in words."""
    rate = progress.made / progress.seconds
    if progress.done == progress.total:
        return f"{rate:.2f} cells/s, {progress.seconds:.0f} s"
    left = datetime.timedelta(seconds=round((progress.total - progress.done) / rate))
    return f"{rate:.2g} cells/s, about {left} left"


def _tell_in_lines(last: list[float], progress: Progress) -> None:
    """A line at the end of an item, and every five seconds."""
    now = time.monotonic()
    if progress.done == progress.total or now - last[0] >= 5:
        last[0] = now
        counted = f"{progress.item}: {progress.done:.4g} of {progress.total} cells"
        print(f"{counted}, {_pace(progress)}", file=sys.stderr, flush=True)


def described(summary: Summary) -> list[str]:
    """The verdicts as lines of text."""
    lines = []
    for one in summary.finished:
        lines.append(f"{one.plan.name:7s} {one.verdict.outcome.value:20s} {one.verdict.summary}")
    lines += [f"{name:7s} not finished" for name in summary.missing]
    return lines
