"""Checkpoints: resumed as if nothing had happened, and refused where they do not fit."""

from __future__ import annotations

import jax
import numpy as np
import optax
import pytest

from helpers.trainings import assert_same, on_cartpole, on_two_states
from mellowmax import Boltzmann, Mellowmax, mdp
from mellowmax.deep import load_policy, mlp, reinforce, train
from mellowmax.environments import two_state


@pytest.mark.parametrize(
    ("learn", "episodes", "runs", "looks"), [(on_cartpole, 12, 34, 40), (on_two_states, 40, 2, 4)]
)
def test_a_training_that_was_stopped_is_resumed_as_if_it_had_not_been(
    learn, episodes, runs, looks, tmp_path
):
    """Again and again; with two blocks of runs, of which some come further than others."""
    whole = learn(episodes=episodes, runs=runs)
    assert np.isfinite(whole.returns).all()
    shares = []
    while not shares or shares[-1] < 1:
        reports = []
        part = learn(
            episodes=episodes,
            runs=runs,
            checkpoint=tmp_path,
            callback=lambda progress, reports=reports: (
                reports.append(progress) or len(reports) >= looks
            ),
        )
        played = np.isfinite(part.returns)
        shares.append(played.mean())
        assert reports[-1].episodes <= played.sum()  # others end their batch
        np.testing.assert_array_equal(part.returns[played], whole.returns[played])
        np.testing.assert_array_equal(part.lengths, np.where(played, whole.lengths, 0))
    assert len(shares) > 2
    assert_same(part, whole)


@pytest.mark.parametrize("learn", [on_cartpole, on_two_states])
def test_more_episodes_later_are_the_same_as_all_at_once(learn, tmp_path):
    for episodes in (8, 12):
        part = learn(episodes=episodes, runs=3, checkpoint=tmp_path)
    assert_same(part, learn(episodes=12, runs=3))
    again = learn(
        episodes=12, runs=3, checkpoint=tmp_path, callback=lambda _: pytest.fail("played")
    )
    assert_same(again, part)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A checkpoint of two runs on the two states, and its training."""
    directory = tmp_path_factory.mktemp("saved")
    return directory, on_two_states(episodes=8, runs=2, checkpoint=directory)


@pytest.mark.parametrize(
    ("differs", "message"),
    [
        ({"softmax": Boltzmann(4.0)}, "`beta` was 1.0 and is 4.0$"),
        (
            {"softmax": Mellowmax(5.0)},
            "`softmax` was 'Boltzmann' and is 'Mellowmax', `beta` was 1.0 and is none, "
            "`omega` was none and is 5.0$",
        ),
        ({"rate": 0.04}, "`learning_rate` was 0.05 and is 0.04$"),
        ({"seed": 1}, "`seed` was 0 and is 1$"),
        ({"runs": [0, 2]}, r"`runs` was \[0, 1\] and is \[0, 2\]$"),
        ({"runs": [1, 0]}, r"`runs` was \[0, 1\] and is \[1, 0\]$"),
        ({"runs": 7, "seed": 1}, r"`seed` was 0 and is 1, `runs` was \[0, 1\] and is 0 to 6$"),
        ({"runs": 7}, "2 runs were trained together and now 7, by `runs` and the device$"),
        (
            {"runs": [*range(9, 0, -1)]},
            r"`runs` was \[0, 1\] and is \[9, 8, 7, 6, 5, \.\.\., 1\]$",
        ),
        ({"max_steps": 31}, "`max_steps` was 32 and is 31$"),
        ({"environment": two_state.params(printed=True)}, "`environment` was '.*' and is '.*'$"),
        ({"environment": mdp.two_state(printed=True)}, "`environment` was '.*' and is '.*'$"),
        ({"optimiser": optax.identity()}, "`optimiser` was of another kind$"),
    ],
)
def test_a_checkpoint_of_another_training_is_refused(saved, differs, message):
    directory, _ = saved
    before = {path: path.read_bytes() for path in directory.iterdir()}
    rule = "^`checkpoint` must be of a training with the same settings, got another in '.*npz': "
    with pytest.raises(ValueError, match=rule + message):
        on_two_states(**{"episodes": 12, "runs": 2, "checkpoint": directory, **differs})
    assert before == {path: path.read_bytes() for path in directory.iterdir()}


def test_a_model_is_known_by_its_numbers(saved):
    """The training of the parameters of a model is that of the model."""
    directory, result = saved
    again = on_two_states(
        episodes=8, runs=2, checkpoint=directory, environment=mdp.two_state(discount=0.98)
    )
    np.testing.assert_array_equal(again.returns, result.returns)


def test_a_checkpoint_that_has_come_further_is_refused(saved):
    directory, _ = saved
    with pytest.raises(ValueError, match=r"`episodes` must be no fewer than .*, got 4 where .* 8$"):
        on_two_states(episodes=4, runs=2, checkpoint=directory)


def test_a_checkpoint_that_is_damaged_is_refused(saved, tmp_path):
    directory, _ = saved
    for path in directory.iterdir():
        whole = path.read_bytes()
        (tmp_path / path.name).write_bytes(whole[: len(whole) // 2])
    for read in (
        lambda: on_two_states(episodes=8, runs=2, checkpoint=tmp_path),
        lambda: load_policy(tmp_path),
    ):
        with pytest.raises(ValueError, match=r"`path` must be a saved training, got .*damaged"):
            read()


def test_a_policy_is_read_back_from_its_checkpoint(saved):
    directory, training = saved
    for run in (0, 1):
        there = load_policy(directory, run)
        assert (there.n_observations, there.n_actions) == (2, 2)
        assert there.policy.softmax == Boltzmann(1.0)
        for x, y in zip(
            jax.tree.leaves(there.policy.network),
            jax.tree.leaves(training.policies.network),
            strict=True,
        ):
            np.testing.assert_array_equal(x, y[run])
    for run in (2, 32):
        with pytest.raises(ValueError, match=rf"`run` must be below 2, .*, got {run}$"):
            load_policy(directory, run)
    with pytest.raises(ValueError, match=r"^`run` must be a whole number .* got -1$"):
        load_policy(directory, -1)
    with pytest.raises(ValueError, match=r"`checkpoint` must be the directory .* a run 0, got"):
        load_policy(directory / "nothing")


def test_a_policy_of_states_that_are_numbers_is_read_back_too(tmp_path):
    """From the lake, where an episode earns 1 at its end or nothing, and has 100 steps at most."""
    learner = reinforce(Boltzmann(1.0), 0.1, batch=8, network=mlp(depth=0))
    run = train(learner, "FrozenLake-v1", episodes=16, runs=2, workers=0, checkpoint=tmp_path)
    assert set(run.returns.ravel()) <= {0.0, 1.0}
    assert 1 < run.lengths.min() < run.lengths.max() <= 100
    there = load_policy(tmp_path)
    assert there.policy.softmax == Boltzmann(1.0)
    assert (there.environment, there.n_observations, there.n_actions) == ("FrozenLake-v1", 16, 4)
