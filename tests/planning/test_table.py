"""Solutions as tables: the right number in the row of its state, action and step."""

from __future__ import annotations

import numpy as np
import pytest

from mellowmax import Max, Mellowmax
from mellowmax.mdp import MDP, chain
from mellowmax.planning import solve

ALLOWED = np.array([[True, True], [False, True], [True, True]])
MODEL = MDP.from_arrays(
    np.random.default_rng(0).dirichlet(np.ones(3), (3, 2)),
    np.arange(6.0).reshape(3, 2),
    0.9,
    allowed=ALLOWED,
).with_labels(states=[("a", "0"), ("a", "1"), ("b", "0")], actions=["stay", "go"])


@pytest.mark.parametrize("softmax", [Max(), Mellowmax(2.0)], ids=str)
def test_a_row_for_each_state_and_action(softmax):
    solution = solve(MODEL, softmax)
    frame = solution.to_frame()
    assert list(frame) == ["state", "action", "allowed", "q", "policy", "value"]
    rows = frame.to_dict("records")
    for s, state in enumerate([("a", "0"), ("a", "1"), ("b", "0")]):
        for a, action in enumerate(["stay", "go"]):
            row = rows[2 * s + a]
            assert (row["state"], row["action"]) == (state, action)
            assert row["q"] == solution.q[s, a]
            assert row["policy"] == solution.policy[s, a]
            assert row["value"] == solution.value[s]
            assert row["allowed"] == ALLOWED[s, a]


def test_a_row_for_each_step_too():
    solution = solve(MODEL, Max(), horizon=4)
    frame = solution.to_frame()
    assert list(frame)[:3] == ["time", "state", "action"]
    for t in range(4):
        at = frame[frame["time"] == t]
        np.testing.assert_array_equal(at["q"], solution.q[t].ravel())
        np.testing.assert_array_equal(at["value"], solution.value[t].repeat(2))
        np.testing.assert_array_equal(at["policy"], solution.policy[t].ravel())
        assert at["action"].tolist() == ["stay", "go"] * 3


def test_the_average_reward_has_the_bias_in_its_table():
    solution = solve(chain(3), Max(), average=True)
    frame = solution.to_frame()
    np.testing.assert_array_equal(frame["bias"], solution.bias.repeat(2))
    assert frame["state"].tolist() == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize("options", [{}, {"horizon": 2}, {"average": True}], ids=str)
def test_labels_are_saved_with_a_solution(options, tmp_path):
    path = tmp_path / "solution.npz"
    solve(MODEL, Max(), **options).save(path)
    with np.load(path) as saved:
        assert saved["action_labels"].tolist() == ["stay", "go"]
        assert saved["state_labels"].tolist() == [["a", "0"], ["a", "1"], ["b", "0"]]
