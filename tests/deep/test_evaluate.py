"""What a policy earns, against exact equations, and one episode in pictures."""

from __future__ import annotations

import functools

import gymnasium
import jax
import numpy as np
import pytest

from helpers.trainings import table_policy
from mellowmax import Max
from mellowmax.deep import Evaluation, evaluate, watch
from mellowmax.environments import two_state
from mellowmax.mdp import MDP
from mellowmax.mdp import two_state as two_state_mdp
from mellowmax.planning import solve


def exact_return_and_length(table, model, horizon, start=0):
    """Of an episode that is cut off, step by step backwards.

    `model[s][a]` has the probability, the next state, the reward and the end of each branch.
    """
    earned, steps = np.zeros(len(table)), np.zeros(len(table))
    for _ in range(horizon):
        before = earned, steps
        earned, steps = np.zeros(len(table)), np.ones(len(table))
        for s, row in model.items():
            for a, branches in row.items():
                for p, after, reward, ended in branches:
                    weight = table[s, a] * p
                    earned[s] += weight * (reward + (not ended) * before[0][after])
                    steps[s] += weight * (not ended) * before[1][after]
    return earned[start], steps[start]


def assert_as_exact(played, exact):
    """Within 4 standard errors: one false alarm in 16,000, for the return and for the length."""
    for values, expected in zip((played.returns, played.lengths), exact, strict=True):
        mean, error = values.mean(dtype=np.float64), values.std() / np.sqrt(len(values))
        print(f"{mean:.4f} +- {error:.4f}, exactly {expected:.4f}")
        assert abs(mean - expected) < 4 * error
        assert error < 0.1 * expected


@pytest.mark.parametrize("environment", [two_state.params(), "mellowmax/TwoState-v0"], ids=str)
def test_a_policy_earns_in_two_states_what_its_equations_say(environment):
    table = np.array([[0.3, 0.7], [0.5, 0.5]])
    mdp = two_state_mdp()
    rewards, stays = mdp.rewards[0], mdp.to_numpy()[0][0, :, 0]
    model = {
        0: {
            a: [(stays[a], 0, rewards[a], False), (1 - stays[a], 1, rewards[a], True)]
            for a in (0, 1)
        }
    }
    played = evaluate(table_policy(table), environment, episodes=512, max_steps=12, workers=0)
    assert played.lengths.max() == 12
    assert_as_exact(played, exact_return_and_length(table, model, 12))


def lake():
    return gymnasium.make("FrozenLake-v1")


def test_a_policy_earns_on_the_lake_what_its_table_says():
    """That of nearly the best policy, with the end after 100 steps, which some episodes reach."""
    env = lake()
    best = solve(MDP.from_gymnasium(env, 0.99), Max()).q.argmax(1)
    table = np.full((16, 4), 0.1 / 3)
    table[np.arange(16), best] = 0.9
    exact = exact_return_and_length(table, env.unwrapped.P, 100)
    assert exact_return_and_length(table, env.unwrapped.P, 1000)[1] > exact[1] + 0.3
    played = evaluate(table_policy(table), lake, episodes=512, workers=0)
    assert set(played.returns) == {0.0, 1.0}
    assert played.lengths.max() == 100
    assert_as_exact(played, exact)


def test_an_evaluation_depends_on_its_seed_alone():
    play = functools.partial(evaluate, table_policy(np.full((16, 4), 0.25)), lake)
    one, again = (play(episodes=50, seed=3, workers=workers) for workers in (0, 1))
    np.testing.assert_array_equal(one.lengths, again.lengths)
    np.testing.assert_array_equal(one.returns, again.returns)
    assert (play(episodes=50, seed=4, workers=0).lengths != one.lengths).any()
    assert len(set(map(tuple, np.reshape(one.lengths[:48], (6, 8))))) == 6  # no lane like another


def test_the_callback_counts_to_the_episodes_that_were_asked_for():
    seen = []
    policy = table_policy(np.full((16, 4), 0.25))
    played = evaluate(policy, lake, episodes=50, seed=3, workers=0, callback=seen.append)
    counts = [progress.episodes for progress in seen]
    assert counts == [8, 16, 24, 32, 40, 48, 50]
    assert {progress.total for progress in seen} == {50}
    assert 0 < seen[0].seconds < seen[-1].seconds
    assert seen[-1].mean_return == pytest.approx(played.mean, abs=6 / 50)  # 56 were played


def test_the_mean_and_its_standard_error():
    played = Evaluation(np.float32([1, 2, 6]), np.array([1, 1, 1]))
    assert played.mean == 3
    assert played.standard_error == pytest.approx(np.sqrt((4 + 1 + 9) / 2 / 3))
    assert Evaluation(np.float32([1]), np.array([1])).standard_error == np.inf


def test_a_picture_of_every_step():
    pytest.importorskip("pygame")
    policy = table_policy(np.full((4, 2), 0.5))
    pictures, earned = zip(*watch(policy, "CartPole-v1", seed=1), strict=True)
    assert earned == tuple(range(len(pictures)))
    assert 5 < len(pictures) < 100
    assert {picture.shape for picture in pictures} == {(400, 600, 3)}
    assert (pictures[0] != pictures[-1]).any()
    few = list(watch(policy, "CartPole-v1", seed=1, max_steps=3))
    np.testing.assert_array_equal([one for one, _ in few], pictures[:4])


@pytest.mark.parametrize(
    ("policy", "options", "message"),
    [
        (table_policy(np.full((3, 2), 0.5)), {}, "`policy` must be of 4 observations and 2 actions "
         "to play in this environment, got one of 3 and 2"),
        (table_policy(np.full((4, 3), 0.5)), {}, "`policy` must be of 4 observations and 2 actions "
         "to play in this environment, got one of 4 and 3"),
        (jax.tree.map(lambda x: np.stack([x] * 2), table_policy(np.full((4, 2), 0.5))), {},
         "`policy` must be one policy, got many with the axes (2,)"),
        (3, {}, "`policy` must be a Policy, got 3"),
        (None, {"episodes": 0}, "`episodes` must be a whole number of at least 1, got 0"),
        (None, {"max_steps": 0}, "`max_steps` must be a whole number of at least 1, got 0"),
        (None, {"workers": -1}, "`workers` must be a whole number of at least 0, got -1"),
    ],
)  # fmt: skip
def test_a_policy_that_does_not_fit_is_one_sentence(policy, options, message):
    with pytest.raises(TypeError if policy == 3 else ValueError) as error:
        evaluate(policy or table_policy(np.full((4, 2), 0.5)), "CartPole-v1", **options)
    assert str(error.value) == message
