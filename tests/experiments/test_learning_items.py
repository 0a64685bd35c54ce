"""Figures 2 and 9 in miniature: their tables, their figures, and that their verdicts can fail."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from mellowmax import Boltzmann, Mellowmax, mellowmax_temperature
from mellowmax.experiments import Outcome, style
from mellowmax.experiments.items import fig2, fig9
from mellowmax.experiments.items.fig9.silent_fallback import SilentFallback
from mellowmax.mdp import MDP, multi_passenger_taxi
from mellowmax.planning import solve
from mellowmax.softmax import SOFTMAXES

SMALL2 = fig2.Config(episodes=400, runs=40)
SMALL9 = fig9.Config(
    (0.1,), (1.5, 3.0), (0.2, 0.6), 20_000, 4, fit_rates=(0.2, 0.6), fit_runs=4, fit_seed=9
)


@pytest.fixture(scope="module")
def tables2():
    cells = fig2.cells(SMALL2)
    return fig2.tables(SMALL2, {name: fig2.run(spec) for name, spec in cells.items()})


@pytest.fixture(scope="module")
def tables9():
    """Boltzmann's cells are run; the others would need programs of their own, so they are made up.

    `test_every_cell_of_figure_9_runs` runs them.
    """
    cells = fig9.cells(SMALL9)
    first = fig9.run(cells["boltzmann-3"])
    brackets = [[0.0, 1.0], [0.5, 2.0]]
    made_up = fig9.run(cells["fallback-3"] | {"steps": 1000, "brackets": brackets})
    frames = {
        name: made_up.assign(parameter=spec["parameter"])
        if spec["policy"] == fig9.FALLBACK
        else fig9.run(spec)
        if spec["policy"] == "boltzmann"
        else first.assign(policy=spec["policy"], parameter=spec["parameter"])
        for name, spec in cells.items()
    }
    return fig9.tables(SMALL9, frames)


@pytest.mark.release
def test_every_cell_of_figure_9_runs():
    cells = fig9.cells(SMALL9)
    frames = {name: fig9.run(spec) for name, spec in cells.items()}
    check_columns(fig9, fig9.tables(SMALL9, frames))
    means = {name: frame["mean_reward"].to_numpy() for name, frame in frames.items()}
    assert len({mean.tobytes() for mean in means.values()}) == len(cells)


def test_the_policies_of_a_cell_are_softmaxes():
    for item, config in ((fig2, SMALL2), (fig9, SMALL9)):
        specs = item.cells(config).values()
        names = {spec["policy"] for spec in specs} - {fig9.FALLBACK}
        assert names == set(item.POLICIES) <= set(SOFTMAXES)


def check_columns(item, tables):
    assert set(tables) == set(item.COLUMNS)
    for name, table in tables.items():
        assert list(table.columns) == list(item.COLUMNS[name])
        assert not table.isna().any().any()


def draw(item, tables):
    with style.styled():
        figures = item.plot(tables)
    for figure in figures.values():
        figure.canvas.draw()
        for axes in figure.axes:
            assert axes.get_xlabel()
            assert axes.get_ylabel()
    return figures


def test_the_tables_and_figures_of_figure_2(tables2):
    check_columns(fig2, tables2)
    assert len(tables2["runs"]) == 80
    assert len(tables2["run"]) == 2 * (400 - 10)
    assert {len(figure.axes) for figure in draw(fig2, tables2).values()} == {2}
    spec = fig2.cells(SMALL2)["mellowmax-run"]
    pd.testing.assert_frame_equal(fig2.run(spec), fig2.run(spec))


def test_the_single_run_is_the_first_of_the_many(tables2):
    run, runs = tables2["run"], tables2["runs"]
    for policy in fig2.POLICIES:
        b = run.loc[run["policy"] == policy, "q_b"].to_numpy()
        first = runs[(runs["policy"] == policy) & (runs["run"] == 0)].iloc[0]
        assert first["mean_b"] == pytest.approx(b[len(b) // 10 :].mean())
        assert first["range_b"] == pytest.approx(np.ptp(b[len(b) // 2 :]))


def test_crossings_are_counted_from_beyond_to_beyond():
    values = np.array([0.1, 0.5, 0.6, 0.4, 0.9, 0.5, 0.95, 0.2, 0.8, 0.3])
    assert fig2.crossings(values, 0.3, 0.7) == 3  # up, down, up
    assert fig2.crossings(np.full(5, 0.5), 0.3, 0.7) == 0


def test_the_verdict_on_figure_2_can_fail(tables2):
    runs = tables2["runs"]
    names = {"boltzmann": "mellowmax", "mellowmax": "boltzmann"}
    swapped = runs.assign(policy=runs["policy"].map(names))
    verdict = fig2.judge(tables2 | {"runs": swapped})
    assert verdict.outcome is Outcome.NOT


def test_the_tables_and_figures_of_figure_9(tables9):
    check_columns(fig9, tables9)
    assert len(tables9["rates"]) == 5 * 2
    best = tables9["best"]
    assert len(best) == 5
    for row in best.itertuples():
        rates = tables9["rates"].query(f"policy == '{row.policy}' and parameter == {row.parameter}")
        assert row.mean_reward == rates["mean_reward"].max()
    assert {len(figure.axes) for figure in draw(fig9, tables9).values()} == {3}
    spec = fig9.cells(SMALL9)["boltzmann-3"]
    pd.testing.assert_frame_equal(fig9.run(spec), fig9.run(spec))


def test_the_paper_s_curve_is_read_at_its_own_points(tables9):
    best = tables9["best"].set_index(["policy", "parameter"])["paper"]
    assert best["boltzmann", 1.5] == 0.3211
    assert best["mellowmax", 3.0] == 0.2898
    assert best["epsilon-greedy", 0.1] == 0.0511


def test_the_planned_reward_is_what_its_policy_earns():
    """The mean reward over the first quarter of a million steps, by the probabilities of states."""
    planned, converged = fig9.planned_reward(Boltzmann(3.0), 0.1)
    assert converged
    mdp = multi_passenger_taxi()
    policy = solve(mdp, Boltzmann(3.0)).policy
    transitions, rewards = mdp.to_numpy()
    chain, reward = np.einsum("sa,sat->st", policy, transitions), (policy * rewards).sum(1)
    chain[:, 0] += chain[:, mdp.terminal].sum(1)  # an end leads to the start
    chain[:, mdp.terminal] = 0.0
    share = np.eye(mdp.n_states)[0]  # of the first 1, 2, 4 ... steps, those in each state
    for _ in range(18):
        share, chain = (share + share @ chain) / 2, chain @ chain
    assert share.sum() == pytest.approx(1.0)
    assert share @ reward == pytest.approx(planned, rel=1e-3)


def test_the_average_reward_of_a_chain():
    """Two states that alternate and then end: rewards 1, 2 and 6 in turn."""
    steps = MDP([[[1]], [[2]], [[3]]], [[[1.0]]] * 3, [[1.0], [2.0], [6.0]], 0.9)
    assert fig9.average_reward(steps, np.ones((3, 1))) == pytest.approx(3.0)


def test_the_verdict_on_figure_9_can_hold_and_fail(tables9):
    best = tables9["best"].assign(standard_error=0.01)
    held = fig9.judge(tables9 | {"best": best.assign(mean_reward=best["paper"])})
    assert [claim.holds for claim in held.claims] == [True] * 5
    worse = best["paper"].where(best["policy"] != "mellowmax", 0.01)
    failed = fig9.judge(tables9 | {"best": best.assign(mean_reward=worse)})
    assert failed.outcome is Outcome.PARTLY
    assert [claim.holds for claim in failed.claims] == [True, True, False, True, False]


def test_a_silent_fallback_is_boltzmann_s_policy_at_omega_where_the_root_is_not_in_the_bracket():
    q = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
    root = np.array([mellowmax_temperature(row, 3.0) for row in q])
    low, high = np.quantile(root, [0.2, 0.7]).tolist()
    policy = np.asarray(SilentFallback(3.0, low, high).policy(jnp.asarray(q)))
    inside = (low <= root) & (root <= high)
    assert 5 < inside.sum() < 15
    right, wrong = Mellowmax(3.0).policy(q), Boltzmann(3.0).policy(q)
    np.testing.assert_allclose(policy, np.where(inside[:, None], right, wrong), atol=1e-6)
    logs = np.asarray(SilentFallback(3.0, low, high).log_policy(jnp.asarray(q)))
    np.testing.assert_allclose(np.exp(logs), policy, atol=1e-6)


def test_the_hypothesis_is_named_so_and_fitted_on_other_seeds(tables9):
    config = fig9.SCALES["paper"]
    assert config.fit_seed != config.seed
    assert config.bracket in config.brackets
    fit = tables9["fit"]
    assert fit["distance"].is_monotonic_increasing
    assert len(tables9["fallback"]) == 2 * 2
    verdict = fig9.judge(tables9)
    assert "A hypothesis, not a result" in verdict.summary
    none = {name: tables9[name].iloc[:0] for name in ("fallback", "fit")}
    without = fig9.judge(tables9 | none)
    assert "hypothesis" not in without.summary
    assert without.claims == verdict.claims  # it changes nothing in the verdict


def test_the_paper_scale_is_the_paper_s():
    config = fig9.SCALES["paper"]
    assert (config.steps, config.runs) == (300_000, 25)
    assert len(config.epsilons) == 9
    assert len(config.inverse_temperatures) == 8
    assert dataclasses.asdict(fig2.SCALES["paper"])["episodes"] == 2000
