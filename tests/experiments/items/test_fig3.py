"""Figure 3: its ratios against calculus, its figure, and a verdict that can fail."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.optimize

from helpers.reproduced import altered, made
from mellowmax import Boltzmann
from mellowmax.experiments import Outcome, style
from mellowmax.experiments.items import fig3


def test_its_figure_has_its_axes(tmp_path):
    with style.styled():
        figure = fig3.plot(made("fig3")[1])["pairs"]
        figure.savefig(tmp_path / "figure.png", dpi=40)
    axes = [axes for axes in figure.axes if axes.get_title()]
    for one, title in zip(axes, [*fig3.cells(fig3.Config()), "largest ratio found"], strict=True):
        assert one.get_title().startswith(title)
    assert all(one.get_ylabel() for one in axes[:-1])


def test_the_verdict():
    assert fig3.judge(made("fig3")[1]).outcome is Outcome.REPRODUCED


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
def test_the_verdict_can_fail(operator, largest, claim):
    def change(table):
        table.loc[table["operator"] == operator, "largest"] = largest
        return table

    verdict = fig3.judge(altered("fig3", "ratios", change))
    assert [c.holds for c in verdict.claims] == [k != claim for k in range(4)]
    assert verdict.outcome == Outcome.PARTLY
