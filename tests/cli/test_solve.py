"""The command line, as a user types it: real processes, real signals."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from mellowmax import Boltzmann, Max, Mellowmax
from mellowmax.mdp import MDP, chain, garnet, two_state
from mellowmax.planning import solve

COMMAND = [sys.executable, "-c", "from mellowmax.cli import main; main()"]


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    """Compiled programs are kept between the processes of this file."""
    return {**os.environ, "XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache")), "COLUMNS": "200"}


def mellowmax(*arguments, cwd, env):
    command = [*COMMAND, *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=120)


def rows(text):
    return {line[:14].strip(): line[15:] for line in text.splitlines()}


def test_a_gymnasium_model_is_solved_and_written(tmp_path, cache):
    done = mellowmax("solve", "FrozenLake-v1", "--parameter", 16.55, cwd=tmp_path, env=cache)
    assert done.returncode == 0, done.stderr
    said = rows(done.stdout)
    expected = "16 states, 4 actions, up to 3 successors, discount 0.99"
    assert said["model"] == f"FrozenLake-v1: {expected}"
    assert said["operator"] == "Mellowmax(omega=16.55)"
    assert said["method"].startswith("newton: ")
    assert said["status"].startswith("converged after ")
    assert float(said["residual"]) <= 1e-8
    assert said["error"].endswith("at most")
    assert said["written"] == "solution.npz"
    solution = solve(MDP.from_gymnasium("FrozenLake-v1", 0.99), Mellowmax(16.55))
    with np.load(tmp_path / "solution.npz", allow_pickle=False) as file:
        np.testing.assert_allclose(file["q"], solution.q, atol=1e-6)
        np.testing.assert_allclose(file["policy"].sum(1), 1.0)
        assert str(file["status"]) == "converged"
        assert file["residual"] <= 1e-8


def test_a_saved_model_keeps_its_own_discount(tmp_path, cache):
    two_state().save(tmp_path / "model.npz")
    done = mellowmax(
        "solve", "model.npz", "--operator", "max", "--out", "best.npz", cwd=tmp_path, env=cache
    )
    assert done.returncode == 0, done.stderr
    assert "discount 0.98" in rows(done.stdout)["model"]
    with np.load(tmp_path / "best.npz") as file:
        np.testing.assert_allclose(file["value"], solve(two_state(), Max()).value, atol=1e-6)


def test_no_convergence_is_said_and_written(tmp_path, cache):
    two_state().save(tmp_path / "model.npz")
    options = ("--operator", "boltzmann", "--parameter", 16.55, "--max-iterations", 10)
    done = mellowmax("solve", "model.npz", *options, cwd=tmp_path, env=cache)
    assert done.returncode == 1
    said = rows(done.stdout)
    assert said["status"] == "out of iterations after 10 iterations"
    assert said["error"] == "not proved for this operator"
    expected = solve(two_state(), Boltzmann(16.55), max_iterations=10, throw=False)
    with np.load(tmp_path / "solution.npz") as file:
        np.testing.assert_allclose(file["q"], expected.q, rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("model.npz", "--operator", "softest"), "`--operator` must be one of max, mean, "),
        (("model.npz",), "`--parameter` must be given for mellowmax, got none"),
        (("model.npz", "--operator", "max", "--parameter", 2), "must not be given for max, got 2"),
        (("model.npz", "--operator", "epsilon-greedy", "--parameter", 2), "must be in [0, 1], got"),
        (("model.npz", "--operator", "max", "--method", "fast"), "`method` must be one of auto, "),
        (("model.npz", "--operator", "max", "--tolerance", -1), "`tolerance` must be at least 0"),
        (("absent.npz", "--operator", "max"), "a file that exists or a Gymnasium id, got 'absent"),
        (("text.npz", "--operator", "max"), "`path` must be a saved MDP, got 'text.npz', which is"),
        (
            ("Nowhere-v0", "--operator", "max"),
            "the id of a Gymnasium environment, got 'Nowhere-v0'",
        ),
        (("CartPole-v1", "--operator", "max"), "its transitions as `P`, got 'CartPole-v1'"),
        (("FrozenLake-v1", "--operator", "max", "--discount", 2), "`discount` must be in [0, 1]"),
        (("model.npz", "--operator", "max", "--out", "a/b.npz"), "a directory that exists, got 'a"),
    ],
)
def test_a_wrong_argument_is_one_sentence_and_nothing_is_written(
    tmp_path, cache, arguments, sentence
):
    two_state().save(tmp_path / "model.npz")
    (tmp_path / "text.npz").write_text("not a model")
    (tmp_path / "solution.npz").write_text("from before")
    done = mellowmax("solve", *arguments, cwd=tmp_path, env=cache)
    assert done.returncode == 2
    assert done.stdout == ""
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert (tmp_path / "solution.npz").read_text() == "from before"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "model.npz",
        "solution.npz",
        "text.npz",
    ]


def test_an_option_that_is_no_number_is_a_usage_error(tmp_path, cache):
    done = mellowmax("solve", "x", "--parameter", "much", cwd=tmp_path, env=cache)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_help_has_an_example(tmp_path, cache):
    done = mellowmax("solve", "--help", cwd=tmp_path, env=cache)
    assert done.returncode == 0
    assert "mellowmax solve FrozenLake-v1 --operator mellowmax --parameter 16.55" in done.stdout


def slow_model(path):
    """In-place sweeps of this one take minutes."""
    garnet(20_000, 4, 4, seed=0, discount=0.9999).save(path)
    return ("solve", "slow.npz", "--operator", "max", "--method", "in-place")


def test_ctrl_c_leaves_the_values_so_far_with_their_residual(tmp_path, cache):
    arguments = slow_model(tmp_path / "slow.npz")
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=tmp_path,
        env=cache,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for line in process.stderr:  # a line of progress: the solve is under way
        if line.startswith("in-place: "):
            break
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert rows(stdout)["status"].startswith("stopped after ")
    mdp = MDP.load(tmp_path / "slow.npz")
    with np.load(tmp_path / "solution.npz") as file:
        q, residual = file["q"], float(file["residual"])
        assert not file["converged"]
    transitions, rewards = mdp.to_scipy()
    swept = rewards + mdp.discount * (transitions @ q.max(1)).reshape(rewards.shape)
    assert residual == pytest.approx(abs(swept - q).max(), rel=1e-9)
    assert residual > 1e-8


def test_a_terminal_gets_a_bar(tmp_path, cache):
    """Under a pseudo-terminal the progress is drawn, with the change and the time."""
    arguments = slow_model(tmp_path / "slow.npz")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=tmp_path,
        env={**cache, "TERM": "xterm"},
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    )
    os.close(theirs)
    shown, until = b"", time.monotonic() + 60
    try:
        while b"iterations, change" not in shown and time.monotonic() < until:
            if select.select([ours], [], [], 1)[0]:
                shown += os.read(ours, 65536)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert b"in-place: " in shown
    assert b"iterations, change" in shown


def test_a_model_with_limits_of_its_own_is_described(tmp_path, cache):
    chain(5).save(tmp_path / "chain.npz")
    done = mellowmax("solve", "chain.npz", "--operator", "mean", cwd=tmp_path, env=cache)
    assert done.returncode == 0
    assert "5 states, 2 actions" in rows(done.stdout)["model"]
