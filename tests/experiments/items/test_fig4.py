"""Figure 4: its branches and folds against what is known, and a verdict that can fail."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from helpers.reproduced import altered, made
from mellowmax import Boltzmann
from mellowmax.experiments import Outcome, style
from mellowmax.experiments.items import fig4

FITTED = np.array([[0.12211, 0.65867], [0.03284, 0.99075]])


def test_its_figure_has_its_axes(tmp_path):
    with style.styled():
        figure = fig4.plot(made("fig4")[1])["branches"]
        figure.savefig(tmp_path / "figure.png", dpi=40)
    axes = [axes for axes in figure.axes if axes.get_title()]
    for one, title in zip(axes, ["Fixed points, action a", "Fixed points, action b"], strict=True):
        assert one.get_title().startswith(title)
    assert all(one.get_ylabel() for one in axes)


def test_the_verdict():
    assert fig4.judge(made("fig4")[1]).outcome is Outcome.PARTLY


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


def test_the_verdict_can_fail_and_hold():
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
