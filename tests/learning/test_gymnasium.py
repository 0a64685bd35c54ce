"""Training in Gymnasium's environments, step by step."""

from __future__ import annotations

import gymnasium
import jax
import numpy as np
import pytest

from mellowmax import Boltzmann, EpsilonGreedy, Max, Mean
from mellowmax.environments.gymnasium import MultiPassengerTaxi, TabularEnv
from mellowmax.learning import evaluate, expected_sarsa, q_learning, sarsa, train
from mellowmax.mdp import MDP, garnet
from mellowmax.planning import fixed_points


@pytest.mark.parametrize("name", ["FrozenLake-v1", "Taxi-v4", "CliffWalking-v1"])
def test_sarsa_learns_in_what_gymnasium_has(name):
    run = train(sarsa(Boltzmann(20.0), learning_rate=0.3), name, episodes=30)
    assert run.returns.shape == run.lengths.shape == (1, 30)
    assert np.isfinite(run.returns).all()
    assert (run.lengths > 0).all()
    assert np.count_nonzero(run.q) > 0 or name == "FrozenLake-v1"


def test_q_learning_finds_what_planning_finds():
    """In a deterministic environment Q-learning at rate 1 learns the optimal values exactly."""
    run = train(q_learning(EpsilonGreedy(0.2), 1.0), "CliffWalking-v1", episodes=400)
    best = fixed_points(MDP.from_gymnasium("CliffWalking-v1", 0.99), Max())[0].q
    start = 36
    np.testing.assert_allclose(run.q[0, start].max(), best[start].max(), rtol=1e-4)
    # The optimal return is -13: 13 steps along the cliff.
    np.testing.assert_allclose(best[start].max(), -(1 - 0.99**13) / 0.01, rtol=1e-6)


def plain_loop(kind, env, softmax, rate, discount, episodes, seed):
    """The textbook's loop, episode by episode, in float64, on the same random numbers.

    After each episode, the table, the return and the length.
    """
    draw = np.random.default_rng([1, seed]).random
    q = np.zeros((env.observation_space.n, env.action_space.n))

    def choose(s):
        return int(np.searchsorted(np.cumsum(softmax.policy(q[s])), np.float32(draw()), "right"))

    s, _ = env.reset(seed=seed)
    a = choose(s)
    for _ in range(episodes):
        rewards, ended = [], False
        while not ended:
            s2, r, ended, _, _ = env.step(a)
            rewards.append(r)
            if ended:
                q[s, a] += rate * (r - q[s, a])
                s, _ = env.reset()
                a = choose(s)
            elif kind is sarsa:
                a2 = choose(s2)
                q[s, a] += rate * (r + discount * q[s2, a2] - q[s, a])
                s, a = s2, a2
            else:
                worth = q[s2].max() if kind is q_learning else softmax.value(q[s2])
                q[s, a] += rate * (r + discount * worth - q[s, a])
                s, a = s2, choose(s2)
        yield q.copy(), sum(rewards), len(rewards)


@pytest.mark.parametrize("kind", [sarsa, expected_sarsa, q_learning])
def test_a_run_is_the_algorithm_of_the_textbook(kind):
    """In a small taxi, which slips; its discount is that of the environment."""
    small = {"grid": "S.F/FD.", "rewards": (0.0, 1.0, 3.0), "discount": 0.9}
    loop = plain_loop(kind, MultiPassengerTaxi(**small), Boltzmann(3.0), 0.3, 0.9, 20, seed=5)
    tables, returns, lengths = (np.array(x) for x in zip(*loop, strict=True))
    env = MultiPassengerTaxi(**small)
    run = train(kind(Boltzmann(3.0), 0.3), env, episodes=20, values=[2, 0], seed=5)
    np.testing.assert_allclose(run.q[0], tables[-1], atol=2e-5)
    np.testing.assert_allclose(run.values[0], tables[:, [2, 0]], atol=2e-5)
    np.testing.assert_array_equal(run.returns[0], returns)
    np.testing.assert_array_equal(run.lengths[0], lengths)
    assert np.ptp(run.q) > 0.5
    steps = int(lengths[:10].sum())
    by_steps = train(kind(Boltzmann(3.0), 0.3), env, steps=steps, seed=5)
    np.testing.assert_allclose(by_steps.rewards[0], [returns[:10].sum() / steps], rtol=1e-6)
    np.testing.assert_allclose(by_steps.q[0], tables[9], atol=2e-5)


def test_the_discount_is_the_learner_s_the_environment_s_or_the_default():
    """On a line through three states where nothing is random, q is the discounted return."""
    successors, rewards = [[[1]], [[2]], [[3]]], [[1.0], [2.0], [4.0]]
    mdp = MDP(successors, [[[1.0]]] * 3, rewards, 0.5, terminal=[False] * 3)
    wrapped = gymnasium.wrappers.TimeLimit(TabularEnv(mdp, start=0), 100)
    without = TabularEnv(mdp, start=0)
    del without.discount
    for env, given, discount in (
        (wrapped, None, 0.5),
        (wrapped, 0.9, 0.9),
        (without, None, 0.99),
    ):
        run = train(sarsa(Mean(), 1.0, discount=given), env, episodes=5)
        expected = 1 + 2 * discount + 4 * discount**2
        assert run.q[0, 0, 0] == pytest.approx(expected)


def test_an_episode_that_is_cut_off_is_no_end():
    """A reward of 1 for ever is worth 1 / (1 - discount), and less if it ended now and then."""
    forever = MDP([[[0]]], [[[1.0]]], [[1.0]], 0.9, terminal=[False])
    cut = gymnasium.wrappers.TimeLimit(TabularEnv(forever, start=0), 10)
    run = train(sarsa(Mean(), 0.5), cut, episodes=50)
    np.testing.assert_allclose(run.q, [[[10.0]]], rtol=1e-4)
    np.testing.assert_array_equal(run.lengths, 10)


@pytest.mark.parametrize("kind", [sarsa, expected_sarsa])
def test_masked_actions_are_never_taken(kind):
    base = garnet(6, 3, 2, seed=0)
    allowed = np.ones((6, 3), np.bool_)
    allowed[np.arange(6), np.arange(6) % 3] = False
    mdp = MDP(base.successors, base.probabilities, base.rewards, 0.9, allowed=allowed)
    learner = kind(Boltzmann(1.0), 0.1, initial=7.0)
    run = train(learner, TabularEnv(mdp), steps=1500, action_mask=True)
    assert (run.q[0, ~allowed] == 7.0).all()
    assert (run.q[0, allowed] != 7.0).all()
    with pytest.raises(RuntimeError, match="`action` must be allowed in state"):
        train(learner, TabularEnv(mdp), steps=500)


class Wrong(gymnasium.Wrapper):
    """FrozenLake, with some of what a step returns replaced."""

    def __init__(self, changed):
        super().__init__(gymnasium.make("FrozenLake-v1"))
        self.changed = changed

    def step(self, action):
        names = ("state", "reward", "terminated", "truncated", "info")
        said = dict(zip(names, super().step(action), strict=True))
        return tuple((said | self.changed).values())


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"state": 16}, "return observations in Discrete(16), its observation space, got 16"),
        ({"state": np.array([1])}, "return observations in Discrete(16), its observation space, "
         "got an array of int64 with the shape (1,)"),
        ({"reward": "1.5"}, "return a number as `reward`, got '1.5'"),
        ({"terminated": "False"}, "return True or False as `terminated`, got 'False'"),
    ],
)  # fmt: skip
def test_what_an_environment_has_not_declared_is_one_sentence(changed, rule):
    """Whether it is the environment itself or a function that makes it."""
    sentence = f"`environment` must {rule}"
    with pytest.raises(RuntimeError) as error:
        train(sarsa(Boltzmann(1.0), 0.1), Wrong(changed), steps=10)
    assert str(error.value) == sentence
    with pytest.raises(RuntimeError) as error:
        evaluate(np.full((16, 4), 0.25), lambda: Wrong(changed), episodes=1)
    assert str(error.value) == sentence


@pytest.mark.parametrize(
    ("info", "got"),
    [
        ({}, "None"),
        ({"action_mask": [True]}, "[True]"),
        ({"action_mask": ["False"] * 4}, "['False', 'False', 'False', 'False']"),
    ],
)
def test_a_mask_that_does_not_fit_is_one_sentence(info, got):
    rule = "`environment` must give `info['action_mask']` with 4 entries of 0 and 1, got "
    env = Wrong({"info": info})
    right = {"action_mask": np.ones(4, np.int8)}
    env.reset = lambda **options: (env.env.reset(**options)[0], right)
    with pytest.raises(RuntimeError) as error:
        train(sarsa(Boltzmann(1.0), 0.1), env, steps=10, action_mask=True)
    assert str(error.value) == rule + got


def test_a_run_depends_on_its_setting_its_seed_and_its_number_alone():
    made = []

    def cliff():
        made.append(gymnasium.make("CliffWalking-v1"))
        return made[-1]

    betas, discounts = np.array([[5.0], [20.0]]), np.array([0.9, 0.99])
    grid = train(
        sarsa(Boltzmann(betas), 0.3, discount=discounts),
        cliff,
        steps=200,
        runs=[0, 3],
        seed=jax.random.split(jax.random.key(0), 2),
        bins=4,
    )
    assert grid.q.shape == (2, 2, 2, 48, 4)
    assert grid.rewards.shape == (2, 2, 2, 4)
    assert len(made) == 1 + 2 * 2 * 2
    assert len(np.unique(grid.q.reshape(8, -1), axis=0)) == 8
    alone = train(
        sarsa(Boltzmann(20.0), 0.3, discount=0.9),
        gymnasium.make("CliffWalking-v1"),
        steps=200,
        runs=[3],
        seed=jax.random.split(jax.random.key(0), 2)[0],
        bins=4,
    )
    np.testing.assert_array_equal(alone.q[0], grid.q[1, 0, 1])
    np.testing.assert_array_equal(alone.rewards[0], grid.rewards[1, 0, 1])


def test_the_same_seed_gives_the_same_run_and_is_the_first_environment_s_own():
    seeds = []

    class Watched(TabularEnv):
        def reset(self, *, seed=None, options=None):
            seeds.append(seed)
            return super().reset(seed=seed, options=options)

    env = Watched(garnet(6, 3, 2, seed=0))
    one, two, other = (
        train(sarsa(Boltzmann(5.0), 0.3), env, steps=100, runs=2, seed=seed) for seed in (7, 7, 8)
    )
    np.testing.assert_array_equal(one.q, two.q)
    assert not np.array_equal(one.q, other.q)
    assert seeds[0] == 7
    assert seeds[:2] == seeds[2:4]
    assert seeds[4] == 8
    assert seeds[1] not in (7, 8, seeds[5])
    assert train(sarsa(Boltzmann(5.0), 0.3), env, steps=100, tables=False).q is None


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        (
            "NoSuch-v0",
            {},
            "must be the id of a Gymnasium environment, got 'NoSuch-v0': .*NoSuch",
        ),
        ("CartPole-v1", {}, "`environment` must have a discrete observation_space"),
        ("FrozenLake-v1", {"steps": 5}, "`bins` must divide the 5 `steps`, got 2"),
        ("FrozenLake-v1", {"devices": []}, "`devices` must be None for a Gymnasium environment"),
    ],
)
def test_a_bad_argument_is_one_sentence(name, arguments, message):
    with pytest.raises(ValueError, match=message):
        train(sarsa(Mean()), name, **{"steps": 10, "bins": 2} | arguments)
