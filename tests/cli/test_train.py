"""`mellowmax train`: real processes that are killed, stopped and resumed, and what they write."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from helpers.commands import Terminal, assert_one_sentence, call, rows
from mellowmax import Mellowmax, deep
from mellowmax.cli import train as command
from mellowmax.cli.learning_curve import block_means

# The command line, with a checkpoint after every batch.
COMMAND = """
import functools, sys
from mellowmax import deep
deep.train = functools.partial(deep.train, seconds_between_checkpoints=0.0)
from mellowmax.cli import main
try:
    main()
finally:
    assert "pandas" not in sys.modules, "a learning curve needs no tables of the experiments"
"""
RUNS, EPISODES = 2, 200
TRAIN = ["train", "CartPole-v1", "--softmax", "boltzmann", "--parameter", "0.3", "--seed", "3"]
TRAIN += ["--runs", str(RUNS), "--episodes", str(EPISODES), "--normalise"]
TRAIN += ["--max-steps", "100"]  # up to 256 there is one program
FAILING = """
import gymnasium
from gymnasium.envs.classic_control import CartPoleEnv

class Failing(CartPoleEnv):
    error, left = None, 0

    def step(self, action):
        Failing.left -= 1
        if Failing.left < 0:
            raise self.error
        return super().step(action)

class Lost(Failing):
    error = KeyError("the\\nlander has gone")

class Late(Failing):
    error = ValueError("the lander\\nhas gone")

class Unmade(CartPoleEnv):
    def __init__(self):
        raise KeyError("no lander")

for kind in (Lost, Late, Unmade):
    gymnasium.register(f"{kind.__name__}-v0", entry_point=kind)
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Compiled programs are kept between the processes of this file."""
    return {**os.environ, "XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache"))}


@pytest.fixture
def start(environment):
    processes = []

    def starter(out, *arguments, stderr=subprocess.PIPE, **more):
        process = subprocess.Popen(
            [sys.executable, "-c", COMMAND, *TRAIN, "--out", str(out), *arguments],
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            env=environment | more,
        )
        processes.append(process)
        return process

    yield starter
    for process in processes:
        with process:  # which closes its pipes
            process.kill()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """A training that nothing happened to, and what it said."""
    out = tmp_path_factory.mktemp("undisturbed") / "new" / "training"
    done = call(*TRAIN, "--out", out, "--workers", 0)
    assert done.exit_code == 0, done.stderr
    return out, rows(done.stdout)


def contents(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def episodes_in(checkpoint):
    with np.load(checkpoint) as file:
        return int((file["lengths"] > 0).sum())


def wait_for_another(checkpoint, before, process):
    until = time.monotonic() + 60
    while not checkpoint.exists() or checkpoint.stat().st_mtime_ns == before:
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.01)


def test_killed_and_stopped_it_resumes_and_ends_with_the_same_bytes(tmp_path, start, undisturbed):
    checkpoint = tmp_path / "runs-00000.npz"
    with Terminal() as terminal:
        process = start(tmp_path, stderr=terminal.theirs, TERM="xterm", COLUMNS="200")
        terminal.read_until(b"episodes/s, about")
        wait_for_another(checkpoint, None, process)
        process.send_signal(signal.SIGKILL)
        process.wait()
    shown = terminal.shown.decode()
    assert f" of {RUNS * EPISODES} episodes, mean return " in shown
    assert "━" in shown  # a bar, since it is a terminal
    assert not (tmp_path / "episodes.csv").exists()
    killed_at = checkpoint.stat().st_mtime_ns
    before = episodes_in(checkpoint)
    assert before > 0

    process = start(tmp_path, "--workers", "0")
    wait_for_another(checkpoint, killed_at, process)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert "the same command resumes from there" in stderr
    so_far = pd.read_csv(tmp_path / "episodes.csv")
    assert 0 < len(so_far) < RUNS * EPISODES
    said = f"{len(so_far)} of {RUNS * EPISODES}, {before} of them from before"
    assert rows(stdout)["episodes"] == said
    whole = pd.read_csv(undisturbed[0] / "episodes.csv")
    pd.testing.assert_frame_equal(so_far, so_far[["run", "episode"]].merge(whole))

    process = start(tmp_path)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr
    said = f"{RUNS * EPISODES} of {RUNS * EPISODES}, {len(so_far)} of them from before"
    assert rows(stdout)["episodes"] == said
    for name in ("episodes.csv", "learning_curve.svg", "learning_curve.png"):
        assert (tmp_path / name).read_bytes() == (undisturbed[0] / name).read_bytes()
    assert rows(stdout)["mean return"] == undisturbed[1]["mean return"]


def test_what_is_written_is_what_is_said(undisturbed):
    out, said = undisturbed
    table = pd.read_csv(out / "episodes.csv")
    assert list(table.columns) == ["run", "episode", "return", "length"]
    assert len(table) == RUNS * EPISODES
    assert (table["return"] == table["length"]).all()  # in CartPole
    assert table.groupby("run")["episode"].apply(list).tolist() == [[*range(EPISODES)]] * RUNS
    ends = table[table["episode"] >= EPISODES - 100].groupby("run")["return"].mean()
    error = ends.std() / RUNS**0.5
    expected = f"{ends.mean():.4g}, standard error {error:.2g} (the last 100 episodes of a run)"
    assert said.pop("mean return") == expected
    mean = f"{ends.mean():.4g} (the last 100 episodes of a run)"
    assert rows(call("show", out).stdout)["mean return"] == mean
    assert float(said.pop("speed").removesuffix(" episodes a second")) > 0
    assert said == {
        "environment": "CartPole-v1",
        "algorithm": "reinforce",
        "softmax": "Boltzmann(beta=0.3)",
        "episodes": f"{RUNS * EPISODES} of {RUNS * EPISODES}",
        "runs": str(RUNS),
        "written": str(out),
    }
    with Image.open(out / "learning_curve.png") as figure:
        assert figure.width > 500
    again = call(
        *TRAIN, "--out", out, "--workers", 0, "--json", "--quiet"
    )  # nothing is left to play
    data = json.loads(again.output)
    assert data["played"] == [EPISODES] * RUNS
    np.testing.assert_allclose(data["mean_returns"], ends)
    assert (data["episodes_per_second"], data["written"]) == (None, str(out))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("Nowhere-v0", "--parameter", 8), "got 'Nowhere-v0': Environment `Nowhere` doesn't exist"),
        (
            ("CartPole", "--parameter", 8),
            "`ENV` must be the id of a Gymnasium environment with its "
            "version, such as 'CartPole-v1', got 'CartPole'",
        ),
        (("Pendulum-v1", "--parameter", 8), "must have discrete actions, got Box(-2.0, 2.0, (1,)"),
        (("LunarLanderContinuous-v3", "--parameter", 8), "must have discrete actions, got Box(-1"),
        (("CartPole-v1",), "`--parameter` must be given for mellowmax, got none"),
        (("CartPole-v1", "--softmax", "softest"), "`--softmax` must be one of max, mean, "),
        (("CartPole-v1", "--softmax", "max", "--parameter", 2), "must not be given for max, got 2"),
        (("CartPole-v1", "--softmax", "max"), "got Max(), whose gradient is 0 wherever it exists"),
        (("CartPole-v1", "--parameter", 8, "--episodes", 25), "a multiple of the batch of 10"),
        (("CartPole-v1", "--parameter", 8, "--baseline", "x"), "one of none, leave-one-out, n"),
        (("CartPole-v1", "--parameter", 8, "--runs", 0), "`--runs` must be a whole number in [1"),
        (("CartPole-v1", "--parameter", 8, "--seed", 2**32), "`--seed` must be a whole number in"),
        (("CartPole-v1", "--parameter", 8, "--out", "text/out"), "`--out` must be a directory tha"),
        (("CartPole-v1", "--algorithm", "sarsa"), "`--algorithm` must be one of reinforce, dqn, "),
        (
            ("CartPole-v1", "--target", 9),
            "`--target` must not be given for reinforce, since it is ",
        ),
        (
            ("CartPole-v1", "--algorithm", "dqn", "--no-normalise"),
            "`--normalise` must not be given for dqn, since it is of reinforce; got False",
        ),
        (
            ("CartPole-v1", "--algorithm", "dqn", "--parameter", 5, "--capacity", 0),
            "`--capacity` must be a whole number of at least 1, got 0",
        ),
        (
            ("CartPole-v1", "--softmax", "boltzmann", "--parameter", 1, "--no-through-temperature"),
            "`--through-temperature` must be True for a softmax other than Mellowmax",
        ),
    ],
)
def test_training_with_a_wrong_argument_is_one_sentence_and_nothing_is_written(
    tmp_path, monkeypatch, arguments, sentence
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_text("no directory")
    done = call("train", *arguments)
    assert_one_sentence(done, sentence)
    assert contents(tmp_path) == {"text": b"no directory"}


@pytest.mark.parametrize("name", command.FILES)
def test_files_of_others_are_not_replaced(tmp_path, name):
    (tmp_path / name).write_text("mine")
    done = call("train", "CartPole-v1", "--parameter", 8, "--out", tmp_path)
    assert_one_sentence(done, f"or one of this command, without `--force`; got {str(tmp_path)!r}")
    assert contents(tmp_path) == {name: b"mine"}


def test_a_second_process_is_told_who_trains_there(tmp_path, start):
    process = start(tmp_path, "--episodes", "100000", "--workers", "0")
    wait_for_another(tmp_path / "runs-00000.npz", None, process)
    done = call(*TRAIN, "--out", tmp_path, "--learning-rate", "0.01")
    assert_one_sentence(done, f"where process {process.pid} on {socket.gethostname()} does")
    process.kill()
    process.wait()
    assert (tmp_path / "lock.json").exists()  # which holds nobody up
    done = call(*TRAIN, "--out", tmp_path, "--learning-rate", "0.01")
    assert_one_sentence(done, "`--learning-rate` was 0.005 and is 0.01")
    assert not (tmp_path / "lock.json").exists()


def test_a_training_that_diverges_says_so_and_keeps_what_was_sound(tmp_path):
    done = call(*TRAIN, "--learning-rate", "1e38", "--out", tmp_path, "--workers", 0)
    assert done.exit_code == 1
    sentence = r"mellowmax: the training has diverged: run . has a weight that is not finite after"
    assert re.match(sentence, done.stderr.splitlines()[-1])
    with np.load(tmp_path / "runs-00000.npz") as file:
        assert file["done"].max() == 1
        for name in file["fields"]:
            if name.startswith("state-"):
                assert np.isfinite(file[name]).all()
    assert [path.name for path in tmp_path.iterdir()] == ["runs-00000.npz"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--parameter", "0.25"), "`--parameter` was 0.3 and is 0.25"),
        (("--learning-rate", "0.01"), "`--learning-rate` was 0.005 and is 0.01"),
        (("--seed", "4"), "`--seed` was 3 and is 4"),
        (("--episodes", "100"), "no fewer than the checkpoint has, got 100"),
    ],
)
def test_a_training_is_not_resumed_under_other_settings(undisturbed, arguments, sentence):
    before = contents(undisturbed[0])
    done = call(*TRAIN, "--out", undisturbed[0], *arguments)
    assert_one_sentence(done, sentence)
    assert contents(undisturbed[0]) == before


def test_a_damaged_checkpoint_is_named(tmp_path, undisturbed):
    whole = (undisturbed[0] / "runs-00000.npz").read_bytes()
    (tmp_path / "runs-00000.npz").write_bytes(whole[: len(whole) // 2])
    before = contents(tmp_path)
    sentence = "runs-00000.npz', which is damaged, compressed or of another kind"
    done = call(*TRAIN, "--out", tmp_path)
    assert_one_sentence(done, sentence)
    assert "`--out` must be" in done.stderr
    assert contents(tmp_path) == before


@pytest.fixture
def failing(tmp_path, monkeypatch):
    """Arguments of trainings in environments that fail."""
    (tmp_path / "failing.py").write_text(FAILING)
    monkeypatch.syspath_prepend(tmp_path)
    return (*TRAIN[2:], "--out", tmp_path / "out")


@pytest.mark.parametrize("workers", [0, 1])
def test_an_environment_that_fails_is_one_sentence(failing, workers):
    done = call("train", "failing:Lost-v0", *failing, "--workers", workers)
    sentence = r"an environment failed: KeyError: 'the\nlander has gone'"
    assert_one_sentence(done, sentence, code=1)


def test_an_environment_without_the_mask_that_is_asked_for_is_one_sentence(tmp_path):
    done = call("train", "CartPole-v1", "--parameter", 8, "--action-mask", "--out", tmp_path / "x")
    sentence = "`ENV` must give `info['action_mask']` with 2 entries of 0 and 1, got None"
    assert_one_sentence(done, sentence, code=1)
    arguments = ("mellowmax/LunarLander-v0", "--parameter", 8, "--action-mask")
    done = call("train", *arguments, "--out", tmp_path / "x")
    assert_one_sentence(done, "`--action-mask` must be left out where every action is legal")
    assert not (tmp_path / "x").exists()


def test_an_environment_that_fails_late_is_no_wrong_argument(tmp_path, failing):
    """The code is not 2, after which nothing has been written: there is a checkpoint."""
    importlib.import_module("failing").Failing.left = 3000
    done = call("train", "failing:Late-v0", *failing, "--workers", 0, "--quiet")
    assert_one_sentence(done, "an environment failed: ValueError: the lander has gone", code=1)
    assert episodes_in(tmp_path / "out" / "runs-00000.npz") > 0


def test_an_environment_that_cannot_be_made_is_one_sentence(tmp_path, failing):
    done = call("train", "failing:Unmade-v0", *failing)
    assert_one_sentence(done, "that can be made, got 'failing:Unmade-v0': KeyError: 'no lander'")
    assert not (tmp_path / "out").exists()


def test_help_has_an_example_and_the_defaults_of_the_library():
    done = call("train", "--help")
    assert done.exit_code == 0
    assert "Example: mellowmax train CartPole-v1 --algorithm dqn" in done.stdout
    text = re.sub(r"\s+", " ", done.stdout)
    none = {"target": "no target network", "munchausen": "none", "temperature": "tuned"}
    none["value_clip"] = "as --clip"
    for algorithm, names in command.ALGORITHMS.items():
        parameters = inspect.signature(getattr(deep, algorithm)).parameters
        for name in names:
            default = str(parameters[command.OPTIONS.get(name, name)].default)
            default = {"True": "yes", "False": "no", "None": none.get(name)}.get(default, default)
            flag = f"--{name.replace('_', '-')} "
            assert re.search(rf"{flag}[^\]]*\[default: \({re.escape(default)}\)\]", text), name
        made = getattr(deep, algorithm)(Mellowmax(5.0))
        for name in ("learning_rate", "hidden", "depth"):
            flag = f"--{name.replace('_', '-')} "
            default = getattr(made, name, None) or getattr(made.network, name)
            assert re.search(rf"{flag}[^\]]*\b{default} for {algorithm}\b", text), name


def test_deep_q_learning_is_trained_resumed_shown_and_evaluated(tmp_path):
    arguments = ("train", "CartPole-v1", "--algorithm", "dqn", "--parameter", 5, "--runs", 2)
    arguments += ("--capacity", 200, "--learning-starts", 20, "--target", 9, "--max-steps", 60)
    arguments += ("--hidden", 8, "--workers", 0)
    for episodes in (6, 12):
        done = call(*arguments, "--episodes", episodes, "--out", tmp_path / "parts")
        assert done.exit_code == 0, done.stderr
    assert rows(done.stdout)["episodes"] == "24 of 24, 12 of them from before"
    assert call(*arguments, "--episodes", 12, "--out", tmp_path / "once").exit_code == 0
    tables = [(tmp_path / name / "episodes.csv").read_bytes() for name in ("parts", "once")]
    assert tables[0] == tables[1]
    said = rows(call("show", tmp_path / "parts").stdout)
    assert said["training"] == "DQN in CartPole-v1"
    assert said["softmax"] == "Mellowmax with 5"
    assert said["target network"] == "a copy every 9 updates"
    assert said["replay"] == "the last 200 steps, 64 of them every 4 steps"
    assert said["episodes"] == "12 of each run, 24 in all"
    said = rows(call("evaluate", tmp_path / "parts", "--episodes", 8, "--run", 1).stdout)
    assert said["policy"] == "greedy, run 1 of a training in CartPole-v1"
    assert said["softmax"] == "Mellowmax(omega=5.0)"
    done = call(*arguments, "--episodes", 12, "--out", tmp_path / "once", "--target", 8)
    assert_one_sentence(done, "`--target` was 9.0 and is 8.0")


def test_ppo_is_trained_by_steps_resumed_shown_and_evaluated(tmp_path):
    arguments = ("train", "CartPole-v1", "--algorithm", "ppo", "--softmax", "boltzmann")
    arguments += ("--parameter", 1, "--environments", 2, "--segment", 8, "--max-steps", 60)
    arguments += ("--hidden", 8, "--depth", 1, "--epochs", 2, "--runs", 2, "--workers", 0)
    for steps in (160, 320):
        done = call(*arguments, "--steps", steps, "--out", tmp_path / "parts")
        assert done.exit_code == 0, done.stderr
    assert re.fullmatch(r"\d+, \d+ of them from before", rows(done.stdout)["episodes"])
    assert call(*arguments, "--steps", 320, "--out", tmp_path / "once").exit_code == 0
    tables = [(tmp_path / name / "episodes.csv").read_bytes() for name in ("parts", "once")]
    assert tables[0] == tables[1]
    said = rows(call("show", tmp_path / "parts").stdout)
    assert said["training"] == "PPO in CartPole-v1"
    assert said["segment"] == "8 steps of 2 environments, 2 epochs in 4 minibatches"
    assert said["loss"] == "clip 0.2, entropy 0.01, value 0.5"
    said = rows(call("evaluate", tmp_path / "parts", "--episodes", 8, "--run", 1).stdout)
    assert said["policy"] == "run 1 of a training in CartPole-v1"
    done = call(*arguments, "--steps", 320, "--out", tmp_path / "once", "--clip", 0.1)
    assert_one_sentence(done, "`--clip` was 0.2 and is 0.1")
    done = call(*arguments, "--episodes", 20, "--out", tmp_path / "none")
    assert_one_sentence(done, "`--steps` must be given for `ppo`, whose episodes end several at a")
    done = call(*arguments, "--steps", 8, "--runs", 1, "--out", tmp_path / "short")
    assert rows(done.stdout)["episodes"] == "none has ended"


@pytest.mark.release
def test_soft_actor_critic_is_trained_and_evaluated(tmp_path):
    arguments = ("train", "CartPole-v1", "--algorithm", "sac", "--softmax", "boltzmann")
    arguments += ("--parameter", 1, "--steps", 120, "--learning-starts", 20, "--minibatch", 8)
    arguments += ("--hidden", 8, "--depth", 1, "--workers", 0, "--max-steps", 60)
    done = call(*arguments, "--temperature", 0.2, "--out", tmp_path)
    assert done.exit_code == 0, done.stderr
    assert rows(call("show", tmp_path).stdout)["temperature"] == "0.2"
    said = rows(call("evaluate", tmp_path, "--episodes", 8).stdout)
    assert said["policy"] == "run 0 of a training in CartPole-v1"
    done = call(*arguments, "--target", 3)
    assert_one_sentence(done, "`--target` must not be given for sac, since it is of dqn; got 3")


def test_the_points_of_a_curve_are_means():
    at, means = block_means(np.array([1.0, 2.0, 3.0, 4.0, 5.0], np.float32), 2)
    assert at.tolist() == [1.0, 3.0, 4.5]
    assert means.tolist() == [1.5, 3.5, 5.0]
