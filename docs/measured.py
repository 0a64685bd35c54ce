"""What takes an accelerator, into the package: `python docs/measured.py OUT`.

OUT is the directory of `mellowmax reproduce fig11 --scale paper`. The learning curves of the cells
that are finished, what each run earned, and the policies of some runs go into the package, with
where and when they were made. The quick scale and the report show them on any machine.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from mellowmax.experiments import plan
from mellowmax.experiments.items import fig11
from mellowmax.experiments.items.fig11.parts import TODAY
from mellowmax.experiments.store import read_table, write_table

DATA = Path(__file__).parent.parent / "src/mellowmax/experiments/data"


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


def main() -> None:
    """Write the tables."""
    (of_item,) = plan(["fig11"], "paper", sys.argv[1])
    print(f"not finished: {', '.join(of_item.missing) or 'none'}")
    there = {name: path for name, (_, path) in of_item.cells.items() if path.exists()}
    read = {name: read_table(path) for name, path in there.items()}
    cells = {name: table for name, (table, _) in read.items()}
    made_by = {"cells": [made for _, made in read.values()]}
    tables = fig11.tables(of_item.config, cells)
    kept = {
        "curves": smaller(tables["curves"].drop(columns="paper")),
        "runs": smaller(tables["runs"]),
    }
    today = [table for name, table in cells.items() if name.startswith(TODAY)]
    if today:
        kept["policies"] = best_policies(tables, pd.concat(today))
    for name, table in kept.items():
        path = DATA / f"fig11_{name}.parquet"
        write_table(path, table, made_by)
        print(f"{path.name}: {len(table)} rows, {path.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
