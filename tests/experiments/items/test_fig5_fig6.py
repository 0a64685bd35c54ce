"""Figures 5 and 6: their fields against sweeps by hand, their figures, verdicts that can fail."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from helpers.reproduced import altered, made
from mellowmax import Mellowmax
from mellowmax.experiments import Outcome, style
from mellowmax.experiments.items import fig5, fig6, update_field

ITEMS = {"fig5": fig5, "fig6": fig6}
HOLD = {"fig5": [True, False, True, True], "fig6": [True, True, True]}
"""Which of their claims hold."""
FITTED = np.array([[0.12211, 0.65867], [0.03284, 0.99075]])


def swept(operator, q_b, q_a):
    """One sweep of `(Q(s1, b), Q(s1, a))` from the formula of section 3 alone."""
    weights = [math.exp(16.55 * q) for q in (q_a, q_b)]
    if operator == "boltzmann":
        value = (weights[0] * q_a + weights[1] * q_b) / sum(weights)
    else:
        value = math.log(sum(weights) / 2) / 16.55
    a, b = (reward + 0.98 * stay * value for reward, stay in FITTED)
    return b, a


@pytest.mark.parametrize(
    ("name", "right"),
    [("fig5", "A sweep on the segment between them"), ("fig6", "The one fixed point")],
)
def test_their_figures_have_their_axes(name, right, tmp_path):
    with style.styled():
        figure = ITEMS[name].plot(made(name)[1])["field"]
        figure.savefig(tmp_path / "figure.png", dpi=40)
    axes = [axes for axes in figure.axes if axes.get_title()]
    for one, title in zip(axes, ("GVI under", right), strict=True):
        assert one.get_title().startswith(title)
        assert one.get_ylabel()


def test_the_verdicts():
    """With the printed labels there is one fixed point, which figure 5 does not show."""
    assert fig6.judge(made("fig6")[1]).outcome is Outcome.REPRODUCED
    verdict = fig5.judge(made("fig5")[1])
    assert [claim.holds for claim in verdict.claims] == HOLD["fig5"]
    assert verdict.outcome is Outcome.PARTLY
    (only,) = made("fig5")[1]["printed_points"].itertuples()
    value = 0.0
    for _ in range(3000):
        q = [reward + 0.98 * stay * value for reward, stay in ((0.122, 0.66), (0.033, 0.99))]
        weights = [math.exp(16.55 * x) for x in q]
        value = sum(w * x for w, x in zip(weights, q, strict=True)) / sum(weights)
    assert (only.q_a, only.q_b) == pytest.approx(q)


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
        ("fig5", "field", lambda t: t.assign(farther=False), 2),
        ("fig5", "printed_field", lambda t: t.assign(farther=False), 2),
        ("fig5", "between", lambda t: t.assign(change=t["change"] * 10), 3),
        ("fig6", "points", lambda t: t.assign(q_a=t["q_a"] + 0.02), 0),
        ("fig6", "points", lambda t: pd.concat([t, t]), 0),
        ("fig6", "range", lambda t: t.assign(fixed_points=[3] + [1] * (len(t) - 1)), 1),
        ("fig6", "range", lambda t: t.assign(complete=False), 1),
        ("fig6", "field", lambda t: t.assign(after=t["before"] * 0.99), 2),
    ],
)
def test_figures_5_and_6_can_fail(name, table, change, claim):
    verdict = ITEMS[name].judge(altered(name, table, change))
    held = HOLD[name].copy()
    held[claim] = False
    assert [c.holds for c in verdict.claims] == held
    assert verdict.outcome == Outcome.PARTLY


def test_figure_5_would_be_reproduced_if_the_printed_labels_gave_its_marks():
    points = made("fig5")[1]["points"]
    verdict = fig5.judge(altered("fig5", "printed_points", lambda _: points))
    assert verdict.outcome is Outcome.REPRODUCED
