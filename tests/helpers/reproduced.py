"""Items of the reproduction, each run once for all tests of a process; slow ones are small."""

from __future__ import annotations

import dataclasses
import functools

from mellowmax.experiments import load
from mellowmax.experiments.items import fig2, fig7, table1

# As many deltas wherever sweeps of an item are counted, so that an operator's are compiled once.
# The limits are small, for sweeps take the time, and let some runs reach them.
DELTAS = (-1.0, -2.0, -3.0)
CONFIGS = {
    "fig2": fig2.Config(episodes=400, runs=40),
    **{name: load(name).SCALES["quick"] for name in ("fig3", "fig4", "fig5", "fig6")},
    "fig7": dataclasses.replace(
        fig7.SCALES["quick"],
        initial=(-1.0, 2.0, 1.0),
        deltas=(-3.5, -3.5, -0.5),
        stated_deltas=(1e-4,),
        limit=1000,
    ),
    "table1": dataclasses.replace(
        table1.SCALES["quick"],
        rates=200,
        parameters=(3.0, 10.0),
        discounts=(0.9, 0.98),
        exponents=DELTAS,
        rated=((3.0, 0.98),),
        rated_exponents=DELTAS,
        limit=100,
    ),
}


@functools.cache
def made(name):
    """The cells and the tables of an item."""
    item, config = load(name), CONFIGS[name]
    cells = {cell: item.run(spec) for cell, spec in item.cells(config).items()}
    return cells, item.tables(config, cells)


def altered(name, table, change):
    """The tables of an item with one of them changed."""
    tables = dict(made(name)[1])
    tables[table] = change(tables[table].copy())
    return tables


def check_columns(item, tables):
    """The tables have the columns that are documented, and rows."""
    assert set(tables) == set(item.COLUMNS)
    for name, table in tables.items():
        assert list(table.columns) == list(item.COLUMNS[name])
        assert len(table)


def check_in_short(verdict):
    """The table of verdicts has room for a line of 15 words."""
    assert verdict.in_short.endswith(".")
    assert 3 <= len(verdict.in_short.split()) <= 15
