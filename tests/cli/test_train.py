"""Training and measuring from the command line: real processes, killed and gone on with."""

from __future__ import annotations

import io
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from typing import ClassVar

import gymnasium
import jax
import numpy as np
import pandas as pd
import pytest
from gymnasium.envs.classic_control import CartPoleEnv
from PIL import Image
from typer.testing import CliRunner

from mellowmax import EpsilonGreedy, Max, Mean, deep
from mellowmax.cli import app as cli
from mellowmax.cli import train as practice
from mellowmax.cli.evaluate import Measured
from mellowmax.deep import HeldTemperature
from mellowmax.deep.checkpoint import BlockState, block_path, describe, save
from mellowmax.deep.episodes import EpisodeLog
from mellowmax.deep.rollouts.rollouts import WIDTH

# The command line, with a checkpoint after every batch.
COMMAND = """
import functools
from mellowmax import deep
deep.train = functools.partial(deep.train, seconds_between_checkpoints=0.0)
from mellowmax.cli import main
main()
"""
RUNS, EPISODES = 2, 500
TRAIN = ["train", "CartPole-v1", "--softmax", "boltzmann", "--parameter", "0.3", "--seed", "3"]
TRAIN += ["--runs", str(RUNS), "--episodes", str(EPISODES), "--normalise"]
FAILING = """
import gymnasium
from gymnasium.envs.classic_control import CartPoleEnv

class Failing(CartPoleEnv):
    def step(self, action):
        raise KeyError("the\\nlander has gone")

gymnasium.register("Failing-v0", entry_point=Failing)
"""


class Blind(CartPoleEnv):
    """It cannot show itself."""

    metadata: ClassVar = {"render_modes": ["ansi"]}


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
def undisturbed(tmp_path_factory, environment):
    """A training that nothing happened to, and what it said."""
    out = tmp_path_factory.mktemp("undisturbed") / "new" / "training"
    command = [sys.executable, "-c", COMMAND, *TRAIN, "--out", str(out), "--workers", "0"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return out, rows(done.stdout)


@pytest.fixture
def command(monkeypatch):
    """Call the command line in this process."""
    monkeypatch.setattr(cli, "_keep_compiled_programs", lambda: None)
    return lambda *arguments: CliRunner().invoke(cli.app, [*map(str, arguments)])


def rows(text):
    return {line[:14].strip(): line[15:] for line in text.splitlines()}


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


def test_killed_and_stopped_it_goes_on_and_ends_with_the_same_bytes(tmp_path, start, undisturbed):
    checkpoint = tmp_path / "runs-00000.npz"
    ours, theirs = pty.openpty()
    process = start(tmp_path, stderr=theirs, TERM="xterm", COLUMNS="200")
    os.close(theirs)
    shown, until = b"", time.monotonic() + 60
    while b"episodes/s, about" not in shown and time.monotonic() < until:
        if select.select([ours], [], [], 1)[0]:
            shown += os.read(ours, 65536)
    assert f"/{RUNS * EPISODES}".encode() in shown  # a bar, since it is a terminal
    wait_for_another(checkpoint, None, process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    os.close(ours)
    assert not (tmp_path / "episodes.csv").exists()
    killed_at = checkpoint.stat().st_mtime_ns
    before = episodes_in(checkpoint)
    assert before > 0

    process = start(tmp_path, "--workers", "0")
    wait_for_another(checkpoint, killed_at, process)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert "the same command goes on from there" in stderr
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
    assert float(said.pop("speed").removesuffix(" episodes a second")) > 0
    assert said == {
        "environment": "CartPole-v1",
        "softmax": "Boltzmann(beta=0.3)",
        "episodes": f"{RUNS * EPISODES} of {RUNS * EPISODES}",
        "runs": str(RUNS),
        "written": str(out),
    }
    with Image.open(out / "learning_curve.png") as figure:
        assert figure.width > 500


def test_evaluate_says_what_deep_evaluate_gives_and_shows_an_episode(
    tmp_path, command, undisturbed
):
    gif = tmp_path / "episode.gif"
    options = ("--episodes", 20, "--run", 1, "--seed", 7, "--workers", 0)
    done = command("evaluate", undisturbed[0], "CartPole-v1", *options, "--render", gif)
    assert done.exit_code == 0, done.stderr
    policy = deep.load_policy(undisturbed[0], 1).policy
    expected = deep.evaluate(policy, "CartPole-v1", episodes=20, seed=7, workers=0)
    assert len(np.unique(expected.returns)) > 5
    pictures = [picture for picture, _ in deep.watch(policy, "CartPole-v1", seed=7)]
    kept = pictures[::2]  # of 50 a second
    assert rows(done.stdout) == {
        "environment": "CartPole-v1",
        "policy": "run 1 of a training in CartPole-v1",
        "softmax": "Boltzmann(beta=0.3)",
        "episodes": "20",
        "mean return": f"{expected.mean:.4g}, standard error {expected.standard_error:.2g}",
        "best": f"{expected.returns.max():.4g}",
        "worst": f"{expected.returns.min():.4g}",
        "mean length": f"{expected.lengths.mean():.4g}",
        "written": f"{gif}, {len(kept)} pictures",
    }
    with Image.open(io.BytesIO(gif.read_bytes())) as film:
        assert film.size == (600, 400)
        assert film.n_frames > 1
        assert film.info["loop"] == 0
        shown = 0
        for number in range(film.n_frames):  # pictures that are alike are one, for longer
            film.seek(number)
            shown += film.info["duration"]
        assert shown == 40 * len(kept)
        last = np.asarray(film.convert("RGB")).astype(int)
    assert abs(last - kept[-1].astype(int)).mean() < 1
    assert abs(last - kept[0].astype(int)).mean() > 1
    assert [path.name for path in tmp_path.iterdir()] == ["episode.gif"]


def test_a_file_of_runs_stands_for_its_directory(tmp_path, command, undisturbed):
    (tmp_path / "runs-00032.npz").write_bytes((undisturbed[0] / "runs-00000.npz").read_bytes())
    options = ("CartPole-v1", "--run", 1, "--episodes", 1, "--max-steps", 5, "--workers", 0)
    done = command("evaluate", tmp_path / "runs-00032.npz", *options)
    assert done.exit_code == 0, done.stderr
    said = rows(done.stdout)
    assert said["policy"] == "run 33 of a training in CartPole-v1"
    assert said["mean length"] == "5"
    assert said["mean return"] == "5"  # of one episode there is no standard error


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("Nowhere-v0", "--parameter", 8), "got 'Nowhere-v0': Environment `Nowhere` doesn't exist"),
        (("Pendulum-v1", "--parameter", 8), "must have discrete actions, got Box(-2.0, 2.0, (1,)"),
        (("LunarLanderContinuous-v3", "--parameter", 8), "must have discrete actions, got Box(-1"),
        (("CartPole-v1",), "`--parameter` must be given for mellowmax, got none"),
        (("CartPole-v1", "--softmax", "softest"), "`--softmax` must be one of max, mean, "),
        (("CartPole-v1", "--softmax", "max", "--parameter", 2), "must not be given for max, got 2"),
        (("CartPole-v1", "--parameter", 8, "--episodes", 25), "a multiple of the batch of 10"),
        (("CartPole-v1", "--parameter", 8, "--baseline", "x"), "one of none, others, network"),
        (("CartPole-v1", "--parameter", 8, "--runs", 0), "`runs` must be a whole number of at"),
        (("CartPole-v1", "--parameter", 8, "--seed", 2**32), "`seed` must be a whole number in"),
        (("CartPole-v1", "--parameter", 8, "--out", "text/out"), "`--out` must be a directory tha"),
        (
            ("CartPole-v1", "--softmax", "boltzmann", "--parameter", 1, "--no-through-temperature"),
            "`through_temperature` must be True for a softmax other than Mellowmax",
        ),
    ],
)
def test_training_with_a_wrong_argument_is_one_sentence_and_nothing_is_written(
    tmp_path, monkeypatch, command, arguments, sentence
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_text("no directory")
    done = command("train", *arguments)
    assert_one_sentence(done, sentence)
    assert contents(tmp_path) == {"text": b"no directory"}


def assert_one_sentence(done, sentence, code=2):
    assert done.exit_code == code, done.stderr
    assert done.stdout == ""
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--parameter", "0.25"), "a training with the same settings, got other parameters"),
        (("--learning-rate", "0.01"), "the same settings, got other learning_rate"),
        (("--seed", "4"), "a training with the same settings, got other keys"),
        (("--episodes", "100"), "no fewer than the checkpoint has, got 100"),
    ],
)
def test_a_training_is_not_gone_on_with_under_other_settings(
    command, undisturbed, arguments, sentence
):
    before = contents(undisturbed[0])
    done = command(*TRAIN, "--out", undisturbed[0], *arguments)
    assert_one_sentence(done, sentence)
    assert contents(undisturbed[0]) == before


def test_a_damaged_checkpoint_is_named(tmp_path, command, undisturbed):
    whole = (undisturbed[0] / "runs-00000.npz").read_bytes()
    (tmp_path / "runs-00000.npz").write_bytes(whole[: len(whole) // 2])
    before = contents(tmp_path)
    sentence = "runs-00000.npz', which is damaged or of another kind"
    assert_one_sentence(command(*TRAIN, "--out", tmp_path), sentence)
    assert_one_sentence(command("evaluate", tmp_path, "CartPole-v1"), sentence)
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("absent", "CartPole-v1"), "the directory of a training with a run 0, got 'absent'"),
        (("text.npz", "CartPole-v1"), "`CHECKPOINT` must be the directory of a training, or a fi"),
        (("training", "CartPole-v1", "--run", 2), "the number of runs there, got 2"),
        (("training", "CartPole-v1", "--run", 32), "of a training with a run 32"),
        (("training", "Acrobot-v1"), "4 observations and 2 actions, as the training had, got 6 a"),
        (("training", "Pendulum-v1"), "must have discrete actions"),
        (("training", "CartPole-v1", "--max-steps", 0), "`max_steps` must be a whole number of at"),
        (("training", "CartPole-v1", "--episodes", 0), "`episodes` must be a whole number of at"),
        (("training", "CartPole-v1", "--seed", -1), "`seed` must be a whole number in"),
        (("training", "CartPole-v1", "--render", "x.png"), "ending in .gif in a directory that e"),
        (("training", "CartPole-v1", "--render", "no/x.gif"), "directory that exists, got 'no/x"),
        (
            ("training", "Blind-v0", "--render", "x.gif"),
            "the render mode 'rgb_array' to be watched, got 'Blind-",
        ),
    ],
)
def test_measuring_with_a_wrong_argument_is_one_sentence_before_any_work(
    tmp_path, monkeypatch, command, undisturbed, arguments, sentence
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(deep, "evaluate", None)  # nothing is played
    shutil.copytree(undisturbed[0], "training")
    (tmp_path / "text.npz").write_text("no training")
    blind = gymnasium.envs.registration.EnvSpec("Blind-v0", entry_point=Blind)
    monkeypatch.setitem(gymnasium.registry, "Blind-v0", blind)
    before = sorted(tmp_path.rglob("*"))
    assert_one_sentence(command("evaluate", *arguments), sentence)
    assert sorted(tmp_path.rglob("*")) == before


def test_an_environment_that_fails_in_its_process_is_one_sentence(tmp_path, monkeypatch, command):
    (tmp_path / "failing.py").write_text(FAILING)
    monkeypatch.syspath_prepend(tmp_path)
    arguments = ("--softmax", "mean", "--workers", 1, "--out", tmp_path / "out")
    done = command("train", "failing:Failing-v0", *arguments)
    assert_one_sentence(done, "a process of environments failed: KeyError", code=1)


def test_ctrl_c_while_measuring_ends_it(monkeypatch, command, undisturbed):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(deep, "evaluate", interrupted)
    done = command("evaluate", undisturbed[0], "CartPole-v1")
    assert done.exit_code == 130
    assert done.output == ""


@pytest.mark.parametrize("softmax", [Max(), Mean(), EpsilonGreedy(0.1), HeldTemperature(2.0)])
def test_the_softmax_of_a_checkpoint_comes_back(tmp_path, softmax):
    """Those without a parameter, too."""
    learner = deep.reinforce(softmax, discount=0.99)
    width = WIDTH
    learners = jax.tree.map(lambda x: np.full(width, x, np.float32), learner)
    keys = np.zeros((width, 2), np.uint32)
    description = describe(
        learners, "CartPole-v1", keys, np.arange(width), deep.GymnasiumRollouts("CartPole-v1")
    )
    state = learner.init(jax.random.key(0), 4, 2)
    states = jax.tree.map(lambda x: np.broadcast_to(x, (width, *x.shape)), state)
    save(block_path(tmp_path, 0), description, BlockState(states, EpisodeLog.empty(2, 10)))
    saved = deep.load_policy(tmp_path, 1)
    assert type(saved.policy.softmax) is type(softmax)
    measured = Measured(saved, 1, "CartPole-v1", deep.Evaluation(np.ones(1), np.ones(1)), None)
    assert dict(measured.rows())["softmax"] == str(softmax)


def test_help_has_an_example():
    for name in ("train", "evaluate"):
        done = CliRunner().invoke(cli.app, [name, "--help"], env={"COLUMNS": "200"})
        assert done.exit_code == 0
        assert f"Example: mellowmax {name} " in done.stdout


def test_the_pace_leaves_out_the_compiling(capsys):
    pace = practice._Pace()
    first = deep.TrainProgress(episodes=110, total=200, mean_return=1.5, seconds=15.0, played=10)
    assert pace(first) == "mean return 1.5"
    assert pace(first) == "mean return 1.5"  # two blocks may tell the same
    later = deep.TrainProgress(episodes=130, total=200, mean_return=2.5, seconds=17.0, played=30)
    practice._tell_in_lines(pace, [-5.0], later)
    said = "130 of 200 episodes, mean return 2.5, 10 episodes/s, about 7 s left\n"
    assert capsys.readouterr().err == said
    practice._tell_in_lines(pace, [time.monotonic()], later)
    assert capsys.readouterr().err == ""


def test_the_points_of_a_curve_are_means():
    at, means = practice._means(np.array([1.0, 2.0, 3.0, 4.0, 5.0], np.float32), 2)
    assert at.tolist() == [1.0, 3.0, 4.5]
    assert means.tolist() == [1.5, 3.5, 5.0]
