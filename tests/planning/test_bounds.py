"""The bounds of a solve hold on thousands of random MDPs, and are not far off."""

from __future__ import annotations

import dataclasses
import itertools
import math
from fractions import Fraction

import jax
import numpy as np
import pytest
from jax.sharding import Mesh

from mellowmax import Boltzmann, EpsilonGreedy, Max, Mean, Mellowmax
from mellowmax.mdp import MDP, garnet, random_mdp
from mellowmax.planning import evaluate, solve, suboptimality
from mellowmax.planning.bounds import earnings

METHODS = ("auto", "in-place", "synchronous", "shifted", "newton")
OPERATORS = {
    "max": [Max()],
    "epsilon-greedy": [EpsilonGreedy(epsilon) for epsilon in (0.01, 0.3, 0.9, 1.0)],
    "mellowmax": [Mellowmax(omega) for omega in (0.1, 3.0, 50.0, -3.0)],
}
QUICK = {
    "max": METHODS,
    "epsilon-greedy": ("synchronous", "shifted"),
    "mellowmax": ("auto", "synchronous", "shifted", "newton"),
}
"""The methods at every run: each way to the bounds, without further programs for the same one."""
MESH = Mesh(np.array(jax.devices("cpu")[:1]), ("states",))
SAMPLES = [48, pytest.param(600, marks=pytest.mark.release)]
"""How many random MDPs: some at every run, and many before a release."""


def endless(rng, discount):
    return MDP.from_arrays(
        rng.dirichlet(np.full(6, 0.3), (6, 3)),
        rng.normal(size=(6, 3)) * 10 ** rng.uniform(-2, 2),
        discount,
        terminal=np.zeros(6, bool),
    )


def ending(rng, discount):
    """Sparse, with ends, a terminal state, and actions that are not there."""
    allowed = rng.random((8, 3)) < 0.7
    allowed[np.arange(8), rng.integers(3, size=8)] = True
    allowed[0] = [True, False, True]  # so that there is always a mask
    successors = rng.integers(8, size=(8, 3, 4))
    successors[..., 3] = 8
    return MDP(
        successors,
        rng.dirichlet([1.0, 1.0, 1.0, 10 ** rng.uniform(-3, 0)], (8, 3)),
        rng.normal(size=(8, 3)) + rng.normal() * 3,
        discount,
        allowed=allowed,
        terminal=np.arange(8) == 5,
    )


def downhill(rng):
    """Every step ends the episode or goes down: all policies end, though none at once.

    The shape is that of `ending`, and so are the programs.
    """
    lead = [rng.integers(s, size=(3, 4)) for s in range(1, 8)]
    allowed = np.ones((8, 3), bool)
    allowed[3, 1] = False
    successors = np.concatenate([np.full((1, 3, 4), 8), lead])
    successors[7, 2, 3] = 8
    return MDP(
        successors,
        rng.dirichlet(np.ones(4), (8, 3)),
        rng.normal(size=(8, 3)) + rng.normal(),
        1.0,
        allowed=allowed,
        terminal=np.arange(8) == 0,
    )


FAMILIES = {"endless": endless, "ending": ending}


def fixed_point(mdp, softmax, start):
    """The exact action values by Newton's method with NumPy's dense linear algebra.

    There is one fixed point, wherever Newton's method starts.
    """
    transitions, rewards = mdp.to_numpy()
    v = start
    least = math.inf
    for _ in range(100):
        q = rewards + mdp.discount * transitions @ v
        change = softmax.value(q, where=mdp.allowed) - v
        if np.abs(change).max() == 0 or (least < 1e-11 and np.abs(change).max() >= least):
            break
        least = min(least, np.abs(change).max() / (1 + np.abs(v).max()))
        weights = softmax.gradient(q, where=mdp.allowed)
        jacobian = mdp.discount * np.einsum("sa,sat->st", weights, transitions)
        v = v + np.linalg.solve(np.eye(mdp.n_states) - jacobian, change)
    assert np.abs(change).max() <= 1e-12 * (1 + np.abs(v).max())
    return q


def earned(mdp, policy):
    """What a policy earns, exactly."""
    transitions, rewards = mdp.to_numpy()
    along = np.einsum("sa,sat->st", policy, transitions)
    return np.linalg.solve(np.eye(mdp.n_states) - mdp.discount * along, (policy * rewards).sum(1))


def there(mdp):
    return np.ones(mdp.rewards.shape[:2], bool) if mdp.allowed is None else mdp.allowed


def losses(mdp, solution):
    """How far `q`, `value` and the policy are below the optimum, at most."""
    best = fixed_point(mdp, Max(), solution.value)
    top = Max().value(best, where=mdp.allowed)
    return (
        np.max((best - solution.q)[there(mdp)]),
        np.max(top - solution.value),
        np.max(top - earned(mdp, solution.policy)),
    )


def report(record_property, what, ratios):
    quantiles = np.quantile(ratios, [0.05, 0.5, 0.95, 1.0])
    text = ", ".join(f"{x:.2g}" for x in quantiles)
    print(f"{what}: {len(ratios)} solves, at 5 %, 50 %, 95 %, 100 %: {text}")
    record_property(what, text)
    return quantiles


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("sample", SAMPLES)
def test_no_value_is_further_off_than_its_bounds(sample, family, operator, record_property):
    rng = np.random.default_rng([len(family), len(operator)])
    methods = QUICK[operator] if sample < 100 else METHODS
    places = (MESH, None)  # with compiled programs, and in main memory where that will do
    cases = itertools.cycle(itertools.product(OPERATORS[operator], methods, places))
    near, below = [], []
    for softmax, method, mesh in itertools.islice(cases, sample):
        mdp = FAMILIES[family](
            rng, float(rng.choice([rng.uniform(0.1, 0.9), rng.uniform(0.9, 0.999)]))
        )
        tolerance = 10 ** rng.uniform(-10, -1)
        case = (softmax, method, mesh, mdp.discount, tolerance)
        solution = solve(mdp, softmax, method=method, tolerance=tolerance, mesh=mesh)
        assert solution.residual <= tolerance * (1 + 1e-9), case

        exact = fixed_point(mdp, softmax, solution.value)
        value = softmax.value(exact, where=mdp.allowed)
        error = np.abs(exact - solution.q)[there(mdp)].max()
        error = max(error, np.abs(value - solution.value).max())
        assert error <= solution.error_bound, case
        near.append(error / solution.error_bound)

        loss = max(losses(mdp, solution))
        assert loss <= solution.suboptimality_bound, case
        below.append(max(loss, 0.0) / solution.suboptimality_bound)
        if operator == "mellowmax" and softmax.omega > 0:
            most = suboptimality(softmax, 3, mdp.discount)
            allowance = 2 * solution.error_bound
            assert solution.suboptimality_bound <= most * (1 + 1e-9) + allowance, case
    name = f"{operator}, {family}"
    quantiles = report(record_property, f"true error / bound, {name}", near)
    assert quantiles[-1] > 0.5
    report(record_property, f"true loss / bound, {name}", below)


def test_boltzmann_has_a_bound_on_its_loss_alone(record_property):
    rng = np.random.default_rng(0)
    ratios = []
    for beta in np.tile([0.1, 1.0, 4.0], 40):
        mdp = endless(rng, float(rng.uniform(0.1, 0.99)))
        solution = solve(mdp, Boltzmann(beta), max_iterations=2000, throw=False)
        assert solution.error_bound is None
        loss = max(losses(mdp, solution))
        assert loss <= solution.suboptimality_bound
        ratios.append(max(loss, 0.0) / solution.suboptimality_bound)
    report(record_property, "true loss / bound, boltzmann", ratios)


@pytest.mark.parametrize("softmax", [Max(), Mean(), EpsilonGreedy(0.5), Mellowmax(2.0)], ids=str)
def test_the_error_bound_is_attained(softmax):
    """With equal rewards each sweep lacks the same everywhere: the bound is the error."""
    mdp = MDP.from_arrays(np.full((6, 3, 6), 1 / 6), np.ones((6, 3)), 0.99)
    for tolerance in (1e-1, 1e-4, 1e-7):
        solution = solve(mdp, softmax, method="synchronous", tolerance=tolerance)
        error = np.abs(solution.q - 100).max()
        assert 0.999 * solution.error_bound <= error <= solution.error_bound


def test_the_loss_bound_is_attained():
    """One action that pays among `n` that cost far more: mellowmax loses log(n) / omega a step."""
    mdp = MDP.from_arrays(np.ones((1, 4, 1)), [[1.0, -1e4, -1e4, -1e4]], 0.9, terminal=[False])
    solution = solve(mdp, Mellowmax(0.5), tolerance=1e-10)
    loss = max(losses(mdp, solution))
    most = math.log(4) / (0.5 * 0.1)
    assert loss == pytest.approx(most, rel=1e-9)
    assert loss <= solution.suboptimality_bound <= loss * (1 + 1e-9) + 2 * solution.error_bound


def test_suboptimality_in_closed_form():
    assert suboptimality(Mellowmax(16.55), 2, 0.98) == pytest.approx(math.log(2) / 16.55 / 0.02)
    assert suboptimality(Boltzmann(4.0), 5, 0.9) == pytest.approx(math.log(5) / 4 / 0.1)
    assert suboptimality(Max(), 5, 0.9) == 0
    assert suboptimality(Mellowmax(np.array([2.0, 8.0])), 3, 0.5) == pytest.approx(math.log(3))
    assert suboptimality(Mellowmax(2.0), 1, 0.5) == 0
    for softmax in (Mean(), EpsilonGreedy(0.1), Mellowmax(-1.0), Mellowmax(0.0), Boltzmann(-2.0)):
        assert suboptimality(softmax, 3, 0.5) == math.inf
    for discount in (1.0, -0.1, math.nan):
        with pytest.raises(ValueError, match="`discount` must be"):
            suboptimality(Max(), 2, discount)


def test_bounds_of_what_has_not_converged():
    """However few sweeps there were, and from wherever."""
    rng = np.random.default_rng(4)
    cases = [*itertools.product((Max(), Mellowmax(3.0)), METHODS[2:]), (Max(), "in-place")]
    for n in range(50):
        mdp = endless(rng, float(rng.uniform(0.1, 0.999)))
        start = rng.normal(size=(6, 3)) * 100
        for softmax, method in cases:
            solution = solve(
                mdp,
                softmax,
                method=method,
                initial=start,
                max_iterations=1 + n % 5,
                tolerance=1e-14,
                throw=False,
            )
            exact = fixed_point(mdp, softmax, solution.value)
            error = np.abs(exact - solution.q)[there(mdp)].max()
            assert error <= solution.error_bound
            assert max(losses(mdp, solution)) <= solution.suboptimality_bound


@pytest.mark.parametrize("method", METHODS)
def test_bounds_without_discount(method, record_property):
    rng = np.random.default_rng(5)
    ratios = []
    for n in range(60):
        mdp = downhill(rng)
        softmax = Mellowmax(1.0) if n % 2 and method != "in-place" else Max()
        start = float(rng.normal() * 10)
        limit = 1 + n % 4
        solution = solve(
            mdp, softmax, method=method, initial=start, max_iterations=limit, throw=False
        )
        exact = fixed_point(mdp, softmax, solution.value)
        error = np.abs(exact - solution.q)[there(mdp)].max()
        assert error <= solution.error_bound < math.inf
        assert max(losses(mdp, solution)) <= solution.suboptimality_bound < math.inf
        if error > 1e-8:
            ratios.append(error / solution.error_bound)
        done = solve(mdp, softmax, method=method, initial=start)
        assert np.abs(exact - done.q)[there(mdp)].max() <= done.error_bound <= 1e-6
    if ratios:  # in place, one sweep in this order of states is enough
        report(record_property, f"true error / bound, discount 1, {method}", ratios)


def test_the_horizon_without_discount_is_the_longest_episode():
    """Eight steps, whatever is done: each lacks the same, and the bound is the error."""
    successors = np.arange(1, 9)[:, None, None].repeat(3, 1).repeat(4, 2)
    allowed = np.ones((8, 3), bool)
    allowed[3, 1] = False
    mdp = MDP(successors, np.full((8, 3, 4), 0.25), np.ones((8, 3)), 1.0, allowed=allowed)
    solution = solve(mdp, Max(), method="synchronous", max_iterations=1, throw=False)
    error = np.abs(solution.q - np.arange(8, 0, -1)[:, None])[allowed].max()
    assert error == pytest.approx(7)
    assert error <= solution.error_bound <= 8 * (1 + 1e-3)


def test_bounds_of_an_evaluated_policy():
    rng = np.random.default_rng(6)
    for family, n in itertools.product(FAMILIES, range(30)):
        mdp = FAMILIES[family](rng, float(rng.uniform(0.1, 0.999)))
        policy = rng.random(mdp.rewards.shape)
        policy *= True if mdp.allowed is None else mdp.allowed
        policy /= policy.sum(1, keepdims=True)
        solution = evaluate(policy, mdp, tolerance=10.0 ** -(n % 10), method="auto")
        assert np.abs(solution.value - earned(mdp, policy)).max() <= solution.error_bound
        assert max(losses(mdp, solution)) <= solution.suboptimality_bound


def test_bounds_of_models_as_the_paper_makes_them():
    for seed in range(40):
        mdp = random_mdp(seed, n_states=6, n_actions=3)
        solution = solve(mdp, Mellowmax(16.55), method="in-place", tolerance=1e-3)
        error = np.abs(fixed_point(mdp, solution.softmax, solution.value) - solution.q).max()
        assert error <= solution.error_bound


def test_a_sparse_model_without_an_end_has_bounds_too():
    mdp = garnet(40, 3, 5, seed=0, discount=0.99)
    for softmax in (Max(), Mellowmax(5.0)):
        solution = solve(mdp, softmax)
        exact = fixed_point(mdp, softmax, solution.value)
        assert np.abs(exact - solution.q).max() <= solution.error_bound <= 2e-6
        assert max(losses(mdp, solution)) <= solution.suboptimality_bound


def test_no_loss_bound_is_larger_than_what_the_rewards_allow():
    """In FrozenLake an episode earns 1 at most, whatever the policy and wherever the values are."""
    mdp = MDP.from_gymnasium("FrozenLake-v1", 0.99)
    for omega in (0.1, 5.0):
        assert 0.9 < solve(mdp, Mellowmax(omega)).suboptimality_bound < 1
    far_below = solve(mdp, Mellowmax(5.0), initial=-30.0, max_iterations=1, throw=False)
    assert max(losses(mdp, far_below)) <= far_below.suboptimality_bound < 35


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("sign", [-1, 0, 1])
def test_what_any_policy_earns_lies_in_the_range_that_the_rewards_allow(family, sign):
    """Rewards of one sign too, and policies that are drawn at random; the ends can be attained."""
    rng = np.random.default_rng([len(family), sign + 1])
    for _ in range(20):
        mdp = FAMILIES[family](rng, float(rng.uniform(0.1, 0.999)))
        size = rng.uniform(0.1, 10)
        rewards = mdp.expected_rewards if sign == 0 else sign * size * np.abs(mdp.expected_rewards)
        mdp = dataclasses.replace(mdp, rewards=rewards + sign * mdp.available)
        low, high = earnings(mdp, 1 / (1 - mdp.discount))
        live = ~mdp.terminal
        for _ in range(5):
            weights = rng.dirichlet(np.full(mdp.n_actions, 0.2), mdp.n_states) + 1e-12
            weights = np.where(mdp.available | mdp.terminal[:, None], weights, 0)
            value = earned(mdp, weights / weights.sum(1, keepdims=True))[live]
            assert low <= value.min() <= value.max() <= high
    loop = MDP.from_arrays([[[0.5, 0.5]], [[0.0, 1.0]]], [[3.0], [0.0]], 0.9)
    assert earnings(loop, 10.0) == pytest.approx((3 / 0.55, 3 / 0.55))
    ends = MDP.from_function(lambda s, a: [(1.0, s + 1, -1.0)] if s < 3 else [], 4, 1, 1.0)
    assert earnings(ends, 3.0) == pytest.approx((-3.0, -1.0))
    huge = MDP.from_arrays([[[1.0]]], [[1e308]], 0.9)
    assert earnings(huge, 10.0) == (np.inf, np.inf)  # it overflows without a warning


def test_rounding_hides_no_earnings():
    """A single step with a reward for each branch attains both ends exactly."""
    rng = np.random.default_rng(9)
    for _ in range(20):
        transitions = rng.dirichlet(np.ones(5), (5, 2))
        mdp = MDP.from_arrays(transitions, rng.normal(size=(5, 2, 5)), 0.0)
        earned = [
            sum(Fraction(p) * Fraction(r) for p, r in zip(*branches, strict=True))
            for branches in zip(
                mdp.probabilities.reshape(10, 5).tolist(),
                mdp.rewards.reshape(10, 5).tolist(),
                strict=True,
            )
        ]
        low, high = map(Fraction, earnings(mdp, 1.0))
        assert low <= min(earned)
        assert max(earned) <= high
        assert high - low <= (max(earned) - min(earned)) * (1 + Fraction(1e-12))


def exact_values(mdp, policy):
    """What a policy earns from each state, and from each action first, as fractions."""
    transitions, rewards = (array.tolist() for array in mdp.to_numpy())
    discount, states, actions = Fraction(mdp.discount), range(mdp.n_states), range(mdp.n_actions)

    def mean(numbers, s):
        return sum(Fraction(w) * Fraction(x) for w, x in zip(policy[s], numbers, strict=True))

    rows = [
        [(s == t) - discount * mean([transitions[s][a][t] for a in actions], s) for t in states]
        + [mean(rewards[s], s)]
        for s in states
    ]
    for i in states:  # Gauss and Jordan
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for j in states:
            if j != i:
                rows[j] = [x - rows[j][i] * y for x, y in zip(rows[j], rows[i], strict=True)]
    value = [row[-1] for row in rows]
    q = [
        [
            Fraction(rewards[s][a])
            + discount * sum(Fraction(p) * v for p, v in zip(transitions[s][a], value, strict=True))
            for a in actions
        ]
        for s in states
    ]
    return value, q


@pytest.mark.parametrize("method", ["in-place", "synchronous", "shifted", "newton"])
def test_bounds_hold_where_numbers_underflow(method):
    """XLA takes for 0 what is smaller than the smallest normal number; exact arithmetic does not.

    At these values mellowmax is the mean, to 300 digits.
    """
    rng = np.random.default_rng(0)
    transitions, rewards = rng.dirichlet(np.ones(3), (3, 2)), rng.normal(size=(3, 2))
    for scale in (1e-300, 1e-305, 3e-308, 1e-310, 5e-324):
        mdp = MDP.from_arrays(transitions, rewards * scale, 0.9)
        greedy = [np.eye(2)[list(actions)] for actions in itertools.product(range(2), repeat=3)]
        optimum, best = max(
            (exact_values(mdp, policy) for policy in greedy), key=lambda x: sum(x[0])
        )
        references = {Max(): best, Mellowmax(5.0): exact_values(mdp, np.full((3, 2), 0.5))[1]}
        for softmax, q in references.items():
            solution = solve(mdp, softmax, method=method, tolerance=1e-310, throw=False)
            pairs = zip(solution.q.ravel().tolist(), np.ravel(q), strict=True)
            assert max(abs(Fraction(x) - y) for x, y in pairs) <= solution.error_bound
            for value in (solution.value.tolist(), exact_values(mdp, solution.policy)[0]):
                losses = [y - Fraction(x) for x, y in zip(value, optimum, strict=True)]
                assert max(losses) <= solution.suboptimality_bound
            assert solution.error_bound < 1e-303
