"""Networks of one's own: drawn, trained, saved, resumed, loaded and evaluated as the library's."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers.libraries import AS_USERS
from helpers.trainings import assert_same
from mellowmax import Boltzmann, EpsilonGreedy, Max
from mellowmax.deep import (
    GymnasiumEnvironment,
    Network,
    Policy,
    Trainable,
    dqn,
    evaluate,
    load_policy,
    mlp,
    ppo,
    reinforce,
    sac,
    train,
)
from mellowmax.deep.observation import vector
from mellowmax.deep.trainable import draw
from mellowmax.environments import two_state

VECTOR = jax.ShapeDtypeStruct((5,), jnp.float32)


class Own(eqx.Module):
    """It computes what `mlp(8, 1)` does, with a function made anew each time, and a number."""

    layers: list[eqx.nn.Linear]
    activation: Callable
    scale: float

    def __init__(self, key, observation, n_actions):
        sizes = (*observation.shape, 8, n_actions)
        self.layers = list(Network.init(key, sizes).layers)
        self.activation = lambda x: jnp.maximum(x, 0)
        self.scale = 1.0

    def __call__(self, observation):
        first, last = self.layers
        return last(self.activation(first(observation))) * jnp.float32(self.scale)


LEARNERS = {
    "reinforce": lambda network: reinforce(
        Boltzmann(1.0), 0.05, batch=4, baseline="network", discount=1.0, network=network
    ),
    "dqn": lambda network: dqn(
        Max(), 0.01, target=3, network=network, capacity=50, minibatch=8,
        learning_starts=20, train_frequency=3, exploration_steps=100,
    ),
}  # fmt: skip


def trained(algorithm, network, episodes=24, **options):
    options = {"max_steps": 32, "runs": 2, **options}
    return train(LEARNERS[algorithm](network), two_state.params(), episodes=episodes, **options)


@pytest.mark.parametrize("algorithm", ["dqn", pytest.param("reinforce", marks=pytest.mark.release)])
def test_a_network_of_one_s_own_learns_what_the_library_s_does(algorithm, tmp_path):
    """Up to rounding; and is resumed, loaded and evaluated."""
    whole = trained(algorithm, Own)
    np.testing.assert_allclose(whole.returns, trained(algorithm, mlp(8, 1)).returns, rtol=1e-4)
    assert isinstance(whole.policies.network, Trainable)
    for episodes in (12, 24):
        part = trained(algorithm, Own, episodes, checkpoint=tmp_path)
    assert_same(part, whole)
    policy = jax.tree.map(lambda x: x[1], whole.policies)
    if algorithm == "dqn":
        return
    saved = load_policy(tmp_path, 1, network=Own)
    results = [
        evaluate(one, two_state.params(), episodes=8, max_steps=32)
        for one in (saved.policy, Policy(policy.network.module, policy.softmax))
    ]
    assert len({result.mean for result in results}) == 1
    with pytest.raises(ValueError, match=r"`network` must be the one of the training, .*Own, got"):
        load_policy(tmp_path)
    with pytest.raises(ValueError, match=r"`network` must have the arrays of the .*Own: .*; got"):
        load_policy(tmp_path, network=mlp(8, 1))
    with pytest.raises(ValueError, match=r"training with the same settings, got another"):
        trained(algorithm, mlp(8, 1), checkpoint=tmp_path)


def test_a_network_with_arguments_of_its_own_is_named_in_files(tmp_path):
    """By the function that `functools.partial` gives them to."""

    def make(key, observation, n_actions, hidden):
        return Own(key, observation, n_actions)

    network = functools.partial(make, hidden=8)
    trained("dqn", network, 1, runs=1, checkpoint=tmp_path)
    with pytest.raises(ValueError, match=r"the one of the training, .*make, got None"):
        load_policy(tmp_path)


@pytest.mark.parametrize("weights", ["glorot", "orthogonal"])
def test_the_first_weights_of_an_mlp(weights):
    """Orthogonal rows or columns of PPO's lengths; 0.01 in the last layer, 1 for a value."""
    for n_actions, gain in ((3, 0.01), (1, 1.0)):
        first, last = draw(mlp(8, 1, "tanh", weights), jax.random.key(0), VECTOR, n_actions).layers
        products = first.weight.T @ first.weight, last.weight @ last.weight.T
        near = [
            np.allclose(product, size**2 * np.eye(len(product)), atol=1e-5)
            for product, size in zip(products, (2**0.5, gain), strict=True)
        ]
        assert near == [weights == "orthogonal"] * 2
        assert not first.bias.any()
        assert not last.bias.any()


def test_the_activation_of_an_mlp():
    network = draw(mlp(8, 1, "tanh"), jax.random.key(0), VECTOR, 3)
    x = np.linspace(-1, 1, 5).astype(np.float32)
    first, last = ((np.asarray(layer.weight), np.asarray(layer.bias)) for layer in network.layers)
    expected = last[0] @ np.tanh(first[0] @ x + first[1]) + last[1]
    np.testing.assert_allclose(network(jnp.asarray(x)), expected, rtol=1e-5)


class Indices(Own):
    """Has an array that is not of floating numbers."""

    order: jax.Array

    def __init__(self, key, observation, n_actions):
        super().__init__(key, observation, n_actions)
        self.order = jnp.arange(3)


@pytest.mark.parametrize(
    ("network", "error", "message"),
    [
        (lambda key, observation, n: Own(key, observation, n + 1), ValueError,
         r"`network` must return 2 floating numbers, as an array \[2\], got float32 \[3\]"),
        (lambda key, observation, n: print, TypeError,
         "`network` must be a function that draws an Equinox module, got <built-in"),
        (lambda key, observation, n: Boltzmann(1.0), TypeError,
         "`network` must be a function that draws an Equinox module, got Boltzmann"),
        (Indices, ValueError,
         r"`network` must have no arrays but those of floating numbers, got int64 \[3\]"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("algorithm", LEARNERS)
def test_what_is_no_network_is_refused(network, error, message, algorithm):
    with pytest.raises(error, match=message):
        trained(algorithm, network)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden": 0}, "`hidden` must be a whole number of at least 1, got 0"),
        ({"depth": -1}, "`depth` must be a whole number of at least 0, got -1"),
        ({"activation": "sine"}, "`activation` must be one of relu, tanh, got 'sine'"),
        ({"weights": "zero"}, "`weights` must be one of glorot, orthogonal, got 'zero'"),
    ],
)
def test_an_mlp_that_cannot_be_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        mlp(**options)


def test_a_duelling_network_adds_a_value_to_advantages(rng):
    network = mlp(8, 1, duelling=True)(jax.random.key(0), vector(5), 3)
    assert network.n_outputs == 3
    observation = rng.normal(size=5).astype(np.float32)
    first, last = network.layers
    hidden = np.maximum(first.weight @ observation + first.bias, 0)
    value, *advantages = np.asarray(last.weight @ hidden + last.bias)
    wanted = [value + one - sum(advantages) / 3 for one in advantages]
    np.testing.assert_allclose(network(jnp.asarray(observation)), wanted, atol=1e-6)


@pytest.mark.parametrize("softmax", [Max(), EpsilonGreedy(0.1)])
def test_some_action_is_the_best_however_xla_rounds(softmax):
    """It computes such a network once for the maximum and once more to compare with it."""
    network = mlp(64, 2, duelling=True)(jax.random.key(0), vector(500), 6)
    outputs = jax.vmap(network)(jnp.eye(500, dtype=jnp.float32))
    act = jax.jit(jax.vmap(Policy.act, (None, None, 0)), compiler_options=AS_USERS)
    actions = act(Policy(network, softmax), jnp.float32(0.5), jnp.eye(500, dtype=jnp.float32))
    assert ((actions >= 0) & (actions < 6)).all()
    if softmax == Max():
        np.testing.assert_array_equal(actions, outputs.argmax(1))


@pytest.mark.parametrize("make", [reinforce, dqn, ppo, sac])
def test_a_function_that_programs_cannot_be_told_apart_by_is_refused(make):
    @dataclasses.dataclass
    class Sized:  # it can be compared, and so has no hash
        size: int

        def __call__(self, key, observation, n_actions):
            return Own(key, observation, n_actions)

    rule = "^`network` must be hashable, since a program is compiled for each, got .*Sized.*size=3"
    with pytest.raises(TypeError, match=rule):
        make(Boltzmann(1.0), network=Sized(3))


def test_environments_of_partial_functions_have_their_arguments_as_names():
    def made(**options):
        return GymnasiumEnvironment(functools.partial(gymnasium.make, "CartPole-v1", **options))

    names = [made().name, made(max_episode_steps=7).name, made(max_episode_steps=8).name]
    assert names[1] == "gymnasium.envs.registration.make('CartPole-v1', max_episode_steps=7)"
    assert len({*names}) == 3
