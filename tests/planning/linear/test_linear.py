"""Linear systems in main memory: the matrix is right, its solutions are, and each form is found."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

from mellowmax import EpsilonGreedy, LogSumExp, Max, Mellowmax, Softmax
from mellowmax.mdp import MDP, garnet
from mellowmax.planning import evaluate, solve
from mellowmax.planning.greedy import greedy_weights, maximum
from mellowmax.planning.linear import (
    SlowError,
    banded,
    direct_form,
    gauss_seidel,
    is_numbered,
    rule,
    swept_form,
)
from mellowmax.planning.linear.banded import Banded
from mellowmax.planning.linear.dense import Dense
from mellowmax.planning.linear.entries import entries_of
from mellowmax.planning.methods import auto, newton_in_memory


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
    monkeypatch.setattr(rule, "FEW_STATES", 0)


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


KINDS = ("dense arrays", "few states", "banded", "another order", "sweeps")


def shuffled(mdp, rng):
    """The same with the states in another order."""
    order = rng.permutation(mdp.n_states)
    rank = np.append(np.argsort(order), mdp.n_states)
    arrays = (mdp.probabilities[order], mdp.rewards[order], mdp.discount)
    return MDP(rank[mdp.successors[order]], *arrays, mdp.allowed[order], mdp.terminal[order])


def form_of_kind(kind, mdp, rng, monkeypatch):
    """An MDP like the one given, and the form to test."""
    if kind == "dense arrays":
        mdp = MDP(None, *mdp.to_numpy(), mdp.discount, mdp.allowed, mdp.terminal)
    if kind in ("banded", "another order"):
        monkeypatch.setattr(rule, "FEW_STATES", 0)
    if kind == "another order":
        mdp = shuffled(mdp, rng)
        monkeypatch.setattr(banded, "NARROW", 9)
        monkeypatch.setattr(banded, "WIDEST", 9)
    form = swept_form(mdp) if kind == "sweeps" else direct_form(mdp)
    kinds = {"banded": Banded, "another order": Banded, "sweeps": gauss_seidel.GaussSeidel}
    assert isinstance(form, kinds.get(kind, Dense))
    assert (getattr(form, "order", None) is not None) == (kind == "another order")
    return mdp, form


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("discount", [0.9, 0.999999])
def test_a_system_and_its_transpose_are_solved(kind, discount, rng, monkeypatch):
    mdp, form = form_of_kind(kind, banded_mdp(rng, discount=discount), rng, monkeypatch)
    one_action = np.eye(3)[rng.integers(3, size=mdp.n_states)]
    for weights in (rng.dirichlet(np.ones(3), mdp.n_states), one_action, rng.normal(size=(14, 3))):
        matrix, b = matrix_of(mdp, weights), rng.normal(size=mdp.n_states)
        if weights is one_action:
            weights = weights.argmax(1)
        factors = form.factors(weights)
        for transposed in (False, True):
            expected = exactly(matrix.T if transposed else matrix, b)
            size = np.abs(expected).max() * np.linalg.cond(matrix)
            x = factors.solve(b, transposed, **({"left": 1e-15} if kind == "sweeps" else {}))
            np.testing.assert_allclose(x, expected, rtol=0, atol=1e-13 * size)


def test_a_sweep_is_gauss_seidels(rng, monkeypatch):
    """Forwards and backwards, with SciPy's kernel and with SuperLU in its place."""
    mdp = banded_mdp(rng)
    matrix, b = matrix_of(mdp, np.full((14, 3), 1 / 3)), rng.normal(size=14)
    lower, upper, diagonal = np.tril(matrix), np.triu(matrix), np.diag(np.diag(matrix))
    expected = np.linalg.solve(upper, diagonal @ np.linalg.solve(lower, b))
    for kernel in (gauss_seidel.rows_in_place, lambda: None):
        monkeypatch.setattr(gauss_seidel, "rows_in_place", kernel)
        factors = swept_form(mdp).factors(np.full((14, 3), 1 / 3))
        swept = factors.up(factors.down(b * factors.inverse))
        np.testing.assert_allclose(swept, expected, atol=1e-13)


def test_branches_that_lead_to_the_same_state_are_one_entry():
    mdp = MDP(
        [[[1, 1, 0], [1, 2, 2]], [[0, 0, 0], [2, 2, 3]], [[2, 0, 3], [3, 3, 3]]],
        np.full((3, 2, 3), 1 / 3),
        np.ones((3, 2)),
        0.9,
    )
    matrix = swept_form(mdp).factors(np.full((3, 2), 0.5)).matrix
    assert matrix.nnz == 7
    np.testing.assert_allclose(np.eye(3) - matrix.toarray(), matrix_of(mdp, np.full((3, 2), 0.5)))


def test_the_entries_of_a_few_actions_are_those_of_their_branches(rng):
    """With equally many branches for each pair and not, with ties, and a state without a weight."""
    for mdp in (banded_mdp(rng), garnet(20, 3, 4, 0)):
        n = mdp.n_states
        weights = np.eye(3)[rng.integers(3, size=n)]
        weights[3], weights[5] = [0.5, 0.0, 0.5], 0.0
        few = entries_of(mdp).few(weights)
        matrix = np.zeros((n, n))
        np.add.at(matrix, (few.rows, few.columns), few.values)
        np.testing.assert_allclose(mdp.discount * matrix, np.eye(n) - matrix_of(mdp, weights))
        assert (np.diff(few.rows) >= 0).all()
        assert entries_of(mdp).few(np.full((n, 3), 1 / 3)) is None


@pytest.mark.parametrize("few_states", [0, 400])
@pytest.mark.parametrize("softmax", [Max(), Mellowmax(3.0)])
def test_a_model_whose_every_branch_ends(few_states, softmax, rng, monkeypatch):
    monkeypatch.setattr(rule, "FEW_STATES", few_states)
    rewards = rng.normal(size=(6, 3))
    mdp = MDP(np.full((6, 3, 2), 6), np.full((6, 3, 2), 0.5), rewards, 0.9)
    np.testing.assert_array_equal(solve(mdp, softmax).q, rewards)


@pytest.mark.parametrize("n_actions", [1, 3, 50])
def test_the_maximum_in_memory_is_that_of_rows(n_actions, rng):
    q = rng.integers(3, size=(60, n_actions)).astype(float)  # with ties
    allowed = rng.random(q.shape) < 0.7
    allowed[:, 0] |= ~allowed.any(1)
    for where in (None, allowed):
        np.testing.assert_array_equal(maximum(q, where), Max().value(q, where=where))
        weights = greedy_weights(q, where)
        assert weights.ndim == 2 or n_actions == 1
        shared = np.eye(n_actions)[weights] if weights.ndim == 1 else weights
        np.testing.assert_array_equal(shared, Max().gradient(q, where=where))
        apart = q + rng.random(q.shape)
        alone = np.eye(n_actions)[greedy_weights(apart, where)]
        np.testing.assert_array_equal(alone, Max().gradient(apart, where=where))


def shop(n, discount=0.99):
    """An inventory: at its edges the best order differs from that of the states beside."""
    stock, order, demand = np.arange(n)[:, None, None], np.arange(0, 9, 2)[:, None], np.arange(5)
    there = np.minimum(stock + order, n - 1)
    sold = np.minimum(there, demand)
    rewards = 4 * sold.mean(-1) - order[:, 0] - 2 * (order[:, 0] > 0) - 0.01 * np.arange(n)[:, None]
    return MDP(there - sold, np.full(sold.shape, 0.2), rewards, discount)


def test_sweeps_mend_the_edges_before_the_first_factorisation(monkeypatch):
    mdp = shop(1000)
    solution = solve(mdp, Max())
    monkeypatch.setattr(newton_in_memory, "MOST_SWEEPS", 0)
    without = solve(mdp, Max())
    assert solution.iterations <= 3 < without.iterations
    np.testing.assert_allclose(
        solution.q, without.q, rtol=0, atol=solution.error_bound + without.error_bound
    )


def test_bicgstab_does_not_go_astray():
    """It gives back the right side where it cannot do better."""
    zero, b = np.zeros((2, 2)), np.array([1.0, 2.0])
    x, done = gauss_seidel.bicgstab(lambda x: zero @ x, b, 1e-2, 10)
    assert not done
    assert np.array_equal(x, np.zeros(2)) or np.array_equal(x, b)
    rotation = np.array([[0.0, 1.0], [-1.0, 0.0]])  # on which it breaks down
    x, done = gauss_seidel.bicgstab(lambda x: rotation @ x, b, 1e-2, 10)
    assert np.abs(b - rotation @ x).max() <= np.abs(b - rotation @ b).max()
    form = swept_form(garnet(500, 3, 5, 0, discount=0.999)).if_nearly_exact()
    factors = form.factors(np.full((500, 3), 1 / 3))
    with pytest.raises(SlowError):
        factors.solve(np.sin(np.arange(500)))


# Which form for which model.


def test_the_form_is_that_of_the_model(no_state_is_few, rng):
    mdp = banded_mdp(rng)
    form = direct_form(mdp)
    assert (form.lower, form.upper, form.order) == (2, 3, None)
    assert direct_form(mdp) is form  # it is made once
    assert "2 diagonals below the main one and 3 above" in form.words
    assert direct_form(MDP.from_arrays(np.full((3, 1, 3), 1 / 3), np.ones((3, 1)), 0.9)) is None


def line(n, back=0.0, discount=0.95):
    """States that lead up by one or two, or with another action to the first one."""
    s = np.arange(n)
    up = np.stack([np.minimum(s + 1, n - 1), np.minimum(s + 2, n - 1)], -1)
    first = np.zeros((n, 2), int)
    rewards = np.stack([np.sin(s / 9), np.full(n, -back)], 1)
    actions = [up, first] if back else [up, up]
    return MDP(np.stack(actions, 1), np.full((n, 2, 2), 0.5), rewards, discount)


def square(m, discount=0.95):
    """A random walk on a square, with a choice of the direction that is likelier."""
    i, j = np.divmod(np.arange(m * m), m)
    near = [(np.maximum(i - 1, 0), j), (i, np.maximum(j - 1, 0))]
    near += [(np.minimum(i + 1, m - 1), j), (i, np.minimum(j + 1, m - 1))]
    successors = np.stack([a * m + b for a, b in near], -1)[:, None].repeat(2, 1)
    probabilities = np.broadcast_to([[0.4, 0.1, 0.4, 0.1], [0.1, 0.4, 0.1, 0.4]], (m * m, 2, 4))
    return MDP(successors, probabilities, np.stack([np.sin(i), np.cos(j)], 1), discount)


def test_a_wide_band_is_one_if_it_is_full():
    near = np.clip(np.arange(500)[:, None, None] + np.arange(-30, 31), 0, 499)
    full = MDP(near, np.full((500, 1, 61), 1 / 61), np.zeros((500, 1)), 0.9)
    assert (direct_form(full).lower, direct_form(full).upper) == (30, 30)
    hollow = MDP(near[..., ::30], np.full((500, 1, 3), 1 / 3), np.zeros((500, 1)), 0.9)
    assert direct_form(hollow) is None or direct_form(hollow).lower < 30


def test_numbers_at_random_give_no_band_and_the_order_is_found(rng):
    assert direct_form(square(50)) is None
    assert direct_form(line(500, back=1.0)) is None  # all lead to the first
    natural = line(500)
    assert direct_form(natural).order is None
    order = rng.permutation(500)
    rank = np.argsort(order)
    arrays = natural.probabilities[order], natural.rewards[order], 0.95
    mixed = MDP(rank[natural.successors[order]], *arrays)
    form = direct_form(mixed)
    assert form.order is not None
    assert form.lower + form.upper <= 8


def test_whether_numbers_have_a_meaning(rng):
    assert is_numbered(square(40))
    assert is_numbered(line(2000, back=1.0))
    assert not is_numbered(garnet(20_000, 5, 5, 0))


def test_up_to_some_states_the_matrix_is_dense():
    assert isinstance(direct_form(garnet(400, 2, 3, 0)), Dense)
    assert direct_form(garnet(401, 2, 3, 0)) is None


CHOICES = {
    "few states": (
        lambda: garnet(30, 2, 3, 0, discount=0.95),
        Max(),
        "newton",
        "small, with 30 states",
    ),
    "banded": (lambda: line(500), Mellowmax(3.0), "newton", "banded, with 0 diagonals below"),
    "a sweep is nearly exact": (
        lambda: line(500, back=1.0),
        Max(),
        "newton",
        "one action a state makes up the derivative of a maximum, so its steps are cheap; its "
        "linear systems are solved by BiCGSTAB with Gauss-Seidel sweeps, of which a few are enough",
    ),
    "it is not": (
        lambda: square(25),
        Max(),
        "newton",
        "one action a state makes up the derivative of a maximum, so its steps are cheap",
    ),
    "all actions, numbered": (
        lambda: square(25),
        Mellowmax(3.0),
        "newton",
        "the numbers of the states show which of them are near; its linear systems are solved by "
        "BiCGSTAB with Gauss-Seidel sweeps",
    ),
    "all actions, not numbered": (
        lambda: garnet(5000, 2, 3, 0, discount=0.95),
        Mellowmax(3.0),
        "shifted",
        "a shifted sweep",
    ),
}


@pytest.mark.parametrize("name", CHOICES)
def test_each_choice_says_why_and_solves(name):
    make, softmax, method, reason = CHOICES[name]
    mdp = make()
    solution = solve(mdp, softmax, tolerance=1e-9)
    assert solution.method == method
    assert reason in solution.reason
    if reason.startswith(("one action", "the numbers")):
        assert solution.reason == reason
    transitions, rewards = mdp.to_scipy()
    v = np.zeros(mdp.n_states)
    for _ in range(600):
        q = rewards + mdp.discount * (transitions @ v).reshape(rewards.shape)
        v = softmax.value(q)
    assert np.abs(solution.value - v).max() <= solution.error_bound + 1e-10


def test_sweeps_take_over_where_the_compiled_method_takes_too_long(monkeypatch):
    monkeypatch.setattr(auto, "MOST_COMPILED", 2)
    solution = solve(square(25), Max(), tolerance=1e-9)
    assert "rough solutions do not suffice, so its linear systems are solved by" in solution.reason
    assert solution.converged
    transitions, rewards = square(25).to_scipy()
    q = rewards + 0.95 * (transitions @ solution.value).reshape(rewards.shape)
    assert np.abs(q.max(1) - solution.value).max() <= 1e-9


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


def test_steps_that_lead_away_are_followed_by_sweeps(monkeypatch):
    """With Newton's method alone some of these go round in circles."""
    monkeypatch.setattr(newton_in_memory, "MOST_SWEEPS", 0)
    taken = []
    for seed in range(40):
        mdp = garnet(30, 3, 2, seed, discount=0.99)
        solution = solve(mdp, Median())
        taken.append(solution.iterations)
        expected = value_of_median(mdp)
        assert np.abs(solution.value - expected).max() <= solution.error_bound + 1e-10
    assert newton_in_memory.PATIENCE < max(taken) < newton_in_memory.PATIENCE + 20


def value_of_median(mdp):
    """By sweeps alone."""
    transitions, rewards = mdp.to_numpy()
    v = np.zeros(mdp.n_states)
    for _ in range(3000):
        v = np.median(rewards + mdp.discount * transitions @ v, axis=1)
    return v
