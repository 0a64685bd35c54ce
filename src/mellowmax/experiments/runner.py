"""Running items: the missing cells first, then the tables, figures and verdicts they add up to.

    OUT/cells/ITEM/...      finished cells, see `store`
    OUT/tables/...          one Parquet file a table
    OUT/figures/...         each figure as SVG and PNG

Cells are made one after another, each on all devices of the process. Processes that are joined by
`jax.distributed` share the cells out among them and need a directory that all of them see.
"""

from __future__ import annotations

import dataclasses
import importlib
import platform
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import jax
import numpy as np
import pandas as pd

from .. import __version__
from .._common.files import replacing
from . import style
from .item import Item, LongItem, Stopped, Verdict, Work
from .store import Store, read_table, write_table

__all__ = ["ITEMS", "Finished", "Plan", "Progress", "assemble", "load", "plan", "run"]

ITEMS = ("fig2", "fig3", "fig4", "fig5", "fig6", "fig7", "table1", "fig9", "fig11")
"""In the order of the paper."""
SCALES = ("quick", "paper")


def load(name: str) -> Item:
    """The module of an item."""
    if name not in ITEMS:
        raise ValueError(f"`ITEM` must be one of {', '.join(ITEMS)}, got {name!r}")
    return cast(Item, importlib.import_module(f".items.{name}", __package__))


@dataclasses.dataclass(frozen=True)
class Plan:
    """The cells of an item at a scale, and which of them are still to be made."""

    name: str
    scale: str
    item: Item
    config: Any
    cells: dict[str, tuple[Any, Path]]
    """Of each cell, its specification and its file."""
    foreign: int
    """Cells of other versions, configs and scales that lie beside them."""

    @property
    def estimate(self) -> float:
        """About how many seconds the missing cells take on two cores."""
        return self.item.SECONDS[self.scale] * len(self.missing) / len(self.cells)

    @property
    def missing(self) -> list[str]:
        """The cells that are not on disk."""
        return [name for name, (_, path) in self.cells.items() if not path.exists()]


def plan(names: Sequence[str], scale: str, out: str | Path) -> list[Plan]:
    """What items at a scale consist of.

    Args:
        names: the items; none for all.
        scale: `"quick"` or `"paper"`.
        out: the directory.

    Raises:
        ValueError: for an item or a scale that there is not.
    """
    if scale not in SCALES:
        raise ValueError(f"`--scale` must be one of {', '.join(SCALES)}, got {scale!r}")
    items = {name: load(name) for name in names or ITEMS}
    store = Store(out)
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


def _name_of(path: Path) -> str:
    return path.name.rsplit(".", 2)[0]


@dataclasses.dataclass(frozen=True)
class Progress:
    """A cell has just been finished, or has come further."""

    item: str
    cell: str
    done: float
    """Cells, with the part of the one that is under way."""
    total: int
    seconds: float
    """What the cells of this call have taken so far."""
    made: float
    """How many cells this call has made, with the part of the one that is under way."""


def run(plan: Plan, tell: Callable[[Progress], bool | None]) -> bool:
    """Make the missing cells of an item.

    Args:
        plan: from `plan`.
        tell: is called after each cell; it may return True to stop.

    Returns:
        Whether all cells are there.
    """
    mine = plan.missing[jax.process_index() :: jax.process_count()]
    began = time.perf_counter()
    for made, cell in enumerate(mine):

        def told(share: float, made: int = made, cell: str = cell) -> bool:
            there = len(plan.cells) - len(plan.missing)
            seconds = time.perf_counter() - began
            share = min(share, 0.999)  # it is not done before it is on disk
            counts = (there + share, len(plan.cells), seconds, made + share)
            return bool(tell(Progress(plan.name, cell, *counts)))

        spec, path = plan.cells[cell]
        start = time.perf_counter()
        try:
            table = _make(plan.item, spec, path.with_suffix(".part"), told)
        except Stopped:
            break
        write_table(path, table, _made_by(plan, cell, spec, time.perf_counter() - start))
        shutil.rmtree(path.with_suffix(".part"), ignore_errors=True)
        if told(0.0, made + 1):
            break
    return not plan.missing


def _make(item: Item, spec: Any, directory: Path, tell: Callable[[float], bool]) -> pd.DataFrame:
    """A cell; one that takes long goes on from what is in the directory."""
    if not isinstance(item, LongItem):
        return item.run(spec)
    directory.mkdir(parents=True, exist_ok=True)
    return item.resume(spec, Work(directory, tell))


def _made_by(plan: Plan, cell: str, spec: Any, seconds: float) -> dict[str, Any]:
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
    """The SVG files; each has a PNG beside it."""
    seconds: float
    """What its cells took."""
    device: str


def assemble(plan: Plan, out: str | Path) -> Finished:
    """Write the tables and figures of an item whose cells are all there, and judge it."""
    out = Path(out)
    read = {name: read_table(path) for name, (_, path) in plan.cells.items()}
    tables = plan.item.tables(plan.config, {name: table for name, (table, _) in read.items()})
    written = {}
    for name, table in tables.items():
        written[name] = out / "tables" / f"{plan.name}_{name}.parquet"
        write_table(written[name], table)
    figures = {}
    (out / "figures").mkdir(parents=True, exist_ok=True)
    with style.styled():
        for name, figure in plan.item.plot(tables).items():
            figures[name] = out / "figures" / f"{plan.name}_{name}.svg"
            with replacing(figures[name]) as file:
                figure.savefig(file, format="svg", metadata={"Date": None})
            with replacing(figures[name].with_suffix(".png")) as file:
                figure.savefig(file, format="png", dpi=150, metadata={"Software": None})
    made = [made_by for _, made_by in read.values()]
    return Finished(
        plan,
        plan.item.judge(tables),
        written,
        figures,
        sum(cell["seconds"] for cell in made),
        ", ".join(sorted({cell["device"] for cell in made})),
    )
