"""Bounds hold in models of every kind, discounted, with a horizon, and of the average reward.

A few states with all that a model can have: branches that lead to the same state, a state that
nothing leads to, one that is never left and pays, one that is terminal, ends of the episode,
actions that are not allowed, rewards by branch, and softmaxes with a parameter for each state. The
references are computed in extended precision, of 19 digits.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from mellowmax import EpsilonGreedy, LogSumExp, Max, Mellowmax
from mellowmax.mdp import MDP
from mellowmax.planning import solve

S, A, K, T = 5, 3, 4, 6
EXTENDED = np.longdouble
ALONE, STAYS, ENDS = 4, 3, 2
"""The states that nothing leads to, that is never left, and that is terminal."""
SAMPLES = [60, pytest.param(1000, marks=pytest.mark.release)]


def random_model(rng, discount, ends):
    successors = rng.integers(ALONE, size=(S, A, K))
    successors[..., 1] = successors[..., 0]
    successors[rng.random((S, A, K)) < 0.1] = S
    successors[STAYS] = STAYS
    weights = rng.integers(0, 5, (S, A, K)) * 10.0 ** -rng.integers(0, 4, (S, A, K))
    weights[..., 2] += 0.1
    allowed = rng.random((S, A)) < 0.7
    allowed[np.arange(S), rng.integers(A, size=S)] = True
    rewards = rng.normal(size=(S, A, K)) * 10.0 ** rng.integers(-3, 3)
    terminal = np.arange(S) == (ENDS if ends else S)
    chances = weights / weights.sum(-1, keepdims=True)
    return MDP(successors, chances, rewards, discount, allowed, terminal)


def random_softmax(rng, players=2):
    """With two players by turns, mellowmax is the one's maximum and the other's minimum."""
    by_state = 10 ** rng.uniform(-1, 2, S)
    return [
        Max(),
        EpsilonGreedy(rng.random(S)),
        Mellowmax(by_state * rng.choice([-1, 1], S if players == 2 else 1)),
        LogSumExp(by_state),
    ][rng.integers(4)]


def value_and_weights(softmax, q, allowed, terminal):
    """The operator and its gradient, written out in extended precision."""
    n = allowed.sum(1)
    best = np.where(allowed, q, -np.inf).max(1)
    greedy = allowed & (q == best[:, None])
    greedy = greedy / greedy.sum(1, keepdims=True).astype(EXTENDED)
    if isinstance(softmax, Max | EpsilonGreedy):
        epsilon = np.asarray(getattr(softmax, "epsilon", 0.0), EXTENDED)[..., None]
        weights = (1 - epsilon) * greedy + epsilon * allowed / n[:, None]
        value = (weights * np.where(allowed, q, 0)).sum(1)
    else:
        by = np.asarray(getattr(softmax, "omega", getattr(softmax, "beta", None)), EXTENDED)
        z = np.where(allowed, by[:, None] * q, -np.inf)
        top = z.max(1)
        exponentials = np.exp(z - top[:, None])
        total = exponentials.sum(1)
        weights = exponentials / total[:, None]
        count = n if isinstance(softmax, Mellowmax) else 1
        value = (top + np.log(total / EXTENDED(1) / count)) / by
    return np.where(terminal, 0, value), np.where(terminal[:, None], 0, weights)


def solved(matrix, right):
    """Gauss and Jordan's elimination, for LAPACK has no extended precision."""
    rows = np.concatenate([matrix, right[:, None]], 1).astype(EXTENDED)
    for i in range(len(rows)):
        pivot = i + int(abs(rows[i:, i]).argmax())
        rows[[i, pivot]] = rows[[pivot, i]]
        rows[i] /= rows[i, i]
        for j in range(len(rows)):
            if j != i:
                rows[j] -= rows[j, i] * rows[i]
    return rows[:, -1]


class Reference:
    """A model in extended precision."""

    def __init__(self, mdp):
        chances = mdp.probabilities.astype(EXTENDED)
        self.transitions = np.zeros((S, A, S + 1), EXTENDED)
        for s, a, k in np.ndindex(chances.shape):
            self.transitions[s, a, mdp.successors[s, a, k]] += chances[s, a, k]
        self.transitions = self.transitions[..., :S]
        self.rewards = (chances * mdp.rewards).sum(-1)
        self.discount, self.terminal = EXTENDED(mdp.discount), mdp.terminal
        self.allowed = np.ones((S, A), bool) if mdp.allowed is None else mdp.allowed

    def action_values(self, v):
        return self.rewards + self.discount * self.transitions @ v

    def swept(self, softmax, v):
        return value_and_weights(softmax, self.action_values(v), self.allowed, self.terminal)

    def along(self, weights):
        return np.einsum("sa,sat->st", weights, self.transitions)

    def fixed_point(self, softmax, v):
        """By Newton's method, from values that are near."""
        v = v.astype(EXTENDED)
        for _ in range(100):
            value, weights = self.swept(softmax, v)
            step = solved(np.eye(S) - self.discount * self.along(weights), value - v)
            v = v + step
            if abs(step).max() <= 1e-11 * (1 + abs(v).max()):
                return v
        raise AssertionError("no fixed point was found")

    def earned(self, policy):
        """What a policy earns."""
        weights = np.where(self.terminal[:, None], 0, policy).astype(EXTENDED)
        return solved(
            np.eye(S) - self.discount * self.along(weights), (weights * self.rewards).sum(1)
        )

    def gain(self, softmax, h):
        """The gain, by Newton's method for it and the bias, which is 0 in state 0."""
        h = h.astype(EXTENDED)
        for _ in range(100):
            value, weights = self.swept(softmax, h)
            matrix = np.eye(S) - self.along(weights)
            matrix[:, 0] = 1  # in place of the bias of state 0: the gain
            step = solved(matrix, value - h)
            gain, step[0] = step[0], 0
            h = h + step
            if abs(step).max() <= 1e-11 * (1 + abs(h).max()):
                return gain
        raise AssertionError("no gain was found")

    def gain_of(self, policy):
        matrix = np.eye(S) - self.along(policy.astype(EXTENDED))
        matrix[:, 0] = 1
        return solved(matrix, (policy * self.rewards).sum(1))[0]


@pytest.mark.parametrize("samples", SAMPLES)
def test_no_discounted_value_is_further_off_than_its_bounds(samples):
    for seed in range(samples):
        rng = np.random.default_rng([0, seed])
        discount, tolerance = [0.0, 0.5, 0.99, 0.999999][seed % 4], 10 ** rng.uniform(-9, -2)
        mdp = random_model(rng, discount, seed % 3 == 0)
        softmax = random_softmax(rng, players=2 if discount < 0.9 else 1)
        options = {"tolerance": tolerance, "throw": False, "max_iterations": 200}
        solution = solve(mdp, softmax, **options)
        exact = Reference(mdp)
        value = exact.fixed_point(softmax, solution.value)
        q = exact.action_values(value)
        there = exact.allowed & ~mdp.terminal[:, None]
        assert abs(solution.value - value).max() <= solution.error_bound
        assert abs(solution.q - q)[there].max() <= solution.error_bound
        best = exact.fixed_point(Max(), np.maximum(value, 0))
        losses = [best - solution.value, best - exact.earned(solution.policy)]
        assert np.max(losses) <= solution.suboptimality_bound


@pytest.mark.parametrize("samples", SAMPLES)
def test_no_value_before_a_horizon_is_further_off_than_its_bounds(samples):
    """Models, discounts and softmaxes that change with time."""
    for seed in range(samples):
        rng = np.random.default_rng([1, seed])
        discounts = rng.choice([0.0, 0.9, 0.999999, 1.0], T)
        mdps = [random_model(rng, discount, seed % 3 == 0) for discount in discounts]
        softmaxes = [random_softmax(rng) for _ in range(T)]
        final = np.where(mdps[0].terminal, 0.0, rng.normal(size=S))
        solution = solve(mdps, softmaxes, horizon=T, final=final)
        value = best = earned = final.astype(EXTENDED)
        for t in reversed(range(T)):
            exact = Reference(mdps[t])
            q = exact.action_values(value)
            there = exact.allowed & ~mdps[t].terminal[:, None]
            assert abs(solution.q[t] - q)[there].max() <= solution.error_bound
            value, best = exact.swept(softmaxes[t], value)[0], exact.swept(Max(), best)[0]
            weights = np.where(mdps[t].terminal[:, None], 0, solution.policy[t])
            earned = (weights * exact.action_values(earned)).sum(1)
            assert abs(solution.value[t] - value).max() <= solution.error_bound
            assert max(best - solution.value[t]) <= solution.suboptimality_bound
            assert max(best - earned) <= solution.suboptimality_bound


@pytest.mark.parametrize("samples", SAMPLES)
def test_no_gain_is_further_off_than_its_bounds(samples):
    """From everywhere every policy comes to state 0, some only after thousands of steps."""
    for seed in range(samples):
        rng = np.random.default_rng([2, seed])
        mdp = random_model(rng, 0.9, False)
        successors = np.where(mdp.successors == S, 1, mdp.successors)
        successors[..., 3] = 0
        often = np.array([0, 0, 0, 10.0 ** -rng.integers(1, 5)])
        chances = mdp.probabilities + often
        chances = np.where(chances.sum(-1, keepdims=True) > 0, chances, 1.0)
        mdp = MDP(
            successors,
            chances / chances.sum(-1, keepdims=True),
            mdp.rewards + 0.01,
            0.9,
            mdp.allowed,
            np.zeros(S, bool),
        )
        softmax, tolerance = random_softmax(rng), 10 ** rng.uniform(-9, -2)
        options = {"tolerance": tolerance, "throw": False, "max_iterations": 5000}
        solution = solve(mdp, softmax, average=True, **options)
        exact = Reference(dataclasses.replace(mdp, discount=1.0))
        assert abs(solution.gain - exact.gain(softmax, solution.bias)) <= solution.error_bound
        best = exact.gain(Max(), solution.bias)
        loss = max(best - solution.gain, best - exact.gain_of(solution.policy))
        assert loss <= solution.suboptimality_bound
