"""Single steps: a run learns the same however it plays, alone or beside others."""

from __future__ import annotations

import collections

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers.trainings import Q_LEARNING, Q_SOFTMAX, assert_same, q_on_cartpole, q_on_two_states
from mellowmax import Max, Mellowmax
from mellowmax.deep import FunctionalEnvironment, dqn, train
from mellowmax.deep.play import steps_functional
from mellowmax.environments import two_state


@pytest.mark.parametrize("learn", [q_on_two_states, q_on_cartpole])
def test_a_run_is_the_same_alone_and_among_others(learn):
    among = learn(Mellowmax(np.array([2.0, 5.0])), runs=3)
    assert_same(learn(Mellowmax(5.0), runs=[2]), among, 0, (1, 2))
    assert len({weights.tobytes() for weights in among.policies.network.layers[0].weight[0]}) == 3


@pytest.mark.parametrize(
    ("learn", "episodes"),
    [(q_on_two_states, 400), (q_on_cartpole, 60)],
    ids=["functional", "Gymnasium"],
)
def test_a_training_that_was_stopped_is_resumed_as_if_it_had_not_been(learn, episodes, tmp_path):
    """In the middle of episodes, and after some episodes that were thought to be all."""
    whole = learn(episodes=episodes, runs=2, seed=4)
    assert np.isfinite(whole.returns).all()
    for _ in range(2):
        reports = []
        part = learn(
            episodes=episodes,
            runs=2,
            seed=4,
            checkpoint=tmp_path / "stopped",
            callback=lambda progress, reports=reports: reports.append(progress) or True,
        )
        played = np.isfinite(part.returns)
        assert 0 < played.mean() < 1
        np.testing.assert_array_equal(part.returns[played], whole.returns[played])
    assert_same(learn(episodes=episodes, runs=2, seed=4, checkpoint=tmp_path / "stopped"), whole)
    for count in (episodes // 3, episodes):
        part = learn(episodes=count, runs=2, seed=4, checkpoint=tmp_path / "more")
    assert_same(part, whole)


def test_runs_side_by_side_in_one_program_learn_what_they_learn_alone(tmp_path, monkeypatch):
    """As on an accelerator, in a block with more lanes than runs; up to rounding, on a CPU."""
    alone = q_on_two_states(runs=3)
    monkeypatch.setattr(steps_functional.FunctionalSteps, "width", lambda *arguments: 4)
    for episodes in (25, 40):  # after the first, runs are at different steps between two updates
        result = q_on_two_states(runs=3, episodes=episodes, checkpoint=tmp_path)
    np.testing.assert_array_equal(result.lengths, alone.lengths)
    for x, y in zip(jax.tree.leaves(result.policies), jax.tree.leaves(alone.policies), strict=True):
        np.testing.assert_allclose(x, y, atol=1e-4)
    with np.load(tmp_path / "runs-00000.npz") as file:
        assert {len(file[name]) for name in file["fields"] if name.startswith("state-")} == {3}


def test_a_run_is_the_same_however_long_it_waits_for_its_next_episode(monkeypatch):
    """Episodes of at most 5 steps, and 6 steps between two updates: most end in the middle."""
    learner = dqn(Q_SOFTMAX, 0.01, **Q_LEARNING | {"train_frequency": 6})
    options = {"max_steps": 5, "episodes": 60, "runs": 2}
    at_once = train(learner, two_state.params(), **options)
    monkeypatch.setattr(steps_functional, "steps_to_begin", lambda *arguments: 3)
    assert_same(train(learner, two_state.params(), **options), at_once)


def test_a_run_in_another_process_is_the_same():
    assert_same(q_on_cartpole(workers=1), q_on_cartpole())


class Launched:
    """Count to the action; the first number comes of a step from the launch."""

    @staticmethod
    def launch(key):
        return jnp.float32(-7)

    @staticmethod
    def reset(key, params):
        return jnp.float32(0)

    @staticmethod
    def step(key, number, action, params):
        after = jnp.where(number == -7, 0, number + 1)
        return after, after, after >= 4

    @staticmethod
    def observe(number, params):
        return number[None]


def test_the_step_of_a_launch_is_none_of_the_episode():
    params = collections.namedtuple("Params", "n_actions")(2)
    learner = dqn(Max(), **Q_LEARNING)
    result = train(learner, FunctionalEnvironment(Launched, params), episodes=30)
    assert (result.lengths == 4).all()
    assert (result.returns == 1 + 2 + 3 + 4).all()


class Playing:
    """An environment that plays whole episodes."""

    n_observations, n_actions, max_steps, discount, name = 1, 2, 3, 0.9, "own"

    def play(self, policies, keys, done, until, batch):
        return iter(())


def test_an_environment_that_plays_whole_episodes_is_refused():
    with pytest.raises(ValueError, match=r"^`environment` must be a functional one or Gymnasium's"):
        train(dqn(Max()), Playing(), episodes=4)
