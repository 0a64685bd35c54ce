"""`mellowmax reproduce`: the paper's figures and tables again, cell by cell, and a report."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .._common.compiled_programs import keep_compiled_programs
from .._common.files import check_directory
from .._common.signals import early_end
from .._common.terminal import columns, say, say_error, wrapped
from .._common.text import visible
from ..experiments.item import ITEMS, SCALES
from .console import (
    RESUMES,
    check_choice,
    errors_in_one_sentence,
    exit_interrupted,
)
from .options import AsJson, Force, Quiet, completion, paths
from .progress import Bar, time_left
from .result import progress_unless

if TYPE_CHECKING:
    from ..experiments import CellProgress, Plan

__all__ = ["make_cells", "reproduce", "to_be_made"]

AN_HOUR = 3600.0
MOST_DEVICES = 256
"""The most devices that are made of a CPU: each has threads of its own."""


def reproduce(
    items: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ITEM",
            help=f"{' '.join(ITEMS)}; none for all.",
            autocompletion=completion(ITEMS),
        ),
    ] = None,
    scale: Annotated[
        str,
        typer.Option(
            help="quick: minutes on a laptop; paper: the paper's own counts.",
            autocompletion=completion(SCALES),
        ),
    ] = "quick",
    out: Annotated[
        Path,
        typer.Option(
            help="The directory for cells, tables, figures and the report.",
            autocompletion=paths(),
        ),
    ] = Path("reproduction"),
    devices: Annotated[
        int | None, typer.Option(help="How many devices to use; a CPU is split into as many.")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Start what takes longer than an hour without asking.")
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Reproduce the paper's figures and tables, with verdicts.

    Example: mellowmax reproduce fig9 --scale paper --out results

    The work is cut into cells, and a finished cell is saved. After Ctrl-C or a kill, the same
    command resumes where it stopped. It asks before an item that takes longer than an hour
    (`fig11 --scale paper`: about 28 days on two cores); without a terminal, pass `--yes`. The path
    of the report is printed last. The exit code is 0 when all is done, 1 if you answered no, 2 for
    a wrong argument, 74 for a full disk, and 130 after Ctrl-C.
    """
    remark = RESUMES.format(out)
    with errors_in_one_sentence():
        for item in items or []:
            check_choice("ITEM", item, ITEMS)
        check_choice("--scale", scale, SCALES)
        _check_out(out, force)
        _use_devices(devices)
        keep_compiled_programs()
        from ..experiments import assemble_all, plan
        from ..experiments.reproduction import record_scale
        from ..report import write
        from .report import print_summary

        plans = plan(items or [], scale, out)
        agreed = to_be_made(plans, lambda sentence: yes or _ask(sentence))
        skipped = [one.name for one in plans if one not in agreed]
        page = None
        if agreed:
            record_scale(out, scale)
            with early_end(remark) as stop:
                made = make_cells(agreed, out, stop.is_set, quiet=quiet)
                if made and _first_of_all_processes():
                    finished = assemble_all(out)
                    page = write(finished, out)
            if stop.is_set():
                exit_interrupted(remark)
    if page is not None:
        names = [one.name for one in plans]
        print_summary(finished, names, page, as_json=as_json, quiet=quiet)
    if skipped:
        say_error(f"skipped at your request: {', '.join(skipped)}")
        raise typer.Exit(1)


def _check_out(out: Path, force: bool) -> None:
    """Raise unless a reproduction may be written there."""
    from ..experiments.reproduction import RECORD, recorded_scale

    files = ("report.html", "report.md", RECORD)

    def ours(out: Path) -> bool:
        try:
            return bool(recorded_scale(out))
        except ValueError:
            return False

    check_directory("--out", out, files, ours, force=force)


def _use_devices(count: int | None) -> None:
    """Join the processes that JAX's environment variables name, and take a number of devices."""
    import jax

    if "JAX_COORDINATOR_ADDRESS" in os.environ:
        names = {"num_processes": "JAX_NUM_PROCESSES", "process_id": "JAX_PROCESS_ID"}
        given = {name: int(os.environ[key]) for name, key in names.items() if key in os.environ}
        jax.distributed.initialize(**given)  # type: ignore[arg-type]
    if count is not None:
        if not 1 <= count <= MOST_DEVICES:
            raise ValueError(f"`--devices` must be from 1 to {MOST_DEVICES}, got {count}")
        jax.config.update("jax_num_cpu_devices", count)
        there = len(jax.local_devices())
        if there != count:
            raise ValueError(f"`--devices` must be {there}, what there is here, got {count}")


def to_be_made(plans: Sequence[Plan], agree: Callable[[str], bool]) -> list[Plan]:
    """The items to make: those that take less than an hour, and those that are agreed to.

    Args:
        plans: of the items that were asked for.
        agree: called with a sentence about an item that takes longer.
    """
    return [one for one in plans if one.estimate < AN_HOUR or agree(_estimate(one))]


def _estimate(one: Plan) -> str:
    days = one.estimate / (24 * AN_HOUR)
    long = f"{days:.0f} days" if days >= 2 else f"{one.estimate / AN_HOUR:.0f} hours"
    cells = f"{len(one.missing)} of {len(one.cells)} cells are to be made"
    return f"{one.name} takes about {long} on two cores: {cells}, and it can be stopped at any time"


def _ask(sentence: str) -> bool:
    """Does the user want it?"""
    if not sys.stdin.isatty():
        item = sentence.split()[0]
        rule = f"`--yes` must be given to start {item} where nobody can be asked"
        raise ValueError(f"{rule}; {sentence}")
    question = wrapped(f"{sentence}. Start it? [y/N]:", columns(sys.stderr))
    return typer.confirm(question, show_default=False, prompt_suffix=" ", err=True)


def make_cells(
    plans: Sequence[Plan], out: Path, stop: Callable[[], bool], *, quiet: bool = False
) -> bool:
    """Make the missing cells of items, with a bar for each item.

    Args:
        plans: of the items.
        out: the directory of the cells.
        stop: called after each cell, and within one that takes long.
        quiet: whether to show no bars.

    Returns:
        Whether it came to the end.
    """
    from ..experiments import run

    for one in plans:
        if one.foreign:
            say(
                f"{one.name}: {one.foreign} cells in {visible(str(out))} were made by another "
                "version or config; they are left alone and not used",
                file=sys.stderr,
            )
    with progress_unless(quiet, [_bar(one) for one in plans]) as report:

        def callback(progress: CellProgress) -> bool:
            report(progress.done / progress.total, _pace(progress), progress.item)
            return stop()

        for one in plans:
            run(one, callback)
            if stop():
                return False
    for one in plans:
        if one.missing:
            cells = ", ".join(one.missing)
            say(f"{one.name}: other processes are still making {cells}", file=sys.stderr)
    return True


def _bar(one: Plan) -> Bar:
    share = 1 - len(one.missing) / len(one.cells)
    return Bar(one.name, share, "waiting" if one.missing else "on disk")


def _pace(progress: CellProgress) -> str:
    """How many cells are done, how fast, and how long the rest takes."""
    text = f"{progress.done:.4g} of {progress.total} cells"
    rate = progress.made / progress.seconds
    if progress.done == progress.total:
        return f"{text}, {rate:.2f} cells/s, {progress.seconds:.0f} s"
    if rate == 0:
        return text
    return f"{text}, {rate:.2g} cells/s, {time_left((progress.total - progress.done) / rate)}"


def _first_of_all_processes() -> bool:
    """Wait until all processes have made their cells; the first one writes the report."""
    import jax

    if jax.process_count() > 1:
        from jax.experimental import multihost_utils

        multihost_utils.sync_global_devices("cells")
    return bool(jax.process_index() == 0)
