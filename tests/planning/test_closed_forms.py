"""Models whose answers are known: base stock, (s, S), linear-quadratic control, a program."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse

from mellowmax import Max, Mean
from mellowmax.mdp import MDP, garnet
from mellowmax.planning import solve

DEMAND = np.arange(6)
CHANCE = np.array([0.1, 0.2, 0.3, 0.2, 0.1, 0.1])
ROOM, OWED = 14, 6


def backlog(discount, unit, fixed, holding, penalty):
    """Stock from -6 to 14; what cannot be delivered is owed. A state is its stock plus 6."""
    stock = np.arange(-OWED, ROOM + 1)
    order = np.arange(ROOM + OWED + 1)
    there = np.minimum(stock[:, None] + order, ROOM)
    left = there[..., None] - DEMAND
    cost = holding * np.maximum(left, 0) + penalty * np.maximum(-left, 0)
    pays = unit * order + fixed * (order > 0) + cost @ CHANCE
    allowed = (stock[:, None] + order <= ROOM) & (there >= -1)  # no more than 6 are ever owed
    successors = np.maximum(left, -OWED) + OWED
    return MDP(successors, np.broadcast_to(CHANCE, left.shape), -pays, discount, allowed), stock


@pytest.mark.parametrize("penalty", [2.0, 9.0])
def test_without_a_fixed_cost_the_base_stock_is_the_critical_fractile(penalty):
    """Order up to the least `S` with `P(demand <= S) >= (p - (1 - discount) c) / (p + h)`."""
    discount, unit, holding = 0.9, 1.5, 0.4
    mdp, stock = backlog(discount, unit, 0.0, holding, penalty)
    fractile = (penalty - (1 - discount) * unit) / (penalty + holding)
    level = int(np.searchsorted(np.cumsum(CHANCE), fractile))
    order = solve(mdp, Max(), tolerance=1e-10).policy.argmax(1)
    np.testing.assert_array_equal(order, np.maximum(level - stock, 0))


@pytest.mark.parametrize("options", [{}, {"horizon": 7}, {"average": True}], ids=str)
def test_with_a_fixed_cost_the_policy_is_s_and_S(options):  # noqa: N802
    """Scarf (1960): below some `s` order up to some `S`, at every time; never above."""
    mdp, stock = backlog(0.95, 1.0, 6.0, 0.5, 4.0)
    policies = np.atleast_3d(solve(mdp, Max(), **options).policy.T).T
    levels = set()
    for policy in policies:
        order = policy.argmax(1)
        orders = np.flatnonzero(order)
        if orders.size:
            np.testing.assert_array_equal(orders, np.arange(orders.size))
            (level,) = {*(stock + order)[orders].tolist()}
            levels.add((int(stock[orders[-1]]), level))
    assert levels
    assert all(s + 2 < S for s, S in levels)  # it pays to order several at a time


def test_linear_quadratic_control_to_0():
    """`x' = x + a + w` with the cost `x^2`: the best action is `-x`, and a step costs `Var w`."""
    x = np.arange(-4, 5)
    after = np.clip(x[:, None] + x, -4, 4)[..., None] + np.array([-1, 0, 1])
    chance = np.broadcast_to([0.25, 0.5, 0.25], after.shape)
    allowed = np.abs(x[:, None] + x) <= 3
    rewards = np.broadcast_to(-(x[:, None] ** 2.0), allowed.shape)
    mdp = MDP(np.clip(after, -4, 4) + 4, chance, rewards, 0.8, allowed)
    variance = 0.5
    finite = solve(mdp, Max(), horizon=6)
    to_come = variance * (1 - 0.8 ** np.arange(5, -1, -1)) / 0.2 * 0.8
    np.testing.assert_allclose(finite.value[:-1], -(x**2) - to_come[:, None], rtol=0, atol=1e-12)
    endless = solve(mdp, Max(), tolerance=1e-10)
    np.testing.assert_allclose(endless.value, -(x**2) - variance * 0.8 / 0.2, rtol=0, atol=1e-8)
    average = solve(mdp, Max(), average=True, tolerance=1e-10)
    assert average.gain == pytest.approx(-variance, abs=1e-9)
    np.testing.assert_allclose(average.bias, -(x**2) + x[0] ** 2, rtol=0, atol=1e-8)
    assert average.policy.argmax(1).tolist() == (4 - x).tolist()


def test_the_average_reward_is_that_of_the_linear_program():
    """The least `g` with `g + h(s) >= r(s, a) + sum_t P(t | s, a) h(t)` for all pairs."""
    mdp = garnet(60, 4, 5, seed=3)
    transitions, rewards = mdp.to_scipy()
    of_state = scipy.sparse.kron(scipy.sparse.eye_array(60), np.ones((4, 1)))
    above = scipy.sparse.hstack([np.ones((240, 1)), of_state - transitions])
    found = scipy.optimize.linprog(
        np.eye(1, 61)[0], A_ub=-above, b_ub=-rewards.ravel(), bounds=(None, None)
    )
    solution = solve(mdp, Max(), average=True)
    assert solution.gain == pytest.approx(found.fun, abs=1e-7)
    assert solve(mdp, Mean(), average=True).gain < solution.gain - 0.1
