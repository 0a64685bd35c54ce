"""Labels of states and actions: where they are checked, kept and shown."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest

from mellowmax import Max
from mellowmax.mdp import MDP, chain, grid_world
from mellowmax.mdp.labels import named
from mellowmax.planning import evaluate, solve

LABELLED = chain(3).with_labels(states=["low", "middle", "high"], actions=(-1, 1))


def test_labels_are_kept_on_every_way(tmp_path):
    LABELLED.save(tmp_path / "model.npz")
    copies = (MDP.load(tmp_path / "model.npz"), dataclasses.replace(LABELLED, discount=0.5))
    for mdp in (*copies, LABELLED.with_labels()):
        assert mdp.state_labels.tolist() == ["low", "middle", "high"]
        assert mdp.action_labels.tolist() == [-1, 1]
        assert not mdp.state_labels.flags.writeable
    assert LABELLED.probabilities is LABELLED.with_labels(actions=[0, 1]).probabilities
    assert chain(3).state_labels is None
    other = LABELLED.with_labels(states=[3, 1, 2])
    assert other.state_labels.tolist() == [3, 1, 2]
    assert other.action_labels.tolist() == [-1, 1]


def test_the_states_of_a_grid_are_its_rows_and_columns():
    mdp = grid_world(["..", "#G"])
    assert mdp.state_labels.tolist() == [[0, 0], [0, 1], [1, 1]]
    assert named("state", 2, mdp.state_labels) == "state 2 (1, 1)"
    assert mdp.action_labels.tolist() == ["up", "right", "down", "left"]


def test_an_error_says_which_state_by_its_label():
    stays = MDP.from_arrays([[[1.0, 0.0]], [[0.0, 1.0]]], [[1.0], [0.0]], 1.0)
    mdp = stays.with_labels(states=["on", "off"], actions=["wait"])
    with pytest.raises(ValueError, match=re.escape("from state 0 (on) with action 0 (wait)")):
        mdp.check_ends()


def test_so_do_the_errors_of_planning():
    with pytest.raises(ValueError, match=r"got \[1. 1.\] in state 0 \(low\)$"):
        evaluate(np.ones((3, 2)), LABELLED)
    rows = np.broadcast_to(np.eye(3)[:, None], (3, 2, 3))
    islands = MDP.from_arrays(rows, np.ones((3, 2)), 0.9).with_labels(states=["a", "b", "c"])
    with pytest.raises(ValueError, match=r"with state 0 \(a\) and with state 1 \(b\)$"):
        solve(islands, Max(), average=True)


@pytest.mark.parametrize(
    ("labels", "kind", "message"),
    [
        (["a", "b"], ValueError, "`states` must be 3 labels, got the shape (2,)"),
        (["a", "b", "a"], ValueError, "`states` must be different labels, got a twice"),
        ([(1, 2), (2, 1), (1, 2)], ValueError, "`states` must be different labels, got 1, 2 twice"),
        ([None, 1, 2], TypeError, "`states` must be numbers, texts or tuples of them, got [None,"),
        (np.zeros((3, 0)), ValueError, "`states` must be 3 labels, got the shape (3, 0)"),
        (5, ValueError, "`states` must be 3 labels, got the shape ()"),
    ],
)
def test_what_are_no_labels(labels, kind, message):
    with pytest.raises(kind, match=f"^{re.escape(message)}"):
        chain(3).with_labels(states=labels)
