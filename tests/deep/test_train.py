"""Training many runs: each depends on nothing but itself, and learns."""

from __future__ import annotations

import collections
import itertools

import gymnasium
import jax
import numpy as np
import pytest

from helpers.trainings import (
    assert_same,
    on_cartpole,
    on_two_states,
    q_on_cartpole,
    q_on_two_states,
    table_policy,
)
from mellowmax import Boltzmann, Max, Mellowmax
from mellowmax.deep import evaluate, train
from mellowmax.environments import tabular, two_state
from mellowmax.mdp import MDP
from mellowmax.planning import solve

SOURCES = pytest.mark.parametrize("learn", [on_cartpole, on_two_states])


@SOURCES
def test_a_run_is_the_same_alone_and_among_others(learn):
    among = learn(episodes=24, runs=36)  # two blocks, the second of which is not full
    for run in (5, 33):
        assert_same(learn(episodes=24, runs=[run]), among, 0, run)
        assert_same(learn(episodes=24, runs=[3, run, 50]), among, 1, run)
    assert_same(learn(episodes=24, runs=16), among, 5, 5)
    firsts = {weights.tobytes() for weights in among.policies.network.layers[0].weight}
    assert len(firsts) == 36


def test_a_run_is_the_same_in_other_processes():
    assert_same(
        on_cartpole(episodes=12, runs=3, workers=2), on_cartpole(episodes=12, runs=3, workers=0)
    )


@pytest.mark.parametrize(
    ("learn", "softmax"),
    [
        (on_cartpole, Boltzmann),
        pytest.param(on_two_states, Mellowmax, marks=pytest.mark.release),
    ],
)
def test_a_setting_does_not_depend_on_the_grid_around_it(learn, softmax):
    """Mellowmax where all lanes learn in one program, whose loops look at all of them."""
    parameters, rates = np.array([[2.0], [5.0], [9.0]]), np.array([0.01, 0.05])
    grid = learn(softmax(parameters), rates, episodes=12, runs=4)
    assert grid.returns.shape == grid.lengths.shape == (3, 2, 4, 12)
    for i, j in ((0, 1), (2, 0)):
        alone = learn(softmax(parameters[i, 0]), rates[j], episodes=12, runs=[2])
        assert_same(alone, grid, 0, (i, j, 2))
        (one,), (many,) = map(jax.tree.leaves, (alone.policies.softmax, grid.policies.softmax))
        assert one[0] == many[i, j, 2] == np.float32(parameters[i, 0])


def test_a_key_for_each_setting_is_folded_with_the_run():
    keys = jax.random.split(jax.random.key(9), 2)
    both = on_two_states(Boltzmann(np.array([5.0, 5.0])), episodes=8, runs=2, seed=keys)
    one = on_two_states(Boltzmann(5.0), episodes=8, runs=2, seed=keys[1])
    assert_same(one, both, ..., 1)
    assert not np.array_equal(both.returns[0], both.returns[1])
    assert not np.array_equal(one.returns[0], one.returns[1])


def test_what_a_callback_gets():
    reports = []
    run = on_cartpole(episodes=12, runs=3, callback=reports.append)
    assert [p.episodes for p in reports] == [p.played for p in reports] == list(range(4, 37, 4))
    assert {p.total for p in reports} == {36}
    assert all(one.seconds <= other.seconds for one, other in itertools.pairwise(reports))
    assert reports[-1].mean_return == pytest.approx(run.returns[:, -4:].mean())


def test_bins_have_the_means_of_what_single_episodes_have():
    single, binned = (
        on_two_states(episodes=24, runs=5, bin=bin, solved_return=-1e9) for bin in (1, 12)
    )
    for name in ("returns", "lengths"):
        means = getattr(single, name).reshape(5, 2, 12).mean(-1)
        np.testing.assert_allclose(getattr(binned, name), means, rtol=1e-6)
    for x, y in zip(
        jax.tree.leaves(single.policies), jax.tree.leaves(binned.policies), strict=True
    ):
        np.testing.assert_array_equal(x, y)
    assert on_two_states(episodes=8).solved is None
    assert (single.solved == 0).all()  # which takes a hundred episodes
    assert (on_two_states(episodes=100, runs=5, solved_return=-1e9).solved == 100).all()


@pytest.mark.parametrize(
    "learn",
    [on_cartpole, q_on_two_states]
    + [pytest.param(learn, marks=pytest.mark.release) for learn in (on_two_states, q_on_cartpole)],
)
def test_steps_are_counted_in_place_of_episodes(learn, tmp_path):
    """A run plays the same episodes, as many as it has time for; it can be stopped and resumed."""
    deep_q = learn in (q_on_two_states, q_on_cartpole)
    options = {"runs": 3, "episodes": None} if deep_q else {"runs": 3}
    result = learn(**options, steps=300)
    played = np.isfinite(result.returns)
    assert played.any(0).all()  # no more entries than the run with the most has
    np.testing.assert_array_equal(played, result.lengths > 0)
    taken = result.lengths.sum(1)
    assert (taken <= 300).all() if deep_q else (taken >= 300).all()
    for lengths, count in zip(result.lengths, played.sum(1), strict=True):
        if deep_q:  # what is left is an episode that is not over
            assert 300 - lengths.sum() <= 60
        else:
            assert lengths[: count - 4].sum() < 300  # a batch less would be too few
    first = int(played.sum(1).min())
    whole = learn(**options | {"episodes": first})
    np.testing.assert_array_equal(whole.returns, result.returns[:, :first])
    for steps in (90, 90, 300):  # a run of whole batches has taken more when it is done
        resumed = learn(**options, steps=steps, checkpoint=tmp_path)
    assert_same(resumed, result)


@pytest.mark.parametrize("counts", [{}, {"episodes": 8, "steps": 8}])
def test_exactly_one_of_episodes_and_steps_is_given(counts):
    with pytest.raises(ValueError, match=r"^exactly one of `episodes` and `steps` must be given"):
        on_two_states(**counts)


@pytest.mark.parametrize("bin", [0, 6, 16, 1.5])
def test_a_bin_is_whole_batches_that_divide_the_episodes(bin):
    with pytest.raises((ValueError, TypeError), match=r"^`bin` must be "):
        on_two_states(episodes=24, bin=bin)


def test_progress_counts_steps_and_those_that_were_wasted():
    reports = []
    run = on_two_states(episodes=24, runs=20, callback=reports.append)
    assert reports[-1].steps == run.lengths.sum()
    assert reports[-1].computed > reports[-1].steps
    on_cartpole(episodes=4, callback=reports.append)
    assert reports[-1].computed == 0


def test_an_error_in_a_callback_ends_the_training():
    def fail(progress):
        raise KeyError(progress.episodes)

    with pytest.raises(KeyError, match=r"^4$"):
        on_cartpole(episodes=8, runs=20, callback=fail)


def test_cartpole_is_learned():
    """A mean return of 195 over 100 episodes in a row of at most 200 steps.

    Of 32 runs all did so within 444 episodes and half of them within 264. This one does so after
    164.
    """
    last = collections.deque(maxlen=25)

    def solved(progress):
        last.append(progress.mean_return)  # of the four episodes of a batch
        return len(last) == 25 and np.mean(last) >= 195

    run = on_cartpole(episodes=480, runs=[1], seed=1, max_steps=200, callback=solved)
    returns = run.returns[0, np.isfinite(run.returns[0])]
    print(f"{len(returns)} episodes, the first 20 earn {returns[:20].mean():.0f}")
    assert returns[-100:].mean() >= 195
    assert returns[:20].mean() < 50
    np.testing.assert_array_equal(run.returns[0, : len(returns)], run.lengths[0, : len(returns)])


@SOURCES
def test_a_learner_without_a_discount_has_the_environment_s_or_the_default(learn):
    own = {on_two_states: float(two_state.params().discount), on_cartpole: 0.99}[learn]
    without = learn(episodes=8, discount=None)
    assert_same(without, learn(episodes=8, discount=own))
    other = learn(episodes=8, discount=0.5)
    assert (
        without.policies.network.layers[0].weight != other.policies.network.layers[0].weight
    ).any()


def test_a_small_mdp_is_learned_to_its_optimal_value():
    """Take 1 at once, or go on with a chance of 0.9 and take 2: 1.8 on average.

    Four standard errors of the mean return of 4 * 200 episodes: one false alarm in 30,000.
    """
    mdp = MDP(
        [[[2, 2], [1, 2]], [[2, 2], [1, 2]]],
        [[[1.0, 0.0], [0.9, 0.1]], [[1.0, 0.0], [0.5, 0.5]]],
        [[1.0, 0.0], [2.0, 0.0]],
        1.0,
        terminal=[False, False],
    )
    best = solve(mdp, Max()).value[0]
    assert best == pytest.approx(1.8)
    run = on_two_states(environment=tabular.params(mdp, start=0), episodes=600, runs=4)
    first, last = run.returns[:, :20].mean(), run.returns[:, -200:]
    error = last.std() / np.sqrt(last.size)
    print(f"{first:.3f} at first, then {last.mean():.3f} +- {error:.3f}")
    assert first < 1.4
    assert last.mean() > best - 4 * error - 0.05
    assert last.mean() < best + 4 * error


class Shifted(gymnasium.ActionWrapper):
    """Actions that begin with another number than 0."""

    def __init__(self, env, start):
        super().__init__(env)
        self.action_space = gymnasium.spaces.Discrete(2, start=start)

    def action(self, action):
        assert self.action_space.contains(action)
        return action - self.action_space.start


def shifted(start):
    return lambda: Shifted(gymnasium.make("CartPole-v1"), start)


def in_two_rows():
    env = gymnasium.make("CartPole-v1", disable_env_checker=True)
    return gymnasium.wrappers.ReshapeObservation(env, (2, 2))


@pytest.mark.parametrize(
    "environment",
    [lambda: gymnasium.make("CartPole-v1"), shifted(7), shifted(-1), in_two_rows],
    ids=["a function", "actions from 7", "actions from -1", "observations in two rows"],
)
def test_the_same_environment_in_other_words_is_learned_alike(environment):
    assert_same(on_cartpole(environment=environment, episodes=12), on_cartpole(episodes=12))


def unbounded():
    class Unbounded(gymnasium.Env):
        observation_space = gymnasium.spaces.Sequence(gymnasium.spaces.Discrete(2))
        action_space = gymnasium.spaces.Discrete(2)

    return Unbounded()


BAD_ENVIRONMENTS = [
    ("CartPole-v9", "`environment` must be the id of a Gymnasium environment, got 'CartPole-v9'"),
    ("Pendulum-v1", "`environment` must have discrete actions, got Box"),
    (unbounded, "`environment` must have observations of one size, got Sequence"),
    (3, "`environment` must be the id of a Gymnasium environment or a function .*, got 3"),
    (lambda: 3, "`environment` must make a Gymnasium environment, got one that makes 3"),
]


@pytest.mark.parametrize(("environment", "message"), BAD_ENVIRONMENTS)
def test_a_bad_environment_is_one_sentence_before_any_work(environment, message, tmp_path):
    directory = tmp_path / "none"
    with pytest.raises((TypeError, ValueError), match=f"^{message}"):
        on_cartpole(environment=environment, episodes=4, checkpoint=directory)
    assert not directory.exists()
    policy = table_policy(np.full((4, 2), 0.5))
    with pytest.raises((TypeError, ValueError), match=f"^{message}"):
        evaluate(policy, environment)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"episodes": 2}, "`episodes` must be a whole number of at least 4, got 2"),
        ({"episodes": 6}, "`episodes` must be a multiple of the batch of 4, got 6"),
        ({"runs": 0}, "`runs` must be a whole number in [1, 4294967295], got 0"),
        ({"runs": []}, "`runs` must have a number, got []"),
        ({"runs": [-1]}, "`runs` must be a whole number in [0, 4294967295], got -1"),
        ({"max_steps": 0}, "`max_steps` must be a whole number of at least 1, got 0"),
        ({"workers": -1}, "`workers` must be a whole number of at least 0, got -1"),
        ({"devices": []}, "`devices` must have a device, got []"),
        ({"callback": 3}, "`callback` must be a function or None, got 3"),
        ({"seconds_between_checkpoints": -1}, "`seconds_between_checkpoints` must be a number of "
         "at least 0, got -1"),
        ({"seed": 1.5}, "`seed` must be a whole number in [0, 4294967295], got 1.5"),
        ({"rate": np.ones(2), "softmax": Mellowmax(np.ones(3))}, "the parameters, learning rates "
         "and discounts of a learner must broadcast against each other, got the shapes (3,), (2,)"),
    ],
)  # fmt: skip
def test_a_bad_argument_is_one_sentence(arguments, message):
    with pytest.raises(TypeError if "callback" in arguments else ValueError) as error:
        on_cartpole(**{"episodes": 8, **arguments})
    assert str(error.value) == message


def test_a_bad_learner_is_one_sentence():
    with pytest.raises(
        TypeError, match=r"^`learner` must be made by `reinforce`, `dqn`, `ppo` or `sac`"
    ):
        train(Mellowmax(5.0), "CartPole-v1", episodes=4)
