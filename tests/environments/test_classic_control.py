"""The cart with a pole and the car in a valley: step by step what Gymnasium's do."""

from __future__ import annotations

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mellowmax.deep.environment.argument import environment_of
from mellowmax.environments import cartpole, mountain_car

ENVIRONMENTS = [
    (cartpole, "CartPole-v1", [3.0, 3.0, 0.3, 3.0], [0, 0, 0, 0]),
    (mountain_car, "MountainCar-v0", [0.9, 0.07], [-0.3, 0]),
]


@pytest.mark.parametrize(("ours", "id", "spread", "middle"), ENVIRONMENTS)
def test_every_step_is_gymnasium_s(ours, id, spread, middle):
    """From states all over the space, and beyond it; single precision is the only difference."""
    env = gymnasium.make(id).unwrapped
    rng = np.random.default_rng(0)
    states = (middle + spread * rng.uniform(-1, 1, (2000, len(spread)))).astype(np.float32)
    params = ours.params()
    actions = rng.integers(0, params.n_actions, 2000).astype(np.int32)
    step = jax.jit(jax.vmap(ours.step, (None, 0, 0, None)))
    got = step(jax.random.key(0), jnp.asarray(states), jnp.asarray(actions), params)
    seen = jax.vmap(ours.observe, (0, None))(got.state, params)
    for i, (state, action) in enumerate(zip(states, actions, strict=True)):
        env.reset(seed=0)
        env.state = state.astype(np.float64)
        theirs, reward, terminated, _, _ = env.step(int(action))
        np.testing.assert_allclose(seen[i], theirs, rtol=1e-5, atol=1e-6)
        assert (got.reward[i], got.terminated[i]) == (reward, terminated)
    assert 50 < np.sum(got.terminated) < 1950
    assert gymnasium.spec(id).max_episode_steps == ours.MAX_STEPS
    assert environment_of(params).max_steps == ours.MAX_STEPS
    assert environment_of(params, 7).max_steps == 7


@pytest.mark.parametrize(
    ("ours", "low", "high"),
    [(cartpole, [-0.05] * 4, [0.05] * 4), (mountain_car, [-0.6, 0.0], [-0.4, 0.0])],
)
def test_episodes_begin_as_gymnasium_s_do(ours, low, high):
    keys = jax.random.split(jax.random.key(1), 1000)
    states = np.asarray(jax.vmap(ours.reset, (0, None))(keys, ours.params()))
    low, high = np.float32(low), np.float32(high)
    assert ((states >= low) & (states <= high)).all()
    off = np.abs(states.mean(0) - (low + high) / 2)
    assert (off <= 5 * (high - low) / np.sqrt(12 * 1000)).all()  # beyond it once in a million


@pytest.mark.parametrize("ours", [cartpole, mountain_car])
def test_a_bad_force_is_one_sentence(ours):
    with pytest.raises(ValueError, match=r"`force` must be a finite .* at least 0, got -1"):
        ours.params(force=-1)
