"""What a tabular policy earns: against planning's exact values, and against itself."""

from __future__ import annotations

import gymnasium
import jax
import numpy as np
import pytest

from mellowmax import Boltzmann
from mellowmax.environments import tabular
from mellowmax.environments.gymnasium import TabularEnv
from mellowmax.learning import evaluate, sarsa, train
from mellowmax.mdp import MDP, multi_passenger_taxi

UNEVEN = np.array([[0.2, 0.8, 0.0], [0.0, 0.5, 0.5], [1.0, 0.0, 0.0], [0.1, 0.2, 0.7]])


def ending():
    """Four states, three actions, one of them not allowed; episodes end one time in four."""
    rng = np.random.default_rng(0)
    probabilities = np.concatenate(
        [0.75 * rng.dirichlet(np.ones(4), (4, 3)), [[[0.25]] * 3] * 4], -1
    )
    successors = np.broadcast_to(np.arange(5, dtype=np.int32), (4, 3, 5))
    allowed = np.ones((4, 3), np.bool_)
    allowed[0, 2] = False
    rewards = rng.normal(size=(4, 3))
    return MDP(successors, probabilities, rewards, 0.9, allowed=allowed, terminal=[False] * 4)


def exact_return(mdp, policy, state):
    """The expected sum of rewards, by linear equations."""
    transitions, rewards = mdp.to_numpy()
    chain = np.einsum("sa,sat->st", policy, transitions)
    return np.linalg.solve(np.eye(len(chain)) - chain, (policy * rewards).sum(1))[state]


@pytest.fixture(scope="module")
def played():
    mdp = ending()
    return {
        "functional": evaluate(UNEVEN, tabular.params(mdp, start=1), episodes=1000, seed=3),
        "gymnasium": evaluate(UNEVEN, TabularEnv(mdp, start=1), episodes=1000, seed=3),
    }


@pytest.mark.parametrize("name", ["functional", "gymnasium"])
def test_the_mean_return_is_the_exact_one(name, played):
    """1000 episodes, within 4 standard errors: one false alarm in 16,000 for each of the two."""
    result = played[name]
    assert result.returns.shape == result.lengths.shape == (1000,)
    expected = exact_return(ending(), UNEVEN, 1)
    assert abs(result.mean - expected) < 4 * result.standard_error
    assert result.standard_error < 0.1
    assert abs(result.lengths.mean() - 4) < 4 * np.sqrt(12 / 1000)  # geometric


def test_an_episode_depends_on_the_seed_and_its_number_alone(played):
    params = tabular.params(ending(), start=1)
    few = evaluate(UNEVEN, params, episodes=150, seed=jax.random.key(3))
    np.testing.assert_array_equal(few.returns, played["functional"].returns[:150])
    stepped = evaluate(UNEVEN, lambda: TabularEnv(ending(), start=1), episodes=20, seed=3)
    np.testing.assert_array_equal(stepped.returns, played["gymnasium"].returns[:20])
    other = evaluate(UNEVEN, params, episodes=150, seed=4)
    assert not np.array_equal(other.returns, few.returns)


def test_episodes_are_cut_off_at_a_limit():
    forever = MDP([[[0]]], [[[1.0]]], [[1.0]], 0.9, terminal=[False])
    one = np.ones((1, 1))
    assert evaluate(one, forever, episodes=2).lengths.tolist() == [1000, 1000]
    assert evaluate(one, forever, episodes=2, max_steps=30).returns.tolist() == [30.0, 30.0]
    limited = gymnasium.wrappers.TimeLimit(TabularEnv(forever), 7)
    assert evaluate(one, limited, episodes=2).lengths.tolist() == [7, 7]
    assert evaluate(one, TabularEnv(forever), episodes=1).lengths.tolist() == [1000]
    frozen_lake = evaluate(np.eye(4)[np.zeros(16, int)], "FrozenLake-v1", episodes=3)
    assert frozen_lake.lengths.max() <= 100  # its own


def test_what_was_learned_is_a_policy():
    env = TabularEnv(multi_passenger_taxi("SD", rewards=[1.0]), start=0)
    learned = train(sarsa(Boltzmann(20.0), 0.5), env, steps=50).q[0]
    assert evaluate(Boltzmann(20.0).policy(learned), env, episodes=5).mean == 1.0


@pytest.mark.parametrize(
    ("policy", "arguments", "message"),
    [
        (ending(), {}, r"`policy` must come first, as in .*, got MDP\("),
        ("Taxi-v4", {}, "`policy` must come first, as in .*, got 'Taxi-v4' there"),
        ([["a"]], {}, "`policy` must be an array of probabilities, .*, got"),
        (UNEVEN.T, {}, r"`policy` must have the shape \(4, 3\), got \(3, 4\)"),
        (UNEVEN / 2, {}, r"`policy` must be a distribution, got .* in state 0"),
        (np.eye(3)[[2, 2, 2, 2]], {}, r"`policy` must take allowed actions, got .* in state 0"),
        (UNEVEN, {"episodes": 0}, "`episodes` must be a whole number of at least 1, got 0"),
        (UNEVEN, {"max_steps": 0}, "`max_steps` must be a whole number in .*, got 0"),
        (UNEVEN, {"seed": -1}, "`seed` must be a whole number in .*, got -1"),
        (UNEVEN, {"environment": 3}, "`environment` must be an MDP, .*, got 3"),
    ],
)
def test_a_bad_argument_is_one_sentence(policy, arguments, message):
    wrong_kind = not isinstance(policy, np.ndarray)
    with pytest.raises(TypeError if wrong_kind else ValueError, match=message):
        evaluate(policy, **{"environment": ending()} | arguments)
