"""Figure 2 in miniature: its tables, its figures, and that its verdict can fail."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.reproduced import CONFIGS, made
from mellowmax.experiments import Outcome, style
from mellowmax.experiments.items import fig2
from mellowmax.softmax import SOFTMAXES


def test_tables_and_figures():
    tables = made("fig2")[1]
    assert len(tables["runs"]) == 80
    assert len(tables["run"]) == 2 * (400 - 10)
    with style.styled():
        figures = fig2.plot(tables)
    for figure in figures.values():
        figure.canvas.draw()
        assert len(figure.axes) == 2
        assert all(axes.get_xlabel() and axes.get_ylabel() for axes in figure.axes)


def test_the_policies_of_a_cell_are_softmaxes():
    specs = fig2.cells(CONFIGS["fig2"]).values()
    assert {spec["policy"] for spec in specs} == set(fig2.POLICIES) <= set(SOFTMAXES)


def test_the_single_run_is_the_first_of_the_many():
    run, runs = (made("fig2")[1][name] for name in ("run", "runs"))
    for policy in fig2.POLICIES:
        b = run.loc[run["policy"] == policy, "q_b"].to_numpy()
        first = runs[(runs["policy"] == policy) & (runs["run"] == 0)].iloc[0]
        assert first["mean_b"] == pytest.approx(b[len(b) // 10 :].mean())
        assert first["range_b"] == pytest.approx(np.ptp(b[len(b) // 2 :]))


def test_crossings_are_counted_from_beyond_to_beyond():
    values = np.array([0.1, 0.5, 0.6, 0.4, 0.9, 0.5, 0.95, 0.2, 0.8, 0.3])
    assert fig2.crossings(values, 0.3, 0.7) == 3  # up, down, up
    assert fig2.crossings(np.full(5, 0.5), 0.3, 0.7) == 0


def test_the_verdict_can_fail():
    tables = made("fig2")[1]
    runs = tables["runs"]
    names = {"boltzmann": "mellowmax", "mellowmax": "boltzmann"}
    swapped = runs.assign(policy=runs["policy"].map(names))
    verdict = fig2.judge(tables | {"runs": swapped})
    assert verdict.outcome is Outcome.NOT


def test_the_paper_scale_is_the_paper_s():
    assert fig2.SCALES["paper"].episodes == 2000
