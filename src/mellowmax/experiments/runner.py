"""Running items: the missing cells first, then their tables, figures and verdicts.

    out/cells/<item>/...    finished cells, see `store`
    out/tables/...          one Parquet file for each table
    out/figures/...         each figure as SVG and PNG

Cells are made one after another, each on all devices of the process. Processes that are joined by
`jax.distributed` divide the cells among themselves and need a directory that all of them see. So do
processes that were simply started with the same directory, where cells take long: each skips a cell
that another one is making.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import math
import platform
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import jax
import numpy as np
import pandas as pd

from .. import __version__
from .._common import checks
from .._common.files import replacing
from .._common.locks import BusyError
from . import style
from .item import ITEMS, SCALES, Item, LongItem, Spec, Stopped, Verdict, Work
from .store import Store, read_cell, write_table

__all__ = ["CellProgress", "Finished", "Plan", "assemble", "check_names", "load", "plan", "run"]

SECONDS_BETWEEN = 5.0
"""How often the time that a cell has taken is written down."""


def load(name: str) -> Item:
    """The package of an item.

    Raises:
        ValueError: for a name that is none of `ITEMS`.
    """
    checks.one_of("name", name, ITEMS)
    return cast(Item, importlib.import_module(f".items.{name}", __package__))


@dataclasses.dataclass(frozen=True)
class Plan:
    """The cells of an item at a scale, and which of them are still to be made."""

    name: str
    scale: str
    item: Item
    config: Any
    """The item's own `Config` at this scale."""
    cells: dict[str, tuple[Spec, Path]]
    """The specification and the file of each cell."""
    foreign: int
    """How many cells of other versions, configs and scales are in the directory."""

    @property
    def estimate(self) -> float:
        """About how many seconds the missing cells take on two cores."""
        return self.item.SECONDS[self.scale] * len(self.missing) / len(self.cells)

    @property
    def missing(self) -> list[str]:
        """The cells that are not on disk."""
        return [name for name, (_, path) in self.cells.items() if not path.exists()]


def plan(names: Sequence[str], scale: str, out: str | Path) -> list[Plan]:
    """The cells of items at a scale. Only these items are imported.

    Args:
        names: the items; none for all.
        scale: `"quick"` or `"paper"`.
        out: the directory of the cells.

    Raises:
        ValueError: for an item or a scale that does not exist.
    """
    checks.one_of("scale", scale, SCALES)
    store = Store(checks.file_path("out", out))
    items = {name: load(name) for name in check_names("names", names) or ITEMS}
    plans = []
    for name, item in items.items():
        config = item.SCALES[scale]
        specs = item.cells(config)
        cells = {
            cell: (spec, store.path(name, item.VERSION, cell, spec)) for cell, spec in specs.items()
        }
        others = store.others(name, [path for _, path in cells.values()])
        foreign = sum(_name_of(path) in cells for path in others)
        plans.append(Plan(name, scale, item, config, cells, foreign))
    return plans


def check_names(argument: str, names: Sequence[str]) -> list[str]:
    """A list of names of items, as an argument of this name.

    Raises:
        TypeError: for what is no list of texts.
        ValueError: for an item that does not exist.
    """
    result: list[str] = checks.instances(argument, names, str, "a list of the names of items")
    for name in result:
        if name not in ITEMS:
            raise ValueError(f"`{argument}` must be among {', '.join(ITEMS)}, got {name!r}")
    return result


def _name_of(path: Path) -> str:
    return path.name.rsplit(".", 2)[0]


@dataclasses.dataclass(frozen=True)
class CellProgress:
    """How far the cells of an item have come."""

    item: str
    cell: str
    """The cell that was just made, or is being made."""
    done: float
    """How many cells are on disk, with the share of the one that is being made."""
    total: int
    """How many cells the item has."""
    seconds: float
    """Seconds since the start of `run`."""
    made: float
    """How many cells `run` has made, with the share of the one that is being made."""


def run(plan: Plan, callback: Callable[[CellProgress], bool | None]) -> bool:
    """Make the missing cells of an item.

    Args:
        plan: from `plan`.
        callback: called after each cell, and within one that takes long; it may return True to
            stop.

    Returns:
        Whether all cells are there.
    """
    checks.instance("plan", plan, Plan, "a `Plan`")
    checks.function("callback", callback)
    mine = plan.missing[jax.process_index() :: jax.process_count()]
    start = time.perf_counter()

    def report(cell: str, made: int, share: float) -> bool:
        there = len(plan.cells) - len(plan.missing)
        seconds = time.perf_counter() - start
        counts = (there + share, len(plan.cells), seconds, made + share)
        return bool(callback(CellProgress(plan.name, cell, *counts)))

    made = 0
    for cell in mine:
        spec, path = plan.cells[cell]
        if path.exists():  # another process has made it
            continue
        part = path.with_suffix(".part")
        clock = _Clock(part / "seconds.txt")

        def within(share: float, made: int = made, cell: str = cell, clock: _Clock = clock) -> bool:
            clock.keep()
            return report(cell, made, min(share, 0.999))  # it is done when it is on disk

        try:
            table = _make(plan.item, spec, part, within)
        except Stopped:
            break
        except BusyError:  # another process is making it
            continue
        write_table(path, table, _made_by(plan, cell, spec, clock.seconds()))
        shutil.rmtree(part, ignore_errors=True)
        made += 1
        if report(cell, made, 0.0):
            break
    return not plan.missing


class _Clock:
    """The time that a cell takes, with what it took before it was stopped.

    Args:
        file: where that is kept.
    """

    def __init__(self, file: Path) -> None:
        before = _seconds(file) if file.exists() else 0.0
        self.file, self.start = file, time.perf_counter() - before
        self.kept = before

    def seconds(self) -> float:
        """The seconds that the cell has taken so far."""
        return time.perf_counter() - self.start

    def keep(self) -> None:
        """Write it down every few seconds; the process may be killed at any moment."""
        now = self.seconds()
        if now - self.kept > SECONDS_BETWEEN:
            with replacing(self.file) as file:
                file.write(str(now).encode())
            self.kept = now


def _seconds(file: Path) -> float:
    text = file.read_bytes()[:40]
    with contextlib.suppress(ValueError):
        seconds = float(text)
        if 0 <= seconds < math.inf:
            return seconds
    rule = "the seconds that a cell took so far must be a number of at least 0"
    raise ValueError(f"{rule}, got {text!r} in {str(file)!r}")


def _make(item: Item, spec: Spec, part: Path, callback: Callable[[float], bool]) -> pd.DataFrame:
    """A cell; one that takes long is resumed from the directory `part`."""
    if not isinstance(item, LongItem):
        return item.run(spec)
    part.mkdir(parents=True, exist_ok=True)
    return item.resume(spec, Work(part, callback))


def _made_by(plan: Plan, cell: str, spec: Spec, seconds: float) -> dict[str, Any]:
    device = jax.local_devices()[0]
    versions = {"mellowmax": __version__, "jax": jax.__version__, "numpy": np.__version__}
    return {
        "item": plan.name,
        "version": plan.item.VERSION,
        "cell": cell,
        "spec": spec,
        "versions": versions | {"python": platform.python_version()},
        "device": f"{len(jax.local_devices())} x {device.device_kind}",
        "seconds": seconds,
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


@dataclasses.dataclass(frozen=True)
class Finished:
    """An item whose cells are all there, and what they add up to."""

    plan: Plan
    verdict: Verdict
    tables: dict[str, Path]
    figures: dict[str, Path]
    """The SVG files; each has a PNG of the same name."""
    seconds: float
    """The time that its cells took."""
    device: str
    """The devices on which they were made."""


def assemble(plan: Plan, out: str | Path) -> Finished:
    """Write the tables and figures of an item whose cells are all there, and judge it.

    Raises:
        ValueError: for cells that are not as the item makes them.
    """
    checks.instance("plan", plan, Plan, "a `Plan`")
    out = checks.file_path("out", out)
    read = {name: read_cell(path) for name, (_, path) in plan.cells.items()}
    made = [made_by for _, made_by in read.values()]
    with _of_its_cells(plan):
        verdict, tables, figures = _put_together(plan, out, {x: t for x, (t, _) in read.items()})
        seconds = math.fsum(cell["seconds"] for cell in made)
    devices = ", ".join(sorted({cell["device"] for cell in made}))
    return Finished(plan, verdict, tables, figures, seconds, devices)


@contextlib.contextmanager
def _of_its_cells(plan: Plan) -> Iterator[None]:
    """What fails within is due to the cells: an item is a pure function of them."""
    try:
        with np.errstate(all="ignore"):  # of what they have
            yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        rule = f"the cells of {plan.name} must be as this version makes them"
        there = next(path.parent for _, path in plan.cells.values())
        found = f"{type(error).__name__}: {error}"
        raise ValueError(f"{rule}, got others in {str(there)!r} ({found})") from error


def _put_together(
    plan: Plan, out: Path, cells: dict[str, pd.DataFrame]
) -> tuple[Verdict, dict[str, Path], dict[str, Path]]:
    """The verdict, and the files of the tables and of the figures."""
    tables = plan.item.tables(plan.config, cells)
    written = {}
    for name, table in tables.items():
        written[name] = out / "tables" / f"{plan.name}_{name}.parquet"
        write_table(written[name], table)
    figures = {}
    (out / "figures").mkdir(parents=True, exist_ok=True)
    with style.styled():
        for name, figure in plan.item.plot(tables).items():
            figures[name] = out / "figures" / f"{plan.name}_{name}.svg"
            style.save(figure, figures[name])
    return plan.item.judge(tables), written, figures
