"""Whole episodes are what the policies and the keys say, whoever takes them and when."""

from __future__ import annotations

import contextlib
import itertools
import types
from typing import NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers.trainings import assert_same, on_two_states, table_policy
from mellowmax import Boltzmann
from mellowmax.deep import (
    FunctionalEnvironment,
    GymnasiumEnvironment,
    Network,
    Policy,
    Round,
    evaluate,
    reinforce,
    train,
)
from mellowmax.deep.play import player_of
from mellowmax.deep.play.episodes_functional import FunctionalEpisodes
from mellowmax.deep.play.player import WIDTH
from mellowmax.environments import tabular, two_state
from mellowmax.environments.fleet import fleet
from mellowmax.mdp import MDP

BATCH = 4
KEYS = jax.random.split(jax.random.key(3), WIDTH)


class Counting(gymnasium.Env):
    """It shows the step and the length of the episode, which its seed decides."""

    observation_space = gymnasium.spaces.Box(0, np.inf, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.length = 0, int(self.np_random.integers(1, 400))
        return self._observation(), {}

    def step(self, action):
        self.at += 1
        return self._observation(), self.at + 1000.0 * action, self.at == self.length, False, {}

    def _observation(self):
        return np.array([self.at, self.length], np.float32)


def counting_mdp():
    """Two states, in each of which an episode goes on with a chance of 0.8; action 1 earns 1."""
    rewards = np.array([[0.0, 1.0], [0.0, 1.0]])
    on = np.array([[0.5, 0.3, 0.2]] * 2)
    return MDP(
        np.broadcast_to([0, 1, 2], (2, 2, 3)),
        np.stack([on, on]),
        rewards,
        0.9,
        terminal=[False] * 2,
    )


COUNTING = GymnasiumEnvironment(Counting, max_steps=300)
TWO_STATES = FunctionalEnvironment(tabular, tabular.params(counting_mdp()), max_steps=300)
KINDS = pytest.mark.parametrize(
    "environment", [COUNTING, TWO_STATES], ids=["Gymnasium", "functional"]
)


def policies_that_take(actions):
    """For each lane a policy that takes one action, whatever it sees."""
    shapes = jax.eval_shape(lambda: Network.init(jax.random.key(0), (2, 2)))
    bias = 100.0 * np.eye(2, dtype=np.float32)[actions]
    leaves = [np.zeros((WIDTH, 2, 2), np.float32), bias]
    network = jax.tree.unflatten(jax.tree.structure(shapes), leaves)
    return Policy(network, Boltzmann(np.ones(WIDTH, np.float32)))


def play(environment, *arguments):
    return player_of("episodes", environment).episodes(*arguments)


RANDOM = jax.tree.map(np.zeros_like, policies_that_take(np.zeros(WIDTH, int)))


def batches_of(environment, done, until, policies=lambda: RANDOM):
    """The batches of each lane in their order, copied: `{lane: [(observations, ...), ...]}`."""
    result = {lane: [] for lane in range(len(done))}
    with contextlib.closing(play(environment, policies, KEYS, done, until, BATCH)) as batches:
        for lanes, episodes, *_ in batches:
            arrays = [np.array(x) for x in jax.tree.leaves(episodes)]
            for lane, *of_lane in zip(lanes.tolist(), *arrays, strict=True):
                if lane in result:
                    result[lane].append(of_lane)
    return result


@KINDS
def test_every_run_plays_the_batches_it_still_needs(environment):
    assert {len(batches) for batches in batches_of(environment, [2, 2, 2], 4).values()} == {2}
    assert batches_of(environment, [4], 4) == {0: []}


def test_runs_of_gymnasium_environments_may_have_come_to_different_batches():
    played = batches_of(COUNTING, [0, 2, 1], 2)
    assert [len(batches) for batches in played.values()] == [2, 0, 1]


def test_an_episode_is_recorded_step_by_step():
    """Up to its own end or that after 300 steps, for which the arrays have to grow."""
    longest = []
    played = batches_of(COUNTING, [0, 0, 0], 2)
    for observations, actions, rewards, lengths in itertools.chain(*played.values()):
        assert len(actions) in (256, 1024)
        for i, n in enumerate(lengths):
            steps = np.arange(n)
            np.testing.assert_array_equal(observations[:n, i, 0], steps)
            np.testing.assert_array_equal(rewards[:n, i], steps + 1 + 1000.0 * actions[:n, i])
            assert n == min(300, observations[0, i, 1])
        longest.append(lengths.max())
    assert min(longest) < 256 < max(longest) == 300


@KINDS
def test_a_batch_is_played_by_the_policy_at_its_beginning(environment):
    """In each lane by another one, which whoever takes the episodes changes for the next batch."""
    wanted = np.arange(WIDTH) % 2
    taken = {lane: [] for lane in range(3)}
    batches = play(environment, lambda: policies_that_take(wanted), KEYS, [0, 0, 0], 3, BATCH)
    for lanes, episodes, *_ in batches:
        actions, lengths = np.asarray(episodes.actions), np.asarray(episodes.lengths)
        for i, lane in enumerate(lanes.tolist()):
            if lane in taken:
                mask = np.arange(actions.shape[1])[:, None] < lengths[i]
                taken[lane].append(set(actions[i][mask].tolist()))
                wanted[lane] = 1 - wanted[lane]
    for lane, actions in taken.items():
        assert actions == [{(lane + number) % 2} for number in range(3)]


@KINDS
def test_a_batch_depends_on_its_number_and_not_on_those_before(environment):
    whole, later = batches_of(environment, [0, 0], 3), batches_of(environment, [2, 2], 3)
    for lane in (0, 1):
        lengths = whole[lane][2][-1]
        np.testing.assert_array_equal(later[lane][0][-1], lengths)
        for one, other in zip(whole[lane][2][:-1], later[lane][0][:-1], strict=True):
            for i, n in enumerate(lengths):
                np.testing.assert_array_equal(one[:n, i], other[:n, i])
    assert (whole[0][0][-1] != whole[0][1][-1]).any()
    assert (whole[0][0][-1] != whole[1][0][-1]).any()


class Params(NamedTuple):
    """The parameters of the environments below."""

    n_actions: int = 2


class Walk:
    """A random walk whose reset takes a step, and which ends when it is far enough."""

    @staticmethod
    def reset(key, params):
        first, second = jax.random.split(key)
        return Walk.step(second, Launched.launch(first), 0, params)[0]

    @staticmethod
    def step(key, place, action, params):
        place = place + jax.random.normal(key, dtype=np.float32)
        return place, jnp.where(action == 1, place, -place), abs(place) > 5

    @staticmethod
    def observe(place, params):
        return jnp.stack([place, -place])


class Launched(Walk):
    """The same, begun by a launch."""

    @staticmethod
    def launch(key):
        return jax.random.uniform(key, dtype=np.float32)


def test_a_launch_and_a_step_are_a_reset():
    """Which costs no step of its own then."""
    one, other = (FunctionalEnvironment(kind, Params(), 40) for kind in (Walk, Launched))
    one, other = (batches_of(environment, [0] * 20, 2) for environment in (one, other))
    for lane, batches in one.items():
        for batch, again in zip(batches, other[lane], strict=True):
            np.testing.assert_array_equal(batch[-1], again[-1])
            mask = np.arange(len(batch[0]))[:, None] < batch[-1]
            for x, y in zip(batch[:-1], again[:-1], strict=True):
                np.testing.assert_array_equal(x[mask], y[mask])


@pytest.mark.parametrize(
    ("name", "changed", "message"),
    [
        ("observe", lambda x: x.astype(np.complex64), "observations that are arrays of numbers, "),
        ("observe", lambda x: {}, "observations that are arrays, got none"),
        ("step", lambda said: (said[0], said[1][None], said[2]), "a number as the reward, got "),
        ("step", lambda said: (*said[:2], said[1]), "one boolean as `terminated`, got float32 "),
        ("step", lambda said: said[:2], "a state, a reward and `terminated` from `step`, got tup"),
        ("step", lambda said: (said[:1], *said[1:]), "states of one form from `reset` and from "),
    ],
)  # fmt: skip
def test_what_a_functional_environment_must_return(name, changed, message):
    """One sentence, before anything is compiled."""
    function = getattr(Walk, name)
    changes = {name: staticmethod(lambda *arguments: changed(function(*arguments)))}
    wrong = type("Wrong", (Walk,), changes)
    with pytest.raises(ValueError, match=f"`environment` must return {message}"):
        FunctionalEnvironment(wrong, Params())


def test_no_slot_waits_for_the_longest_episode_of_a_batch():
    """Where batches were played in step, over two fifths of what is computed would be wasted."""
    counted = computed = in_step = 0
    environment = FunctionalEnvironment(Launched, Params(), 128)
    batches = play(environment, lambda: RANDOM, KEYS, [0] * WIDTH, 30, BATCH)
    for lanes, episodes, steps, *_ in batches:
        lengths = np.asarray(episodes.lengths)[lanes < WIDTH]
        counted, computed = counted + lengths.sum(), computed + steps
        in_step += BATCH * lengths.max(1).sum()
    assert counted / in_step < 0.6 < 0.7 < counted / computed


def test_environments_are_closed_when_playing_ends_early(monkeypatch):
    closed = []

    class Watched(fleet.Fleet):
        def close_extras(self, **kwargs):
            closed.append(self)
            super().close_extras(**kwargs)

    monkeypatch.setattr(fleet, "Fleet", Watched)
    batches = play(COUNTING, lambda: RANDOM, KEYS, [0, 0], 5, BATCH)
    next(batches)
    assert not closed
    batches.close()
    assert len(closed) == 1


class Reversed:
    """The user's own rollouts: the two states, with the lanes in another order."""

    n_observations = n_actions = 2
    max_steps, discount, name = 32, 0.98, "reversed"

    def __init__(self):
        self.inner = FunctionalEnvironment(tabular, two_state.params(), max_steps=32)
        self.used = []

    def play(self, policies, keys, done, until, batch):
        def remembered():
            self.used.append(policies())
            return self.used[-1]

        for lanes, episodes, *_ in play(self.inner, remembered, keys, done, until, batch):
            backwards = jax.tree.map(lambda x: np.asarray(x)[::-1], episodes)
            yield Round(lanes[::-1], backwards)


def test_rollouts_of_one_s_own_are_trained_in(tmp_path):
    own = Reversed()
    options = {"environment": own, "max_steps": None, "episodes": 8, "runs": 2}
    trained = on_two_states(checkpoint=tmp_path, **options)
    assert_same(trained, on_two_states(episodes=8, runs=2))
    first, second = (used.network.layers[0].weight for used in own.used)
    assert (np.asarray(first) != np.asarray(second)).any()
    assert_same(on_two_states(checkpoint=tmp_path, **options), trained)
    assert len(own.used) == 2  # nothing was left to play
    own.name = "another"
    with pytest.raises(ValueError, match="`environment` was 'reversed' and is 'another'"):
        on_two_states(checkpoint=tmp_path, **options)


def test_evaluation_plays_with_the_policy_as_it_is():
    own, policy = Reversed(), table_policy(np.array([[0.3, 0.7], [0.5, 0.5]]))
    played = evaluate(policy, own, episodes=300)
    there = evaluate(policy, two_state.params(), episodes=300, max_steps=32)
    np.testing.assert_array_equal(played.returns, there.returns)
    np.testing.assert_array_equal(played.lengths, there.lengths)
    assert own.used
    for used in own.used:
        for x, y in zip(jax.tree.leaves(used), jax.tree.leaves(policy), strict=True):
            np.testing.assert_array_equal(x, np.broadcast_to(y, x.shape))


def test_a_functional_environment_is_as_good_as_its_parameters():
    environment = FunctionalEnvironment(tabular, two_state.params(), max_steps=32)
    given = on_two_states(environment=environment, max_steps=None, episodes=8, runs=2)
    assert_same(given, on_two_states(episodes=8, runs=2))


@pytest.mark.parametrize("name", ["max_steps", "workers"])
def test_such_an_environment_has_its_own_limits(name):
    message = f"^`{name}` must be None for an environment that has its own, got 3$"
    with pytest.raises(ValueError, match=message):
        train(reinforce(Boltzmann(1.0)), COUNTING, episodes=10, **{name: 3})
    with pytest.raises(ValueError, match=message):
        evaluate(table_policy(np.full((2, 2), 0.5)), COUNTING, **{name: 3})


def test_a_block_fits_into_the_memory_of_an_accelerator():
    """The episodes of its lanes, and a copy of the network for every slot."""
    image = jax.ShapeDtypeStruct((100, 100), jnp.float32)
    environment = types.SimpleNamespace(observation=image, n_actions=2, max_steps=100)
    learner = reinforce(Boltzmann(1.0), batch=2)
    widths = []
    for gigabytes in (1, 4, 100):
        device = types.SimpleNamespace(
            platform="gpu", memory_stats=lambda size=gigabytes: {"bytes_limit": size * 1e9}
        )
        width = FunctionalEpisodes(environment).width(learner, 3000, [device])
        episodes, networks = 2 * 100 * 40_000, 4 * 1.1 * 10_000 * 16 * 4
        assert width * (episodes + networks) < 0.25 * gigabytes * 1e9
        widths.append(width)
    assert widths[0] < widths[1] < 1024
    assert widths[2] % 1024 == 0
