"""Paths: the right probabilities, ends, rewards and returns, and the same from the same seed."""

from __future__ import annotations

import re

import numpy as np
import pytest

from mellowmax import Max, Mellowmax
from mellowmax.mdp import MDP, chain, two_state
from mellowmax.planning import evaluate, simulate, solve

RNG = np.random.default_rng(0)
ALLOWED = np.array([[True, True], [True, False], [True, True], [True, True]])
TABLE = MDP(
    [
        [[1, 2, 4], [0, 1, 2]],
        [[2, 3, 4], [0, 0, 0]],
        [[0, 1, 2], [3, 3, 1]],
        [[0, 0, 0], [1, 1, 1]],
    ],
    RNG.dirichlet([1.0, 1.0, 1.0], (4, 2)),
    RNG.normal(size=(4, 2, 3)),
    0.9,
    allowed=ALLOWED,
    terminal=[False, False, False, True],
)
"""It ends in state 3 and, by a branch, after states 0 and 1; each branch has its own reward."""
POLICY = np.array([[0.3, 0.7], [1.0, 0.0], [0.5, 0.5], [0.5, 0.5]])
PATHS = 20_000


@pytest.fixture(scope="module")
def paths():
    return simulate(POLICY, TABLE, 60, paths=PATHS, start=[0.5, 0.0, 0.5, 0.0], seed=1)


def test_returns_have_the_mean_that_the_policy_is_worth(paths):
    """Five standard errors: wrong once in a million seeds."""
    value = evaluate(POLICY, TABLE).value
    mean, error = paths.returns.mean(), paths.returns.std() / PATHS**0.5
    assert abs(mean - (value[0] + value[2]) / 2) < 5 * error


def test_actions_and_states_have_the_right_frequencies(paths):
    """Each within five standard deviations of a binomial count."""
    transitions, _ = TABLE.to_numpy()
    to_the_end = 1 - transitions.sum(-1)
    going = paths.actions >= 0
    before, after = paths.states[:, :-1][going], paths.states[:, 1:][going]
    actions = paths.actions[going]
    for s in range(3):
        there = before == s
        for a in range(2):
            taken = there & (actions == a)
            assert abs(taken.sum() - there.sum() * POLICY[s, a]) <= 5 * np.sqrt(there.sum() / 4)
            if not taken.any():
                assert POLICY[s, a] == 0
                continue
            counts = np.bincount(after[taken], minlength=5)
            expected = np.append(transitions[s, a], to_the_end[s, a]) * taken.sum()
            assert (counts[expected == 0] == 0).all()
            assert (abs(counts - expected) <= 5 * np.sqrt(taken.sum() / 4)).all()
    assert np.bincount(paths.states[:, 0]).tolist()[1] == 0


def test_a_path_stays_where_it_ended(paths):
    ended = paths.actions < 0
    assert (paths.states[:, :-1][ended] >= 3).all()
    assert (paths.states[:, 1:] == paths.states[:, :-1])[ended].all()
    assert (paths.rewards[ended] == 0).all()
    assert ((paths.states[:, :-1] < 3) == ~ended).all()
    assert {3, 4} <= set(paths.states[:, -1].tolist())
    assert (paths.lengths == (~ended).sum(1)).all()


def test_the_rewards_are_those_of_the_branches_and_the_returns_their_sums(paths):
    path, time = np.nonzero(paths.actions >= 0)
    s, a, s2 = paths.states[path, time], paths.actions[path, time], paths.states[path, time + 1]
    possible = TABLE.rewards[s, a] == paths.rewards[path, time][:, None]
    assert (possible & (TABLE.successors[s, a] == s2[:, None])).any(1).all()
    discounts = 0.9 ** np.arange(60)
    np.testing.assert_allclose(paths.returns, paths.rewards @ discounts, rtol=0, atol=1e-12)


def test_the_same_seed_gives_the_same_paths():
    policy = np.full((50, 2), 0.5)
    one, other, third = (simulate(policy, chain(50), 40, paths=9, seed=s) for s in (3, 3, 4))
    np.testing.assert_array_equal(one.states, other.states)
    np.testing.assert_array_equal(one.returns, other.returns)
    assert (one.states != third.states).any()


def test_a_policy_and_a_model_of_each_step():
    """Two deterministic steps: to and fro, with rewards and discounts that differ."""
    swap = [[[0.0, 1.0]], [[1.0, 0.0]]]
    mdps = [
        MDP.from_arrays(swap, [[1.0], [10.0]], 0.5),
        MDP.from_arrays(swap, [[2.0], [20.0]], 1.0),
    ]
    paths = simulate(np.ones((2, 2, 1)), mdps, 2, start=1)
    assert paths.states.tolist() == [[1, 0, 1]]
    assert paths.rewards.tolist() == [[10.0, 2.0]]
    assert paths.returns.tolist() == [11.0]
    solution = solve(mdps, Max(), horizon=2)
    assert simulate(solution.policy, mdps, 2).returns[0] == solution.value[0, 0]


def test_a_frame_has_the_steps_that_were_taken():
    mdp = two_state().with_labels(states=["s1", "s2"], actions=["a", "b"])
    solution = solve(mdp, Mellowmax(5.0))
    paths = simulate(solution.policy, mdp, 100, paths=4)
    frame = paths.to_frame()
    assert list(frame) == ["path", "time", "state", "action", "reward"]
    assert len(frame) == paths.lengths.sum()
    assert set(frame["state"]) == {"s1"}
    assert set(frame["action"]) <= {"a", "b"}
    by_path = frame.groupby("path")["reward"].sum()
    np.testing.assert_allclose(by_path, paths.rewards.sum(1))
    assert repr(paths).startswith("Simulation(paths=4, steps=100, mean_return=")


HALF = np.full((2, 2), 0.5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: simulate(two_state(), HALF, 3), "`policy` must come first, as in simulate(policy"),
        (lambda: simulate(HALF, two_state(), 0), "`steps` must be a whole number of at least 1"),
        (lambda: simulate(HALF, two_state(), 3, paths=0), "`paths` must be a whole number of at"),
        (lambda: simulate(HALF, two_state(), 3, start=2), "`start` must be a whole number in [0, "),
        (lambda: simulate(HALF, two_state(), 3, start=[0.5, 0.4]),
         "`start` must be a distribution, got [0.5, 0.4]"),
        (lambda: simulate(HALF, two_state(), 3, start=[1.0]),
         "`start` must be a state or 2 probabilities, got the shape (1,)"),
        (lambda: simulate(HALF[None], two_state(), 3), "`policy` must have 3 steps, got 1"),
        (lambda: simulate(HALF * 2, two_state(), 3), "`policy` must be a distribution, got [1. 1."),
        (lambda: simulate(HALF, [two_state()], 3), "`mdp` must have one for each of 3 steps, got"),
    ],
)  # fmt: skip
def test_wrong_arguments(call, message):
    with pytest.raises((TypeError, ValueError), match=f"^{re.escape(message)}"):
        call()
