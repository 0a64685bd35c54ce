"""Figure 11 in miniature: its parts, tables and figures, stopping within a cell, its verdict.

Compiling the lander takes half a minute, so all but the release tests train on the two-state MDP.
"""

from __future__ import annotations

import dataclasses
import json
from types import SimpleNamespace

import jax
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from helpers.reproduced import check_in_short
from mellowmax import Max
from mellowmax.deep import DeepResult, Network, Policy
from mellowmax.environments import lunar_lander, two_state
from mellowmax.experiments import Outcome, style
from mellowmax.experiments.data import measured, paper
from mellowmax.experiments.item import LongItem, Stopped, Work
from mellowmax.experiments.items import fig11
from mellowmax.experiments.items.fig11 import comparisons, verdict
from mellowmax.experiments.items.fig11.parts import READINGS_OF_PARTS, settings, with_whole_grid
from mellowmax.experiments.items.fig11.readings import READING
from mellowmax.experiments.items.fig11.runs import KEPT_RUNS, keys_of, run_rows

QUICK = fig11.SCALES["quick"]
SMALL = dataclasses.replace(QUICK, runs=2, runs_of_a_row=1, episodes=200)
WHOLE = fig11.SCALES["paper"]


def made_up(table, runs, bins, shift=lambda row: 0.0):
    """Runs that were not trained: what each earns depends on its setting and its number alone."""
    returns = np.stack(
        [
            np.linspace(-200, 0, bins) + shift(row) + 10 * np.sin(np.arange(runs))[:, None]
            for row in table.itertuples()
        ]
    )
    grid = (len(table), runs)
    one = Network.init(jax.random.key(0), (2, 1))
    networks = jax.tree.map(lambda x: np.broadcast_to(x, (*grid, *x.shape)), one)
    solved = np.broadcast_to(np.arange(runs) % 2 * 500, grid)
    policies = Policy(networks, Max())
    return run_rows(table, DeepResult(returns, returns * 0 + 100, solved, policies))


@pytest.fixture(scope="module")
def tables():
    """All parts of the paper's scale with fewer runs, made up."""
    config = dataclasses.replace(WHOLE, runs=12, other_runs=6, runs_of_a_row=6)
    cells = {
        name: made_up(settings(config, name), 6, 80, lambda row: row.parameter)
        for name in fig11.cells(config)
    }
    return fig11.tables(config, cells)


@pytest.fixture(scope="module", autouse=True)
def another_environment():
    """Two states in place of the lander."""
    params = two_state.params()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fig11, "lunar_lander", SimpleNamespace(params=lambda height: params))
        yield


@pytest.fixture(scope="module")
def cell(another_environment):
    return fig11.run(fig11.cells(SMALL)["figure"])


@pytest.mark.release
def test_the_lander_is_what_is_trained(cell, monkeypatch):
    monkeypatch.setattr(fig11, "lunar_lander", lunar_lander)
    table = fig11.run(fig11.cells(SMALL)["figure"])
    assert list(table.columns) == list(cell.columns)
    lengths, weights = np.stack(table["lengths"]), np.stack(table["weights"])
    assert ((lengths > 40) & (lengths < 400)).all()
    assert weights.shape == (4, 8 * 16 + 16 + 16 * 4 + 4)


def test_the_paper_s_scale_is_the_figure_s_and_the_parts_beside_it():
    counts = {"figure": 4, "smaller-rate": 4, "finer-grid": 2}
    numbered = [f"{part}-{i}" for part, n in counts.items() for i in range(1, n + 1)]
    assert set(fig11.cells(WHOLE)) == {*numbered, "as-stated", "temperature-held", "today"}
    assert set(fig11.cells(QUICK)) == {"figure"}
    cells = {name: settings(WHOLE, name) for name in fig11.cells(WHOLE)}
    assert all(len(rows) * WHOLE.runs_of_a_row <= 1000 for rows in cells.values())
    assert (cells["figure-1"].groupby(["policy", "parameter"]).size() == 2).all()  # of all settings
    rows = pd.concat(cells.values())
    runs = rows.groupby("part").size() * WHOLE.runs_of_a_row
    assert runs["figure"] == runs["smaller rate"] == 10 * 400
    assert runs["as stated"] == runs["today"] == 10 * 50
    assert runs["temperature held"] == 5 * 50
    assert runs["finer grid"] == 30 * 50
    held = rows["part"].isin(["figure", "temperature held"])
    np.testing.assert_array_equal(rows["through_temperature"], ~held)
    assert set(rows.loc[rows["part"] == "temperature held", "policy"]) == {"mellowmax"}
    stated = rows["part"].isin(["figure", "as stated"])
    np.testing.assert_array_equal(rows["learning_rate"], np.where(stated, 0.005, 0.001))
    np.testing.assert_array_equal(rows["batch"], np.where(rows["part"] == "figure", 100, 10))


def test_the_finer_grid_shares_runs_with_the_smaller_rate(tables):
    """They are trained once: of 12 runs there, the first 6 are the finer grid's too."""
    runs = tables["runs"].query("part == 'finer grid'")
    grid = runs.groupby("policy")["parameter"].unique().map(sorted)
    assert grid["boltzmann"] == [0.5 * i for i in range(1, 21)]
    assert grid["mellowmax"] == [float(i) for i in range(1, 21)]
    assert (runs.groupby(["policy", "parameter"])["run"].apply(list).map(len) == 6).all()
    of_both = [
        tables["runs"].query(f"part == '{part}' & policy == 'mellowmax' & parameter == 8 & run < 6")
        for part in ("smaller rate", "finer grid")
    ]
    np.testing.assert_array_equal(*(rows["mean_return"] for rows in of_both))


def test_without_runs_of_its_own_there_is_no_finer_grid():
    rows = made_up(settings(WHOLE, "smaller-rate-1"), WHOLE.runs_of_a_row, 2)
    assert set(with_whole_grid(WHOLE, rows)["part"]) == {"smaller rate"}


def test_repeats_of_a_setting_have_other_random_numbers():
    table = settings(SMALL, "figure")
    keys = keys_of(table, 5)
    first, second = table.index[table["parameter"] == 3.0]
    assert keys[first] != keys[second]
    assert keys[first] == keys[table.index[table["parameter"] == 8.0][0]]
    assert keys[first] != keys_of(table, 6)[first]


def test_a_cell_has_a_row_for_each_run(cell):
    assert cell.groupby(["policy", "parameter"])["run"].apply(list).to_dict() == {
        ("boltzmann", 3.0): [0, 1],
        ("mellowmax", 8.0): [0, 1],
    }
    returns = np.stack(cell["returns"])
    assert returns.shape == (4, 1)
    assert len(np.unique(returns)) == 4  # whatever the setting or the repeat
    assert (np.stack(cell["lengths"]) >= 1).all()
    assert np.isfinite(np.stack(cell["weights"])).all()


def test_the_weights_of_the_first_runs_are_kept():
    table = settings(dataclasses.replace(QUICK, runs=24, runs_of_a_row=12), "figure")
    rows = made_up(table, 12, 2)
    assert sorted(rows.loc[rows["weights"].notna(), "run"]) == sorted(2 * [*range(KEPT_RUNS)])


def test_a_cell_that_was_stopped_is_resumed_to_the_same_table(tmp_path, cell):
    assert isinstance(fig11, LongItem)
    spec = fig11.cells(SMALL)["figure"]
    with pytest.raises(Stopped):
        fig11.resume(spec, Work(tmp_path, lambda share: share >= 0.5))
    [checkpoint] = tmp_path.glob("*.npz")
    settings_of_file = json.loads(str(np.load(checkpoint)["settings"]))
    name = "mellowmax.experiments.boltzmann_or_mellowmax.BoltzmannOrMellowmax"
    assert settings_of_file["softmax"] == name  # or a cell that was begun before could not go on
    later = []
    table = fig11.resume(spec, Work(tmp_path, lambda share: bool(later.append(share))))
    assert min(later) > 0.5  # what was done is not done again
    pd.testing.assert_frame_equal(table, cell)


def test_the_tables_have_what_they_say(tables):
    for name, table in tables.items():
        assert list(table.columns) == list(fig11.COLUMNS[name])
        assert not table.drop(columns="paper", errors="ignore").isna().any().any()
    curves, means = tables["curves"], tables["means"]
    assert len(means) == 10 + 10 + 10 + 10 + 5 + 40
    assert len(curves) == 80 * len(means)
    assert (curves["paper"].notna() == (curves["part"] == "figure")).all()
    of_runs = tables["runs"].query("part == 'figure' & policy == 'mellowmax' & parameter == 8")
    row = means.query("part == 'figure' & policy == 'mellowmax' & parameter == 8").iloc[0]
    assert row["runs"] == len(of_runs) == 12
    assert row["mean_return"] == pytest.approx(of_runs["mean_return"].mean())
    assert row["standard_error"] == pytest.approx(stats.sem(of_runs["mean_return"]))
    assert row["solved"] == 0.5
    theirs = paper("fig11_lunar_lander_curves").query("policy == 'mm' & parameter == 8")
    assert row["paper"] == pytest.approx(theirs["mean_return"].mean())
    curve = curves.query("part == 'figure' & policy == 'mellowmax' & parameter == 8")
    assert curve["mean_return"].mean() == pytest.approx(row["mean_return"], rel=1e-5)


def test_the_figures_can_be_drawn(tables):
    few = {
        name: table.query("part == 'figure'") if "part" in table else table
        for name, table in tables.items()
    }
    for given, names in ((tables, {"curves", "means", "others"}), (few, {"curves", "means"})):
        with style.styled():
            figures = fig11.plot(given)
        assert set(figures) == names
        for figure in figures.values():
            figure.canvas.draw()
            for axes in figure.axes:
                assert axes.get_xlabel()
                assert axes.get_ylabel()


def runs_of(returns):
    """The table of runs whose returns are given by policy and parameter."""
    return pd.concat(
        pd.DataFrame(
            {
                "part": "figure",
                "policy": policy,
                "parameter": parameter,
                "run": np.arange(len(values)),
                "mean_return": values,
                "solved": 0,
            }
        )
        for (policy, parameter), values in returns.items()
    )


def test_peaks_are_chosen_by_some_runs_and_compared_by_others():
    rng = np.random.default_rng(0)
    even, odd = np.tile([1.0, 0.0], 20), np.tile([0.0, 1.0], 20)
    noise = rng.normal(size=(4, 40))
    runs = runs_of(
        {
            ("boltzmann", 1.0): noise[0],
            ("boltzmann", 2.0): noise[1] + 50 * odd,  # the best of those that do not choose
            ("mellowmax", 3.0): noise[2] + 50 * even + 7.0,
            ("mellowmax", 4.0): noise[3] + 30 * odd,
        }
    )
    (row,) = comparisons.peaks(runs).to_dict("records")
    assert (row["mellowmax"], row["runs"]) == (3.0, 20)
    best = {1.0: noise[0, 1::2], 2.0: noise[1, 1::2] + 50}[row["boltzmann"]]
    test = stats.ttest_ind(noise[2, 1::2] + 7.0, best, equal_var=False)
    assert row["p_value"] == pytest.approx(test.pvalue)
    assert row["low"] < row["difference"] < row["high"]


@pytest.mark.release
def test_equal_policies_are_told_apart_as_rarely_as_the_rule_says():
    """Five settings each, all alike: 5 % of 200 are 10; more than 24 has a chance below 1e-4."""
    rng = np.random.default_rng(1)
    names = [(policy, float(i)) for policy in verdict.POLICIES for i in range(5)]
    found = [
        comparisons.peaks(runs_of({name: rng.normal(size=20) for name in names}))
        for _ in range(200)
    ]
    assert sum(table["p_value"].iloc[0] < verdict.SURE for table in found) <= 24


def test_what_the_gradient_through_the_temperature_is_worth(tables):
    """In the made-up runs it changes nothing."""
    table = tables["gradients"]
    assert table["omega"].tolist() == list(WHOLE.omegas)
    np.testing.assert_allclose(table["difference"], 0.0, atol=2.0)
    assert (table["p_value"] > 0.5).all()


def test_the_quick_scale_shows_what_is_kept_and_compares_some_runs_with_it(cell):
    tables = fig11.tables(SMALL, {"figure": cell})
    kept, made_by = measured("fig11_curves")
    pd.testing.assert_frame_equal(tables["curves"][list(kept)], kept)
    check = tables["check"].set_index("policy")
    assert check["parameter"].to_dict() == {"boltzmann": 3.0, "mellowmax": 8.0}
    assert (check["runs"] == 2).all()
    row = kept.query("part == 'figure' & parameter == 3 & episode == 250").iloc[0]
    ours = [returns[0] for returns in cell.query("parameter == 3")["returns"]]
    error = np.hypot(row["standard_error"], stats.sem(ours))
    off = (np.mean(ours) - row["mean_return"]) / error
    assert check.loc["boltzmann", "standard_errors"] == pytest.approx(off, rel=1e-5)
    assert tables["measured"]["device"].tolist() == [c["device"] for c in made_by["cells"]]
    verdict = fig11.judge(tables)
    check_in_short(verdict)
    assert "10 of 10 settings, 400 of 400 runs" in verdict.summary
    assert verdict.kept.startswith("400 runs of 40,000 episodes that were measured elsewhere")
    (origin,) = (text for text in verdict.beside if text.startswith("It was measured on"))
    assert made_by["cells"][0]["device"] in origin
    assert f"{check['standard_errors'].abs().max():.1f} standard errors" in origin


def test_what_counts_is_near_the_paper_s_curves_to_the_last_episode(tables):
    """Of four readings and two parts: one is too far, one too short, one was run as the figure."""
    reading = dict.fromkeys(READING, 0) | {"reading": "r", "temperature": "t", "fallback": "f"}

    def row(batch, part="compared", distance=29.0, episodes=40_000):
        return {**reading, "batch": batch, "part": part, "distance": distance, "episodes": episodes}

    rows = [row(1), row(2, distance=31.0), row(3, episodes=39_500), row(4), row(4, "figure")]
    readings = pd.DataFrame([*rows, row(5, "as stated", 75.0)])
    runs = tables["runs"].query("part == 'figure'")
    each = [runs.drop(columns="part").assign(**{**reading, "batch": i}) for i in (1, 2, 3, 4)]
    of_readings = pd.concat(each).assign(
        episodes=lambda x: np.where(x["batch"] == 3, 39_500, 40_000)
    )
    of_readings["mean_return"] += np.where(of_readings["policy"] == "mellowmax", 100.0, 0.0)
    found = fig11.counted(readings, of_readings, tables["runs"]).set_index("batch")
    assert found["part"].to_dict() == {1: "compared", 4: "figure"}
    assert found.loc[1, "difference"] == pytest.approx(found.loc[4, "difference"] + 100)
    assert (found["at_edge"] == "boltzmann and mellowmax").all()  # the made-up runs rise to the end
    corrected = np.minimum(1, sorted(found["p_value"]) * np.array([2, 1]))
    np.testing.assert_allclose(sorted(found["corrected"]), corrected)


def test_runs_that_are_not_whole_leave_it_undecided(tables):
    first = {**tables, "means": tables["means"].assign(episodes=7000)}
    curves = tables["curves"]
    same = {**first, "curves": curves.assign(mean_return=curves["paper"])}
    assert [claim.holds for claim in fig11.judge(same).claims] == [None] * 3
    assert "7000 of 40000 episodes" in fig11.judge(same).summary
    assert fig11.judge(same).kept == ""  # it was made here
    off = {**first, "curves": curves.assign(mean_return=curves["paper"] + 26)}
    assert [claim.holds for claim in fig11.judge(off).claims] == [False, False, None]
    assert fig11.judge(off).outcome is Outcome.UNDECIDED


def test_the_verdict_can_be_any(tables):
    def judged(difference, p_value, off=0.0):
        curves = tables["curves"]
        curves = curves.assign(mean_return=curves["paper"] + off)
        one = tables["peaks"].query("part == 'figure'").assign(distance=20.0)
        counted = pd.concat([one] * len(difference) or [one.iloc[:0]], ignore_index=True)
        counted = counted.assign(difference=difference, corrected=p_value)
        return fig11.judge({**tables, "curves": curves, "counted": counted})

    assert judged([9.0], [0.01]).claims[-1].statement == verdict.PEAK
    assert judged([9.0], [0.01]).outcome is Outcome.REPRODUCED
    assert judged([9.0], [0.06]).outcome is Outcome.PARTLY
    assert judged([-9.0], [0.01]).outcome is Outcome.PARTLY
    assert judged([9.0], [0.01], off=26.0).outcome is Outcome.PARTLY
    assert judged([-9.0], [0.01], off=26.0).outcome is Outcome.NOT
    mixed = judged([9.0, 9.0], [0.01, 0.06], off=26.0)
    assert mixed.claims[-1].ours.startswith("in 1 of 2 readings")
    assert mixed.claims[-1].holds == "mixed"
    assert mixed.outcome is Outcome.PARTLY
    assert judged([9.0, 9.0], [0.01, 0.06]).outcome is Outcome.PARTLY  # the other claims hold
    assert judged([], []).claims[-1].holds is None  # no reading is near enough


def distance(rows):
    """The distance of curves that have the paper's beside them."""
    return ((rows["mean_return"] - rows["paper"]) ** 2).mean() ** 0.5


def squared(row):
    """The squared distance of the expected curves: that of the means minus their scatter."""
    return row["distance"] ** 2 - row["scatter"] ** 2


def test_what_is_run_is_the_reading_that_is_nearest():
    """Of those that were trained to the end, by 40 runs each, or 400 if it is a part as well."""
    rows = fig11.distances(measured("fig11_readings")[0]).set_index(READING)
    assert (rows["runs"] == 40).all()
    run = tuple(READINGS_OF_PARTS["figure"].identity.values())
    whole = rows[rows["episodes"] == WHOLE.episodes]
    assert squared(whole).idxmin() == run
    part = measured("fig11_curves")[0].query("part == 'smaller rate'")
    of_part = part.assign(**READINGS_OF_PARTS["smaller rate"].identity)
    assert squared(whole.loc[run]) < squared(fig11.distances(of_part).iloc[0])


def test_a_reading_that_was_ended_early_is_farther_off_over_as_many_episodes():
    """Or it is a part, with more runs, to the end."""
    table = measured("fig11_readings")[0]
    rows = fig11.distances(table)
    figure, smaller = (READINGS_OF_PARTS[part].identity for part in ("figure", "smaller rate"))
    figure = table.merge(pd.DataFrame([figure]), on=READING)
    for _, row in rows[rows["episodes"] < WHOLE.episodes].iterrows():
        (own,) = fig11.distances(figure[figure["episode"] < row["episodes"]]).to_dict("records")
        assert row["distance"] > own["distance"] or dict(row[READING]) == smaller
    larger = rows[rows["batch"].isin([20, 50])]
    assert len(larger) == 8
    so_far = larger["distance"] ** 2 * larger["episodes"] / WHOLE.episodes
    assert (so_far > rows.loc[rows["batch"] == 100, "distance"].min() ** 2).all()


def test_a_reading_stands_beside_the_figure_over_as_many_episodes(tables):
    readings, figure = tables["readings"], tables["curves"].query("part == 'figure'")
    for _, row in readings.iterrows():
        assert row["figure"] == pytest.approx(distance(figure[figure["episode"] < row["episodes"]]))
    assert readings["episodes"].nunique() > 5
    assert (readings["distance"] / readings["figure"]).is_monotonic_increasing


def test_the_verdict_names_the_reading_that_was_run(tables):
    """With the distance of its first runs, and that of all its runs."""
    compared = tables["readings"].query("part == 'compared' & batch == 100 & temperature == 'held'")
    (row,) = compared.query("fallback == 'none'").to_dict("records")
    said = fig11.judge(tables).beside[-1]
    assert said.startswith("Of the readings, compared with 40 runs of each setting, the figure's")
    assert f"to the end: {row['distance']:.1f} off in the root mean square over 40,000" in said
    (part,) = tables["readings"].query("part == 'figure'").to_dict("records")
    assert f"figure {part['distance']:.1f} off" in said


def test_means_are_in_the_order_of_the_parameters(tables):
    parts = tables["means"].groupby(["part", "policy"])["parameter"]
    assert parts.size()["finer grid"].tolist() == [20, 20]
    assert all(parameters.is_monotonic_increasing for _, parameters in parts)


def test_the_parts_that_are_readings_stand_beside_them(tables):
    readings = tables["readings"].set_index("part")
    assert set(readings.index) == {verdict.COMPARED, "figure", "smaller rate", "as stated"}
    for part, rate, batch in (
        ("figure", 0.005, 100),
        ("smaller rate", 0.001, 10),
        ("as stated", 0.005, 10),
    ):
        row = readings.loc[part]
        assert (row["learning_rate"], row["batch"], row["episodes"]) == (rate, batch, 40_000)
    curves = tables["curves"][tables["curves"]["part"] == "figure"]
    assert readings.loc["figure", "distance"] == pytest.approx(distance(curves))


def test_the_verdict_says_what_the_temperature_s_gradient_is_worth(tables):
    rows = tables["gradients"].assign(through=[1, 2, 9, 3, 4], difference=7.0, low=5.0, high=9.0)
    worth = "adds 7.0 to the mean return at omega 7 (95 %: 5.0 to 9.0)."
    beside = fig11.judge({**tables, "gradients": rows}).beside
    assert f"At the smaller rate the gradient through the inverse temperature {worth}" in beside
    without = fig11.judge({**tables, "gradients": rows.iloc[:0]})
    assert not any("gradient through" in text for text in without.beside)


def test_the_distance_of_a_reading_is_a_root_mean_square():
    curves = paper("fig11_lunar_lander_curves").query("episode < 3000")
    names = curves["policy"].map({"boltz": "boltzmann", "mm": "mellowmax"})
    off = np.where(np.arange(len(curves)) % 2, 3.0, -4.0)
    reading = curves.assign(policy=names, mean_return=curves["mean_return"] + off)
    reading = reading.assign(reading="r", discount=1.0, learning_rate=0.1, batch=10)
    reading = reading.assign(temperature="moves", fallback="none", runs=1)
    errors = np.where(np.arange(len(curves)) % 2, 1.0, 2.0)
    (row,) = fig11.distances(reading.assign(standard_error=errors)).to_dict("records")
    assert row["distance"] == pytest.approx(12.5**0.5)
    assert row["scatter"] == pytest.approx(2.5**0.5)
    assert row["episodes"] == 3000
