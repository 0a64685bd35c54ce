"""Observations as they are, arrays of any shape and trees of them, and masks of legal actions."""

from __future__ import annotations

import collections
import dataclasses
import functools
from typing import NamedTuple

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from helpers.trainings import assert_same
from mellowmax import Boltzmann, Mellowmax
from mellowmax.cli.describe import describe_training
from mellowmax.deep import (
    FunctionalEnvironment,
    GymnasiumEnvironment,
    Policy,
    Seen,
    Segment,
    Transitions,
    VectorEnvironment,
    dqn,
    evaluate,
    load_policy,
    mlp,
    ppo,
    reinforce,
    sac,
    train,
    watch,
)
from mellowmax.deep.observation import as_text, from_text
from mellowmax.deep.replay import Replay
from mellowmax.mdp import MDP

SIZE = 3
"""The side of a board whose places are visited one by one, until all are."""
N = SIZE * SIZE


class Params(NamedTuple):
    n_actions: int = N


class Board:
    """Every action visits a place; a second visit to a place would be illegal, and costs 100."""

    @staticmethod
    def reset(key, params):
        return jnp.zeros(N, jnp.bool_).at[jax.random.randint(key, (), 0, N)].set(True)

    @staticmethod
    def step(key, visited, action, params):
        after = visited.at[action].set(True)
        reward = jnp.where(visited[action], -100.0, action / N)
        return after, reward, after.all()


class Nested(Board):
    @staticmethod
    def observe(visited, params):
        counted = visited.sum(dtype=jnp.int32)
        return {"board": visited.reshape(SIZE, SIZE), "count": (counted[None], counted / N)}


class Flat(Board):
    @staticmethod
    def observe(visited, params):
        counted = visited.sum(dtype=jnp.int32)
        parts = (visited, counted[None], counted[None] / N)
        return jnp.concatenate([x.astype(jnp.float32) for x in parts])


class Legal(Nested):
    @staticmethod
    def legal(visited, params):
        return ~visited


class GymnasiumBoard(gymnasium.Env):
    """The same in Gymnasium, with a mask; none is legal at the end."""

    says_it = True

    def __init__(self, nested=True):
        self.nested = nested
        self.action_space = gymnasium.spaces.Discrete(N)
        count = gymnasium.spaces.Box(0, N, (1,), np.int32)
        parts = {
            "board": gymnasium.spaces.Box(0, 1, (SIZE, SIZE), np.uint8),
            "count": gymnasium.spaces.Tuple([count, gymnasium.spaces.Discrete(N + 1)]),
        }
        space = gymnasium.spaces.Dict(parts)
        self.whole = space
        self.observation_space = space if nested else gymnasium.spaces.flatten_space(space)

    def _said(self):
        count = int(self.visited.sum())
        board = self.visited.reshape(SIZE, SIZE).astype(np.uint8)
        seen = {"board": board, "count": (np.array([count], np.int32), count)}
        info = {"action_mask": (~self.visited).astype(np.int8)} if self.says_it else {}
        return seen if self.nested else gymnasium.spaces.flatten(self.whole, seen), info

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.visited = np.zeros(N, np.bool_)
        self.visited[self.np_random.integers(N)] = True
        return self._said()

    def step(self, action):
        reward = -100.0 if self.visited[action] else action / N
        self.visited[action] = True
        seen, info = self._said()
        return seen, reward, bool(self.visited.all()), False, info


LENGTHS = {"reinforce": 8, "dqn": 8, "ppo": 96, "sac": 16}
"""The episodes of each run; for PPO, its steps."""


def functional(functions):
    return FunctionalEnvironment(functions, Params(), max_steps=16)


LEARNERS = {
    "reinforce": reinforce(Boltzmann(2.0), 0.05, batch=2, baseline="network", network=mlp(8, 1)),
    "dqn": dqn(
        Mellowmax(2.0), 0.01, network=mlp(8, 1), capacity=50, minibatch=8, learning_starts=16,
        train_frequency=4, exploration_steps=100,
    ),
    "ppo": ppo(
        Boltzmann(2.0), 0.01, environments=2, steps=8, epochs=1, minibatches=2, network=mlp(8, 1)
    ),
    "sac": sac(
        Boltzmann(2.0), 0.01, network=mlp(8, 1), capacity=50, minibatch=8, learning_starts=16
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("algorithm", "kind"),
    [
        ("dqn", "functional"),
        ("reinforce", "gymnasium"),
        pytest.param("reinforce", "functional", marks=pytest.mark.release),
        pytest.param("dqn", "gymnasium", marks=pytest.mark.release),
    ],
)
def test_a_nested_observation_is_its_flattened_twin_bit_for_bit(algorithm, kind):
    options = {"runs": 2, "steps" if algorithm == "ppo" else "episodes": LENGTHS[algorithm]}
    if kind == "functional":
        nested, flat = functional(Nested), functional(Flat)
        assert flat.observation == jax.ShapeDtypeStruct((N + 2,), jnp.float32)
        assert nested.observation["board"].dtype == np.bool_
    else:
        nested, flat = (functools.partial(GymnasiumBoard, x) for x in (True, False))
        options |= {"workers": 0, "max_steps": 16}
        seen = GymnasiumEnvironment(nested).observation
        shapes = [(x.shape, str(x.dtype)) for x in jax.tree.leaves(seen)]
        assert shapes == [((SIZE, SIZE), "uint8"), ((1,), "int32"), ((N + 1,), "float32")]
    learner = LEARNERS[algorithm]
    one, other = (train(learner, env, **options) for env in (nested, flat))
    assert (one.returns < 0).any()  # without a mask it goes where it must not
    assert_same(one, other)


@pytest.mark.parametrize(
    ("algorithm", "kind"),
    [
        ("reinforce", "functional"),
        ("sac", "functional"),
        ("dqn", "gymnasium"),
        ("ppo", "vector"),
        pytest.param("dqn", "functional", marks=pytest.mark.release),
        pytest.param("ppo", "functional", marks=pytest.mark.release),
        pytest.param("ppo", "gymnasium", marks=pytest.mark.release),
        pytest.param("reinforce", "gymnasium", marks=pytest.mark.release),
    ],
)
def test_no_illegal_action_is_taken(algorithm, kind):
    """In learning and in evaluation: each place is visited once, whatever the policy."""
    options = {"runs": 2, "steps" if algorithm == "ppo" else "episodes": LENGTHS[algorithm]}
    played = {"episodes": 40}
    environment = functional(Legal)
    if kind == "vector":
        environment = VectorEnvironment(vector, max_steps=16, action_mask=True)
    elif kind != "functional":
        environment = GymnasiumBoard
        given = {"workers": int(algorithm == "reinforce"), "max_steps": 16, "action_mask": True}
        options, played = options | given, played | given
    trained = train(LEARNERS[algorithm], environment, **options)
    policy = jax.tree.map(lambda x: x[0], trained.policies)
    for result in (trained, evaluate(policy, environment, **played)):
        ended = result.lengths > 0  # PPO counts steps, not episodes
        np.testing.assert_array_equal(result.lengths[ended], N - 1)
        assert (result.returns[ended] > 0).all()
        assert ended.sum() > 8


def vector(count):
    mode = gymnasium.vector.AutoresetMode.DISABLED
    make = functools.partial(GymnasiumBoard, False)
    return gymnasium.vector.SyncVectorEnv([make] * count, autoreset_mode=mode)


@pytest.mark.release
def test_a_mask_of_all_actions_changes_nothing():
    """Up to rounding, for which there is a shorter way without a mask."""

    class All(Flat):
        @staticmethod
        def legal(visited, params):
            return jnp.ones(N, jnp.bool_)

    one, other = (train(LEARNERS["dqn"], functional(x), episodes=8) for x in (All, Flat))
    np.testing.assert_array_equal(one.lengths, other.lengths)
    for x, y in zip(*map(jax.tree.leaves, (one.policies, other.policies)), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("softmax", [Mellowmax(3.0), Boltzmann(2.0)])
def test_targets_are_those_of_the_masked_operator(softmax, rng):
    """Also in a terminal state where nothing is legal, whose value does not count."""
    learner = dqn(softmax, discount=0.9, network=mlp(depth=0))
    legal = rng.random((6, 4)) < 0.5
    legal[0], legal[1] = False, True
    legal[2:, 0] = True
    seen = Seen(jax.ShapeDtypeStruct((2,), jnp.float32), jax.ShapeDtypeStruct((4,), jnp.bool_))
    state = learner.init(jax.random.key(0), seen, 4)
    after = rng.normal(size=(6, 2)).astype(np.float32)
    rewards, over = rng.normal(size=6).astype(np.float32), np.arange(6) == 0
    steps = Transitions(
        Seen(after, legal), np.zeros(6, np.int32), rewards, over, Seen(after, legal)
    )
    got = jax.jit(learner.targets)(state, jax.tree.map(jnp.asarray, steps))
    (layer,) = state.network.layers
    q = after @ np.asarray(layer.weight).T + np.asarray(layer.bias)
    for i in range(6):
        value = 0.0 if over[i] else softmax.value(q[i, legal[i]].astype(np.float64))
        np.testing.assert_allclose(got[i], rewards[i] + 0.9 * value, rtol=1e-5)


def test_probabilities_are_those_of_the_legal_actions():
    policy = Policy(LEARNERS["dqn"].init(jax.random.key(0), 4, 3).network, Boltzmann(3.0))
    x, legal = jnp.ones(4, jnp.float32), jnp.array([True, False, True])
    got = policy.probabilities(Seen(x, legal))
    expected = Boltzmann(3.0).policy(np.asarray(policy.network(x))[[0, 2]].astype(np.float64))
    np.testing.assert_allclose(got, [expected[0], 0, expected[1]], rtol=1e-4)
    assert policy.log_probabilities(Seen(x, legal))[1] == -np.inf
    nothing = policy.probabilities(Seen(x, jnp.zeros(3, jnp.bool_)))
    np.testing.assert_allclose(nothing, policy.probabilities(x), rtol=1e-5)


def without_last_action(network):
    """A network of one layer, without its last output."""
    return jax.tree.map(lambda x: x[:-1], network)


@pytest.mark.parametrize("algorithm", ["ppo", "sac"])
def test_an_action_that_is_never_legal_teaches_nothing(algorithm, rng):
    """An update is that of a learner which does not have the action at all."""
    options = {"network": mlp(1, 0), "optimiser": optax.identity()}
    learner = {
        "ppo": ppo(Boltzmann(2.0), 0.1, environments=2, steps=6, minibatches=2, **options),
        "sac": sac(Boltzmann(2.0), 0.1, entropy_target=0.4, capacity=4, **options),
    }[algorithm]
    shape = (6, 2) if algorithm == "ppo" else (12,)
    before, after = rng.normal(size=(2, *shape, 4)).astype(np.float32)
    ended = jnp.asarray(rng.random(shape) < 0.3)
    actions, rewards = rng.integers(0, 2, shape), rng.normal(size=shape).astype(np.float32)
    legal = jnp.broadcast_to(jnp.array([True, True, False]), (*shape, 3))

    def updated(state, *seen):
        seen = jax.tree.map(jnp.asarray, seen)
        steps = Transitions(seen[0], jnp.int32(actions), jnp.asarray(rewards), ended, seen[1])
        if algorithm == "ppo":
            return jax.jit(learner.update)(state, Segment(steps, ended), jax.random.key(1))
        return jax.jit(learner.update)(state, steps)

    fresh = learner.init(jax.random.key(0), 4, 3)
    of_actions = {"ppo": ["network"], "sac": ["network", "critics", "averages"]}[algorithm]

    def shortened(state):
        changes = {name: without_last_action(getattr(state, name)) for name in of_actions}
        return dataclasses.replace(state, **changes)

    learned = updated(fresh, Seen(before, legal), Seen(after, legal))
    expected = updated(shortened(fresh), before, after)
    for x, y in zip(*map(jax.tree.leaves, (shortened(learned), expected)), strict=True):
        np.testing.assert_allclose(x, y, atol=1e-6)
    for x, y in zip(*map(jax.tree.leaves, (learned.network, fresh.network)), strict=True):
        np.testing.assert_array_equal(x[-1], y[-1])


def test_an_mdp_with_actions_that_are_not_allowed(rng):
    """The illegal action would be taken at once: its values do not count, and it ends nothing."""
    p = np.zeros((3, 2, 3))
    p[0, :, 1] = p[1, :, 2] = p[2, :, 2] = 1.0
    allowed = np.array([[True, False], [False, True], [True, True]])
    rewards = np.array([[1.0, -9.0], [-9.0, 2.0], [0.0, 0.0]])
    mdp = MDP(None, p, rewards, 0.9, allowed=allowed)
    learner = reinforce(Boltzmann(1.0), 0.1, batch=2, network=mlp(depth=0))
    result = train(learner, mdp, episodes=8, max_steps=8)
    assert set(result.returns.ravel()) <= {3.0, 2.0}
    assert set(result.lengths.ravel()) <= {1, 2}


def test_a_replay_buffer_keeps_each_dtype(rng):
    seen = {
        "a": np.zeros((2, 2), np.uint8),
        "b": np.zeros(3, np.float32),
        "c": np.zeros((), np.bool_),
    }
    replay = Replay.empty(4, seen)
    assert {name: x.shape for name, x in replay.rows.items()} == {
        "bool": (4, 2), "float32": (4, 9), "uint8": (4, 8)
    }  # fmt: skip
    steps = []
    for t in range(6):
        now = {"a": rng.integers(255, size=(2, 2)).astype(np.uint8),
               "b": rng.normal(size=3).astype(np.float32), "c": np.bool_(t % 2)}  # fmt: skip
        steps.append((now, t))
        replay = replay.add(Transitions(now, t, t / 2, t == 3, now))
    drawn = replay.sample(jax.random.key(0), 32)
    assert set(np.asarray(drawn.action)) == {2, 3, 4, 5}
    drawn = jax.tree.map(np.asarray, drawn)
    for i, action in enumerate(drawn.action):
        for name, x in steps[action][0].items():
            for got in (drawn.observation[name], drawn.next_observation[name]):
                np.testing.assert_array_equal(got[i], x)
                assert got.dtype == x.dtype
        assert drawn.reward[i] == action / 2
        assert drawn.terminated[i] == (action == 3)


class Pictures(eqx.Module):
    """A convolution over the board."""

    first: eqx.nn.Conv2d
    last: eqx.nn.Linear

    def __init__(self, key, observation, n_actions):
        one, two = jax.random.split(key)
        self.first = eqx.nn.Conv2d(1, 4, 2, key=one, dtype=jnp.float32)
        self.last = eqx.nn.Linear(4 * (SIZE - 1) ** 2, n_actions, key=two, dtype=jnp.float32)

    def __call__(self, observation):
        board = observation["board"].astype(jnp.float32)
        return self.last(jax.nn.relu(self.first(board[None])).ravel())


def test_a_network_for_pictures(tmp_path):
    """It is resumed, loaded and evaluated, from a checkpoint that has the shapes it saw."""
    learner = dqn(Boltzmann(1.0), 0.01, network=Pictures, capacity=50, learning_starts=16)
    for episodes in (4, 8):
        result = train(learner, functional(Legal), episodes=episodes, checkpoint=tmp_path)
    policy = jax.tree.map(lambda x: x[0], result.policies)
    saved = load_policy(tmp_path, network=Pictures).policy
    played = [evaluate(one, functional(Legal), episodes=8) for one in (policy, saved)]
    assert (played[0].lengths == N - 1).all()
    np.testing.assert_array_equal(played[0].returns, played[1].returns)
    rows = dict(describe_training([tmp_path / "runs-00000.npz"]).rows)
    assert rows["network"].endswith("Pictures")


class Lists(gymnasium.Env):
    """Gives a list for an array, one for a tuple, and another kind of dictionary."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 1}  # noqa: RUF012
    box = gymnasium.spaces.Box(0, 9, (1,))
    observation_space = gymnasium.spaces.Dict(a=box, b=gymnasium.spaces.Tuple([box, box]))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.number = 0
        return self._said(), {}

    def step(self, action):
        self.number += 1
        return self._said(), 1.0, self.number == 3, False, {}

    def render(self):
        return np.full((2, 2, 3), self.number, np.uint8)

    def _said(self):
        one = np.float32([self.number])
        return collections.OrderedDict(b=[one, [0.0]], a=one)


def test_observations_of_lists_are_watched_as_they_are_learned_from():
    gymnasium.register("Lists-v0", Lists)
    try:
        options = {"episodes": 2, "workers": 0}
        result = train(LEARNERS["reinforce"], "Lists-v0", **options)
        pictures = watch(jax.tree.map(lambda x: x[0], result.policies), "Lists-v0")
        assert [picture[0, 0, 0] for picture, _ in pictures] == [0, 1, 2, 3]
    finally:
        del gymnasium.registry["Lists-v0"]


class Grid(NamedTuple):
    cells: object
    counts: tuple


def test_the_shapes_of_an_observation_are_written_and_read():
    image, number = (jax.ShapeDtypeStruct(x, y) for x, y in (((2, 3), np.uint8), ((), np.float32)))
    for shapes in (image, {"a": image, "b": (number, image)}, Grid(image, (number,))):
        again = from_text(as_text(shapes))
        assert jax.tree.leaves(again) == jax.tree.leaves(shapes)
    assert again.cells == image
    assert again.counts == (number,)
    with pytest.raises(
        ValueError, match=r"'settings\.observation' must be the path, dtype and shape"
    ):
        from_text('[["a", "b"]]')


def test_what_is_no_mask_is_refused():
    class Short(Flat):
        @staticmethod
        def legal(visited, params):
            return ~visited[1:]

    class Numbers(Flat):
        @staticmethod
        def legal(visited, params):
            return visited.astype(jnp.float32)

    class Silent(GymnasiumBoard):
        says_it = False

    rule = "`environment` must return 9 booleans from `legal`, one for each action, got "
    with pytest.raises(ValueError, match=rule + r"bool with the shape \(8,\)"):
        functional(Short)
    with pytest.raises(ValueError, match=rule + r"float32 with the shape \(9,\)"):
        functional(Numbers)
    with pytest.raises(RuntimeError, match=r"give `info\['action_mask'\]` with 9 entries of 0 and"):
        train(LEARNERS["dqn"], Silent, episodes=1, action_mask=True)
    with pytest.raises(ValueError, match="`action_mask` must be False for an environment that"):
        train(LEARNERS["dqn"], functional(Legal), episodes=1, action_mask=True)
