"""`mellowmax show`: solutions, models and checkpoints, for people and for scripts."""

from __future__ import annotations

import json

import jax
import numpy as np
import pytest

from helpers.commands import assert_one_sentence, call, rows
from mellowmax import Mellowmax, deep
from mellowmax._common import npz
from mellowmax.deep.checkpoint import BlockState, block_path, save
from mellowmax.deep.description import describe
from mellowmax.deep.log import EpisodeLog
from mellowmax.deep.play.player import WIDTH
from mellowmax.environments import two_state as environment
from mellowmax.mdp import MDP, chain, two_state
from mellowmax.planning import Solution, solve

ALLOWED = np.array([[True, False], [True, True]])


def shown(*arguments):
    done = call("show", *arguments)
    assert done.exit_code == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def numbers_below(text):
    """The table under the rows, without its two lines of heading."""
    return [
        [float(word) for word in line.split()]
        for line in text.split("\n\n")[1].split("\n")[2:]
        if line
    ]


def solution(n_states):
    """Made up: what is shown is what is in the file."""
    q = np.arange(2.0 * n_states).reshape(n_states, 2)
    known = {"converged": True, "status": "converged", "iterations": 7, "method": "newton"}
    bounds = {"residual": 1e-9, "error_bound": None, "suboptimality_bound": np.inf}
    return Solution(
        q, q.max(1), **known, **bounds, reason="why", softmax=Mellowmax(5.0), seconds=1.0
    )


def test_a_solution_with_the_values_and_the_policy_of_every_state(tmp_path):
    solved = solve(two_state(), Mellowmax(5.0))
    solved.save(tmp_path / "solution.npz")
    text = shown(tmp_path / "solution.npz")
    said = rows(text.split("\n\n")[0])
    assert said == {name: told for name, told in solved.rows() if name != "time"}
    expected = np.column_stack([[0, 1], solved.value, solved.policy])
    np.testing.assert_allclose(numbers_below(text), expected, rtol=1e-4, atol=5e-5)
    data = json.loads(shown(tmp_path / "solution.npz", "--json"))
    assert data["kind"] == "solution"
    assert data["softmax"] == "Mellowmax(omega=5.0)"
    assert data["error_bound"] == solved.error_bound
    np.testing.assert_array_equal(data["value"], solved.value)
    np.testing.assert_array_equal(data["policy"], solved.policy)


def test_the_numbers_of_a_large_model_stay_in_the_file(tmp_path):
    for n_states in (20, 21):
        solution(n_states).save(tmp_path / "solution.npz")
        text = shown(tmp_path / "solution.npz")
        assert ("\n\n" in text) is (n_states == 20)
        assert rows(text.split("\n\n")[0])["error"] == "not proved for this operator"
        data = json.loads(shown(tmp_path / "solution.npz", "--json"))
        assert ("policy" in data) is (n_states == 20)
        assert data["states"] == n_states
        assert data["suboptimality_bound"] is None  # JSON has no infinity


def test_printing_a_solution_computes_no_policy():
    one = solution(3)
    assert "below optimum  unknown" in str(one)
    assert "policy" not in vars(one)


def test_a_model(tmp_path):
    mdp = MDP.from_arrays(np.full((2, 2, 2), 0.5), [[1.0, 2.0], [3.0, -4.0]], 0.9, allowed=ALLOWED)
    mdp.save(tmp_path / "model.npz")
    text = shown(tmp_path / "model.npz")
    assert rows(text.split("\n\n")[0]) == {
        "model": "2 states, 2 actions, dense, discount 0.9",
        "terminal": "0 of 2 states",
        "available": "3 pairs of a state and an action",
        "rewards": "from -4 to 3, on average over the successors",
    }
    np.testing.assert_array_equal(numbers_below(text), [[0, 1, np.nan], [1, 3, -4]])
    chain(50).save(tmp_path / "model.npz")
    assert "\n\n" not in shown(tmp_path / "model.npz")
    data = json.loads(shown(tmp_path / "model.npz", "--json"))
    assert (data["kind"], data["states"], data["dense"]) == ("model", 50, False)


def test_a_checkpoint_as_a_directory_and_as_a_file(tmp_path):
    """Made up as well: three runs that have learned nothing from two batches of two episodes."""
    learner = deep.reinforce(Mellowmax(0.1), 0.02, batch=2, discount=0.9)
    learners = jax.tree.map(lambda x: np.full(WIDTH, x, np.float32), learner)
    place = deep.FunctionalEnvironment(environment, environment.params(), 4)
    keys, numbers = np.zeros((WIDTH, 2), np.uint32), np.arange(WIDTH)
    state = jax.eval_shape(lambda: learner.init(jax.random.key(0), 2, 2))
    state = jax.tree.map(lambda x: np.zeros((WIDTH, *x.shape), x.dtype), state)
    log = EpisodeLog.empty(3, 4, 2)
    for batch in np.arange(12, dtype=np.float32).reshape(2, 3, 2):
        log.add(range(3), batch, np.ones((3, 2), np.int32))
    description = describe(learners, place.name, keys, numbers, place, log)
    save(block_path(tmp_path, 0), description, BlockState(state, log))
    text = shown(tmp_path)
    assert shown(tmp_path / "runs-00000.npz") == text
    said = rows(text)
    assert said["training"] == f"REINFORCE in {place.name}"
    assert said["softmax"] == "Mellowmax with 0.1"
    assert said["learning rate"] == "0.02"
    assert said["runs"] == "3"
    assert said["episodes"] == "4 of each run, 12 in all"
    assert said["mean return"] == "5.5 (the last 4 episodes of a run)"
    data = json.loads(shown(tmp_path, "--json"))
    assert (data["kind"], data["parameters"], data["discount"]) == ("training", [0.1], [0.9])


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("absent.npz", "got 'absent.npz', which is not there"),
        ("text.npz", "got 'text.npz', which is damaged, compressed or of another kind"),
        ("other.npz", "got 'other.npz', which is damaged, compressed or of another kind"),
        ("array.npy", "got 'array.npy', which is damaged, compressed or of another kind"),
        ("empty", "got the directory 'empty' without runs-*.npz"),
        ("half.npz", "got 'half.npz', which is damaged, compressed or of another kind"),
        ("body.npz", "got 'body.npz', which is damaged, compressed or of another kind"),
    ],
)
def test_anything_else_is_one_sentence(tmp_path, monkeypatch, name, sentence):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.npz").write_text("not a model")
    (tmp_path / "empty").mkdir()
    np.save("array.npy", np.ones(3))
    npz.write("other.npz", "cell", {"x": np.ones(3)})
    two_state().save("whole.npz")
    whole = (tmp_path / "whole.npz").read_bytes()
    (tmp_path / "half.npz").write_bytes(whole[:700])
    at = whole.index(b"rewards.npy") + 150  # among its numbers
    (tmp_path / "body.npz").write_bytes(whole[:at] + bytes(40) + whole[at + 40 :])
    done = call("show", name)
    assert_one_sentence(done, sentence)
    assert done.stderr.startswith("mellowmax: `FILE` must be ")
