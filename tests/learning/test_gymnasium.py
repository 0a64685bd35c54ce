"""Driving Gymnasium's environments step by step, and learning over several devices."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import gymnasium
import numpy as np
import pytest

from mellowmax import Boltzmann, EpsilonGreedy, Max, Mean, Mellowmax
from mellowmax.environments import tabular, taxi, two_state
from mellowmax.environments.gymnasium import TabularEnv
from mellowmax.learning import drive, expected_sarsa, q_learning, sarsa, train
from mellowmax.mdp import MDP, garnet
from mellowmax.planning import fixed_points


@pytest.mark.parametrize("name", ["FrozenLake-v1", "Taxi-v4", "CliffWalking-v1"])
def test_sarsa_drives_what_gymnasium_has(name):
    run = drive(sarsa(Boltzmann(20.0), learning_rate=0.3), name, episodes=30)
    assert run.returns.shape == run.lengths.shape == (30,)
    assert np.isfinite(run.returns).all()
    assert (run.lengths > 0).all()
    assert np.count_nonzero(run.q) > 0 or name == "FrozenLake-v1"


def test_q_learning_finds_what_planning_finds():
    """Of a deterministic environment Q-learning at rate 1 learns the optimal values exactly."""
    run = drive(q_learning(EpsilonGreedy(0.2), 1.0), "CliffWalking-v1", episodes=400)
    best = fixed_points(MDP.from_gymnasium("CliffWalking-v1", 0.99), Max())[0].q
    start = 36
    np.testing.assert_allclose(run.q[start].max(), best[start].max(), rtol=1e-4)
    # The optimal return is -13: 13 steps along the cliff.
    np.testing.assert_allclose(best[start].max(), -(1 - 0.99**13) / 0.01, rtol=1e-6)


@pytest.mark.parametrize("kind", [sarsa, expected_sarsa, q_learning])
def test_driving_is_training_where_nothing_is_random(kind):
    """One action and one way: the two loops must agree on every number."""
    line = MDP(
        [[[1]], [[2]], [[3]]], [[[1.0]]] * 3, [[1.0], [2.0], [4.0]], 0.5, terminal=[False] * 3
    )
    learner = kind(Mellowmax(1.0), 0.3, initial=0.25)
    driven = drive(learner, TabularEnv(line, start=0), discount=0.5, episodes=20, values=[2, 0])
    trained = train(learner, tabular.params(line, start=0), episodes=20, values=[2, 0])
    np.testing.assert_allclose(driven.q, trained.q[0], rtol=1e-6)
    np.testing.assert_allclose(driven.values, trained.values[0], rtol=1e-6)
    np.testing.assert_array_equal(driven.returns, trained.returns[0])
    np.testing.assert_array_equal(driven.lengths, trained.lengths[0])
    by_steps = drive(learner, TabularEnv(line, start=0), discount=0.5, steps=60, bins=3)
    np.testing.assert_allclose(by_steps.rewards, 7 / 3 * np.ones(3), atol=0.4)


def test_driving_learns_what_training_learns():
    """Mean values of 30 driven runs and of 1000 trained ones, within 4 standard errors.

    One false alarm in 8,000 for the two values.
    """
    learner = sarsa(Mellowmax(16.55), 0.05)
    name = "mellowmax/TwoState-v0"
    driven = np.array(
        [drive(learner, name, discount=0.98, steps=700, seed=seed).q[0] for seed in range(30)]
    )
    trained = train(learner, two_state.params(), steps=700, runs=1000).q[:, 0]
    error = np.sqrt(driven.var(0) / 30 + trained.var(0) / 1000)
    assert (abs(driven.mean(0) - trained.mean(0)) < 4 * error).all()
    assert (error < 0.02).all()


def test_an_episode_that_is_cut_off_is_no_end():
    """A reward of 1 for ever is worth 1 / (1 - discount), and less if it ended now and then."""
    forever = MDP([[[0]]], [[[1.0]]], [[1.0]], 0.9, terminal=[False])
    cut = gymnasium.wrappers.TimeLimit(TabularEnv(forever, start=0), 10)
    run = drive(sarsa(Mean(), 0.5), cut, discount=0.9, episodes=50)
    np.testing.assert_allclose(run.q, [[10.0]], rtol=1e-4)
    np.testing.assert_array_equal(run.lengths, 10)


def test_masked_actions_are_never_taken():
    base = garnet(6, 3, 2, seed=0)
    allowed = np.ones((6, 3), np.bool_)
    allowed[np.arange(6), np.arange(6) % 3] = False
    mdp = MDP(base.successors, base.probabilities, base.rewards, 0.9, allowed=allowed)
    learner = expected_sarsa(Mellowmax(1.0), 0.1, initial=7.0)
    run = drive(learner, TabularEnv(mdp), steps=3000, action_mask=True)
    assert (run.q[~allowed] == 7.0).all()
    assert (run.q[allowed] != 7.0).all()
    with pytest.raises(ValueError, match="`action` must be allowed in state"):
        drive(learner, TabularEnv(mdp), steps=500)


def test_the_same_seed_drives_the_same_run():
    runs = [
        drive(sarsa(Boltzmann(5.0), 0.3), "FrozenLake-v1", steps=300, seed=seed, bins=3)
        for seed in (1, 1, 2)
    ]
    np.testing.assert_array_equal(runs[0].rewards, runs[1].rewards)
    np.testing.assert_array_equal(runs[0].q, runs[1].q)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        (
            "NoSuch-v0",
            {},
            "must be the id of a Gymnasium environment, got 'NoSuch-v0': .*NoSuch",
        ),
        ("CartPole-v1", {}, "`environment` must have a discrete observation_space"),
        ("FrozenLake-v1", {"discount": 1.5}, r"`discount` must be in \[0, 1\], got 1.5"),
        ("FrozenLake-v1", {"steps": 5}, "`bins` must divide the 5 `steps`, got 2"),
    ],
)
def test_a_bad_argument_is_one_sentence(name, arguments, message):
    with pytest.raises(ValueError, match=message):
        drive(sarsa(Mean()), name, **{"steps": 10, "bins": 2} | arguments)
    with pytest.raises(ValueError, match="`learner` must have one setting"):
        drive(sarsa(Boltzmann(np.ones(2))), "FrozenLake-v1", steps=10)


EIGHT_DEVICES = """
import json, jax
from mellowmax import Mellowmax
from mellowmax.environments import taxi
from mellowmax.learning import sarsa, train
assert len(jax.devices()) == 8
run = train(sarsa(Mellowmax(5.0), 0.4), taxi.params(), steps=700, runs=700, bins=7)
print(json.dumps([run.q[::50].tobytes().hex(), run.rewards.tobytes().hex()]))
"""


def test_eight_devices_give_the_numbers_of_one():
    flags = "--xla_force_host_platform_device_count=8"
    done = subprocess.run(
        [sys.executable, "-c", EIGHT_DEVICES],
        capture_output=True,
        text=True,
        env=os.environ | {"XLA_FLAGS": flags},
    )
    assert done.returncode == 0, done.stderr
    q, rewards = json.loads(done.stdout)
    one = train(sarsa(Mellowmax(5.0), 0.4), taxi.params(), steps=700, runs=700, bins=7)
    assert one.q[::50].tobytes().hex() == q
    assert one.rewards.tobytes().hex() == rewards
