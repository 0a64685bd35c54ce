"""Figure 7 and the table of section 7.1: their tables against what is known, and the verdicts."""

from __future__ import annotations

import dataclasses
import functools
import json
import math

import numpy as np
import pandas as pd
import pytest

from mellowmax import Boltzmann, Max, Mellowmax
from mellowmax.experiments import style
from mellowmax.experiments.item import Outcome
from mellowmax.experiments.items import fig7, table1
from mellowmax.experiments.items.fig7.sweeps import SWEEPS, count_sweeps
from mellowmax.experiments.items.table1.printed import PRINTED, z_of_a_count, z_of_settings
from mellowmax.mdp import random_mdp, two_state
from mellowmax.planning import solve
from mellowmax.planning.batch import Batch, find_fixed_points, value_iteration

# As many deltas wherever sweeps of an item are counted, so that an operator's are compiled once.
# The limits are small, for sweeps take the time, and let some runs reach them.
DELTAS = (-1.0, -2.0, -3.0)
SMALL = {
    "fig7": dataclasses.replace(
        fig7.SCALES["quick"],
        initial=(-1.0, 2.0, 1.0),
        deltas=(-3.5, -3.5, -0.5),
        stated_deltas=(1e-4,),
        limit=1000,
    ),
    "table1": dataclasses.replace(
        table1.SCALES["quick"],
        rates=300,
        parameters=(3.0, 10.0),
        discounts=(0.9, 0.98),
        exponents=DELTAS,
        rated=((3.0, 0.98),),
        rated_exponents=DELTAS,
        limit=100,
    ),
}
ITEMS = {"fig7": fig7, "table1": table1}


@functools.cache
def made(name):
    """The cells and tables of an item, smaller than quick."""
    item, config = ITEMS[name], SMALL[name]
    cells = {cell: item.run(spec) for cell, spec in item.cells(config).items()}
    return cells, item.tables(config, cells)


@pytest.mark.parametrize("name", ITEMS)
def test_an_item_keeps_its_contract(name):
    item = ITEMS[name]
    cells, tables = made(name)
    assert set(tables) == set(item.COLUMNS)
    for table, columns in item.COLUMNS.items():
        assert list(tables[table].columns) == list(columns)
        assert len(tables[table])
        assert all(columns.values())
    for config in (*item.SCALES.values(), SMALL[name]):
        for spec in item.cells(config).values():
            assert json.loads(json.dumps(spec)) == spec
    assert set(item.SCALES) == {"quick", "paper"}
    cell = next(iter(cells))
    again = item.run(item.cells(SMALL[name])[cell])
    pd.testing.assert_frame_equal(again, cells[cell], check_exact=True)
    with style.styled():
        assert item.plot(tables)
    verdict = item.judge(tables)
    assert verdict.summary
    assert any(claim.holds for claim in verdict.claims)


def test_the_stated_curve_is_that_of_solve():
    stated = made("fig7")[1]["stated"]
    rows = stated[(stated.labels == "fitted") & (stated.delta == 1e-4)]
    for operator, pair in (("max", Max()), ("boltz", Boltzmann(16.5)), ("mm", Mellowmax(16.5))):
        mine = rows[(rows.operator == operator) & rows.parameter.isin([0.0, 16.5])]
        solution = solve(two_state(), pair, method="in-place", tolerance=1e-4)
        assert mine.iterations.tolist() == [solution.iterations]


def test_every_delta_has_its_own_sweeps(monkeypatch):
    def made_up(mdp, operator, parameters, initial, *, tolerances, **options):
        return np.tile(np.rint(1 / np.array(tolerances))[:, None], (1, len(parameters)))

    monkeypatch.setattr(fig7, "count_sweeps", made_up)
    config = dataclasses.replace(
        SMALL["fig7"], deltas=(-2.0, -4.0, -1.0), stated_deltas=(0.1, 0.01)
    )
    cells = fig7.cells(config)
    stated, search = (fig7.run(cells[name]) for name in ("stated", "search-fitted-change-in-place"))
    assert set(stated.delta) == {0.1, 0.01}
    assert search.delta.nunique() == 3
    assert (stated.iterations == np.rint(1 / stated.delta)).all()
    assert (search.iterations == np.rint(1 / search.delta) - ~search["last"]).all()


def test_the_distance_is_that_of_its_points():
    nearest = made("fig7")[1]["nearest"]
    for _, rows in nearest.groupby(["rule", "sweeps", "labels", "delta"]):
        distance = abs(np.log(rows.iterations / rows.paper)).mean()
        assert rows.distance.iloc[0] == pytest.approx(distance, rel=1e-12)


@pytest.mark.parametrize("sweeps", SWEEPS)
@pytest.mark.parametrize("beta", [16.51, 30.0])
def test_a_run_is_done_when_its_values_are_near_where_they_end(sweeps, beta):
    """Against sweeps by the formulas of section 2 alone."""
    labels = ((0.12211, 0.98 * 0.65867), (0.03284, 0.98 * 0.99075))

    def swept(q):
        old = list(q)
        for i, (reward, flow) in enumerate(labels):
            now = q if sweeps == "in-place" else old
            weights = [math.exp(beta * x) for x in now]
            value = sum(w * x for w, x in zip(weights, now, strict=True)) / sum(weights)
            q = [*q[:i], reward + flow * value, *q[i + 1 :]]
        return q

    path = [[0.8, 0.8]]
    while len(path) < 20_000:
        path.append(swept(path[-1]))
    tolerances = [0.1, 0.003, 1e-5]
    by_hand = [
        next(i for i, q in enumerate(path) if max(map(abs, np.subtract(q, path[-1]))) < tolerance)
        for tolerance in tolerances
    ]
    counts = count_sweeps(
        two_state(),
        "boltz",
        np.array([beta, beta]),
        np.full((2, 2), 0.8),
        tolerances=tolerances,
        limit=8000,
        rule="distance",
        sweeps=sweeps,
    )
    assert counts.T.tolist() == [by_hand, by_hand]


def test_the_rules_beside_algorithm_2_change_nothing_in_the_verdict():
    tables = dict(made("fig7")[1])
    rules = tables["rules"]
    assert len(rules) == 4
    near = rules.query("rule == 'distance'")
    assert near.factor.min() < rules.query("rule == 'change'").factor.min()
    nearest = tables["nearest"]
    other = (nearest.rule != "change") | (nearest.sweeps != "in-place")
    before = fig7.judge(tables).claims
    tables["nearest"] = nearest.assign(distance=nearest.distance.where(~other, 0.0))
    assert fig7.judge(tables).claims == before


def test_the_paper_itself_passes_figure_7():
    tables = dict(made("fig7")[1])
    nearest = tables["nearest"].assign(distance=0.0)
    tables["nearest"] = nearest.assign(iterations=nearest.paper)
    held = {claim.statement: claim.holds for claim in fig7.judge(tables).claims}
    assert all(held.values()), held


def test_figure_7_can_fail():
    whole = made("fig7")[1]
    tables = {name: whole[name].assign(iterations=100.0) for name in ("stated", "nearest")}
    tables["rules"] = whole["rules"]
    tables["stated"].loc[tables["stated"].operator == "mm", "iterations"] = 200.0
    assert fig7.judge(tables).outcome is Outcome.NOT


def test_the_table_counts_what_sweeps_and_search_give():
    rates = made("table1")[1]["rates"]
    numbers = range(SMALL["table1"].rates)
    mdps = Batch.of([random_mdp([SMALL["table1"].seed, number]) for number in numbers])
    options = {"tolerances": [10.0**exponent for exponent in DELTAS], "max_iterations": 100}
    run = value_iteration(mdps, Boltzmann(3.0), discount=0.98, **options)
    mine = rates[(rates.beta == 3.0) & (rates.discount == 0.98) & (rates.operator == "boltz")]
    mine = mine[(mine.delta == 1e-3) & (mine.sweeps == "in place")].iloc[0]
    counts = np.where(run.converged[2], run.iterations[2], 100)
    assert mine.mdps == 300
    assert mine.iterations == pytest.approx(counts.mean(), rel=1e-12)
    assert mine.error == pytest.approx(counts.std(ddof=1) / 300**0.5, rel=1e-9)
    assert 0 < mine.unterminated == (~run.converged[2]).sum() < 300
    several = find_fixed_points(mdps, Boltzmann(3.0), discount=0.98).counts > 1
    assert mine.several == several.sum()
    assert mine.several_low <= mine.several / 300 <= mine.several_high
    sample = made("table1")[1]["sample"]
    assert (sample.mdps == 200).all()


def printed_rows(n=200):
    """A table of rates in which every setting has the printed numbers."""
    rates = made("table1")[1]["rates"].copy()
    for (operator, name), value in PRINTED.items():
        chosen = rates.operator == operator
        if name == "iterations":
            rates.loc[chosen, ["iterations", "terminated_iterations"]] = value
        else:
            rates.loc[chosen, name] = int(value) * n // 200
    return rates.assign(mdps=n, error=2.0, terminated_error=2.0)


def test_the_paper_itself_passes_the_table():
    rates = printed_rows()
    tables = {"rates": rates, "settings": z_of_settings(rates)}
    assert (tables["settings"].reproduced == 6).all()
    assert table1.judge(tables).outcome is Outcome.REPRODUCED


def test_the_table_can_fail():
    rates = printed_rows(20_000)
    rates["iterations"] += 500.0
    rates["terminated_iterations"] += 500.0
    rates.loc[rates.operator == "mm", ["unterminated", "several"]] = 3_000
    rates.loc[rates.operator == "boltz", ["unterminated", "several"]] = 2_000
    tables = {"rates": rates, "settings": z_of_settings(rates)}
    verdict = table1.judge(tables)
    assert verdict.outcome is Outcome.NOT
    assert "Iterations on average, mm" in verdict.summary


def test_a_count_is_compared_by_the_binomial_range():
    """With very many MDPs, Fisher's test is the exact binomial one."""
    assert abs(z_of_a_count(8, 40_000, 1_000_000)) < 0.1
    assert z_of_a_count(8, 7_000, 1_000_000) < -3
    assert z_of_a_count(3, 100_000, 1_000_000) > 3
    assert z_of_a_count(0, 0, 100_000) == 0
