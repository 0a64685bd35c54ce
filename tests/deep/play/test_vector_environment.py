"""Vector environments of others, against a fleet of the same environments."""

from __future__ import annotations

import functools

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from mellowmax import Boltzmann
from mellowmax.deep import VectorEnvironment, dqn, mlp, reinforce, train

LEARNER = reinforce(Boltzmann(1.0), learning_rate=0.05, batch=4)


def make(count, mode=AutoresetMode.DISABLED, name="CartPole-v1", **options):
    options["autoreset_mode"] = mode
    return gymnasium.make_vec(name, count, "sync", vector_kwargs=options)


def test_episodes_are_those_of_a_fleet():
    """Runs end their batches at other times, so that environments rest and are reset meanwhile."""
    ours = train(LEARNER, "CartPole-v1", episodes=24, runs=3, workers=0)
    theirs = train(LEARNER, VectorEnvironment(make), episodes=24, runs=3)
    assert len(np.unique(ours.lengths.reshape(3, 6, 4).max(-1))) > 6
    np.testing.assert_array_equal(theirs.returns, ours.returns)
    np.testing.assert_array_equal(theirs.lengths, ours.lengths)


def test_q_learning_plays_in_them_too():
    learner = dqn(Boltzmann(1.0), capacity=64, minibatch=4, learning_starts=8, network=mlp(4, 1))
    ours = train(learner, "CartPole-v1", episodes=3, workers=0)
    theirs = train(learner, VectorEnvironment(make), episodes=3)
    np.testing.assert_array_equal(theirs.lengths, ours.lengths)


class Strict(gymnasium.Env):
    """Episodes of some length, in which the first action is illegal."""

    observation_space = gymnasium.spaces.Box(0.0, 9.0, (4,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = self.np_random.integers(1, 9)
        return np.zeros(4, np.float32), {"action_mask": np.array([0, 1])}

    def step(self, action):
        assert action == 1
        self.left -= 1
        over = bool(self.left == 0)
        return np.zeros(4, np.float32), 1.0, over, False, {"action_mask": np.array([0, 1])}


def test_an_environment_that_rests_takes_no_illegal_action():
    def make(count):
        return gymnasium.vector.SyncVectorEnv(
            [Strict] * count, autoreset_mode=AutoresetMode.DISABLED
        )

    environment = VectorEnvironment(make, max_steps=9, action_mask=True)
    result = train(LEARNER, environment, episodes=8, runs=3)
    assert len(np.unique(result.lengths)) > 3
    np.testing.assert_array_equal(result.returns, result.lengths)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (functools.partial(make, mode=AutoresetMode.NEXT_STEP), "`autoreset_mode` DISABLED, got "),
        (functools.partial(make, name="FrozenLake-v1"), "observations are arrays, got Discrete"),
        (functools.partial(make, name="Pendulum-v1"), "discrete actions from 0 on, got Box"),
        (lambda count: gymnasium.make("CartPole-v1"), "a vector environment, got one that makes"),
    ],
)
def test_another_kind_is_refused(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        VectorEnvironment(make)


@pytest.mark.parametrize(
    ("place", "said", "rule"),
    [
        (0, np.zeros((4, 1)), "observations that are numbers with the shape (4, 4), got an array"),
        (1, np.zeros((4, 1)), "rewards that are numbers with the shape (4,), got an array"),
        (2, ["False"] * 4, "`terminated` that are booleans with the shape (4,), got ['False', "),
    ],
)
def test_what_they_have_not_declared_is_one_sentence(place, said, rule):
    class Wrong(gymnasium.vector.VectorWrapper):
        def step(self, actions):
            right = super().step(actions)
            return *right[:place], said, *right[place + 1 :]

    with pytest.raises(RuntimeError) as error:
        train(LEARNER, VectorEnvironment(lambda count: Wrong(make(count))), episodes=4)
    assert str(error.value).startswith(f"`environment` must return {rule}")


def test_envpool_trains():
    envpool = pytest.importorskip(
        "envpool", reason="envpool is not installed: `make howto` does it"
    )

    def pool(count):
        return envpool.make("CartPole-v1", env_type="gymnasium", num_envs=count, seed=1)

    environment = VectorEnvironment(pool)
    assert (environment.n_observations, environment.n_actions, environment.max_steps) == (4, 2, 500)
    result = train(LEARNER, environment, episodes=24, runs=3)
    np.testing.assert_array_equal(result.returns, result.lengths)  # a step earns 1
    assert (result.lengths >= 8).all(), "a pole does not fall at once"
    assert len(np.unique(result.lengths)) > 4
