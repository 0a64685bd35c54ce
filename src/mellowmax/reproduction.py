"""Layer 7: the reproduction as a command runs it, with a live display and a report at the end."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import jax

from . import __version__, report
from ._files import replacing
from .experiments import Finished, Plan, Progress, assemble, plan, run

__all__ = ["Summary", "described", "make_report", "reproduce", "scale_of"]

RECORD = "run.json"


@dataclasses.dataclass(frozen=True)
class Summary:
    """How a reproduction ended."""

    finished: list[Finished]
    missing: list[str]
    """The items that are not whole."""
    report: Path


def reproduce(
    names: Sequence[str], scale: str, out: Path, stop: Callable[[], bool]
) -> Summary | None:
    """Make the missing cells of items, then the report of all that is there.

    Args:
        names: the items; none for all.
        scale: `"quick"` or `"paper"`.
        out: the directory; it is made if it does not exist.
        stop: is asked after each cell.

    Returns:
        The summary; None if it was stopped, and on all processes but the first.
    """
    plans = plan(names, scale, out)
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
    """The tables, figures and report of every item whose cells are all there."""
    plans = plan((), scale, out)
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
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bars

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines(plans)
        return
    columns = (
        TextColumn("{task.description:7s}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]:>14s}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
        TextColumn("{task.fields[cell]}"),
    )
    with Bars(*columns, console=console, speed_estimate_period=600) as bars:
        tasks = {}
        for one in plans:
            total, left = len(one.cells), len(one.missing)
            tasks[one.name] = bars.add_task(
                one.name,
                total=total,
                completed=total - left,
                start=False,
                rate="",
                cell="" if left else "on disk",
            )
        for one in plans:
            if one.missing:
                bars.start_task(tasks[one.name])
                break
        made: dict[str, list[float]] = {}

        def tell(progress: Progress) -> None:
            task = tasks[progress.item]
            if not made.get(progress.item):
                bars.reset(task, completed=progress.done - 1, cell="", rate="")
            times = made.setdefault(progress.item, [])
            times.append(progress.seconds)
            rate = f"{len(times) / sum(times):.2f} cells/s"
            finished = progress.done == progress.total
            cell = "" if finished else f"{progress.cell} is done"
            bars.update(task, completed=progress.done, rate=rate, cell=cell)

        yield tell


class _Lines:
    """Plain lines: one at the end of an item, and one now and then."""

    def __init__(self, plans: Sequence[Plan]) -> None:
        self.times: dict[str, list[float]] = {one.name: [] for one in plans}
        self.last = 0.0
        for one in plans:
            there = len(one.cells) - len(one.missing)
            print(f"{one.name}: {there} of {len(one.cells)} cells on disk", file=sys.stderr)

    def __call__(self, progress: Progress) -> None:
        times = self.times[progress.item]
        times.append(progress.seconds)
        now = time.monotonic()
        if progress.done < progress.total and now - self.last < 5:
            return
        self.last = now
        mean = sum(times) / len(times)
        left = mean * (progress.total - progress.done)
        print(
            f"{progress.item}: {progress.done} of {progress.total} cells, {1 / mean:.2f} a second, "
            f"about {left:.0f} s left",
            file=sys.stderr,
            flush=True,
        )


def described(summary: Summary) -> list[str]:
    """The verdicts as lines of text."""
    lines = []
    for one in summary.finished:
        lines.append(f"{one.plan.name:7s} {one.verdict.outcome.value:20s} {one.verdict.summary}")
    lines += [f"{name:7s} not finished" for name in summary.missing]
    return lines
