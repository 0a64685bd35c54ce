"""`mellowmax solve`: what it prints and writes, and a real process on a terminal until Ctrl-C."""

from __future__ import annotations

import csv
import json
import math
import os
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from helpers.commands import Terminal, assert_one_sentence, call, rows
from mellowmax import (
    Boltzmann,
    EpsilonGreedy,
    FreeEnergy,
    LogSumExp,
    Max,
    Mean,
    Mellowmax,
    Resmax,
    Sparsemax,
    planning,
)
from mellowmax._common import npz
from mellowmax.cli import solve as command
from mellowmax.cli.console import choose_softmax
from mellowmax.cli.describe import SOLUTIONS, sizes
from mellowmax.mdp import MDP, chain, garnet, two_state
from mellowmax.planning.any_solution import KINDS

COMMAND = [sys.executable, "-c", "from mellowmax.cli import main; main()"]

MAX = ("model.npz", "--softmax", "max")


def inodes(directory):
    return {path.name: os.lstat(path).st_ino for path in directory.iterdir()}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty directory to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_gymnasium_model_is_solved_and_written(here):
    done = call("solve", "FrozenLake-v1", "--parameter", 16.55)
    assert done.exit_code == 0, done.stderr
    said = rows(done.stdout)
    expected = "16 states, 4 actions, up to 3 successors, discount 0.99"
    assert said["model"] == f"FrozenLake-v1: {expected}"
    assert said["operator"] == "Mellowmax(omega=16.55)"
    assert said["method"].startswith("newton: ")
    assert said["status"].startswith("converged after ")
    assert float(said["residual"]) <= 1e-8
    assert said["error"].endswith("at most")
    assert said["written"] == "solution.npz"
    solution = planning.solve(MDP.from_gymnasium("FrozenLake-v1", 0.99), Mellowmax(16.55))
    with np.load(here / "solution.npz", allow_pickle=False) as file:
        np.testing.assert_allclose(file["q"], solution.q, atol=1e-6)
        np.testing.assert_allclose(file["policy"].sum(1), 1.0)
        assert str(file["status"]) == "converged"
        assert file["residual"] <= 1e-8
    table = done.stdout.split("\n\n")[1].splitlines()[2:]
    shown = np.array([line.split() for line in table], float)
    np.testing.assert_allclose(shown[:, 1], solution.value, rtol=1e-4)
    np.testing.assert_allclose(shown[:, 2:], solution.policy, atol=6e-5)


@pytest.mark.parametrize("option", ["--softmax", "--operator"])
def test_a_saved_model_keeps_its_own_discount(here, option):
    """`--operator` is the former name of `--softmax`."""
    mdp = MDP.from_gymnasium("FrozenLake-v1", 0.9)
    mdp.save("model.npz")
    done = call("solve", "model.npz", option, "mellowmax", "--parameter", 5, "--out", "own.npz")
    assert done.exit_code == 0, done.stderr
    assert "discount 0.9" in rows(done.stdout)["model"]
    expected = planning.solve(mdp, Mellowmax(5.0))
    with np.load(here / "own.npz") as file:
        np.testing.assert_allclose(file["value"], expected.value, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "parameter", "pair"),
    [
        ("max", None, Max()),
        ("mean", None, Mean()),
        ("epsilon-greedy", 0.1, EpsilonGreedy(0.1)),
        ("boltzmann", -2.0, Boltzmann(-2.0)),
        ("mellowmax", 16.55, Mellowmax(16.55)),
        ("log-sum-exp", 2.0, LogSumExp(2.0)),
        ("free-energy", 2.0, FreeEnergy(2.0)),
        ("sparsemax", 2.0, Sparsemax(2.0)),
        ("resmax", 2.0, Resmax(2.0)),
    ],
)
def test_a_softmax_by_its_name(name, parameter, pair):
    assert choose_softmax(name, parameter) == pair


def test_a_softmax_with_a_prior(here):
    two_state().save("model.npz")
    given = ("--softmax", "free-energy", "--parameter", 4, "--prior", "3,1")
    assert call("solve", "model.npz", *given).exit_code == 0
    expected = planning.solve(two_state(), FreeEnergy(4.0, prior=[3.0, 1.0]))
    with np.load(here / "solution.npz") as file:
        np.testing.assert_allclose(file["value"], expected.value, rtol=1e-12)


def test_no_convergence_is_said_and_written(here):
    two_state().save("model.npz")
    options = ("--softmax", "boltzmann", "--parameter", 16.55, "--max-iterations", 10)
    done = call("solve", "model.npz", *options)
    assert done.exit_code == 1
    said = rows(done.stdout)
    assert said["status"] == "out of iterations after 10 iterations"
    assert said["error"] == "not proved for this operator"
    expected = planning.solve(two_state(), Boltzmann(16.55), max_iterations=10, throw=False)
    with np.load(here / "solution.npz") as file:
        np.testing.assert_allclose(file["q"], expected.q, rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("model.npz", "--softmax", "softest"), "`--softmax` must be one of max, mean, "),
        (("model.npz", "--operator", "softest"), "`--softmax` must be one of max, mean, "),
        (
            ("model.npz", "--softmax", "max", "--operator", "mean"),
            "without `--operator`, its forme",
        ),
        (("model.npz",), "`--parameter` must be given for mellowmax, got none"),
        (("model.npz", "--softmax", "max", "--parameter", 2), "must not be given for max, got 2"),
        (("model.npz", "--softmax", "epsilon-greedy", "--parameter", 2), "must be in [0, 1], got"),
        (("model.npz", "--softmax", "max", "--method", "fast"), "`--method` must be one of auto, "),
        (
            ("model.npz", "--softmax", "max", "--tolerance", -1),
            "`--tolerance` must be a number of at least 0",
        ),
        (
            (*MAX, "--prior", "1,2"),
            "`--prior` must be given only for mellowmax and free-energy, got '1,2' for max",
        ),
        (
            ("model.npz", "--parameter", 2, "--prior", "1;2"),
            "`--prior` must be numbers with commas between them, such as 0.5,0.25,0.25, got '1;2'",
        ),
        (("model.npz", "--parameter", 2, "--prior", "1,-1"), "`--prior` must be finite and at"),
        (
            ("model.npz", "--parameter", 2, "--prior", "1,1,1"),
            "`--softmax` must have a prior with the shape (2,) or (2, 2), got the shape (3,)",
        ),
        (("absent.npz", "--softmax", "max"), "a file that exists or a Gymnasium id, got 'absent"),
        (("text.npz", "--softmax", "max"), "`MODEL` must be a saved MDP, got 'text.npz', which is"),
        (("Nowhere-v0", "--softmax", "max"), "the id of a Gymnasium environment, got 'Nowhere-v0'"),
        (("CartPole-v1", "--softmax", "max"), "its transitions as `P`, got 'CartPole-v1'"),
        (("FrozenLake-v1", "--softmax", "max", "--discount", 2), "`--discount` must be in [0, 1]"),
        (("model.npz", "--softmax", "max", "--out", "a/b.npz"), "a directory that exists, got 'a"),
        ((*MAX, "--out", "model.npz", "--force"), "another file than is read, got 'model.npz'"),
        ((*MAX, "--out", "link.npz", "--force"), "another file than is read, got 'link.npz'"),
        ((*MAX, "--out", "pipe", "--force"), "must be a regular file or a new one, got "),
        ((*MAX, "--out", "/dev/null", "--force"), "must be a regular file or a new one, got "),
        ((*MAX, "--out", "text.npz"), "got 'text.npz', which is something else"),
        ((*MAX, "--out", "/proc/a.npz"), "`--out` must be in a directory that can be written to"),
        ((*MAX, "--csv", "a/b.csv"), "`--csv` must be in a directory that exists, got 'a/b.csv'"),
        ((*MAX, "--csv", "text.npz"), "got 'text.npz', which is something else"),
        ((*MAX, "--csv", "model.npz", "--force"), "another file than is read, got 'model.npz'"),
        ((*MAX, "--csv", "./solution.npz", "--force"), "`--csv` must be another file than `--out`"),
        ((*MAX, "--horizon", 0), "`--horizon` must be a whole number of at least 1, got 0"),
        ((*MAX, "--horizon", 3, "--average"), "`--horizon` must not be given for an average rewa"),
        (
            (*MAX, "--horizon", 3, "--method", "newton"),
            "`--method` must not be given with a horizo",
        ),
        (
            (*MAX, "--average"),
            "`MODEL` must go on forever for an average reward, got the terminal ",
        ),
        ((*MAX, "--plot", "a.gif"), "`--plot` must be a file ending in .svg or .png, got 'a.gif'"),
        ((*MAX, "--plot", "a/b.svg"), "`--plot` must be in a directory that exists, got 'a/b.svg'"),
        ((*MAX, "--csv", "a.svg", "--plot", "a.svg"), "`--plot` must be another file than `--csv`"),
    ],
)
def test_a_wrong_argument_is_one_sentence_and_nothing_is_written(here, arguments, sentence):
    two_state().save("model.npz")
    (here / "text.npz").write_text("not a model")
    npz.write("solution.npz", "solution", {"from": "before"})
    os.mkfifo("pipe")
    os.symlink("model.npz", "link.npz")
    before = inodes(here)
    assert_one_sentence(call("solve", *arguments), sentence)
    assert inodes(here) == before


def test_only_a_solution_is_replaced_unless_it_is_forced(here):
    two_state().save("model.npz")
    assert call("solve", "model.npz", "--softmax", "max").exit_code == 0
    assert call("solve", "model.npz", "--softmax", "mean").exit_code == 0
    with np.load("solution.npz") as file:
        assert file["softmax"] == "Mean()"
    (here / "text.npz").write_text("not a model")
    done = call("solve", "model.npz", "--softmax", "max", "--out", "text.npz", "--force")
    assert done.exit_code == 0, done.stderr
    assert npz.kind_of("text.npz") == "solution"


def test_a_table_has_a_row_for_each_state_and_action(here):
    """As pandas reads it, and as any other reader of CSV does."""
    rng = np.random.default_rng(0)
    allowed = np.array([[True, False, True], [True, True, True], [False, True, False]])
    transitions = rng.dirichlet(np.ones(3), (3, 3))
    mdp = MDP.from_arrays(transitions, rng.normal(size=(3, 3)), 0.9, allowed=allowed)
    mdp.save("model.npz")
    done = call("solve", "model.npz", "--parameter", 2, "--csv", "solution.csv")
    assert done.exit_code == 0, done.stderr
    assert rows(done.stdout)["written"] == "solution.npz and solution.csv"
    table = pd.read_csv("solution.csv")
    pairs = [[state, action] for state in range(3) for action in range(3)]
    np.testing.assert_array_equal(table[["state", "action"]], pairs)
    np.testing.assert_array_equal(table["allowed"], allowed.ravel())
    with np.load("solution.npz") as solution:
        for name in ("q", "policy"):
            np.testing.assert_allclose(table[name], solution[name].ravel(), rtol=1e-14)
        np.testing.assert_allclose(table["value"], solution["value"].repeat(3), rtol=1e-14)
        with open("solution.csv", newline="") as file:
            q = [float(row["q"]) for row in csv.DictReader(file)]
        np.testing.assert_array_equal(q, solution["q"].ravel())
    assert (table["q"][~table["allowed"]] == -np.inf).all()
    by_state = table[table["allowed"]].groupby("state")
    mellowmax = by_state["q"].apply(lambda q: np.log(np.exp(2 * q).mean()) / 2)
    np.testing.assert_allclose(mellowmax, by_state["value"].first(), atol=1e-7)
    np.testing.assert_allclose(by_state["policy"].sum(), 1)
    again = call("solve", "model.npz", "--softmax", "max", "--csv", "solution.csv", "--json")
    assert json.loads(again.stdout)["csv"] == "solution.csv"
    assert (pd.read_csv("solution.csv")["policy"] % 1 == 0).all()


def test_states_and_actions_are_called_by_their_labels(here):
    mdp = MDP.from_arrays([[[0.5, 0.5], [1.0, 0.0]]] * 2, [[1.0, 2.0], [0.0, 1.0]], 0.9)
    mdp.with_labels(states=["machine runs", "broken"], actions=["wait", "fix"]).save("model.npz")
    done = call("solve", "model.npz", "--softmax", "max", "--csv", "solution.csv")
    shown = done.stdout.splitlines()[-3:]
    assert shown[0].split() == ["state", "value", "wait", "fix"]
    assert shown[1].startswith("machine runs ")
    assert shown[2].startswith("      broken ")
    table = pd.read_csv("solution.csv")
    assert table["state"].tolist() == ["machine runs"] * 2 + ["broken"] * 2
    assert table["action"].tolist() == ["wait", "fix"] * 2
    assert "machine runs" in call("show", "solution.npz").stdout
    assert call("show", "model.npz").stdout.splitlines()[-1].startswith("      broken ")


MACHINE = MDP.from_arrays(
    [[[0.5, 0.5], [1.0, 0.0]]] * 2, [[1.0, 2.0], [0.0, 1.0]], 0.9
).with_labels(states=["runs", "broken"], actions=["wait", "fix"])


def test_a_horizon_has_values_for_each_step(here):
    MACHINE.save("model.npz")
    given = ("--parameter", 5, "--horizon", 4, "--csv", "by_time.csv", "--plot", "by_time.svg")
    done = call("solve", "model.npz", *given)
    assert done.exit_code == 0, done.stderr
    said = rows(done.stdout.split("\n\n")[0])
    assert said["horizon"] == "4 steps, by backward induction"
    assert said["written"] == "solution.npz, by_time.csv and by_time.svg"
    expected = planning.solve(MACHINE, Mellowmax(5.0), horizon=4)
    table = pd.read_csv("by_time.csv")
    pd.testing.assert_frame_equal(table, expected.to_frame(), check_dtype=False, rtol=1e-14)
    assert "<svg" in (here / "by_time.svg").read_text()
    with np.load("solution.npz") as file:
        for name in ("q", "value", "policy"):
            np.testing.assert_array_equal(file[name], getattr(expected, name))
    first = done.stdout.splitlines()[-2].split()
    assert first[0] == "runs"
    np.testing.assert_allclose(
        np.array(first[1:], float), [expected.value[0, 0], *expected.policy[0, 0]], rtol=2e-4
    )
    data = json.loads(call("show", "solution.npz", "--json").stdout)
    assert (data["kind"], data["horizon"], data["error_bound"]) == (
        "solution",
        4,
        expected.error_bound,
    )
    shown = call("show", "solution.npz").stdout.splitlines()
    assert shown[-4:] == done.stdout.splitlines()[-4:]


def test_the_average_reward_has_its_gain_and_bias(here):
    MACHINE.save("model.npz")
    given = ("--softmax", "max", "--average", "--csv", "average.csv", "--plot", "average.png")
    done = call("solve", "model.npz", *given)
    assert done.exit_code == 0, done.stderr
    said = rows(done.stdout.split("\n\n")[0])
    expected = planning.solve(MACHINE, Max(), average=True)
    assert float(said["gain"]) == pytest.approx(expected.gain, rel=1e-7)
    table = pd.read_csv("average.csv")
    pd.testing.assert_frame_equal(table, expected.to_frame(), check_dtype=False, rtol=1e-14)
    assert (here / "average.png").read_bytes()[:4] == b"\x89PNG"
    data = json.loads(call("show", "solution.npz", "--json").stdout)
    assert (data["gain"], data["bias"]) == (expected.gain, expected.bias.tolist())
    assert call("show", "solution.npz").stdout.splitlines()[-3].split()[:2] == ["state", "bias"]
    again = call("solve", "model.npz", *given, "--max-iterations", 1, "--quiet")  # in their place
    assert (again.exit_code, again.output) == (1, "")
    assert len(pd.read_csv("average.csv")) == 4
    text = call("show", "solution.npz").stdout
    assert rows(text.split("\n\n")[0])["status"] == "out of iterations after 1 iterations"


def test_every_kind_of_solution_is_known_again():
    assert set(SOLUTIONS) == set(KINDS)


def test_an_option_that_is_no_number_is_a_usage_error():
    done = call("solve", "x", "--parameter", "much")
    assert done.exit_code == 2
    assert "Traceback" not in done.stderr


def test_help_has_an_example_and_one_name_for_an_option():
    done = call("solve", "--help")
    assert done.exit_code == 0
    assert "mellowmax solve FrozenLake-v1 --softmax mellowmax --parameter 16.55" in done.stdout
    assert "--operator" not in done.stdout


def test_a_model_is_described_by_its_sizes():
    expected = "5 states, 2 actions, up to 2 successors, discount 0.9"
    assert sizes(chain(5, discount=0.9)) == expected
    dense = MDP.from_arrays([[[0.5, 0.5]], [[1.0, 0.0]]], [[1.0], [0.0]], 0.5)
    assert sizes(dense) == "2 states, 1 actions, dense, discount 0.5"


def test_json_and_quiet_leave_standard_output_to_a_script(here):
    two_state().save("model.npz")
    said = call("solve", "model.npz", "--softmax", "max", "--json")
    assert said.exit_code == 0, said.stderr
    data = json.loads(said.stdout)
    with np.load(here / "solution.npz") as file:
        np.testing.assert_array_equal(data["value"], file["value"])
        np.testing.assert_array_equal(data["policy"], file["policy"])
    assert (data["model"], data["converged"], data["written"]) == (
        "model.npz",
        True,
        "solution.npz",
    )
    silent = call("solve", "model.npz", "--softmax", "max", "--quiet")
    assert (silent.exit_code, silent.output) == (0, "")
    both = call("solve", "model.npz", "--softmax", "max", "--quiet", "--json")
    assert json.loads(both.output)["value"] == data["value"]


def progress(change, iterations=10, seconds=2.0):
    return planning.SolveProgress("in-place", iterations, change, 1e-8, seconds)


def test_the_way_is_measured_in_orders_of_magnitude():
    way = command._Way()
    assert way.share(progress(1.0)) == 0.0
    assert way.text(progress(1.0)) == "in-place: 10 iterations, change 1.0e+00, 2 s"
    assert way.share(progress(1e-2)) == pytest.approx(0.25)
    text = "in-place: 10 iterations, change 1.0e-02, 2 s, about 0:00:06 left"
    assert way.text(progress(1e-2)) == text
    for change in (0.0, math.inf, math.nan, 10.0):
        assert way.share(progress(change)) == 0.0
    assert command._Way(horizon=40).share(progress(1.0)) == 0.25


def test_a_terminal_gets_a_bar_and_ctrl_c_leaves_the_values_so_far(tmp_path):
    """Sweeps are quick here, and nearly without end: a signal finds the loop between two calls."""
    garnet(20, 2, 2, seed=0, discount=0.9999999).save(tmp_path / "slow.npz")
    command = "solve slow.npz --softmax max --method in-place --max-iterations 2000000000"
    with Terminal() as terminal:
        process = subprocess.Popen(
            [*COMMAND, *command.split()],
            cwd=tmp_path,
            env=os.environ | {"XDG_CACHE_HOME": str(tmp_path), "TERM": "xterm", "COLUMNS": "200"},
            stdout=subprocess.PIPE,
            stderr=terminal.theirs,
            text=True,
        )
        with process:
            try:
                terminal.read_until(rb"in-place: \d+ iterations, change .* left")
                process.send_signal(signal.SIGINT)
                terminal.read_until(None)
                stdout = process.stdout.read()
            finally:
                process.kill()
    assert process.returncode == 130
    assert b"stopped by Ctrl-C; " in terminal.shown
    assert rows(stdout)["status"].startswith("stopped after ")
    mdp = MDP.load(tmp_path / "slow.npz")
    with np.load(tmp_path / "solution.npz") as file:
        q, residual = file["q"], float(file["residual"])
        assert not file["converged"]
    transitions, rewards = mdp.to_scipy()
    swept = rewards + mdp.discount * (transitions @ q.max(1)).reshape(rewards.shape)
    assert residual == pytest.approx(abs(swept - q).max(), rel=1e-9)
    assert residual > 1e-8
