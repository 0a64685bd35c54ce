"""`mellowmax evaluate`: what a policy of a checkpoint earns, and its film."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import shutil
from typing import ClassVar

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.envs.classic_control import CartPoleEnv
from PIL import Image

from helpers.commands import assert_one_sentence, call, rows
from mellowmax import Boltzmann, EpsilonGreedy, Max, Mean, deep
from mellowmax.cli import evaluate as command
from mellowmax.deep import HeldTemperature
from mellowmax.deep.checkpoint import BlockState, block_path, save
from mellowmax.deep.description import describe
from mellowmax.deep.log import EpisodeLog
from mellowmax.deep.play.player import WIDTH

RUNS = 2


class Blind(CartPoleEnv):
    """It cannot show itself."""

    metadata: ClassVar = {"render_modes": ["ansi"]}


def write_checkpoint(directory, softmax, environment="CartPole-v1", place="CartPole-v1", **options):
    """A checkpoint of runs that have not learned anything yet."""
    learner = dataclasses.replace(deep.reinforce(Boltzmann(1.0), discount=0.99), softmax=softmax)
    learners = jax.tree.map(lambda x: np.full(WIDTH, x, np.float32), learner)
    keys, numbers = np.zeros((WIDTH, 2), np.uint32), np.arange(WIDTH)
    place = deep.GymnasiumEnvironment(place, **options)
    log = EpisodeLog.empty(RUNS, 10, 10)
    description = describe(learners, environment, keys, numbers, place, log)
    state = learner.init(jax.random.key(0), place.n_observations, place.n_actions)
    states = jax.tree.map(lambda x: np.broadcast_to(x, (WIDTH, *x.shape)), state)
    save(block_path(directory, 0), description, BlockState(states, log))


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    directory = tmp_path_factory.mktemp("checkpoint")
    write_checkpoint(directory, Boltzmann(0.3))
    return directory


def test_evaluate_says_what_deep_evaluate_gives_and_shows_an_episode(tmp_path, checkpoint):
    gif = tmp_path / "episode.gif"
    options = ("--episodes", 20, "--run", 1, "--seed", 7, "--workers", 0)
    for _ in range(2):  # what the command wrote it may write again
        done = call("evaluate", checkpoint, "CartPole-v1", *options, "--render", gif)
        assert done.exit_code == 0, done.stderr
    policy = deep.load_policy(checkpoint, 1).policy
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


def test_a_file_of_runs_stands_for_its_directory(tmp_path, checkpoint):
    (tmp_path / "runs-00032.npz").write_bytes((checkpoint / "runs-00000.npz").read_bytes())
    options = ("CartPole-v1", "--run", 1, "--episodes", 1, "--max-steps", 5, "--workers", 0)
    done = call("evaluate", tmp_path / "runs-00032.npz", *options)
    assert done.exit_code == 0, done.stderr
    said = rows(done.stdout)
    assert said["policy"] == "run 33 of a training in CartPole-v1"
    assert said["mean length"] == "5"
    assert said["mean return"] == "5"  # of one episode there is no standard error


def test_the_environment_is_that_of_the_training_and_json_has_every_episode(checkpoint):
    options = ("--episodes", 9, "--max-steps", 5, "--workers", 0, "--json")
    done = call("evaluate", checkpoint, *options)
    assert done.exit_code == 0, done.stderr
    data = json.loads(done.stdout)
    assert data["environment"] == data["trained_in"] == "CartPole-v1"
    policy = deep.load_policy(checkpoint).policy
    expected = deep.evaluate(policy, "CartPole-v1", episodes=9, max_steps=5, workers=0)
    assert data["returns"] == expected.returns.tolist()
    assert data["mean_return"] == expected.mean
    silent = call("evaluate", checkpoint, *options[:-1], "--quiet")
    assert (silent.exit_code, silent.output) == (0, "")


def test_a_mask_of_legal_actions_is_kept_to_as_in_the_training(tmp_path):
    write_checkpoint(tmp_path, Boltzmann(0.3), "Taxi-v4", "Taxi-v4", action_mask=True)
    options = ("--episodes", 4, "--max-steps", 20, "--workers", 0, "--json")
    least = []
    for more in ((), ("--no-action-mask",)):
        done = call("evaluate", tmp_path, *options, *more)
        assert done.exit_code == 0, done.stderr
        least.append(min(json.loads(done.stdout)["returns"]))
    assert least[0] >= -20  # a step costs 1; an illegal one may cost 10
    assert least[1] < -20
    done = call("evaluate", tmp_path, "CartPole-v1", *options)
    sentence = "`ENV` must give `info['action_mask']` with 2 entries of 0 and 1, got None"
    assert_one_sentence(done, sentence, code=1)


def test_no_module_is_imported_because_a_file_names_it(tmp_path, monkeypatch):
    (tmp_path / "planted.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    write_checkpoint(tmp_path, Boltzmann(0.3), "planted:CartPole-v1")
    sentence = "`ENV` must be given where that of the training names a module to import, got none"
    assert_one_sentence(call("evaluate", tmp_path, "--episodes", 1), sentence)


def test_an_environment_without_an_id_must_be_given(tmp_path):
    write_checkpoint(tmp_path, Boltzmann(0.3), "trainings.made_by_hand")
    sentence = "`ENV` must be given where that of the training cannot be made by its name, got none"
    assert_one_sentence(call("evaluate", tmp_path), sentence)
    options = ("CartPole-v1", "--episodes", 1, "--max-steps", 5, "--workers", 0)
    done = call("evaluate", tmp_path, *options)
    assert rows(done.stdout)["policy"] == "run 0 of a training in trainings.made_by_hand"


def test_progress_is_shown_unless_it_is_to_be_quiet(checkpoint, monkeypatch):
    seen = []

    @contextlib.contextmanager
    def display(bars):
        yield lambda share, text: seen.append((share, text))

    monkeypatch.setattr("mellowmax.cli.result.progress_display", display)
    options = ("--episodes", 9, "--max-steps", 5, "--workers", 0)
    assert call("evaluate", checkpoint, *options, "--quiet").exit_code == 0
    assert seen == []
    assert call("evaluate", checkpoint, *options).exit_code == 0
    assert [share for share, _ in seen] == [8 / 9, 1]
    assert seen[0][1] == "8 of 9 episodes, mean return 5"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("absent", "CartPole-v1"), "the directory of a training with a run 0, got 'absent'"),
        (("text.npz", "CartPole-v1"), "`CHECKPOINT` must be the directory of a training, or a fi"),
        (("training", "CartPole-v1", "--run", 2), "the number of runs there, got 2"),
        (("training", "Acrobot-v1"), "4 observations and 2 actions, as the training had, got 6 a"),
        (("training", "Pendulum-v1"), "must have discrete actions"),
        (("training", "CartPole-v1", "--max-steps", 0), "`--max-steps` must be a whole number"),
        (("training", "CartPole-v1", "--episodes", 0), "`--episodes` must be a whole number of at"),
        (("training", "CartPole-v1", "--seed", -1), "`--seed` must be a whole number in"),
        (
            ("training", "CartPole-v1", "--render", "x.png"),
            "`--render` must be a file ending in .gif, got",
        ),
        (("training", "CartPole-v1", "--render", "own.gif"), "without `--force`; got 'own.gif'"),
        (("training", "CartPole-v1", "--render", "no/x.gif"), "directory that exists, got 'no/x"),
        (
            ("training", "Blind-v0", "--render", "x.gif"),
            "the render mode 'rgb_array' to be watched, got 'Blind-",
        ),
    ],
)
def test_a_wrong_argument_is_one_sentence_before_any_work(
    tmp_path, monkeypatch, checkpoint, arguments, sentence
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(deep, "evaluate", None)  # nothing is played
    shutil.copytree(checkpoint, "training")
    (tmp_path / "text.npz").write_text("no training")
    Image.new("P", (2, 2)).save(tmp_path / "own.gif")
    blind = gymnasium.envs.registration.EnvSpec("Blind-v0", entry_point=Blind)
    monkeypatch.setitem(gymnasium.registry, "Blind-v0", blind)
    before = sorted(tmp_path.rglob("*"))
    assert_one_sentence(call("evaluate", *arguments), sentence)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_damaged_checkpoint_is_named(tmp_path, checkpoint):
    whole = (checkpoint / "runs-00000.npz").read_bytes()
    (tmp_path / "runs-00000.npz").write_bytes(whole[: len(whole) // 2])
    done = call("evaluate", tmp_path, "CartPole-v1")
    assert_one_sentence(done, "runs-00000.npz', which is damaged, compressed or of another kind")
    assert "`CHECKPOINT` must be" in done.stderr


@pytest.mark.parametrize("softmax", [Max(), Mean(), EpsilonGreedy(0.1), HeldTemperature(2.0)])
def test_the_softmax_of_a_checkpoint_comes_back(tmp_path, softmax):
    """Those without a parameter, too."""
    write_checkpoint(tmp_path, softmax)
    saved = deep.load_policy(tmp_path, 1)
    assert type(saved.policy.softmax) is type(softmax)
    assert command._softmax_of(saved) == str(softmax)


def test_help_has_an_example():
    done = call("evaluate", "--help")
    assert done.exit_code == 0
    assert "Example: mellowmax evaluate " in done.stdout
