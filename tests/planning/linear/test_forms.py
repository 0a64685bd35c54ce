"""Linear systems in main memory: the matrix is right, its solutions are, and each form is found."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

from mellowmax import EpsilonGreedy, LogSumExp, Max, Mellowmax, Softmax
from mellowmax.mdp import MDP, garnet
from mellowmax.planning import evaluate, solve
from mellowmax.planning.linear import form_of, forms
from mellowmax.planning.linear.forms import Banded, Dense


def banded_mdp(rng, n=14, discount=0.99, ends=True):
    """At most 2 down and 3 up; duplicates, ends, forbidden actions, a terminal state."""
    steps = rng.integers(-2, 4, size=(n, 3, 4))
    successors = np.clip(np.arange(n)[:, None, None] + steps, 0, n - 1)
    successors[0, 0, :2], successors[1, 0, :2] = [3, 3], [0, 0]  # duplicates
    successors[2, 1, 0], successors[2, 1, 1] = 5, 0  # as far as it goes
    terminal = np.zeros(n, bool)
    if ends:
        successors[4, 2, 3] = n
        terminal[7] = True
    probabilities = rng.dirichlet(np.ones(4), (n, 3))
    probabilities[3, 1] = [0.5, 0.5, 0.0, 0.0]
    allowed = rng.random((n, 3)) < 0.8
    allowed[~allowed.any(1), 0] = True
    allowed[2] = True
    rewards = rng.normal(size=(n, 3))
    return MDP(successors, probabilities, rewards, discount, allowed=allowed, terminal=terminal)


@pytest.fixture
def no_state_is_few(monkeypatch):
    """Small models have the forms of large ones."""
    monkeypatch.setattr(forms, "FEW_STATES", 0)


def matrix_of(mdp, weights):
    """`I - J` from the arrays that an MDP gives away."""
    return np.eye(mdp.n_states) - mdp.discount * np.einsum("sa,sat->st", weights, mdp.to_numpy()[0])


def exactly(matrix, b):
    """The solution of a linear system in rational arithmetic."""
    rows = [[Fraction(x) for x in (*row, y)] for row, y in zip(matrix, b, strict=True)]
    for i in range(len(rows)):
        pivot = next(j for j in range(i, len(rows)) if rows[j][i])
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for j in range(len(rows)):
            if j != i and rows[j][i]:
                factor = rows[j][i]
                rows[j] = [x - factor * y for x, y in zip(rows[j], rows[i], strict=True)]
    return np.array([float(row[-1]) for row in rows])


@pytest.mark.parametrize("kind", ["dense arrays", "few states", "banded"])
@pytest.mark.parametrize("discount", [0.9, 0.999999])
def test_a_system_and_its_transpose_are_solved(kind, discount, rng, monkeypatch):
    mdp = banded_mdp(rng, discount=discount)
    if kind == "dense arrays":
        mdp = MDP(None, *mdp.to_numpy(), discount, mdp.allowed, mdp.terminal)
    if kind == "banded":
        monkeypatch.setattr(forms, "FEW_STATES", 0)
    form = form_of(mdp)
    assert isinstance(form, Banded if kind == "banded" else Dense)
    one_action = np.eye(3)[rng.integers(3, size=mdp.n_states)]
    for weights in (rng.dirichlet(np.ones(3), mdp.n_states), one_action, rng.normal(size=(14, 3))):
        matrix, b = matrix_of(mdp, weights), rng.normal(size=mdp.n_states)
        factors = form.factors(weights)
        for transposed in (False, True):
            expected = exactly(matrix.T if transposed else matrix, b)
            size = np.abs(expected).max() * np.linalg.cond(matrix)
            np.testing.assert_allclose(
                factors.solve(b, transposed), expected, rtol=0, atol=1e-14 * size
            )


def test_the_form_is_that_of_the_model(no_state_is_few, rng):
    mdp = banded_mdp(rng)
    form = form_of(mdp)
    assert (form.lower, form.upper) == (2, 3)
    assert form_of(mdp) is form  # it is made once
    assert "2 diagonals below the main one and 3 above" in form.words
    s = np.arange(100)
    back = np.stack([s, np.where(s > 50, 0, s)], 1)[:, None]  # 99 diagonals
    assert form_of(MDP(back, [[[0.9, 0.1]]] * 100, [[1]] * 100, 0.9)) is None
    assert form_of(MDP.from_arrays(np.full((3, 1, 3), 1 / 3), np.ones((3, 1)), 0.9)) is None


def test_up_to_some_states_the_matrix_is_dense():
    assert isinstance(form_of(garnet(400, 2, 3, 0)), Dense)
    assert form_of(garnet(401, 2, 3, 0)) is None


@pytest.mark.parametrize("discount", [0.0, 0.99, 0.999999])
@pytest.mark.parametrize("ends", [True, False])
def test_solutions_with_a_banded_matrix(discount, ends, no_state_is_few, rng):
    """They are within their bounds, and those with a dense matrix are the same."""
    mdp = banded_mdp(rng, discount=discount, ends=ends)
    per_state = EpsilonGreedy(rng.random(mdp.n_states))
    for softmax in (Max(), Mellowmax(3.0), Mellowmax(-2.0), LogSumExp(2.0), per_state):
        solution = solve(mdp, softmax, tolerance=1e-9, throw=False)
        assert solution.method == "newton"
        assert "banded" in solution.reason
        sweep = mdp.expected_rewards + discount * mdp.to_numpy()[0] @ solution.value
        left = np.abs(np.where(mdp.available, sweep - solution.q, 0.0)).max()
        assert left <= solution.residual + 1e-15 * np.abs(solution.value).max()
        policy = solution.policy
        bonus = np.where(mdp.terminal, 0.0, softmax.bonus(solution.q, where=mdp.allowed))
        earned = evaluate(policy, mdp, bonus=bonus)
        assert "banded" in earned.reason
        matrix = matrix_of(mdp, policy)
        expected = exactly(matrix, (policy * mdp.expected_rewards).sum(1) + bonus)
        assert np.abs(earned.value - expected).max() <= earned.error_bound
        np.testing.assert_allclose(
            earned.value, solution.value, atol=earned.error_bound + 2 * solution.error_bound
        )


@dataclasses.dataclass(frozen=True)
class Median(Softmax):
    """A non-expansion that is neither convex nor concave."""

    non_expansion = True

    def value(self, q, *, axis=-1, where=None):
        return np.median(q, axis=axis)

    def gradient(self, q, *, axis=-1, where=None):
        return 1.0 * (q == np.median(q, axis=axis, keepdims=True))

    policy = gradient

    def log_policy(self, q, *, axis=-1, where=None):
        return np.log(self.policy(q, axis=axis))


def test_steps_that_lead_away_are_followed_by_sweeps():
    """With Newton's method alone some of these go round in circles."""
    for seed in range(40):
        mdp = garnet(30, 3, 2, seed, discount=0.99)
        solution = solve(mdp, Median())
        assert solution.iterations <= 30
        expected = value_of_median(mdp)
        assert np.abs(solution.value - expected).max() <= solution.error_bound + 1e-10


def value_of_median(mdp):
    """By sweeps alone."""
    transitions, rewards = mdp.to_numpy()
    v = np.zeros(mdp.n_states)
    for _ in range(3000):
        v = np.median(rewards + mdp.discount * transitions @ v, axis=1)
    return v
