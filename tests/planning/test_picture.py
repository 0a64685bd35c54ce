"""Pictures: the right number at the right place, by the labels."""

from __future__ import annotations

import io

import numpy as np
import pytest

from mellowmax import EpsilonGreedy, Max
from mellowmax.mdp import MDP, grid_world
from mellowmax.planning import solve

SOFTMAX = EpsilonGreedy(0.2)
MODEL = MDP.from_arrays(
    np.random.default_rng(0).dirichlet(np.ones(3), (3, 2)), np.arange(6.0).reshape(3, 2), 0.9
)


def panels(figure):
    """The axes without those of colour bars, after all was drawn."""
    figure.savefig(io.BytesIO(), format="png")
    return [axes for axes in figure.axes if axes.get_label() != "<colorbar>"]


def texts(ticks):
    return [tick.get_text() for tick in ticks]


def cells(axes):
    """The numbers of a picture, one for each cell from below, with NaN for a blank one."""
    (mesh,) = axes.collections
    return np.ma.filled(np.ma.asarray(mesh.get_array(), np.float64), np.nan)


def test_states_on_a_line():
    mdp = MODEL.with_labels(states=["new", "worn", "broken"], actions=["wait", "fix"])
    solution = solve(mdp, SOFTMAX, history=True)
    values, policy, history = panels(solution.plot())
    np.testing.assert_array_equal(values.lines[0].get_ydata(), solution.value)
    assert texts(values.get_xticklabels()) == ["new", "worn", "broken"]
    np.testing.assert_array_equal(cells(policy), solution.policy.T)
    assert texts(policy.get_yticklabels()) == ["wait", "fix"]
    np.testing.assert_array_equal(history.lines[0].get_ydata(), solution.history)
    assert history.get_yscale() == "log"
    assert len(panels(solve(mdp, SOFTMAX).plot())) == 2


def test_numbers_are_in_their_order_whatever_that_of_the_states():
    solution = solve(MODEL.with_labels(states=[10.0, -5.0, 0.5], actions=[4, 2]), SOFTMAX)
    values, policy = panels(solution.plot())
    np.testing.assert_array_equal(values.lines[0].get_xdata(), [-5.0, 0.5, 10.0])
    np.testing.assert_array_equal(values.lines[0].get_ydata(), solution.value[[1, 2, 0]])
    np.testing.assert_array_equal(cells(policy), solution.policy[[1, 2, 0]].T[::-1])


def test_states_on_a_grid():
    mdp = grid_world([".#.", "..G"], slip=0.0)
    solution = solve(mdp, Max())
    values, policy = panels(solution.plot())
    v = solution.value
    np.testing.assert_array_equal(cells(values), [[v[0], np.nan, v[1]], [v[2], v[3], v[4]]])
    # Down, down, right, right; at the goal no action is better than another.
    np.testing.assert_array_equal(cells(policy), [[2, np.nan, 2], [1, 1, np.nan]])
    assert values.yaxis_inverted()
    assert {"up", "right", "down", "left"} <= {
        text for axes in policy.figure.axes for text in texts(axes.get_yticklabels())
    }


@pytest.mark.parametrize("n_actions", [2, 9])
def test_states_in_time(n_actions):
    """With few actions a colour for each, and for many a range of colours by their labels."""
    transitions = np.random.default_rng(1).dirichlet(np.ones(3), (3, n_actions))
    rewards = np.random.default_rng(2).normal(size=(3, n_actions))
    mdp = MDP.from_arrays(transitions, rewards, 1.0).with_labels(actions=np.arange(n_actions) * 10)
    solution = solve(mdp, SOFTMAX, horizon=4)
    values, policy = panels(solution.plot())
    np.testing.assert_array_equal(cells(values), solution.value.T)
    best = solution.policy.argmax(-1).T
    np.testing.assert_array_equal(cells(policy), best if n_actions == 2 else 10 * best)
    assert values.get_xlabel() == "time"


def test_the_average_reward_shows_its_bias():
    solution = solve(MODEL, SOFTMAX, average=True)
    bias, _ = panels(solution.plot())
    np.testing.assert_array_equal(bias.lines[0].get_ydata(), solution.bias)
    assert bias.get_ylabel() == "bias"
