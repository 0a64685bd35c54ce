"""What takes an accelerator, into the package: `python docs/measured.py OUT`.

OUT is the directory of `mellowmax reproduce fig11 --scale paper`. The learning curves of the cells
that are finished, what each run earned, and the policies of some runs go into the package, with
where and when they were made. Parts of the figure without a finished cell in OUT stay as they are.
The quick scale and the report show them on any machine.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mellowmax.experiments import plan
from mellowmax.experiments.data import measured
from mellowmax.experiments.items import fig11
from mellowmax.experiments.items.fig11.parts import TODAY, settings
from mellowmax.experiments.store import read_table, write_table

DATA = Path(__file__).parent.parent / "src/mellowmax/experiments/data"
COLUMNS = {
    "curves": [name for name in fig11.COLUMNS["curves"] if name != "paper"],
    "runs": list(fig11.COLUMNS["runs"]),
}
"""The tables that are kept, and their columns: the paper's curves are in the package already."""


def best_policies(tables: dict[str, pd.DataFrame], rows: pd.DataFrame) -> pd.DataFrame:
    """The runs whose weights were kept, of the best setting of each policy in today's lander."""
    means = tables["means"][tables["means"]["part"] == TODAY]
    best = means.loc[means.groupby("policy")["mean_return"].idxmax(), fig11.SETTING]
    chosen = rows[rows["weights"].notna()].merge(best, on=fig11.SETTING)
    return chosen[[*fig11.SETTING, "run", "weights"]]


def smaller(table: pd.DataFrame) -> pd.DataFrame:
    """With means in single precision."""
    means = [name for name in ("mean_return", "standard_error", "mean_length") if name in table]
    return table.astype(dict.fromkeys(means, np.float32))


def with_other_parts(
    name: str, table: pd.DataFrame, made_by: list[dict[str, Any]]
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """A table of some parts, and those of the others that are in the package, with their origin."""
    there, made_there = measured(f"fig11_{name}")
    others = there[~there["part"].isin(table["part"].unique())]
    cells = cells_of(others["part"].unique())
    kept = [made for made in made_there["cells"] if made["cell"] in cells]
    both = pd.concat([table, others], ignore_index=True)
    return both, {"cells": made_by + kept}


def cells_of(parts: Collection[str]) -> set[str]:
    """The names of the cells of some parts."""
    config = fig11.SCALES["paper"]
    return {cell for cell in fig11.cells(config) if settings(config, cell)["part"].iloc[0] in parts}


def main() -> None:
    """Write the tables."""
    (of_item,) = plan(["fig11"], "paper", sys.argv[1])
    print(f"not finished: {', '.join(of_item.missing) or 'none'}")
    there = {name: path for name, (_, path) in of_item.cells.items() if path.exists()}
    read = {name: read_table(path) for name, path in there.items()}
    cells = {name: table for name, (table, _) in read.items()}
    made_by = [made for _, made in read.values()]
    tables = fig11.tables(of_item.config, cells)
    kept = {
        name: with_other_parts(name, smaller(tables[name][columns]), made_by)
        for name, columns in COLUMNS.items()
    }
    today = [table for name, table in cells.items() if name.startswith(TODAY)]
    if today:
        kept["policies"] = best_policies(tables, pd.concat(today)), {"cells": made_by}
    for name, (table, made) in kept.items():
        path = DATA / f"fig11_{name}.parquet"
        write_table(path, table, made)
        print(f"{path.name}: {len(table)} rows, {path.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
