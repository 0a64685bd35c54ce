"""Maximum likelihood against Rust's published estimates, known identification, and quadrature."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pytest

from mellowmax import Boltzmann, EpsilonGreedy, LogSumExp, Max, Mellowmax, Resmax
from mellowmax.inverse import (
    Demonstrations,
    Demonstrator,
    Linear,
    NotFittedError,
    Table,
    fit,
    log_likelihood,
    zurcher,
)
from mellowmax.inverse.rewards import names_of
from mellowmax.mdp import MDP, garnet, random_mdp, two_state
from mellowmax.planning import solve, trace_fixed_points

PUBLISHED = [
    # bins, groups, discount, RC, theta, log-likelihood, and the standard errors of RC and theta
    (90, (1, 2, 3), 0.9999, 11.7270, 4.8259, -2708.366, 2.602, 1.792),
    (90, (1, 2, 3), 0.0, 8.2985, 109.903, None, None, 26.163),
    (90, (4,), 0.9999, 10.0750, 2.2930, -3304.155, 1.582, 0.639),
    (90, (4,), 0.0, 7.6358, 71.5133, -3306.028, 0.7197, 13.778),
    (90, (1, 2, 3, 4), 0.9999, 9.7558, 2.6275, -6055.250, 1.227, 0.618),
    (90, (1, 2, 3, 4), 0.0, 7.3055, 70.2769, -6061.641, 0.5067, 10.750),
    (175, (1, 2, 3), 0.9999, 11.7257, 2.4569, -3993.991, 2.597, 0.9122),
    (175, (1, 2, 3), 0.0, 8.2969, 56.1657, -3996.353, 1.0477, 13.4205),
    (175, (4,), 0.9999, None, 1.1732, -4495.135, 1.581, 0.327),
    (175, (4,), 0.0, 7.6423, 36.6692, -4496.997, 0.7204, 7.0675),
    (175, (1, 2, 3, 4), 0.9999, 9.7687, 1.3428, -8607.889, 1.226, 0.315),
    (175, (1, 2, 3, 4), 0.0, 7.3113, 36.0175, -8614.238, 0.5073, 5.5145),
]
"""Rust (1987), tables IX and X, by way of the programs niqlow and econirl: the printed page was not
seen. None stands for the cells in which they differ from what every computation gives: a
log-likelihood of -2710.746 and a standard error of 1.0417 in the second row (here -2710.724 and
1.046), and a replacement cost of 10.896 in the ninth (here 10.0896)."""


QUICK = ((90, (4,), 0.9999), (90, (1, 2, 3, 4), 0.0))
"""The rows that are tried at every run: both discounts, few buses and all. Another size would be
compiled again."""
ROWS = [
    pytest.param(
        row,
        marks=[pytest.mark.release] if row[:3] not in QUICK else [],
        id=f"{row[0]} bins, groups {row[1]}, discount {row[2]:g}",
    )
    for row in PUBLISHED
]


@pytest.mark.parametrize("row", ROWS)
def test_rust_s_tables(row):
    bins, groups, discount, *expected = row
    buses = zurcher(groups, bins=bins, discount=discount)
    found = fit(buses.mdp, buses.demonstrations, buses.reward, LogSumExp(1.0))
    total = found.log_likelihood + buses.log_likelihood_of_increments
    ours = (*found.parameters, total, *buses.standard_errors(found.parameters))
    rounding = 0.5 * 10.0 ** -np.array([4, 4, 3, 3, 3])  # of what is printed
    for value, printed, half, most in zip(
        ours, expected, rounding, (2e-4, 2e-4, 1e-3, None, None), strict=True
    ):
        if printed is None:
            continue
        if most is None:  # an error, with three to six digits
            digits = len(str(printed).split(".")[1])
            assert abs(value - printed) <= 0.5 * 10.0**-digits + 1e-5 * printed
        else:
            most = max(most, 2e-6 * abs(printed) * (printed > 50))
            assert abs(value - printed) <= most + half


def test_mellowmax_plans_as_log_sum_exp_where_all_states_have_as_many_actions():
    buses = zurcher([4])
    rust = fit(buses.mdp, buses.demonstrations, buses.reward, LogSumExp(1.0))
    pair = Demonstrator(plans=Mellowmax(1.0), acts=Boltzmann(1.0))
    ours = fit(buses.mdp, buses.demonstrations, buses.reward, pair, method="fisher")
    assert np.allclose(ours.parameters, rust.parameters, rtol=1e-6)
    assert np.allclose(ours.standard_errors, rust.standard_errors, rtol=1e-5)
    # And not where they have not.
    mdp = with_fewer_actions()
    seen = Demonstrations.from_counts(np.where(mdp.available, 5.0, 0.0))
    features = Linear(np.random.default_rng(2).normal(size=(6, 3, 2)))
    both = [log_likelihood([1.0, 0.5], mdp, seen, features, who) for who in (LogSumExp(1.0), pair)]
    assert abs(both[0] - both[1]) > 1e-3


def with_fewer_actions():
    mdp = garnet(6, 3, 3, 1, discount=0.9)
    allowed = np.ones((6, 3), np.bool_)
    allowed[:3, 2] = False
    return MDP(mdp.successors, mdp.probabilities, np.zeros((6, 3)), 0.9, allowed=allowed)


def demonstrated(mdp, rewards, softmax, times=1000.0):
    """As many decisions in each state, in the proportions of the policy."""
    plain = MDP(mdp.successors, mdp.probabilities, rewards, mdp.discount, terminal=mdp.terminal)
    return Demonstrations.from_counts(times * solve(plain, softmax, tolerance=1e-13).policy)


def test_a_reward_is_recovered_from_exact_proportions():
    rng = np.random.default_rng(3)
    mdp = garnet(6, 3, 3, 0, discount=0.9)
    mdp = MDP(mdp.successors, mdp.probabilities, np.zeros((6, 3)), 0.9)
    features, truth = rng.normal(size=(6, 3, 2)), np.array([1.0, -0.7])
    softmax = LogSumExp(2.0)
    seen = demonstrated(mdp, features @ truth, softmax)
    reward = Linear(features, ["first", "second"])
    newton = fit(mdp, seen, reward, softmax)
    assert np.allclose(newton.parameters, truth, 0, 1e-7)
    assert newton.rank == 2
    for method in ("fisher", "bfgs"):
        assert np.allclose(
            fit(mdp, seen, reward, softmax, method=method).parameters, truth, 0, 1e-4
        )
    # In proportions of the model, the two kinds of information are equal.
    outer = newton.covariance("outer")
    assert np.allclose(newton.covariance("sandwich"), newton.covariance(), rtol=1e-5)
    assert np.allclose(outer, newton.covariance(), rtol=1e-5)

    def minus(parameters):
        return -log_likelihood(parameters, mdp, seen, reward, softmax)

    with jax.enable_x64(True):
        curvature = jax.hessian(minus)(np.asarray(truth))
    assert np.allclose(np.linalg.inv(curvature), newton.covariance(), rtol=1e-6)
    two = fit([mdp, mdp], [seen, seen], reward, softmax)
    assert np.allclose(two.parameters, truth, 0, 1e-7)
    assert np.allclose(two.covariance(), newton.covariance() / 2, rtol=1e-6)


def test_what_cannot_be_identified():
    mdp = garnet(6, 3, 3, 0, discount=0.9)
    mdp = MDP(mdp.successors, mdp.probabilities, np.zeros((6, 3)), 0.9)
    rng = np.random.default_rng(4)
    softmax = LogSumExp(1.0)
    of_states, of_pairs = rng.normal(size=6), rng.normal(size=(6, 3))
    seen = demonstrated(mdp, np.repeat(of_states[:, None], 3, 1), softmax)
    found = fit(mdp, seen, Table(), softmax)
    assert found.rank == 5
    assert np.isnan(found.standard_errors).all()  # each of them has a part in the constant
    assert found.reason == "no decision depends on a constant that is added to all rewards"
    assert np.allclose(np.ptp(found.parameters - of_states), 0, atol=1e-6)
    # Rewards of states and actions: all but shaping, 12 of 18 directions.
    seen = demonstrated(mdp, of_pairs, softmax)
    found = fit(mdp, seen, Table("state-action"), softmax)
    assert found.rank == 12
    assert "shaping" in found.reason
    # The scale of the reward against the parameter of the softmax, and a discount besides: where
    # the rewards of states are free, each of them is a direction more, and the constant is one.
    seen = demonstrated(mdp, np.repeat(of_states[:, None], 3, 1), softmax)
    found = fit(
        mdp, seen, Table(), lambda x: LogSumExp(x[6]), discount=lambda x: x[7],
        initial=[0.0] * 6 + [1.2, 0.8],
    )  # fmt: skip
    assert found.rank == 5
    assert found.reason == (
        "no decision depends on a constant that is added to all rewards, nor on the scale of the "
        "rewards, against the parameter of the softmax, nor on the discount, against the rewards"
    )
    assert found.names[6:] == ("parameter 6", "parameter 7")
    # A discount is told apart where the rewards have a form.
    features = rng.normal(size=(6, 3, 2))
    seen, reward = demonstrated(mdp, features @ [1.0, 0.5], softmax), Linear(features)
    by = fit(mdp, seen, reward, softmax, discount=lambda x: x[2], initial=[0.9, 0.4, 0.8])
    assert by.rank == 3
    assert np.allclose(by.parameters, [1.0, 0.5, 0.9], 0, 1e-6)
    assert np.isfinite(by.standard_errors).all()
    # A penalty makes a maximum, and does not tell anything.
    held = fit(mdp, seen, Table(), softmax, penalty=1.0)
    assert held.rank == 5
    assert np.isnan(held.standard_errors).all()
    assert np.isclose(held.parameters.sum(), 0, atol=1e-8)


def test_no_fit_is_silent():
    """Deterministic demonstrations, a plan that cycles, and too few steps."""
    mdp = garnet(6, 3, 3, 0, discount=0.9)
    mdp = MDP(mdp.successors, mdp.probabilities, np.zeros((6, 3)), 0.9)
    reward = Linear(np.random.default_rng(5).normal(size=(6, 3, 2)))
    truth = np.array([1.0, -0.7])
    seen = demonstrated(mdp, np.asarray(reward.features @ truth), Max())
    found = fit(mdp, seen, reward, LogSumExp(1.0), throw=False)
    assert found.status == "unbounded"
    assert np.isnan(found.standard_errors).all()
    with pytest.raises(NotFittedError, match="the likelihood rises for ever"):
        fit(mdp, seen, reward, LogSumExp(1.0))
    held = fit(mdp, seen, reward, LogSumExp(1.0), penalty=0.1)
    assert held.converged
    short = fit(mdp, seen, reward, LogSumExp(1.0), penalty=0.1, max_iterations=1, throw=False)
    assert short.status == "out of iterations"
    shown = []

    def watch(progress):
        shown.append(progress)
        return len(shown) == 2

    stopped = fit(mdp, seen, reward, LogSumExp(1.0), penalty=0.1, callback=watch, throw=False)
    assert stopped.status == "stopped"
    assert [one.iterations for one in shown] == [0, 1]
    assert shown[0].log_likelihood < shown[1].log_likelihood == stopped.log_likelihood
    # The square of a parameter has no slope at 0, and the likelihood rises from there.
    features = np.asarray(reward.features[..., :1])
    seen = demonstrated(mdp, features[..., 0], LogSumExp(1.0))
    saddle = fit(
        mdp, seen, lambda x: features[..., 0] * x[0] ** 2, LogSumExp(1.0), initial=[0.0],
        throw=False,
    )  # fmt: skip
    assert saddle.status == "saddle"
    assert np.isnan(saddle.standard_errors).all()
    # Where actions tie, the policy of resmax has a kink, at which its mean slope is 0.
    kink = fit(mdp, seen, Linear(features), Resmax(3.0), throw=False)
    assert kink.status == "saddle"


def test_a_fit_says_where_it_is_at_a_fold():
    """Small rewards, so that the sweeps come to the fold before there are too many of them."""
    mdp, scale = two_state(), 1000.0
    fold = trace_fixed_points(mdp, Boltzmann, (16.0, 17.0)).folds[1]
    small = dataclasses.replace(mdp, rewards=mdp.rewards / scale)
    seen = Demonstrations.from_counts([[3, 9], [0, 0]])
    reward = Linear([[[0.0], [1.0]], [[0.0], [0.0]]])
    found = fit(small, seen, reward, Boltzmann(fold.parameter * scale), throw=False)
    assert found.status == "at a fold"
    assert found.reason == "two fixed points of the plan meet at the parameters [0.]"
    assert np.isnan([found.log_likelihood, *found.standard_errors]).all()


def test_a_plan_that_does_not_converge():
    """Boltzmann's sweeps repeat themselves in this MDP, one of those of section 7.1."""
    mdp = random_mdp(58)
    transitions, rewards = mdp.to_numpy()
    mdp = MDP.from_arrays(transitions, np.zeros_like(rewards), mdp.discount)
    seen = Demonstrations.from_counts(np.ones(rewards.shape))
    reward = Linear(rewards[..., None], ["scale"])
    found = fit(mdp, seen, reward, Boltzmann(16.55), initial=1.0, throw=False)
    assert found.status == "inner solve did not converge"
    assert found.reason == "limit cycle of period 3 at the parameters [1.]"
    assert np.isnan([found.log_likelihood, *found.standard_errors]).all()


def test_wrong_arguments():
    mdp = two_state()
    seen = Demonstrations.from_arrays([0, 0], [0, 1])
    reward, softmax = Linear(np.eye(4).reshape(2, 2, 4)[:, :, :2]), LogSumExp(1.0)

    def error(kind, message, *arguments, **options):
        with pytest.raises(kind, match=message):
            fit(*arguments, **options)

    episodes = Demonstrations.from_episodes
    error(ValueError, "states below 2 and of at least 0, got 2 in step 1 of episode 1",
          mdp, episodes([[(0, 0)], [(0, 1), (2, 0)]]), reward, softmax)  # fmt: skip
    error(
        ValueError,
        "actions below 2 and of at least 0, got 3 in step 0",
        mdp,
        episodes([[(0, 3)]]),
        reward,
        softmax,
    )
    error(ValueError, "no decisions in terminal states, got one in state 1",
          mdp, episodes([[(0, 0), (1, 0)]]), reward, softmax)  # fmt: skip
    fewer = with_fewer_actions()
    error(ValueError, "that their states allow, got action 2 in state 0 in step 0 of episode 0",
          fewer, episodes([[(0, 2)]]), Table(), softmax)  # fmt: skip
    for sharp in (Max(), EpsilonGreedy(0.0)):
        error(ValueError, f"got {type(sharp).__name__}, which gives action 0 in state 0 none",
              mdp, seen, lambda x: x[:, None] + np.array([[0.0, 1.0]]), sharp,
              initial=[0.0, 0.0])  # fmt: skip
    error(ValueError, "whose policy moves with the action values, .* got EpsilonGreedy",
          mdp, seen, reward, EpsilonGreedy(0.1))  # fmt: skip
    error(
        ValueError,
        "features of 2 states, or also 2 actions",
        mdp,
        seen,
        Linear(np.ones((3, 1))),
        softmax,
    )
    twice = Linear(np.array([[[1.0, 2.0], [3.0, 6.0]], [[0.0, 0.0], [0.0, 0.0]]]), ["one", "two"])
    error(ValueError, "a mixture of others, got 'one', 'two'", mdp, seen, twice, softmax)
    empty = Linear(np.zeros((2, 2, 1)), ["none"])
    error(ValueError, "not all 0, got 'none'", mdp, seen, empty, softmax)
    endless = MDP.from_arrays(np.full((2, 2, 2), 0.5), np.zeros((2, 2)), 0.9)
    step = Linear(np.ones((2, 1)), ["step"])
    error(
        ValueError, "not constant where no episode ends, got 'step'", endless, seen, step, softmax
    )
    names_of("initial", (), step, [mdp], more=False)  # where one ends, it counts the steps
    error(ValueError, "`initial` must be a number or 2 numbers, got the shape \\(1,\\)",
          mdp, seen, reward, softmax, initial=[1.0])  # fmt: skip
    error(ValueError, "`discount` must be below 1 unless every policy ends",
          endless, seen, lambda x: x[:, None], softmax, discount=1.0, initial=[0, 0])  # fmt: skip
    error(ValueError, r"an array of the shape \(2, 2\) or \(2, 1\), got the shape \(3,\)",
          mdp, seen, lambda x: x, softmax, initial=[0, 0, 0])  # fmt: skip
    error(ValueError, "`discount` must be a function that gives a number, got the shape",
          mdp, seen, reward, softmax, discount=lambda x: x)  # fmt: skip
    error(TypeError, "`demonstrator` must be a Softmax, or a Demonstrator of two, got None",
          mdp, seen, reward, lambda x: None)  # fmt: skip
    error(ValueError, "`penalty` must be a finite number of at least 0, or 2 of them, got -1",
          mdp, seen, reward, softmax, penalty=-1)  # fmt: skip
    error(ValueError, "`reward` must be Linear or a function where MDPs are of different sizes",
          [mdp, fewer], [seen, seen], Table(), softmax)  # fmt: skip
    for wrong, got in (([1.0], r"the shape \(1,\)"), (1.0, "one"), ([1.0, np.nan], "nan")):
        with pytest.raises(ValueError, match=f"`parameters` must be .*, got {got}"):
            log_likelihood(wrong, mdp, seen, reward, softmax)
    error(
        ValueError,
        "`initial` must be finite, got nan in parameter 1",
        mdp,
        seen,
        reward,
        softmax,
        initial=[1.0, np.nan],
    )
    error(ValueError, "where `reward` is a function, got a number", mdp, seen, lambda x: x, softmax)
    error(ValueError, "those of each of 2 MDPs, got 1", [mdp, mdp], seen, reward, softmax)
    error(
        TypeError,
        "`demonstrator` must be a Softmax, or a Demonstrator of two",
        mdp,
        seen,
        reward,
        3,
    )
    with pytest.raises(ValueError, match="`states` must have at least one decision"):
        Demonstrations.from_arrays([], [])
    with pytest.raises(ValueError, match="at least one decision, got 0 everywhere"):
        Demonstrations.from_counts(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="`counts` must be at least 0, got -1"):
        Demonstrations.from_counts([[-1.0, 0.0]])


def test_only_the_sandwich_holds_where_decisions_depend_on_each_other():
    """Each episode takes one action four times over: a quarter of the evidence that it seems.

    A likelihood of independent decisions does not know. By hand, the sandwich over episodes has
    four times the variance of the Hessian.
    """
    mdp = MDP.from_arrays([[[1.0], [1.0]]], [[0.0, 0.0]], 0.5, terminal=[False])
    episodes = [[(0, action)] * 4 for action in (0, 1, 1, 0, 1, 1, 1)]
    seen = Demonstrations.from_episodes(episodes)
    estimate = fit(mdp, seen, Linear([[[0.0], [1.0]]]), LogSumExp(1.0))
    variance = {kind: float(estimate.covariance(kind)[0, 0]) for kind in ("hessian", "sandwich")}
    assert np.isclose(variance["hessian"], 1 / (28 * 5 / 7 * 2 / 7))
    assert np.isclose(variance["sandwich"], 4 * variance["hessian"])
