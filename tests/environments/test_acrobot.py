"""The acrobot: step by step what Gymnasium's does."""

from __future__ import annotations

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mellowmax.environments import acrobot

STEP = jax.jit(jax.vmap(acrobot.step, (None, 0, 0, None)))
OBSERVE = jax.vmap(acrobot.observe, (0, None))


def test_every_step_is_gymnasium_s():
    """From states all over the space; single precision is the only difference.

    An angle that is turned by pi is the same angle, so what is observed is compared.
    """
    env = gymnasium.make("Acrobot-v1").unwrapped
    rng = np.random.default_rng(0)
    high = np.array([np.pi, np.pi, 4 * np.pi, 9 * np.pi])
    states = rng.uniform(-high, high, (2000, 4)).astype(np.float32)
    actions = rng.integers(0, 3, 2000).astype(np.int32)
    params = acrobot.params()
    ours = STEP(jax.random.key(0), jnp.asarray(states), jnp.asarray(actions), params)
    seen = np.asarray(OBSERVE(ours.state, params))
    env.reset(seed=0)
    near = 0
    for i, (state, action) in enumerate(zip(states, actions, strict=True)):
        env.state = state
        theirs, reward, terminated, _, _ = env.step(int(action))
        np.testing.assert_allclose(seen[i], theirs, rtol=1e-3, atol=1e-3)
        height = -np.cos(env.state[0]) - np.cos(env.state[0] + env.state[1])
        if abs(height - 1) < 1e-3:
            near += 1
            continue
        assert (ours.reward[i], ours.terminated[i]) == (reward, terminated)
    assert near < 10
    assert 100 < np.sum(ours.terminated) < 1900
    assert gymnasium.spec("Acrobot-v1").max_episode_steps == acrobot.MAX_STEPS


def test_episodes_begin_as_gymnasium_s_do():
    keys = jax.random.split(jax.random.key(1), 1000)
    states = np.asarray(jax.vmap(acrobot.reset, (0, None))(keys, acrobot.params()))
    assert states.shape == (1000, 4)
    assert np.abs(states).max() <= 0.1
    assert np.abs(states.mean(0)).max() < 5 * 0.1 / np.sqrt(3 * 1000)  # once in a million


def test_the_torque_is_the_parameter():
    state = jnp.zeros((1, 4), jnp.float32)
    one, two = (
        STEP(jax.random.key(0), state, jnp.int32([2]), acrobot.params(torque=t)).state[0, 3]
        for t in (1.0, 2.0)
    )
    assert 1.8 < two / one < 2.2
    with pytest.raises(ValueError, match=r"`torque` must be a finite .* at least 0, got -1"):
        acrobot.params(torque=-1)
