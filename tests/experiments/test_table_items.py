"""Figure 7 and the table of section 7.1: the batched sweeps and search, and the verdicts."""

from __future__ import annotations

import dataclasses
import functools
import json

import jax
import numpy as np
import pandas as pd
import pytest

from mellowmax import Boltzmann, EpsilonGreedy, Max, Mellowmax
from mellowmax.experiments import style
from mellowmax.experiments.item import Outcome
from mellowmax.experiments.items import fig7, table1
from mellowmax.experiments.items.printed import PRINTED, z_of_a_count, z_of_settings
from mellowmax.mdp import random_mdp, two_state
from mellowmax.planning import fixed_points, solve
from mellowmax.planning.batch.fixed_points import search
from mellowmax.planning.batch.iterate import iterate
from mellowmax.planning.batch.mdps import Batch

DELTAS = [1e-2, 1e-4, 1e-6]
OF_ONE_SIZE = [14, 34, 36]  # MDPs of `batch` for which `solve` is compiled once
SMALL = {
    "fig7": dataclasses.replace(
        fig7.SCALES["quick"], initial=(-1.0, 2.0, 1.0), deltas=(-3.0, -5.0, -0.5), limit=2000
    ),
    "table1": dataclasses.replace(
        table1.SCALES["quick"],
        rates=300,
        parameters=(3.0, 10.0),
        discounts=(0.9, 0.98),
        rated=((3.0, 0.98),),
    ),
}
ITEMS = {"fig7": fig7, "table1": table1}


@functools.cache
def made(name):
    """The cells and tables of an item, smaller than quick."""
    item, config = ITEMS[name], SMALL[name]
    cells = {cell: item.run(spec) for cell, spec in item.cells(config).items()}
    return cells, item.tables(config, cells)


@functools.cache
def batch(n=40):
    return Batch.random(0, range(n))


# Sweeps


@pytest.mark.parametrize(
    ("softmax", "numbers"),
    [
        (Boltzmann(3.0), [0, 1, 2]),
        *((softmax, OF_ONE_SIZE) for softmax in (Max(), EpsilonGreedy(0.1), Mellowmax(5.0))),
    ],
    ids=str,
)
def test_sweeps_are_those_of_solve(softmax, numbers):
    run = iterate(batch(), softmax, discount=0.98, deltas=DELTAS)
    for i in numbers:
        mdp = random_mdp([0, i])
        solution = solve(mdp, softmax, method="in-place", tolerance=DELTAS[-1], history=True)
        first = [int((solution.history < delta).argmax()) + 1 for delta in DELTAS]
        assert run.iterations[:, i].tolist() == first
        assert run.iterations[-1, i] == solution.iterations
        q = run.q[i, : mdp.n_states, : mdp.n_actions]
        assert abs(q - solution.q).max() < 1e-10
        assert not run.q[i, mdp.n_states :].any()
        assert not run.q[i, :, mdp.n_actions :].any()


def test_synchronous_sweeps_are_those_of_solve():
    run = iterate(batch(), Boltzmann(3.0), discount=0.98, deltas=DELTAS, synchronous=True)
    for i in OF_ONE_SIZE:
        mdp = random_mdp([0, i])
        solution = solve(mdp, Boltzmann(3.0), method="synchronous", tolerance=DELTAS[-1])
        assert run.iterations[-1, i] == solution.iterations
        q = run.q[i, : mdp.n_states, : mdp.n_actions]
        assert abs(q - solution.q).max() < 1e-10
    alone = iterate(
        Batch.random(0, [5]), Boltzmann(3.0), discount=0.98, deltas=DELTAS, synchronous=True
    )
    assert (alone.q[0] == run.q[5]).all()


def test_initial_values_and_terminal_states():
    pair = Batch.of([two_state(), two_state(printed=True)])
    initial = np.broadcast_to(np.array([[0.3, -0.7]] + [[9.0, 9.0]] * 9), (2, 10, 2))
    initial = np.pad(initial, [(0, 0), (0, 0), (0, 3)], constant_values=9.0)
    run = iterate(pair, Boltzmann(10.0), discount=0.98, deltas=DELTAS, initial=initial)
    for printed, count, q in zip((False, True), run.iterations[-1], run.q, strict=True):
        solution = solve(
            two_state(printed=printed),
            Boltzmann(10.0),
            method="in-place",
            initial=initial[0, :2, :2],
            tolerance=1e-6,
        )
        assert count == solution.iterations
        assert abs(q[:2, :2] - solution.q).max() < 1e-12
        assert not q[1:].any()


def test_a_lane_depends_on_nothing_beside_it():
    """Whatever the padding, the batch, the parameters of others and the order, bit for bit."""
    whole = iterate(batch(), Boltzmann(3.0), discount=0.98, deltas=DELTAS)
    for i in (7, 39):
        mdp = random_mdp([0, i])
        alone = iterate(
            Batch.of([mdp], mdp.n_states, mdp.n_actions),
            Boltzmann(3.0),
            discount=0.98,
            deltas=DELTAS,
        )
        assert (alone.iterations[:, 0] == whole.iterations[:, i]).all()
        assert (alone.q[0] == whole.q[i, : mdp.n_states, : mdp.n_actions]).all()
    lanes = np.tile(np.arange(40)[::-1], 8)
    beta = np.repeat([3.0, 0.5, 50.0, 3.0, 1.0, 2.0, 4.0, 3.0], 40)
    discount = np.repeat([0.98, 0.9, 0.95, 0.98, 0.5, 0.99, 0.9, 0.98], 40)
    many = iterate(batch(), Boltzmann(beta), discount=discount, deltas=DELTAS, lanes=lanes)
    for start in (0, 120, 280):
        part = slice(start, start + 40)
        assert (many.iterations[:, part] == whole.iterations[:, ::-1]).all()
        assert (many.q[part] == whole.q[::-1]).all()


def test_the_limit_and_the_flag():
    before = jax.config.jax_enable_x64
    run = iterate(batch(), Mellowmax(3.0), discount=0.98, deltas=[1e-2, 1e-4, 1e-9], limit=100)
    assert (run.iterations[0] > 0).any()
    assert (run.iterations[-1] == 0).all()
    assert run.iterations.max() <= 100
    assert run.q.dtype == np.float64
    assert jax.config.jax_enable_x64 == before
    with pytest.raises(ValueError, match="descending order, got"):
        iterate(batch(), Max(), discount=0.9, deltas=[1e-3, 1e-2])


def test_the_mdps_are_those_of_the_generator():
    some = Batch.random(3, [5, 9])
    mdp = random_mdp([3, 9])
    transitions, rewards = mdp.to_numpy()
    s, a = some.sizes[1]
    assert (s, a) == (mdp.n_states, mdp.n_actions)
    assert (some.transitions[1, :s, :a, :s] == transitions).all()
    assert (some.rewards[1, :s, :a] == rewards).all()
    assert np.count_nonzero(some.transitions[1]) == np.count_nonzero(transitions)
    assert some.allowed[1].sum() == s * a


# Fixed points


def test_the_search_finds_what_fixed_points_finds():
    seeds = [71, 194, 205, 267, 0, 1, 2, 3]
    several = Batch.of([random_mdp(seed) for seed in seeds])
    roots = search(several, Boltzmann(3.0), discount=0.98)
    assert roots.counts().tolist() == [3, 3, 3, 3, 1, 1, 1, 1]
    assert (roots.degrees() == 1).all()
    assert roots.residual.max() < 1e-11
    for i, seed in enumerate(seeds[:5]):
        points = fixed_points(random_mdp(seed), Boltzmann(3.0))
        mine = roots.lane == i
        values = roots.value[mine][:, : len(points[0].value)]
        assert abs(values - np.array([point.value for point in points])).max() < 1e-8
        assert roots.index[mine].tolist() == [point.index for point in points]
        radii = [point.spectral_radius for point in points]
        assert roots.radius[mine] == pytest.approx(radii, abs=1e-6)


def test_the_search_takes_a_parameter_for_each_lane():
    mdps = Batch.of([random_mdp(205), random_mdp(0)])
    roots = search(mdps, Boltzmann(np.array([7.0, 3.0, 7.0])), discount=0.98, lanes=[0, 0, 1])
    assert roots.counts().tolist() == [5, 3, 1]
    alone = search(Batch.of([random_mdp(205)]), Boltzmann(7.0), discount=0.98)
    assert (alone.value == roots.value[:5, : alone.value.shape[1]]).all()


def test_mellowmax_has_one_fixed_point():
    roots = search(batch(), Mellowmax(7.0), discount=0.98)
    assert (roots.counts() == 1).all()
    assert (roots.radius < 1).all()
    run = iterate(batch(), Mellowmax(7.0), discount=0.98, deltas=[1e-2, 1e-4, 1e-8], limit=3000)
    values = Mellowmax(7.0).value(run.q[0, : batch().sizes[0, 0], : batch().sizes[0, 1]])
    assert abs(values - roots.value[0, : len(values)]).max() < 1e-6


# Items


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


def test_the_distance_is_that_of_its_points():
    nearest = made("fig7")[1]["nearest"]
    for (_, target, _), rows in nearest.groupby(["labels", "target", "delta"]):
        if target != "all":
            rows = rows[rows.operator == target]
        distance = abs(np.log(rows.iterations / rows.paper)).mean()
        assert rows.distance.iloc[0] == pytest.approx(distance, rel=1e-12)


def test_the_paper_itself_passes_figure_7():
    tables = dict(made("fig7")[1])
    nearest = tables["nearest"].assign(distance=0.0)
    tables["nearest"] = nearest.assign(iterations=nearest.paper)
    held = {claim.statement: claim.holds for claim in fig7.judge(tables).claims}
    assert all(held.values()), held


def test_figure_7_can_fail():
    tables = {name: table.assign(iterations=100.0) for name, table in made("fig7")[1].items()}
    tables["stated"].loc[tables["stated"].operator == "mm", "iterations"] = 200.0
    assert fig7.judge(tables).outcome is Outcome.NOT


def test_the_table_counts_what_sweeps_and_search_give():
    rates = made("table1")[1]["rates"]
    mdps = Batch.random(SMALL["table1"].seed, range(300))
    run = iterate(mdps, Boltzmann(3.0), discount=0.98, deltas=[1e-4])
    mine = rates[(rates.beta == 3.0) & (rates.discount == 0.98) & (rates.operator == "boltz")]
    mine = mine[(mine.delta == 1e-4) & (mine.sweeps == "in place")].iloc[0]
    counts = np.where(run.iterations[0] == 0, 1000, run.iterations[0])
    assert mine.mdps == 300
    assert mine.iterations == pytest.approx(counts.mean(), rel=1e-12)
    assert mine.error == pytest.approx(counts.std(ddof=1) / 300**0.5, rel=1e-9)
    assert mine.unterminated == (run.iterations == 0).sum()
    several = search(mdps, Boltzmann(3.0), discount=0.98).counts() > 1
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
