"""Figure 9 in miniature: its tables, its figures, and that its verdict can fail."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from helpers.reproduced import check_columns, check_in_short
from mellowmax import Boltzmann, Mellowmax, mellowmax, mellowmax_temperature
from mellowmax.experiments import Outcome, style
from mellowmax.experiments.data import paper
from mellowmax.experiments.items import fig9
from mellowmax.experiments.items.fig9.silent_fallback import SilentFallback
from mellowmax.mdp import MDP, multi_passenger_taxi
from mellowmax.planning import solve
from mellowmax.softmax import SOFTMAXES

SMALL = fig9.Config(
    (0.1,), (1.5, 3.0), (0.2, 0.6), 2_000, 4, fit_rates=(0.2, 0.6), fit_runs=4, fit_seed=9
)


@pytest.fixture(scope="module")
def tables():
    """Boltzmann's cells are run; the others would need programs of their own, so they are made up.

    `test_every_cell_of_runs` runs them.
    """
    cells = fig9.cells(SMALL)
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
    return fig9.tables(SMALL, frames)


@pytest.mark.release
def test_every_cell_of_runs():
    cells = fig9.cells(SMALL)
    frames = {name: fig9.run(spec) for name, spec in cells.items()}
    check_columns(fig9, fig9.tables(SMALL, frames))
    means = {name: frame["mean_reward"].to_numpy() for name, frame in frames.items()}
    assert len({mean.tobytes() for mean in means.values()}) == len(cells)


def test_the_policies_of_a_cell_are_softmaxes():
    names = {spec["policy"] for spec in fig9.cells(SMALL).values()} - {fig9.FALLBACK}
    assert names == set(fig9.POLICIES) <= set(SOFTMAXES)


def test_the_tables_and_figures(tables):
    check_columns(fig9, tables)
    assert not any(table.isna().any(axis=None) for table in tables.values())
    assert len(tables["rates"]) == 5 * 2
    best = tables["best"]
    assert len(best) == 5
    for row in best.itertuples():
        rates = tables["rates"].query(f"policy == '{row.policy}' and parameter == {row.parameter}")
        assert row.mean_reward == rates["mean_reward"].max()
    with style.styled():
        figures = fig9.plot(tables)
    for figure in figures.values():
        figure.canvas.draw()
        assert len(figure.axes) % 3 == 0
        assert all(axes.get_xlabel() for axes in figure.axes[-3:])
        assert all(axes.get_ylabel() for axes in figure.axes[::3])
    spec = fig9.cells(SMALL)["boltzmann-3"]
    pd.testing.assert_frame_equal(fig9.run(spec), fig9.run(spec))


def test_the_paper_s_curve_is_read_at_its_own_points(tables):
    best = tables["best"].set_index(["policy", "parameter"])["paper"]
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


def test_the_verdict_can_hold_and_fail(tables):
    best = tables["best"].assign(standard_error=0.01)
    held = fig9.judge(tables | {"best": best.assign(mean_reward=best["paper"])})
    assert [claim.holds for claim in held.claims] == [True] * 5
    worse = best["paper"].where(best["policy"] != "mellowmax", 0.01)
    failed = fig9.judge(tables | {"best": best.assign(mean_reward=worse)})
    assert failed.outcome is Outcome.PARTLY
    assert [claim.holds for claim in failed.claims] == [True, True, False, True, False]


def test_a_panel_is_judged_in_standard_errors_of_both_sides(tables):
    """A constant is as near to epsilon-greedy's curve as 0.03 everywhere, and is refused."""
    points = paper("fig9_taxi")
    theirs = points[points["policy"] == "eps"].drop_duplicates("parameter")
    rows = theirs.assign(policy="epsilon-greedy", paper=theirs["mean_reward"])
    rows = rows.assign(standard_error=0.001, planned=0.0, planned_converged=True)
    others = tables["best"].query("policy != 'epsilon-greedy'")
    rates = tables["rates"].assign(runs=1000)  # so that Student's distribution is normal

    def holds(mean_reward):
        best = pd.concat([rows.assign(mean_reward=mean_reward), others], ignore_index=True)
        return fig9.judge(tables | {"best": best, "rates": rates}).claims[0].holds

    flat = rows["paper"].mean()
    assert (abs(rows["paper"] - flat) < 0.03).all()
    assert not holds(flat)
    rng, count = np.random.default_rng(0), len(rows)
    again = [holds(rows["paper"] + 0.001 * rng.normal(0, 2**0.5, count)) for _ in range(60)]
    assert again.count(False) <= 14  # at most 3 in truth: more come up once in a million times


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


def test_a_search_with_a_wide_bracket_overflows_in_spread_rows():
    """Where `exp(-500 d)` does, for the action that is worst in the row."""
    q = np.random.default_rng(0).normal(size=(40, 4))
    lowest = mellowmax(q, 3.0) - q.min(1)
    with np.errstate(over="ignore"):
        fails = np.isinf(np.exp(500 * lowest))
    assert 5 < fails.sum() < 35
    policy = np.asarray(SilentFallback(3.0, -500.0, 500.0).policy(jnp.asarray(q)))
    right, wrong = Mellowmax(3.0).policy(q), Boltzmann(3.0).policy(q)
    np.testing.assert_allclose(policy, np.where(fails[:, None], wrong, right), atol=1e-6)


def test_the_hypothesis_is_named_so_and_fitted_on_other_seeds(tables):
    config = fig9.SCALES["paper"]
    assert config.fit_seed != config.seed
    assert set(config.shown) <= set(config.brackets)
    fit = tables["fit"]
    assert fit["distance"].is_monotonic_increasing
    assert len(tables["fallback"]) == 2 * 2
    verdict = fig9.judge(tables)
    check_in_short(verdict)
    (said,) = verdict.beside
    assert said.startswith("A hypothesis, not a result")
    rows = tables["fallback"].query("low == 0.5")
    distance = np.linalg.norm(rows["mean_reward"] - rows["paper"]) / len(rows) ** 0.5
    assert f"[0.5, 2], {rows['mean_reward'].max():.2f} at its best, {distance:.3f} off" in said
    none = {name: tables[name].iloc[:0] for name in ("fallback", "fit")}
    without = fig9.judge(tables | none)
    assert without.beside == ()
    assert without.claims == verdict.claims  # it changes nothing in the verdict


def test_the_paper_scale_is_the_paper_s():
    config = fig9.SCALES["paper"]
    assert (config.steps, config.runs) == (300_000, 25)
    assert len(config.epsilons) == 9
    assert len(config.inverse_temperatures) == 8
