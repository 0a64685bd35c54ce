"""Figure 11 in miniature: its tables and figures, stopping within a cell, and its verdict."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest

from mellowmax import Mellowmax
from mellowmax.deep import DeepResult
from mellowmax.experiments import Outcome, paper, style
from mellowmax.experiments.item import LongItem, Stopped, Work
from mellowmax.experiments.items import fig11

SMALL = fig11.Config(betas=(3.0,), omegas=(8.0,), runs=2, episodes=100, runs_of_a_cell=1)


def made_up(learner, environment, *, episodes, runs, **options):
    """In the place of `train`: what each run earns depends on its number alone."""
    assert isinstance(learner.softmax, Mellowmax)
    assert learner.softmax.omega == 8.0
    returns = np.linspace(-200, 0, episodes) + np.array(runs)[:, None]
    return DeepResult(returns, np.full(returns.shape, 100), None, learner)


@pytest.fixture(scope="module")
def cells():
    """Boltzmann's are run; mellowmax's would need programs of their own, so they are made up."""
    specs = fig11.cells(SMALL)
    made = {name: fig11.run(spec) for name, spec in specs.items() if spec["policy"] == "boltzmann"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fig11, "train", made_up)
        return {name: made[name] if name in made else fig11.run(specs[name]) for name in specs}


@pytest.mark.release
def test_mellowmax_s_cells_are_run_too(cells):
    spec = fig11.cells(SMALL)["mellowmax-8-001"]
    table = fig11.run(spec)
    assert list(table.columns) == list(cells["mellowmax-8-001"].columns)
    assert not np.array_equal(table["mean_return"], cells["boltzmann-3-001"]["mean_return"])


@pytest.fixture(scope="module")
def tables(cells):
    return fig11.tables(SMALL, cells)


def test_a_cell_has_some_runs_of_a_setting(cells):
    assert set(cells) == {
        f"{setting}-{first:03d}" for setting in ("boltzmann-3", "mellowmax-8") for first in (0, 1)
    }
    assert sorted(cells["mellowmax-8-000"]["run"].unique()) == [0]
    assert sorted(cells["mellowmax-8-001"]["run"].unique()) == [1]


def test_the_tables_have_what_they_say(cells, tables):
    for name, table in tables.items():
        assert list(table.columns) == list(fig11.COLUMNS[name])
        assert not table.isna().any().any()
    assert len(tables["curves"]) == len(tables["means"]) == 2
    of_runs = pd.concat([cells[f"mellowmax-8-{first:03d}"] for first in (0, 1)])
    means = of_runs.groupby("run")["mean_return"].mean()
    row = tables["means"].query("policy == 'mellowmax'").iloc[0]
    assert row["mean_return"] == pytest.approx(np.mean(means))
    assert row["standard_error"] == pytest.approx(np.std(means, ddof=1) / 2**0.5)
    theirs = paper.read("fig11_lunar_lander_curves").query("policy == 'mm' & parameter == 8")
    assert row["paper"] == theirs["mean_return"].iloc[0]


def test_the_figures_can_be_drawn(tables):
    with style.styled():
        figures = fig11.plot(tables)
    assert set(figures) == {"curves", "means"}
    for figure in figures.values():
        figure.canvas.draw()
        for axes in figure.axes:
            assert axes.get_xlabel()
            assert axes.get_ylabel()


def test_a_cell_that_was_stopped_is_resumed_to_the_same_table(tmp_path, cells):
    assert isinstance(fig11, LongItem)
    spec = fig11.cells(SMALL)["boltzmann-3-000"]
    shares = []

    def stop(share):
        shares.append(share)
        return share > 0.3

    with pytest.raises(Stopped):
        fig11.resume(spec, Work(tmp_path, stop))
    later = []
    table = fig11.resume(spec, Work(tmp_path, lambda share: bool(later.append(share))))
    assert 0.3 < max(shares) < 0.5
    assert min(later) > 0.3  # what was done is not done again
    pd.testing.assert_frame_equal(table, cells["boltzmann-3-000"])


def test_a_run_solves_the_domain_by_100_consecutive_episodes(monkeypatch):
    returns = np.full((3, 300), 150.0, np.float32)
    returns[0, 120:220] = 201.0
    returns[1, 120:219] = 201.0  # with one more of 150, it is above 200 all the same
    returns[2, ::2] = 249.0
    played = type("Result", (), {"returns": returns, "lengths": np.ones_like(returns)})
    monkeypatch.setattr(fig11, "train", lambda *arguments, **options: played)
    config = dataclasses.replace(SMALL, runs=3, runs_of_a_cell=3, episodes=300)
    spec = fig11.cells(config)["boltzmann-3-000"]
    table = fig11.run(spec)
    assert table.groupby("run")["solved"].first().tolist() == [True, True, False]


def test_the_verdict_can_be_either(tables):
    verdict = fig11.judge(tables)
    assert "2 of 10 settings, 1 of 400 runs" not in verdict.summary
    assert "2 of 10 settings, 2 of 400 runs, 100 of 40000 episodes" in verdict.summary
    same = {
        name: table.assign(mean_return=table["paper"], standard_error=1.0)
        for name, table in tables.items()
        if name != "readings"
    } | {"readings": tables["readings"]}
    assert [claim.holds for claim in fig11.judge(same).claims] == [None] * 3
    curves = same["curves"]
    off = {**same, "curves": curves.assign(mean_return=curves["paper"] + 26)}
    assert [claim.holds for claim in fig11.judge(off).claims] == [False, False, None]
    for of_few_episodes in (same, off):
        assert fig11.judge(of_few_episodes).outcome is Outcome.UNDECIDED


def test_with_all_episodes_of_all_settings_mellowmax_must_be_ahead(tables):
    config = fig11.SCALES["paper"]
    pairs = [("boltzmann", x) for x in config.betas] + [("mellowmax", x) for x in config.omegas]
    means = pd.DataFrame(pairs, columns=["policy", "parameter"])
    means = means.assign(paper=0.0, mean_return=80.0, standard_error=3.0, runs=400, episodes=40_000)

    curves = tables["curves"].assign(mean_return=tables["curves"]["paper"])

    def judged(row, value, off=0.0):
        changed = means.copy()
        changed.loc[row, "mean_return"] = value
        moved = curves.assign(mean_return=curves["paper"] + off)
        return fig11.judge({**tables, "curves": moved, "means": changed})

    def last(row, value):
        return judged(row, value).claims[-1]

    assert last(8, 89.0).statement == "Mellowmax outperforms Boltzmann at its peak"
    assert last(8, 89.0).holds
    assert not last(8, 88.0).holds
    assert not last(2, 89.0).holds
    assert judged(8, 89.0).outcome is Outcome.REPRODUCED
    assert judged(8, 80.0, off=26.0).outcome is Outcome.NOT
    assert fig11.judge(tables).claims[-1].holds is None  # with less it is not judged


def test_what_is_run_is_the_reading_that_is_nearest():
    readings = fig11.distances(paper.read("fig11_readings"))
    config = fig11.SCALES["paper"]
    nearest = readings[readings["learning_rate"] == config.learning_rate].iloc[0]
    assert (nearest["discount"], nearest["weighing"]) == (config.discount, "whole return")
    assert not config.reward_to_go
    assert not config.normalise


def test_the_distance_of_a_reading_is_a_root_mean_square():
    curves = paper.read("fig11_lunar_lander_curves").query("episode < 3000")
    names = curves["policy"].map({"boltz": "boltzmann", "mm": "mellowmax"})
    off = np.where(np.arange(len(curves)) % 2, 3.0, -4.0)
    reading = curves.assign(policy=names, mean_return=curves["mean_return"] + off)
    reading = reading.assign(discount=1.0, weighing="w", learning_rate=0.1, runs=1)
    assert fig11.distances(reading)["distance"].tolist() == [pytest.approx(12.5**0.5)]
