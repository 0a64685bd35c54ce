"""Linearly solvable MDPs: planning with the free energy against Todorov's linear equation.

A controller chooses the next state, and pays for how far its choice is from passive dynamics `P`:
the divergence from them, over beta. The value is `v = r + log(P e^(beta v)) / beta`, and linear in
`z = e^(beta v)`: `z = e^(beta r) P z`. With a discount it is `z = e^(beta r) P z^discount`.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from mellowmax import FreeEnergy, LogSumExp, Mellowmax
from mellowmax.environments import tabular
from mellowmax.learning import expected_sarsa, sarsa, train
from mellowmax.mdp import MDP
from mellowmax.planning import solve

WALLS = {(1, 1), (1, 2), (1, 3), (3, 1)}
CELLS = [(i, j) for i in range(5) for j in range(5) if (i, j) not in WALLS]
AROUND = [(-1, 0), (0, -1), (0, 1), (1, 0)]


def neighbours(cell):
    """Where a walk goes on to; the goal is in a corner."""
    near = [
        CELLS.index(to) for to in ((cell[0] + i, cell[1] + j) for i, j in AROUND) if to in CELLS
    ]
    return [] if cell == (4, 4) else near


def grid(discount):
    """Each step costs 0.1, and an action chooses a neighbour."""

    def transition(state, action):
        near = neighbours(CELLS[state])
        return [(1.0, near[action], -0.1)] if action < len(near) else []

    return MDP.from_function(transition, len(CELLS), 4, discount)


def walk():
    """The passive dynamics of the grid: to each neighbour alike."""
    passive = np.zeros((len(CELLS), len(CELLS)))
    for state, cell in enumerate(CELLS):
        for to in neighbours(cell):
            passive[state, to] = 1 / len(neighbours(cell))
    return passive


def z_iteration(passive, rewards, terminal, beta, discount):
    """The values by `z <- e^(beta r) P z^discount`, with z = 1 where the episode has ended."""
    z = np.ones(len(passive))
    for _ in range(10_000):
        before, z = z, np.where(terminal, 1.0, np.exp(beta * rewards) * (passive @ z**discount))
        if np.abs(z - before).max() <= 1e-16 * z.min():
            break
    return np.log(z) / beta


@pytest.mark.parametrize(("discount", "golden"), [(0.9, -0.930868798585), (0.99, -2.173876525916)])
def test_a_walk_on_a_grid_with_a_discount(discount, golden):
    """Without a prior the free energy is mellowmax: the values are the same, the policies not."""
    mdp = grid(discount)
    linear = z_iteration(walk(), -0.1, mdp.terminal, 2.0, discount)
    assert linear[0] == pytest.approx(golden, abs=1e-12)
    for softmax in (FreeEnergy(2.0), Mellowmax(2.0)):
        solution = solve(mdp, softmax, tolerance=1e-14, throw=False)
        np.testing.assert_allclose(solution.value, linear, rtol=0, atol=1e-12)
        assert solution.error_bound < 1e-10


def test_a_walk_on_a_grid_without_a_discount():
    """The linear equation has a value where planning asks for a discount, which can come near 1."""
    passive, goal = walk(), CELLS.index((4, 4))
    inside = np.arange(len(CELLS)) != goal
    matrix = np.eye(len(CELLS)) - np.exp(-0.2) * passive
    z = np.linalg.solve(matrix[inside][:, inside], np.exp(-0.2) * passive[inside, goal])
    linear = np.log(z) / 2
    assert linear[CELLS.index((0, 0))] == pytest.approx(-2.375443725477, abs=1e-12)
    assert linear[CELLS.index((2, 2))] == pytest.approx(-1.297856668407, abs=1e-12)
    near = solve(grid(1 - 1e-7), FreeEnergy(2.0), tolerance=1e-13, throw=False)
    np.testing.assert_allclose(near.value[inside], linear, atol=1e-5)


@pytest.mark.parametrize("kind", [FreeEnergy, Mellowmax])
def test_an_acyclic_graph_without_a_discount(kind):
    """With passive dynamics that prefer some successors: the weights of the prior on those."""
    rng = np.random.default_rng(0)
    n, prior = 40, np.array([0.4, 0.3, 0.2, 0.1])
    successors = np.array([rng.integers(max(s, 1), size=4) for s in range(n)])
    allowed = rng.random((n, 4)) < 0.7
    allowed[np.arange(n), rng.integers(4, size=n)] = True
    allowed[7] = [True, True, False, True]
    costs = rng.uniform(0.1, 1.0, n)
    rewards = np.broadcast_to(-costs[:, None], (n, 4))
    ones, terminal = np.ones((n, 4, 1)), np.arange(n) == 0
    mdp = MDP(successors[..., None], ones, rewards, 1.0, allowed=allowed, terminal=terminal)

    passive = np.zeros((n, n))
    weights = np.where(allowed, prior, 0.0)
    weights /= weights.sum(1, keepdims=True)
    np.add.at(passive, (np.arange(n)[:, None], successors), weights)
    step = np.exp(-1.5 * costs)[:, None] * passive
    z = np.linalg.solve(np.eye(n - 1) - step[1:, 1:], step[1:, 0])
    solution = solve(mdp, kind(1.5, prior=prior), tolerance=1e-14, throw=False)
    np.testing.assert_allclose(solution.value[1:], np.log(z) / 1.5, rtol=0, atol=1e-12)
    if kind is FreeEnergy:  # the passive dynamics are tilted towards where z is large
        tilted = np.where(allowed, prior, 0.0) * np.exp(1.5 * solution.value)[successors]
        tilted /= tilted.sum(1, keepdims=True)
        np.testing.assert_allclose(solution.policy[1:], tilted[1:], atol=1e-12)


CORRIDOR = MDP.from_function(
    lambda s, a: [(1.0, s + 2 * a - 1, -0.1 + (s == 3) * a)] if 0 < s < 4 else [], 5, 2, 1.0
)
"""States 0 to 4: both ends end the episode, the right one is worth 1, and a step costs 0.1."""


def corridor(beta, weights):
    """The values of the states between the ends, by the linear equation."""
    left, right = np.asarray(weights) * np.exp(-0.1 * beta)
    step = np.diag([left, left], -1) + np.diag([right, right], 1)
    ends = [left, 0.0, right * np.exp(beta)]
    return np.log(np.linalg.solve(np.eye(3) - step, ends)) / beta


@pytest.mark.parametrize(
    ("beta", "weights", "golden"),
    [
        (1.0, [0.5, 0.5], [0.03477545, 0.25352501, 0.59485608]),
        (5.0, [0.5, 0.5], [0.33764617, 0.56473761, 0.78286488]),
        (5.0, [0.75, 0.25], [0.01751630, 0.28694656, 0.63903284]),
    ],
)
def test_the_linear_equation_of_the_corridor(beta, weights, golden):
    np.testing.assert_allclose(corridor(beta, weights), golden, atol=1e-8)


PRIOR = np.array([0.75, 0.25])


def rising(step):
    """The inverse temperature of G-learning rises: the prior counts for less and less."""
    return FreeEnergy(jnp.minimum(5.0, 1e-3 * jnp.asarray(step, jnp.float32)), prior=PRIOR)


LEARNERS = {
    "G-learning": (expected_sarsa(rising, 0.3, discount=1.0), FreeEnergy(5.0, prior=PRIOR), PRIOR),
    "soft Q-learning": (expected_sarsa(LogSumExp(5.0), 0.3, discount=1.0), LogSumExp(5.0), [1, 1]),
    "SARSA with its bonus": (
        sarsa(FreeEnergy(5.0, prior=PRIOR), 0.3, discount=1.0),
        FreeEnergy(5.0, prior=PRIOR),
        PRIOR,
    ),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_learning_comes_to_the_solution_of_the_linear_equation(name):
    """Ten runs of 20,000 steps, without the model."""
    learner, softmax, weights = LEARNERS[name]
    result = train(learner, tabular.params(CORRIDOR), steps=20_000, runs=10, bins=1)
    learnt = softmax.value(result.q.astype(np.float64))[:, 1:4]
    assert learnt.shape == (10, 3)
    assert np.abs(learnt - corridor(5.0, weights)).max() <= 1e-3
