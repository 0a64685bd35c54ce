"""Figures 3 to 6: their tables against what is known, their figures, and verdicts that can fail."""

from __future__ import annotations

import functools
import json
import math

import numpy as np
import pandas as pd
import pytest
import scipy.optimize

from mellowmax import Boltzmann, Mellowmax
from mellowmax.experiments import style
from mellowmax.experiments.item import Outcome
from mellowmax.experiments.items import fig3, fig4, fig5, fig6, update_field

ITEMS = {"fig3": fig3, "fig4": fig4, "fig5": fig5, "fig6": fig6}
FITTED = np.array([[0.12211, 0.65867], [0.03284, 0.99075]])


@functools.cache
def made(name):
    """The cells and tables of an item at scale quick."""
    item, config = ITEMS[name], ITEMS[name].SCALES["quick"]
    cells = {cell: item.run(spec) for cell, spec in item.cells(config).items()}
    return cells, item.tables(config, cells)


def altered(name, table, change):
    """The tables with one of them changed."""
    tables = dict(made(name)[1])
    tables[table] = change(tables[table].copy())
    return tables


def swept(operator, q_b, q_a):
    """One sweep of `(Q(s1, b), Q(s1, a))` from the formula of section 3 alone."""
    weights = [math.exp(16.55 * q) for q in (q_a, q_b)]
    if operator == "boltzmann":
        value = (weights[0] * q_a + weights[1] * q_b) / sum(weights)
    else:
        value = math.log(sum(weights) / 2) / 16.55
    a, b = (reward + 0.98 * stay * value for reward, stay in FITTED)
    return b, a


@pytest.mark.parametrize("name", ITEMS)
def test_an_item_has_what_the_protocol_asks_for(name):
    item = ITEMS[name]
    texts = (item.TITLE, item.SOURCE, item.RULE, *item.DEVIATIONS)
    assert all(isinstance(text, str) and text for text in texts)
    assert isinstance(item.VERSION, int)
    assert set(item.SCALES) == {"quick", "paper"}
    for config in item.SCALES.values():
        for spec in item.cells(config).values():
            assert json.loads(json.dumps(spec)) == spec


@pytest.mark.parametrize("name", ITEMS)
def test_tables_have_the_columns_that_are_documented_and_no_holes(name):
    item, (_, tables) = ITEMS[name], made(name)
    assert set(tables) == set(item.COLUMNS)
    for table in tables:
        assert list(tables[table].columns) == list(item.COLUMNS[table])
        assert len(tables[table])
        assert not tables[table].isna().any(axis=None)


@pytest.mark.parametrize("name", ITEMS)
def test_a_cell_made_again_is_the_same(name):
    item = ITEMS[name]
    cells = item.cells(item.SCALES["quick"])
    cell = list(cells)[-1]
    again = item.run(json.loads(json.dumps(cells[cell])))
    pd.testing.assert_frame_equal(again, made(name)[0][cell], check_exact=True)


@pytest.mark.parametrize(
    ("name", "figure", "titles"),
    [
        ("fig3", "pairs", [*fig3.cells(fig3.Config()), "largest ratio found"]),
        ("fig4", "branches", ["Fixed points, action a", "Fixed points, action b"]),
        ("fig5", "field", ["GVI under", "A sweep on the segment between them"]),
        ("fig6", "field", ["GVI under", "The one fixed point"]),
    ],
)
def test_figures_have_their_axes(name, figure, titles, tmp_path):
    with style.styled():
        figures = ITEMS[name].plot(made(name)[1])
        assert list(figures) == [figure]
        figures[figure].savefig(tmp_path / "figure.png", dpi=40)
    axes = [axes for axes in figures[figure].axes if axes.get_title()]
    for one, title in zip(axes, titles, strict=True):
        assert one.get_title().startswith(title)
    assert all(one.get_ylabel() for one in axes if one.get_title() != "largest ratio found")


@pytest.mark.parametrize("name", ITEMS)
def test_the_verdicts(name):
    verdict = ITEMS[name].judge(made(name)[1])
    assert verdict.outcome == (Outcome.PARTLY if name == "fig4" else Outcome.REPRODUCED)
    assert all(claim.paper and claim.ours for claim in verdict.claims)
    assert verdict.summary.endswith(".")


def test_boltzmann_alone_expands_and_by_as_much_as_calculus_says():
    """Two actions: the largest sum of the gradient's absolute entries is u with u tanh(u) = 1."""
    ratios = made("fig3")[1]["ratios"].set_index("operator")
    limit = scipy.optimize.brentq(lambda u: u * math.tanh(u) - 1, 1, 2)
    assert limit - 2e-3 < ratios.loc["boltzmann", "largest"] < limit
    rest = ratios.drop("boltzmann")
    assert rest["largest"].to_numpy() == pytest.approx(1, abs=1e-6)
    assert (rest["largest"] <= 1 + 1e-9).all()
    assert (rest["above"] == 0).all()
    worst = ratios.loc["boltzmann"]
    x, y = worst[["x1", "x2"]].to_numpy(float), worst[["y1", "y2"]].to_numpy(float)
    moved = abs(Boltzmann(16.55).value(x) - Boltzmann(16.55).value(y))
    assert moved / abs(x - y).max() == pytest.approx(worst["largest"], rel=1e-12)


def test_the_distances_of_the_pairs_are_theirs():
    pairs = made("fig3")[1]["pairs"]
    assert (pairs.groupby("operator").size() == fig3.SCALES["quick"].pairs).all()
    x, y = pairs[["x1", "x2"]].to_numpy(), pairs[["y1", "y2"]].to_numpy()
    np.testing.assert_allclose(pairs["distance"], abs(x - y).max(1), rtol=1e-15)
    highest = pairs["operator"] == "max"
    moved = abs(x.max(1) - y.max(1))
    np.testing.assert_allclose(pairs["moved"][highest], moved[highest], rtol=1e-15)


@pytest.mark.parametrize(
    ("operator", "largest", "claim"),
    [
        ("max", 1.001, 0),
        ("mean", 1.1, 1),
        ("epsilon-greedy", 1 + 1e-8, 1),
        ("mellowmax", 2.0, 2),
        ("boltzmann", 1.0, 3),
    ],
)
def test_figure_3_can_fail(operator, largest, claim):
    def change(table):
        table.loc[table["operator"] == operator, "largest"] = largest
        return table

    verdict = fig3.judge(altered("fig3", "ratios", change))
    assert [c.holds for c in verdict.claims] == [k != claim for k in range(4)]
    assert verdict.outcome == Outcome.PARTLY


def test_the_folds_and_the_fixed_points_between_them():
    tables = made("fig4")[1]
    folds = tables["folds"].groupby("labels")["beta"].apply(list)
    assert folds["fitted"] == pytest.approx([16.49500678, 16.77093981], abs=1e-8)
    assert folds["printed"] == pytest.approx([16.8738, 17.0457], abs=1e-4)
    counts = tables["counts"]
    for labels, (low, high) in folds.items():
        rows = counts[counts["labels"] == labels]
        inside = (low < rows["beta"]) & (rows["beta"] < high)
        assert (rows["fixed_points"] == np.where(inside, 3, 1)).all()
        assert (rows["stable"] == np.where(inside, 2, 1)).all()
    here = counts[(counts["beta"] == 16.55) & (counts["labels"] == "fitted")]
    assert here["fixed_points"].tolist() == [3]


def test_branches_are_of_fixed_points():
    branches = made("fig4")[1]["branches"].query("labels == 'fitted'")
    q = branches[["q_a", "q_b"]].to_numpy()
    value = np.array(
        [Boltzmann(beta).value(row) for beta, row in zip(branches["beta"], q, strict=True)]
    )
    again = FITTED[:, 0] + 0.98 * FITTED[:, 1] * value[:, None]
    np.testing.assert_allclose(again, q, atol=1e-12)
    between = branches["beta"].between(16.5, 16.77)
    assert (~branches["stable"][between]).any()
    assert branches["stable"][branches["beta"] < 16.4].all()


def beta_of_a_fixed_point(action, q):
    """The one beta with this value of an action at a fixed point: a value gives the other one."""
    reward, stay = FITTED["ab".index(action)]
    value = (q - reward) / (0.98 * stay)
    a, b = FITTED[:, 0] + 0.98 * FITTED[:, 1] * value
    return math.log((value - a) / (b - value)) / (b - a)  # value = (a + e^(beta (b - a)) b) / ...


def test_every_point_of_figure_4_is_near_a_branch_at_a_beta_near_its_own():
    """By the closed form of the branch as a function of the value, up to its straight pieces."""
    distances = made("fig4")[1]["distances"]
    assert len(distances) == 157
    assert distances["distance"].max() <= 0.006
    for point in distances.iloc[::7].itertuples():
        off = point.distance + 2e-4
        near = point.paper + np.arange(-off, off, 1e-5)
        betas = np.array([beta_of_a_fixed_point(point.action, q) for q in near])
        assert abs(betas - point.beta).min() <= 0.005 + 1e-3
        inside = abs(near - point.paper) < point.distance - 2e-4
        assert (abs(betas[inside] - point.beta) > 0.005 - 1e-3).all()
    claims = fig4.judge(made("fig4")[1]).claims
    assert [claim.holds for claim in claims] == [True, True, False, True]
    assert "157 of them" in claims[3].ours


def test_the_distance_is_to_what_a_curve_is_near_the_beta_of_a_point():
    beta, q = np.array([0.0, 1.0, 0.5]), np.array([0.0, 1.0, 2.0])  # it folds at 1
    for at, value, distance in (
        (0.2, 0.2, 0.0),
        (0.2, 0.3, 0.1 - 0.005),
        (0.7, 0.9, 0.2 - 0.005),
        (0.7, 1.7, 0.1 - 2 * 0.005),  # the branch beyond the fold is the nearer one
        (1.003, 1.0, 0.0),
        (1.006, 1.0, math.inf),
    ):
        point = pd.Series({"beta": at, "paper": value})
        assert fig4._distance(beta, q, point) == pytest.approx(distance, abs=1e-12)


def test_figure_4_can_fail_and_hold():
    def off(table):
        return table.assign(distance=[0.007] + [0.0] * (len(table) - 1))

    def moved(table):
        return table.assign(beta=table["beta"] + 0.03)

    def gone(table):
        return table.assign(fixed_points=1, stable=1)

    def holds(tables):
        return [claim.holds for claim in fig4.judge(tables).claims]

    assert holds(altered("fig4", "distances", off)) == [True, True, False, False]
    assert holds(altered("fig4", "folds", moved)) == [True, False, False, True]
    assert holds(altered("fig4", "counts", gone)) == [False, True, False, True]
    beyond = altered("fig4", "folds", lambda table: table.assign(beta=table["beta"] + 1))
    assert holds(beyond) == [False, False, False, True]
    assert "by construction" in fig4.judge(beyond).summary


@pytest.mark.parametrize(("name", "operator"), [("fig5", "boltzmann"), ("fig6", "mellowmax")])
def test_the_field_is_of_sweeps(name, operator):
    tables = made(name)[1]
    points, field = tables["points"], tables["field"]
    for point in points.itertuples():
        assert swept(operator, point.q_b, point.q_a) == pytest.approx((point.q_b, point.q_a))
    for row in field.iloc[::37].itertuples():
        new = swept(operator, row.q_b, row.q_a)
        assert (row.q_b + row.change_b, row.q_a + row.change_a) == pytest.approx(new, abs=1e-12)
        before, after = (
            [max(abs(b - p.q_b), abs(a - p.q_a)) for p in points.itertuples()]
            for b, a in ((row.q_b, row.q_a), new)
        )
        assert (row.before, row.after) == pytest.approx((min(before), min(after)), abs=1e-12)
        assert row.farther == all(x > y for x, y in zip(after, before, strict=True))


def test_a_sweep_of_pairs_keeps_their_order():
    spec = fig6.cells(fig6.Config())["points"]
    pair = update_field.sweep(spec, np.array([[0.9, 0.1]]))[0]
    assert pair.tolist() == pytest.approx(swept("mellowmax", 0.9, 0.1), abs=1e-14)


def test_three_fixed_points_and_one():
    points = made("fig5")[1]["points"]
    assert points["stable"].tolist() == [True, False, True]
    assert points["q_b"].round(3).tolist() == [0.587, 0.777, 0.885]
    assert points["q_a"].round(3).tolist() == [0.491, 0.617, 0.688]
    (only,) = made("fig6")[1]["points"].itertuples()
    assert (only.q_b, only.q_a) == pytest.approx((0.4516, 0.4005), abs=1e-4)
    span = made("fig6")[1]["range"]
    assert (span["fixed_points"] == 1).all()
    assert span["complete"].all()
    assert (span["omega"].min(), span["omega"].max()) == (1, 100)


def test_the_bound_on_the_second_derivative_of_mellowmax_holds(rng):
    softmax, h = fig6._Unproved(16.55), 1e-4
    q, along = rng.normal(size=(2000, 3)) / 5, rng.random((2000, 3))
    after, here, before = (Mellowmax(16.55).value(q + s * h * along) for s in (1, 0, -1))
    second = abs(after - 2 * here + before) / h**2
    assert second.max() <= softmax.curvature(1.0)
    assert second.max() > 0.5 * softmax.curvature(1.0)


@pytest.mark.parametrize(
    ("name", "table", "change", "claim"),
    [
        ("fig5", "points", lambda t: t.assign(q_b=t["q_b"] + 0.02), 0),
        ("fig5", "points", lambda t: t.assign(stable=True), 0),
        ("fig5", "field", lambda t: t.assign(farther=False), 1),
        ("fig5", "between", lambda t: t.assign(change=t["change"] * 10), 2),
        ("fig6", "points", lambda t: t.assign(q_a=t["q_a"] + 0.02), 0),
        ("fig6", "points", lambda t: pd.concat([t, t]), 0),
        ("fig6", "range", lambda t: t.assign(fixed_points=[3] + [1] * (len(t) - 1)), 1),
        ("fig6", "range", lambda t: t.assign(complete=False), 1),
        ("fig6", "field", lambda t: t.assign(after=t["before"] * 0.99), 2),
    ],
)
def test_figures_5_and_6_can_fail(name, table, change, claim):
    verdict = ITEMS[name].judge(altered(name, table, change))
    assert [c.holds for c in verdict.claims] == [k != claim for k in range(3)]
    assert verdict.outcome == Outcome.PARTLY
