"""Many fits at once against one at a time, and how often their intervals hold the truth."""

from __future__ import annotations

import numpy as np
import pytest

from mellowmax import LogSumExp
from mellowmax.inverse import Demonstrations, Linear, fit, fit_each
from mellowmax.mdp import MDP, grid_world
from mellowmax.planning import simulate, solve

FITS, PATHS, STEPS = 500, 50, 20
FEATURES = np.random.default_rng(0).normal(size=(25, 4, 2))
TRUTH, SOFTMAX = np.array([1.0, -0.5]), LogSumExp(1.0)


def world(rewards):
    grid = grid_world((5, 5), slip=0.2, discount=0.9)
    return MDP(grid.successors, grid.probabilities, rewards, 0.9, terminal=grid.terminal)


@pytest.fixture(scope="module")
def counts():
    """`[FITS, 25, 4]`, what as many demonstrators of the true reward did."""
    plain, true = world(np.zeros((25, 4))), world(FEATURES @ TRUTH)
    seen = simulate(solve(true, SOFTMAX).policy, plain, STEPS, paths=FITS * PATHS, seed=0)
    actions, states = seen.actions, seen.states[:, :STEPS]
    which = np.repeat(np.arange(FITS), PATHS)[:, None] + np.zeros_like(actions)
    live = actions >= 0
    result = np.zeros((FITS, 25, 4))
    np.add.at(result, (which[live], states[live], actions[live]), 1)
    return result


@pytest.fixture(scope="module")
def estimates(counts):
    steps = []
    result = fit_each(
        world(np.zeros((25, 4))), counts, Linear(FEATURES), SOFTMAX,
        callback=lambda *numbers: steps.append(numbers),
    )  # fmt: skip
    assert steps[-1] == (FITS, FITS)
    return result


def test_intervals_cover(estimates):
    """95 % of them should hold the truth; of 500, 92 to 98 % do but for one time in 400."""
    assert estimates.converged.all()
    for kind in ("hessian", "outer", "sandwich"):
        errors = np.sqrt(np.diagonal(estimates.covariance(kind), axis1=1, axis2=2))
        held = (np.abs(estimates.parameters - TRUTH) < 1.96 * errors).mean(0)
        assert (np.abs(held - 0.95) <= 0.03).all(), kind


def test_each_is_what_fit_finds(counts, estimates):
    plain = world(np.zeros((25, 4)))
    for number in (0, FITS - 1):
        seen = Demonstrations.from_counts(counts[number])
        one = fit(plain, seen, Linear(FEATURES), SOFTMAX)
        errors = one.standard_errors
        assert np.allclose(estimates.parameters[number], one.parameters, 0, 1e-3 * errors.min())
        assert np.isclose(estimates.log_likelihood[number], one.log_likelihood, atol=1e-7)
        for kind in ("hessian", "outer", "sandwich"):
            assert np.allclose(estimates.covariance(kind)[number], one.covariance(kind), rtol=1e-4)


def test_a_likelihood_without_a_maximum_does_not_converge(counts):
    """Nobody errs in the first, and no decision is seen in the last but one."""
    best = np.zeros((25, 4))
    states = np.flatnonzero(~world(FEATURES @ TRUTH).terminal)
    values = solve(world(1e3 * FEATURES @ TRUTH), SOFTMAX).q
    best[states, values[states].argmax(1)] = 9.0
    several = np.stack([best, np.zeros((25, 4)), counts[0]])
    found = fit_each(world(np.zeros((25, 4))), several, Linear(FEATURES), SOFTMAX, block=128)
    assert found.converged.tolist() == [False, False, True]
    assert np.isnan(found.standard_errors[:2]).all()
    assert np.isfinite(found.standard_errors[2]).all()


def test_wrong_arguments(counts):
    plain = world(np.zeros((25, 4)))
    for wrong, said in (
        (counts[0], r"the shape \(N, 25, 4\) with N of at least 1, got \(25, 4\)"),
        (-counts[:1], "finite and at least 0, got -"),
        (np.ones((1, 25, 4)), "no decisions in terminal states"),
    ):
        with pytest.raises(ValueError, match=said):
            fit_each(plain, wrong, Linear(FEATURES), SOFTMAX)
