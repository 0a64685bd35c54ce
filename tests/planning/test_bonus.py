"""Planning with softmaxes whose value is more than their policy earns, or less."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.regularised import Entropic
from mellowmax import Boltzmann, FreeEnergy, LogSumExp, Max, Mellowmax, Resmax, Sparsemax
from mellowmax.mdp import MDP, garnet, two_state
from mellowmax.planning import evaluate, fixed_points, solve, suboptimality
from mellowmax.planning.batch import Batch, find_fixed_points, value_iteration

PRIOR = np.array([0.6, 0.3, 0.1])
KINDS = {
    "log-sum-exp": LogSumExp,
    "free-energy": lambda beta: FreeEnergy(beta, prior=PRIOR),
    "sparsemax": Sparsemax,
    "resmax": Resmax,
    "boltzmann": Boltzmann,
    "mellowmax": lambda omega: Mellowmax(omega, prior=PRIOR),
}


def ending(rng):
    """Eight states, with ends, a terminal state, and actions that are not there."""
    allowed = rng.random((8, 3)) < 0.7
    allowed[np.arange(8), rng.integers(3, size=8)] = True
    allowed[0] = [True, False, True]
    successors = rng.integers(8, size=(8, 3, 4))
    successors[..., 3] = 8
    ends = rng.dirichlet([1.0, 1.0, 1.0, 10 ** rng.uniform(-3, 0)], (8, 3))
    rewards, discount = rng.normal(size=(8, 3)), float(rng.uniform(0.1, 0.99))
    terminal = np.arange(8) == 5
    return MDP(successors, ends, rewards, discount, allowed=allowed, terminal=terminal)


def earned(mdp, policy, bonus=0.0):
    """What a policy earns, with a bonus in each state, by NumPy's dense linear algebra."""
    transitions, rewards = mdp.to_numpy()
    along = np.einsum("sa,sat->st", policy, transitions)
    paid = np.where(mdp.terminal, 0.0, (policy * rewards).sum(1) + bonus)
    return np.linalg.solve(np.eye(mdp.n_states) - mdp.discount * along, paid)


def optimum(mdp, v):
    """The optimal state values, by policy iteration from anywhere."""
    transitions, rewards = mdp.to_numpy()
    for _ in range(100):
        q = np.where(mdp.available, rewards + mdp.discount * transitions @ v, -np.inf)
        best = np.eye(mdp.n_actions)[q.argmax(1)]
        v, before = earned(mdp, best), v
        if np.abs(v - before).max() < 1e-12:
            return v
    raise AssertionError


def loss(mdp, solution):
    return np.max(optimum(mdp, solution.value) - earned(mdp, solution.policy))


SAMPLES = [40, pytest.param(200, marks=pytest.mark.release)]
"""How many random MDPs: some at every run, and many before a release."""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sample", SAMPLES)
def test_no_policy_loses_more_than_its_bound(sample, kind, record_property):
    """A bound without the bonus is broken, as the next test shows."""
    rng = np.random.default_rng(len(kind))
    ratios = []
    for _ in range(sample):
        mdp, softmax = ending(rng), KINDS[kind](10 ** rng.uniform(-0.5, 1.5))
        method = "synchronous" if kind == "boltzmann" else "newton"
        solution = solve(mdp, softmax, method=method, throw=False, max_iterations=2000)
        ratios.append(loss(mdp, solution) / solution.suboptimality_bound)
        assert ratios[-1] <= 1, (mdp.discount, softmax)
        if kind != "boltzmann":  # at a fixed point
            most = suboptimality(softmax, 3, mdp.discount)
            assert solution.suboptimality_bound <= most * (1 + 1e-6) + 1e-6
    record_property(f"true loss / bound, {kind}", f"{np.quantile(ratios, [0.5, 1])}")
    assert max(ratios) > 0.2


class Liar(Entropic):
    """Log-sum-exp with the promise that its policy attains its value, which is wrong."""

    attained = True


def test_a_bound_without_the_bonus_is_broken():
    rng = np.random.default_rng(0)
    broken = 0
    for _ in range(20):
        mdp = ending(rng)
        solution = solve(mdp, Liar(10 ** rng.uniform(-0.5, 1.5)), method="newton")
        broken += loss(mdp, solution) > solution.suboptimality_bound
    assert broken > 10


def test_log_sum_exp_on_the_taxi():
    """Its policy loses 0.088 there: more than the 2.4e-6 that a bound without the bonus gives."""
    mdp, softmax = MDP.from_gymnasium("Taxi-v4", 0.99), Entropic(5.0)
    solution = solve(mdp, softmax)
    lost = loss(mdp, solution)
    assert lost == pytest.approx(0.0877, abs=1e-4)
    assert lost <= solution.suboptimality_bound <= suboptimality(softmax, 6, 0.99)
    assert solution.iterations <= 8  # by the derivative of its own value, not that of the maximum


def test_the_bound_is_attained():
    """Equal actions for ever: the value is log(n) / beta a step above what the policy earns."""
    mdp = MDP.from_arrays(np.ones((1, 4, 1)), [[1.0, 1.0, 1.0, 1.0]], 0.9, terminal=[False])
    solution = solve(mdp, Entropic(2.0), tolerance=1e-10)
    bonus = np.log(4) / 2 / 0.1
    np.testing.assert_allclose(solution.value, 10 + bonus, rtol=1e-9)
    assert solution.suboptimality_bound < 1e-6  # the rewards allow no loss at all
    worse = MDP.from_arrays(np.ones((1, 4, 1)), [[1.0, 1.0, 1.0, -1e3]], 0.9, terminal=[False])
    solution = solve(worse, Entropic(2.0), tolerance=1e-10)
    assert solution.suboptimality_bound == pytest.approx(np.log(3) / 2 / 0.1, rel=1e-6)
    assert suboptimality(Entropic(2.0), 4, 0.9) == pytest.approx(bonus)


def test_a_parameter_for_each_state():
    rng = np.random.default_rng(1)
    for _ in range(20):
        mdp, softmax = ending(rng), Entropic(10 ** rng.uniform(-0.5, 1.5, 8))
        solution = solve(mdp, softmax, method="newton")
        bonus = softmax.bonus(solution.q, where=mdp.allowed)
        np.testing.assert_allclose(
            solution.value, earned(mdp, solution.policy, bonus), atol=solution.error_bound
        )
        assert loss(mdp, solution) <= solution.suboptimality_bound


# Values at 16.55 of the two-state MDP of figure 1, found by a program of its own.
TWO_STATE = {
    "log-sum-exp": (LogSumExp(16.55), 1.1283534917),
    "free-energy": (FreeEnergy(16.55), 0.4315480482),
    "sparsemax": (Sparsemax(16.55), 1.1073825503),
    "resmax": (Resmax(16.55), 0.4531899672),
}


@pytest.mark.parametrize("kind", TWO_STATE)
def test_a_terminal_state_is_worth_nothing(kind):
    """Whatever bonus its equal action values would have: the episode has ended."""
    softmax, value = TWO_STATE[kind]
    (point,) = fixed_points(two_state(printed=True), softmax)
    np.testing.assert_allclose(point.value, [value, 0], rtol=2e-10)


@pytest.mark.parametrize("method", ["synchronous", "in-place"])
def test_nor_after_sweeps(method):
    softmax, value = TWO_STATE["log-sum-exp"]
    solution = solve(two_state(printed=True), softmax, method=method, tolerance=1e-13, throw=False)
    np.testing.assert_allclose(solution.value, [value, 0], rtol=2e-10)


def test_nor_in_a_batch():
    softmax, value = TWO_STATE["log-sum-exp"]
    mdp = two_state(printed=True)
    pair = Batch.of([mdp, ending(np.random.default_rng(3))])
    found = find_fixed_points(pair, LogSumExp(np.array([16.55, 3.0])))
    assert found.counts.tolist() == [1, 1]
    np.testing.assert_allclose(found.value[0, :2], [value, 0], rtol=1e-10)
    for method in ("in-place", "synchronous"):
        options = {"tolerances": [1e-12], "method": method}
        result = value_iteration(pair, LogSumExp(np.array([16.55, 3.0])), **options)
        np.testing.assert_allclose(softmax.value(result.q[0, 0, :2]), value, rtol=1e-9)
        again = LogSumExp(3.0).value(result.q[1])
        np.testing.assert_allclose(np.where(pair.terminal[1], 0, again), found.value[1], atol=1e-9)


class NotKnown(Entropic):
    """Log-sum-exp, of which nothing is known but how it is computed."""

    non_expansion = False

    def gap(self, n_actions):
        return np.inf

    def largest_bonus(self, n_actions):
        return np.inf

    def curvature(self, width):
        return self.beta / 4


class BonusKnown(NotKnown):
    """Log-sum-exp with a bound on its bonus, and on how far it is below the maximum."""

    gap, largest_bonus = Entropic.gap, Entropic.largest_bonus


@pytest.mark.parametrize("kind", [NotKnown, BonusKnown])
@pytest.mark.parametrize("weight", [1.0, 0.5, 0.05])
def test_the_search_is_wide_enough_for_a_bonus(kind, weight):
    """Also for one that is taken, and where the fixed point is beyond what any policy earns."""
    mdp = two_state(printed=True)
    (point,) = points = fixed_points(mdp, kind(2.0, weight))
    (only,) = fixed_points(mdp, Entropic(2.0, weight))  # a non-expansion's, without a box
    np.testing.assert_allclose(point.value, only.value, atol=1e-9)
    assert points.complete == (kind is BonusKnown)
    assert "bonus" in points.reason or points.complete
    other = garnet(5, 3, 2, seed=1, discount=0.9)
    (point,) = fixed_points(other, kind(2.0, weight), starts=8)
    (only,) = fixed_points(other, Entropic(2.0, weight))
    np.testing.assert_allclose(point.value, only.value, atol=1e-9)


def test_a_policy_is_evaluated_with_its_bonus():
    rng = np.random.default_rng(2)
    for _ in range(5):
        mdp = ending(rng)
        softmax = Entropic(3.0)
        solution = solve(mdp, softmax, tolerance=1e-12, method="newton")
        bonus = softmax.bonus(solution.q, where=mdp.allowed)
        same = evaluate(solution.policy, mdp, bonus=bonus, tolerance=1e-12)
        np.testing.assert_allclose(same.value, solution.value, atol=1e-9)
        bonus = rng.normal(size=8)
        policy = np.where(mdp.available, rng.random((8, 3)), mdp.terminal[:, None])
        policy /= policy.sum(1, keepdims=True)
        paid = evaluate(policy, mdp, bonus=bonus)
        np.testing.assert_allclose(
            paid.value, earned(mdp, policy, bonus), rtol=0, atol=paid.error_bound
        )
        assert loss(mdp, paid) <= paid.suboptimality_bound
    with pytest.raises(ValueError, match=r"`bonus` must have one number for each of the 8 states"):
        evaluate(policy, mdp, bonus=1.0)
    with pytest.raises(ValueError, match=r"`bonus` must be finite, got nan in state 2"):
        evaluate(policy, mdp, bonus=np.where(np.arange(8) == 2, np.nan, 0.0))


def test_a_finite_horizon_has_bonuses_too():
    mdp, softmax = ending(np.random.default_rng(7)), Entropic(2.0)
    solution = solve(mdp, softmax, horizon=4)
    assert not solution.value[:, mdp.terminal].any()
    bonus = softmax.bonus(solution.q, where=solution.allowed)
    same = evaluate(solution.policy, mdp, horizon=4, bonus=bonus)
    np.testing.assert_allclose(same.value, solution.value, atol=1e-12)
    lost = solve(mdp, Max(), horizon=4).value[0] - earned_in(4, mdp, solution.policy)
    assert 0.01 < lost.max() <= solution.suboptimality_bound
    with pytest.raises(ValueError, match=r"`bonus` must have 4 steps, got 3"):
        evaluate(solution.policy, mdp, horizon=4, bonus=bonus[1:])


def earned_in(horizon, mdp, policy):
    """What a policy of each step earns, by a step after the other."""
    transitions, rewards = mdp.to_numpy()
    v = np.zeros(mdp.n_states)
    for t in reversed(range(horizon)):
        v = (policy[t] * (rewards + mdp.discount * transitions @ v)).sum(1)
        v = np.where(mdp.terminal, 0.0, v)
    return v
