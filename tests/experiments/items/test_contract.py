"""What every item keeps to: plain specifications, documented tables, the same cells again."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from helpers.reproduced import CONFIGS, check_columns, check_in_short, made
from mellowmax.experiments import load, style


@pytest.mark.parametrize("name", [*CONFIGS, "fig9"])
def test_a_specification_is_plain_data(name):
    item = load(name)
    for config in item.SCALES.values():
        for spec in item.cells(config).values():
            assert json.loads(json.dumps(spec)) == spec


@pytest.mark.parametrize("name", CONFIGS)
def test_tables_have_the_columns_that_are_documented_and_no_holes(name):
    tables = made(name)[1]
    check_columns(load(name), tables)
    for table in tables.values():
        assert name == "table1" or not table.isna().any(axis=None)  # where none terminated


@pytest.mark.parametrize("name", CONFIGS)
def test_a_cell_made_again_is_the_same(name):
    item = load(name)
    cells = item.cells(CONFIGS[name])
    cell = list(cells)[-1]
    again = item.run(json.loads(json.dumps(cells[cell])))
    pd.testing.assert_frame_equal(again, made(name)[0][cell], check_exact=True)


@pytest.mark.parametrize("name", CONFIGS)
def test_tables_give_figures_and_a_verdict(name):
    item, tables = load(name), made(name)[1]
    with style.styled():
        assert set(item.plot(tables)) == set(item.CAPTIONS)
    verdict = item.judge(tables)
    assert any(claim.holds for claim in verdict.claims)
    assert all(claim.paper and claim.ours for claim in verdict.claims)
    assert verdict.summary.endswith(".")
    check_in_short(verdict)
