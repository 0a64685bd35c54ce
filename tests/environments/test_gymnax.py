"""gymnax's environments, against gymnax itself and against Gymnasium's of the same name."""

from __future__ import annotations

import types

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mellowmax import Boltzmann
from mellowmax.deep import FunctionalEnvironment, reinforce, train
from mellowmax.environments.gymnax import functional

AS_GYMNAX_EXPECTS = {
    "jax_enable_x64": False,
    "jax_numpy_dtype_promotion": "standard",
    "jax_numpy_rank_promotion": "allow",
}
"""The defaults of JAX. Ours are strict in tests (`conftest.py`)."""


@pytest.fixture(scope="module")
def gymnax():
    module = pytest.importorskip("gymnax", reason="gymnax is not installed: `make howto` does it")
    ours = {name: getattr(jax.config, name) for name in AS_GYMNAX_EXPECTS}
    for name, value in AS_GYMNAX_EXPECTS.items():
        jax.config.update(name, value)
    yield module
    for name, value in ours.items():
        jax.config.update(name, value)


def test_cartpole_moves_as_gymnasium_s_does(gymnax):
    """From the same state with the same actions, until the pole has fallen."""
    env, params = functional(*gymnax.make("CartPole-v1"))
    step = jax.jit(env.step)
    state, theirs = env.reset(jax.random.key(3), params), gymnasium.make("CartPole-v1").unwrapped
    theirs.reset(seed=0)
    theirs.state = np.asarray(env.observe(state, params), np.float64)
    for i in range(200):
        state, reward, over = step(jax.random.key(i), state, jnp.int32(i % 3 == 0), params)
        seen, their_reward, terminated, _, _ = theirs.step(int(i % 3 == 0))
        np.testing.assert_allclose(env.observe(state, params), seen, atol=1e-4)
        assert (float(reward), bool(over)) == (their_reward, terminated)
        if over:
            return
    pytest.fail("the pole never fell")


@pytest.mark.parametrize("name", ["CartPole-v1", "Breakout-MinAtar", "FourRooms-misc"])
def test_an_environment_is_trained_in(gymnax, name):
    env, params = gymnax.make(name)
    environment = FunctionalEnvironment(*functional(env, params), max_steps=20)
    seen = env.observation_space(params).shape
    assert environment.n_observations == np.prod(seen)
    assert environment.n_actions == env.num_actions
    result = train(reinforce(Boltzmann(1.0), batch=2), environment, episodes=4, runs=2)
    assert np.isfinite(result.returns).all()
    assert ((result.lengths > 0) & (result.lengths <= 20)).all()


def test_environments_of_other_names_have_other_checkpoints(gymnax):
    made = [functional(*gymnax.make(name)) for name in ("CartPole-v1", "Acrobot-v1")]
    names = {FunctionalEnvironment(*one, max_steps=5).name for one in made}
    assert len(names) == 2


def test_actions_that_are_not_discrete_are_refused():
    """Without gymnax: nothing is asked of it but the names."""
    box = types.SimpleNamespace(low=0.0, high=1.0)
    env = types.SimpleNamespace(name="Pendulum-v1", action_space=lambda params: box)
    with pytest.raises(ValueError, match=r"`env` must have discrete actions, got Pendulum-v1"):
        functional(env, None)
