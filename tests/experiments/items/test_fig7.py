"""Figure 7 in miniature: its counts of sweeps against others, and a verdict that can fail."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from helpers.reproduced import CONFIGS, made
from mellowmax import Boltzmann, Max, Mellowmax
from mellowmax.experiments import Outcome
from mellowmax.experiments.items import fig7
from mellowmax.experiments.items.fig7.sweeps import SWEEPS, count_sweeps
from mellowmax.mdp import two_state
from mellowmax.planning import solve


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
        CONFIGS["fig7"], deltas=(-2.0, -4.0, -1.0), stated_deltas=(0.1, 0.01)
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
@pytest.mark.parametrize("beta", [16.51, pytest.param(30.0, marks=pytest.mark.release)])
def test_a_run_ends_when_its_values_are_near_their_limits(sweeps, beta):
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


def test_how_far_the_paper_s_max_is_from_its_boltz_is_said():
    """By the sweeps of section 3's formula: 185 for max against 153 for boltz at 60, read off."""
    q, away = 3.0, []
    for _ in range(185):
        q = max(0.12211 + 0.98 * 0.65867 * q, 0.03284 + 0.98 * 0.99075 * q)
        away.append(q - 0.03284 / (1 - 0.98 * 0.99075))
    share = away[184] / away[152]
    (said,) = fig7.judge(made("fig7")[1]).beside
    assert "32 sweeps fewer" in said
    assert f"32 of them by {share:.2f}" in said
    assert f"{1 / share:.1f} times as far away, or ran to {share:.2f} of the tolerance" in said


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
