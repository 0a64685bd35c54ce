"""The average reward: exact gains, closed forms of queues, bounds, and models without one gain."""

from __future__ import annotations

import dataclasses
import itertools
import re
from fractions import Fraction

import jax
import numpy as np
import pytest
from jax.sharding import Mesh

from mellowmax import Boltzmann, EpsilonGreedy, LogSumExp, Max, Mellowmax
from mellowmax.mdp import MDP, chain, garnet, grid_world, two_state
from mellowmax.planning import NotConvergedError, Status, evaluate, solve

S, A = 4, 3
"""The shape of the random models, which share their compiled programs."""
MESH = Mesh(np.array(jax.devices("cpu")[:1]), ("states",))
"""With it there are sweeps alone."""


def random_model(rng):
    """Every state comes to state 0; two branches may lead to one state; an action is not there."""
    successors = rng.integers(S, size=(S, A, 3))
    successors[..., 2] = 0
    weights = rng.integers(1, 6, (S, A, 3)) * [1, 1, 10.0 ** -rng.integers(3)]
    allowed = np.ones((S, A), bool)
    allowed[rng.integers(S), rng.integers(A)] = False
    rewards = rng.integers(-8, 9, (S, A)) / 4
    return MDP(successors, weights / weights.sum(-1, keepdims=True), rewards, 0.5, allowed)


def exact_gain(mdp, rule):
    """The gain of a deterministic policy, in rational arithmetic."""
    along = [[Fraction(0)] * S for _ in range(S)]
    for s, a in enumerate(rule):
        for k, p in zip(
            mdp.successors[s, a].tolist(), mdp.probabilities[s, a].tolist(), strict=True
        ):
            along[s][k] += Fraction(p)
    # d (along - I) = 0 with sum d = 1, by Gauss-Jordan elimination
    rows = [[along[t][s] - (s == t) for t in range(S)] + [Fraction(0)] for s in range(1, S)]
    rows.append([Fraction(1)] * S + [Fraction(1)])
    for i in range(S):
        pivot = next(r for r in range(i, S) if rows[r][i] != 0)
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for r in range(S):
            if r != i:
                rows[r] = [x - rows[r][i] * y for x, y in zip(rows[r], rows[i], strict=True)]
    rewards = [Fraction(float(mdp.rewards[s, a])) for s, a in enumerate(rule)]
    return sum(row[-1] * r for row, r in zip(rows, rewards, strict=True))


def gain_of(mdp, policy):
    """The gain of a policy from its stationary distribution, by least squares."""
    transitions, rewards = mdp.to_numpy()
    along = np.einsum("sa,sat->st", policy, transitions)
    equations = np.vstack([along.T - np.eye(mdp.n_states), np.ones(mdp.n_states)])
    stationary = np.linalg.lstsq(equations, np.eye(mdp.n_states + 1)[-1])[0]
    return stationary @ (policy * rewards).sum(1)


@pytest.mark.parametrize("seed", range(4))
def test_the_gain_under_max_is_that_of_the_best_policy(seed):
    mdp = random_model(np.random.default_rng(seed))
    solution = solve(mdp, Max(), average=True, tolerance=1e-10)
    rules = itertools.product(*(np.flatnonzero(row) for row in mdp.allowed))
    best = max(exact_gain(mdp, rule) for rule in rules)
    assert abs(solution.gain - float(best)) <= solution.error_bound < 1e-9
    own = exact_gain(mdp, solution.policy.argmax(1))
    assert 0 <= float(best - own) <= solution.suboptimality_bound < 1e-9


def naor(arrival, service, reward, cost, most):
    """The best threshold and its profit a unit of time, by its closed form (Naor 1969).

    With at most `n` in an M/M/1 queue, `k` are there with a probability in proportion to `rho^k`.
    """
    rho = arrival / service

    def profit(n):
        weights = rho ** np.arange(n + 1)
        p = weights / weights.sum()
        return arrival * reward * (1 - p[n]) - cost * (np.arange(n + 1) @ p)

    x = 1.0  # the root of a rising function
    while (x * (1 - rho) - rho * (1 - rho**x)) / (1 - rho) ** 2 <= reward * service / cost:
        x += 1
    threshold = int(x) - 1
    assert threshold == max(range(most), key=profit)
    return threshold, profit(threshold)


@pytest.mark.parametrize(("arrival", "service"), [(0.3, 0.5), (0.5, 0.4)])
def test_admission_to_a_queue(arrival, service):
    """Uniformised: in a unit of time one arrives, or one is served, or nothing happens."""
    n, reward, cost = 30, 10.0, 0.7
    threshold, profit = naor(arrival, service, reward, cost, n)
    s = np.arange(n)
    up, down = np.minimum(s + 1, n - 1), np.maximum(s - 1, 0)
    successors = np.stack([np.stack([s, up], 1), np.stack([down, down], 1), np.stack([s, s], 1)], 2)
    p = np.broadcast_to([arrival, service, 1 - arrival - service], successors.shape)
    pay = arrival * reward * (s < n - 1)
    mdp = MDP(successors, p, np.stack([0 * pay, pay], 1) - cost * s[:, None], 0.9)
    solution = solve(mdp, Max(), average=True)
    assert abs(solution.gain - profit) <= solution.error_bound + 1e-14
    admits = solution.policy.argmax(1) == 1
    assert admits[: threshold + 1].tolist() == [True] * threshold + [False]


def test_the_bias_of_a_queue_in_closed_form():
    """Each customer who is there costs 1: Poisson's equation of the M/M/1 queue, solved by hand.

    The gain is `-rho / (1 - rho)`, and `h(k) = -k (k + 1) / (2 (mu - lambda))`, as long as the end
    of the queue, which is hardly ever reached, is far.
    """
    n, arrival, service = 120, 0.2, 0.6
    s = np.arange(n)
    successors = np.stack([np.minimum(s + 1, n - 1), np.maximum(s - 1, 0), s], -1)[:, None]
    p = np.broadcast_to([arrival, service, 1 - arrival - service], successors.shape)
    mdp = MDP(successors, p, -1.0 * s[:, None], 0.9)
    solution = evaluate(np.ones((n, 1)), mdp, average=True, tolerance=1e-11)
    rho = arrival / service
    assert solution.gain == pytest.approx(-rho / (1 - rho), abs=1e-10)
    k = s[:20]
    np.testing.assert_allclose(
        solution.bias[:20], -k * (k + 1) / (2 * (service - arrival)), rtol=0, atol=1e-6
    )


def exact(mdp, softmax):
    """The gain and the bias by Newton's method with NumPy's dense linear algebra."""
    transitions, rewards = mdp.to_numpy()
    unknowns = np.zeros(S)  # the gain, then the bias of all states but the first

    for _ in range(60):
        h = np.append(0.0, unknowns[1:])
        q = rewards + transitions @ h
        residual = softmax.value(q, where=mdp.allowed) - h - unknowns[0]
        weights = softmax.gradient(q, where=mdp.allowed)
        matrix = np.eye(S) - np.einsum("sa,sat->st", weights, transitions)
        matrix[:, 0] = 1.0
        unknowns = unknowns + np.linalg.solve(matrix, residual)
    assert np.abs(residual).max() < 1e-12
    return unknowns[0], np.append(0.0, unknowns[1:])


@pytest.mark.parametrize(
    "kind", [EpsilonGreedy, Mellowmax, LogSumExp], ids=lambda kind: kind.__name__
)
@pytest.mark.parametrize("samples", [25, pytest.param(1000, marks=pytest.mark.release)])
def test_the_bounds_hold(kind, samples):
    """At every tolerance, for the gain and for what the policy earns, with a bonus or without."""
    ratios = []
    for seed in range(samples):
        rng = np.random.default_rng(seed)
        mdp = random_model(rng)
        softmax = kind(rng.random() if kind is EpsilonGreedy else 10 ** rng.uniform(-1, 1.5))
        tolerance = 10 ** rng.uniform(-10, 0)
        mesh = MESH if seed % 2 else None
        solution = solve(mdp, softmax, average=True, tolerance=tolerance, mesh=mesh)
        assert (solution.method == "newton") is (mesh is None)
        gain, bias = exact(mdp, softmax)
        assert abs(solution.gain - gain) <= solution.error_bound <= 2 * tolerance
        best, _ = exact(mdp, Max())
        loss = best - min(gain_of(mdp, solution.policy), solution.gain)
        assert loss <= solution.suboptimality_bound + 1e-12
        ratios.append(loss / solution.suboptimality_bound)
        if tolerance < 1e-6:
            np.testing.assert_allclose(solution.bias, bias, rtol=0, atol=1e4 * tolerance)
    assert max(ratios) > 0.5


def ageing(n):
    """Kept, a machine ages by a year or fails; repaired it is half as old, or replaced."""
    s = np.arange(n)
    fails = 0.001 + 0.05 * s / n
    old, half, new = np.minimum(s + 1, n - 1), s // 2, np.zeros(n, int)
    successors = np.stack([[old, new], [half, old], [new, new + 1]]).transpose(2, 0, 1)
    chances = np.array(
        [[1 - fails, fails], [0 * s + 0.9, 0 * s + 0.1], [0 * s + 0.95, 0 * s + 0.05]]
    )
    rewards = np.stack([1 - s / n - 20 * fails, -2 - s / n, 0 * s - 10], 1)
    return MDP(successors, chances.transpose(2, 0, 1), rewards, 0.9)


def drifting(n):
    """Up, or back by 30: some policies have two sets of states that they never leave."""
    s = np.arange(n)
    up, back = np.minimum(s[:, None] + [1, 2], n - 1), np.maximum(s[:, None] - [30, 29], 0)
    rewards = np.stack([1 - (s / n) ** 2, 0.6 - (s / n) ** 2], 1)
    return MDP(np.stack([up, back], 1), np.broadcast_to([0.7, 0.3], (n, 2, 2)), rewards, 0.9)


def scattered(n):
    """A walk on a grid, up and down or to the sides, whose states are numbered at random."""
    number = np.random.default_rng(0).permutation(n * n).reshape(n, n)
    steps = [[np.roll(number, by, axis) for by in (1, -1)] for axis in (0, 1)]
    successors = np.empty((n * n, 2, 2), int)
    successors[number] = np.moveaxis(steps, (0, 1), (2, 3))
    chances = np.broadcast_to([[0.7, 0.3], [0.6, 0.4]], (n * n, 2, 2))
    return MDP(
        successors, chances, np.stack([number.ravel() == 0, 0 * number.ravel()], 1) - 0.5, 0.9
    )


@pytest.mark.parametrize(
    ("mdp", "why"),
    [
        (drifting(300), "small, with 300 states"),
        (drifting(3000), "banded"),
        (ageing(3000), "Gauss-Seidel"),
        (garnet(1000, 3, 4, seed=0), "sweeps were enough"),
        (scattered(40), "Gauss-Seidel"),
    ],
    ids=["dense", "banded", "swept", "mixing", "scattered"],
)
@pytest.mark.parametrize("softmax", [Max(), Mellowmax(5.0), LogSumExp(1.0)], ids=str)
def test_the_equation_of_gain_and_bias_holds(mdp, why, softmax):
    """`g + h = f(r + P h)` proves the gain, by whatever method it was found."""
    solution = solve(mdp, softmax, average=True, tolerance=1e-9)
    assert why in solution.reason
    transitions, rewards = mdp.to_scipy()
    q = rewards + (transitions @ solution.bias).reshape(rewards.shape)
    change = softmax.value(q) - solution.bias
    assert np.ptp(change) <= 2.1e-9
    assert abs(change - solution.gain).max() <= 1.1e-9
    np.testing.assert_allclose(q - solution.gain, solution.q, rtol=0, atol=1e-8)
    assert solution.bias[0] == 0


def test_sweeps_take_over_where_steps_lead_astray(monkeypatch):
    monkeypatch.setattr("mellowmax.planning.average_reward.newton.ASTRAY", 0.0)
    solution = solve(chain(20), Max(), average=True, history=True)
    assert (solution.method, solution.converged) == ("relative value iteration", True)
    assert solution.reason == "Newton's method did not converge"
    assert len(solution.history) == solution.iterations


def test_the_gain_is_the_limit_of_discounted_values():
    mdp = random_model(np.random.default_rng(7))
    average = solve(mdp, Mellowmax(2.0), average=True)
    discounted = solve(dataclasses.replace(mdp, discount=1 - 1e-7), Mellowmax(2.0), tolerance=1e-6)
    np.testing.assert_allclose(1e-7 * discounted.value, average.gain, rtol=0, atol=1e-5)
    np.testing.assert_allclose(
        discounted.value - discounted.value[0], average.bias, rtol=0, atol=1e-5
    )


def test_a_policy_has_the_gain_that_its_softmax_attains():
    mdp = random_model(np.random.default_rng(3))
    for softmax in (Mellowmax([1.0, 2.0, 3.0, 4.0]), Boltzmann(1.0)):
        solution = solve(mdp, softmax, average=True, tolerance=1e-10)
        again = evaluate(solution.policy, mdp, average=True, tolerance=1e-10)
        assert again.gain == pytest.approx(solution.gain, abs=1e-9)
        np.testing.assert_allclose(again.bias, solution.bias, rtol=0, atol=1e-7)
    assert solution.error_bound is None  # of Boltzmann's softmax nothing is proved
    loss = solve(mdp, Max(), average=True).gain - solution.gain
    assert 0 < loss <= solution.suboptimality_bound


def test_a_chain_that_goes_round_in_circles():
    """Five states one after the other; only the last pays."""
    turn = np.roll(np.eye(5), 1, axis=1)[:, None]
    solution = solve(MDP.from_arrays(turn, np.eye(5)[:, 4:], 0.9), Max(), average=True)
    assert solution.gain == pytest.approx(0.2, abs=1e-8)
    np.testing.assert_allclose(solution.bias, [0, 0.2, 0.4, 0.6, 0.8], atol=1e-7)


def test_how_a_solve_ends():
    exact = solve(chain(50), Max(), average=True, tolerance=1e-12)
    for mesh, name in ((None, "newton"), (MESH, "relative value iteration")):
        options = {"average": True, "max_iterations": 3, "mesh": mesh}
        solution = solve(chain(50), Max(), **options, throw=False, history=True)
        assert solution.status is Status.OUT_OF_ITERATIONS
        assert len(solution.history) == solution.iterations == 3
        assert solution.residual <= solution.history.min() + 1e-15
        assert abs(solution.gain - exact.gain) <= solution.error_bound
        with pytest.raises(NotConvergedError, match=f"{name} under Max"):
            solve(chain(50), Max(), **options)
    seen = []
    stopped = solve(
        chain(3000, success=0.6), Max(), average=True, throw=False, tolerance=1e-15, mesh=MESH,
        callback=lambda progress: seen.append(progress.iterations) or len(seen) == 2,
    )  # fmt: skip
    assert stopped.status is Status.STOPPED
    assert stopped.iterations == seen[1]


@dataclasses.dataclass(frozen=True)
class Doubled(Max):
    """It does not move with a shift."""

    non_expansion = False

    def value(self, q, *, axis=-1, where=None):
        return 2 * super().value(q, axis=axis, where=where)


ISLANDS = MDP.from_arrays(np.eye(3)[:, None], [[1.0], [2.0], [3.0]], 0.9)
CHOICE = MDP.from_arrays([[[1, 0], [0, 1]], [[0, 1], [0, 1]]], [[10.0, 0.0], [1.0, 0.5]], 0.9)
LEAVES = MDP([[[1]], [[2]]], [[[1.0]], [[1.0]]], [[1.0], [2.0]], 0.9, terminal=[False, False])
UNICHAIN = "`mdp` must be unichain for an average reward"
FOREVER = "`mdp` must go on forever for an average reward"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: solve(ISLANDS, Max(), average=True),
         f"{UNICHAIN}, got two sets of states that nothing leaves, with state 0 and with state 1"),
        (lambda: solve(CHOICE, Max(), average=True, throw=False),
         f"{UNICHAIN}, got 1 from state 1 and 10 from state 0"),
        (lambda: solve(two_state(), Max(), average=True), f"{FOREVER}, got the terminal state 1"),
        (lambda: solve(LEAVES, Max(), average=True), f"{FOREVER}, got an end in state 1, action 0"),
        (lambda: solve(CHOICE, Doubled(), average=True),
         "`softmax` must move with a shift of all action values for an average reward, "
         "got Doubled(), which a shift of 11 moves by 22"),
        (lambda: solve(CHOICE, Max(), average=True, method="newton"),
         "`method` must not be given for an average reward, got 'newton'"),
        (lambda: solve(CHOICE, Max(), average=True, initial=1.0),
         "`initial` must not be given for an average reward, got 1.0"),
        (lambda: solve(CHOICE, Max(), average=True, horizon=3),
         "`horizon` must not be given for an average reward, got 3"),
    ],
)  # fmt: skip
def test_what_has_no_average_reward(call, message):
    with pytest.raises((TypeError, ValueError), match=f"^{re.escape(message)}$"):
        call()


def test_a_reward_far_away_is_found_by_newton():
    """One reward on a grid, after which it starts again: all actions tie until values get there."""
    grid = grid_world((30, 30), walls=0.1, seed=0)
    over, ends = grid.terminal, grid.successors == grid.n_states
    leads = np.where(over[:, None, None] | ends, 0, grid.successors)
    first = np.eye(1, grid.n_branches)[0]
    probabilities = np.where(over[:, None, None], first, grid.probabilities)
    mdp = MDP(leads, probabilities, np.repeat(over[:, None] * 1.0, grid.n_actions, 1), 0.9)
    solution = solve(mdp, Max(), average=True)
    assert solution.method == "newton"
    transitions, _ = mdp.to_numpy()
    along = transitions[np.arange(mdp.n_states), solution.q.argmax(1)]
    along[over] = 0.0
    steps = np.linalg.solve(np.eye(mdp.n_states) - along, np.ones(mdp.n_states))
    assert solution.gain == pytest.approx(1 / steps[0], abs=solution.error_bound)
    assert solution.suboptimality_bound < 1e-7
