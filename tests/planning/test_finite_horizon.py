"""A finite horizon: exact values, policies by time, models that change with time, and bounds."""

from __future__ import annotations

import itertools
import re
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from mellowmax import Boltzmann, EpsilonGreedy, Max, Mellowmax
from mellowmax.mdp import MDP, two_state
from mellowmax.planning import evaluate, solve

S, A, T = 3, 2, 4
"""The shape of the random models, which share their compiled programs."""


def small(rng, discount=1.0):
    """Sparse, with rational numbers, an action that is not there, ends, and a terminal state."""
    weights = rng.integers(0, 4, (S, A, S))
    weights[..., 1] += 1
    successors = np.broadcast_to([0, 1, rng.integers(2, 4)], (S, A, S))
    allowed = np.ones((S, A), bool)
    allowed[0, rng.integers(A)] = False
    return MDP(
        successors,
        weights / weights.sum(-1, keepdims=True),
        rng.integers(-8, 9, (S, A)) / 4,
        discount,
        allowed=allowed,
        terminal=[False, False, True],
    )


ONE = small(np.random.default_rng(0))


def choices(mdp):
    """The actions of each state."""
    return [np.flatnonzero(row).tolist() for row in mdp.allowed]


def earned(mdps, rule, state, final):
    """What a rule `[t][s]` earns from a state, in exact arithmetic, by going forward."""
    reached, total, weight = {state: Fraction(1)}, Fraction(0), Fraction(1)
    for t, mdp in enumerate(mdps):
        after = {}
        for s, probability in reached.items():
            if mdp.terminal[s]:
                continue
            a = rule[t][s]
            total += weight * probability * Fraction(float(mdp.rewards[s, a]))
            for k, successor in enumerate(mdp.successors[s, a].tolist()):
                if successor < S:
                    p = probability * Fraction(float(mdp.probabilities[s, a, k]))
                    after[successor] = after.get(successor, Fraction(0)) + p
        reached = after
        weight *= Fraction(mdp.discount)
    return total + weight * sum(p * Fraction(float(final[s])) for s, p in reached.items())


@pytest.mark.parametrize("seed", range(3))
def test_the_maximum_is_that_of_every_policy_by_time(seed):
    """All deterministic policies are tried, in rational arithmetic."""
    rng = np.random.default_rng(seed)
    mdps = [small(rng, discount) for discount in (1.0, 0.5, 1.0)]
    final = np.array([0.25, -3.0, 0.0])
    solution = solve(mdps, Max(), horizon=3, final=final)
    rules = [list(itertools.product(*choices(mdp))) for mdp in mdps]
    for state in range(S):
        best = max(earned(mdps, rule, state, final) for rule in itertools.product(*rules))
        assert abs(solution.value[0, state] - float(best)) <= solution.error_bound + 1e-15
    greedy = solution.policy.argmax(-1)
    for state in range(S):
        ours = earned(mdps, greedy.tolist(), state, final)
        assert float(ours) == pytest.approx(solution.value[0, state], abs=1e-12)
    assert solution.suboptimality_bound < 1e-11
    assert not np.isfinite(solution.q[solution.allowed == 0]).any()


def test_mellowmax_to_fifty_digits():
    mdp = small(np.random.default_rng(5))
    omega = [0.5, 3.0, 1.0]
    solution = solve(mdp, Mellowmax(omega), horizon=T, final=1.5)
    with mpmath.workdps(50):
        v = [mpmath.mpf(1.5), mpmath.mpf(1.5), mpmath.mpf(0)]  # the last state is terminal
        for t in reversed(range(T)):
            before = []
            for s in range(S):
                q = [
                    mpmath.mpf(float(mdp.rewards[s, a]))
                    + mpmath.fsum(
                        mpmath.mpf(float(p)) * v[k]
                        for p, k in zip(mdp.probabilities[s, a], mdp.successors[s, a], strict=True)
                        if k < S
                    )
                    for a in choices(mdp)[s]
                ]
                mean = mpmath.fsum(mpmath.exp(omega[s] * one) for one in q) / len(q)
                before.append(mpmath.log(mean) / omega[s])
            v = before
            for exact, ours in zip(v, solution.value[t].tolist(), strict=True):
                assert abs(exact - mpmath.mpf(ours)) <= solution.error_bound
    assert solution.error_bound < 1e-11


def test_a_policy_earns_the_value_that_its_softmax_attains():
    """At every time, and with a model and a parameter that change with time."""
    rng = np.random.default_rng(1)
    mdps = [small(rng, 0.9) for _ in range(T)]
    softmaxes = [Mellowmax([w, 1.0, 2.0]) for w in (0.1, 1.0, 5.0, 20.0)]
    for softmax in (Max(), softmaxes, Boltzmann(2.0)):
        solution = solve(mdps, softmax, horizon=T, final=1.0)
        again = evaluate(solution.policy, mdps, horizon=T, final=1.0)
        np.testing.assert_allclose(again.value, solution.value, rtol=0, atol=1e-11)
    assert solution.error_bound is None  # of Boltzmann's softmax nothing is proved
    assert solution.policy.shape == (T, S, A)


@pytest.mark.parametrize("samples", [60, pytest.param(1000, marks=pytest.mark.release)])
def test_the_loss_bound_holds_and_is_not_far_off(samples):
    ratios = []
    for seed in range(samples):
        mdp = small(np.random.default_rng(seed), [1.0, 0.9, 0.0][seed % 3])
        softmax = [EpsilonGreedy(0.3), Mellowmax([2.0, 0.3, 1.0])][seed % 2]
        best = solve(mdp, Max(), horizon=T)
        solution = solve(mdp, softmax, horizon=T)
        loss = (best.value - solution.value).max()
        assert loss <= solution.suboptimality_bound
        ratios.append(loss / solution.suboptimality_bound)
    assert np.median(ratios) > 0.3


def test_the_rounding_of_all_steps_adds_up():
    one, many = (solve(ONE, Max(), horizon=n, final=100.0) for n in (1, 200))
    assert many.error_bound > 100 * one.error_bound


def test_a_long_horizon_comes_to_the_values_without_one():
    mdp = two_state()
    solution = solve(mdp, Mellowmax(16.55), horizon=1500)
    endless = solve(mdp, Mellowmax(16.55), tolerance=1e-13)
    np.testing.assert_allclose(solution.value[0], endless.value, rtol=0, atol=1e-10)
    np.testing.assert_allclose(solution.policy[0], endless.policy, rtol=0, atol=1e-8)


def test_the_secretary_problem():
    """Of 100 candidates the best is chosen with probability 0.37104, if 37 are let go by.

    State 0: the current one is the best so far; 1: it is not; 2: one was chosen. With `t` seen, the
    next is the best so far with probability `1 / (t + 1)`, and the best of these `t` is the best of
    all with probability `t / 100` (Gilbert and Mosteller 1966).
    """
    n = 100
    mdps = []
    for t in range(1, n + 1):
        next_best = 1 / (t + 1)
        on, chosen = [next_best, 1 - next_best, 0.0], [0.0, 0.0, 1.0]
        transitions = [[on, chosen]] * 2 + [[chosen, chosen]]
        rewards = [[0.0, t / n], [0.0, 0.0], [0.0, 0.0]]
        mdps.append(MDP.from_arrays(transitions, rewards, 1.0, terminal=[False, False, True]))
    solution = solve(mdps, Max(), horizon=n)
    assert solution.value[0, 0] == pytest.approx(0.37104, abs=5e-6)
    assert solution.policy[:, 0].argmax(1).tolist() == [0] * 37 + [1] * 63


def test_a_discount_of_1_needs_a_horizon_where_a_policy_never_ends():
    mdp = MDP.from_arrays([[[1.0]]], [[2.0]], 1.0)
    assert solve(mdp, Max(), horizon=7).value[:, 0].tolist() == [14, 12, 10, 8, 6, 4, 2, 0]
    with pytest.raises(ValueError, match="`discount` must be below 1 unless every policy ends"):
        solve(mdp, Max())


def test_a_solve_that_is_stopped_has_the_last_steps(monkeypatch):
    monkeypatch.setattr("mellowmax.planning.finite_horizon.SECONDS_BETWEEN_REPORTS", 0.0)
    mdp = MDP.from_arrays([[[1.0]]], [[2.0]], 1.0)
    seen = []

    def callback(progress):
        seen.append((progress.method, progress.iterations, progress.change))
        return len(seen) == 3

    solution = solve(mdp, Max(), horizon=7, callback=callback)
    assert seen == [("backward induction", k, 2.0) for k in (1, 2, 3)]
    assert solution.horizon == 3
    assert solution.value[:, 0].tolist() == [6.0, 4.0, 2.0, 0.0]
    assert solution.policy.shape == (3, 1, 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: solve(ONE, Max(), horizon=0),
         "`horizon` must be a whole number of at least 1, got 0"),
        (lambda: solve([ONE], Max(), horizon=2), "`mdp` must have one for each of 2 steps, got 1"),
        (lambda: solve([ONE, two_state()], Max(), horizon=2),
         "`mdp` must have 3 states and 2 actions at every step, got 2 and 2 at step 1"),
        (lambda: solve(ONE, [Max()] * 3, horizon=2),
         "`softmax` must have one for each of 2 steps, got 3"),
        (lambda: solve(ONE, Mellowmax([1.0, 2.0]), horizon=2),
         "`softmax` must have one parameter, or one for each of the 3 states, got the shape (2,)"),
        (lambda: solve(ONE, Max(), horizon=2, final=[1.0, 2.0]),
         "`final` must be a number or have the shape (3,), got (2,)"),
        (lambda: solve(ONE, Max(), horizon=2, final=[1.0, 2.0, 3.0]),
         "`final` must be 0 where terminal, got 3 in state 2"),
        (lambda: solve(ONE, Max(), horizon=2, final=np.nan),
         "`final` must be a finite number, got nan"),
        (lambda: solve(ONE, Max(), horizon=2, method="newton"),
         "`method` must not be given with a horizon, got 'newton'"),
        (lambda: solve(ONE, Max(), final=1.0),
         "`final` must not be given without a horizon, got 1.0"),
        (lambda: solve([ONE], Max()), "`mdp` must be an MDP, got [MDP("),
        (lambda: evaluate(np.full((3, S, A), 0.5), ONE, horizon=2),
         "`policy` must have 2 steps, got 3"),
    ],
)  # fmt: skip
def test_wrong_arguments(call, message):
    with pytest.raises((TypeError, ValueError), match=f"^{re.escape(message)}"):
        call()
