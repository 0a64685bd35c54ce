"""Environments of other packages, against the packages themselves."""

from __future__ import annotations

import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mellowmax import Mellowmax
from mellowmax.deep import FunctionalEnvironment, Seen, dqn, mlp, train
from mellowmax.environments import brax, jumanji, navix, pgx

AS_THEY_EXPECT = {
    "jax_enable_x64": False,
    "jax_numpy_dtype_promotion": "standard",
    "jax_numpy_rank_promotion": "allow",
}
"""The defaults of JAX. Ours are strict in tests (`conftest.py`)."""
pytestmark = pytest.mark.filterwarnings("ignore")  # brax warns of itself and of what it needs
LEARNER = dqn(Mellowmax(5.0), 0.01, network=mlp(8, 1), capacity=64, learning_starts=16)


@pytest.fixture(scope="module", autouse=True)
def settings():
    ours = {name: getattr(jax.config, name) for name in AS_THEY_EXPECT}
    for name, value in AS_THEY_EXPECT.items():
        jax.config.update(name, value)
    yield
    for name, value in ours.items():
        jax.config.update(name, value)


def package(name):
    return pytest.importorskip(name, reason=f"{name} is not installed: `make howto` does it")


def trained(environment):
    result = train(LEARNER, environment, episodes=4)
    assert np.isfinite(result.returns).all()
    assert ((result.lengths > 0) & (result.lengths <= environment.max_steps)).all()
    return result


def played(environment, steps, keys=100):
    """What is seen, the rewards and the ends of random legal play in our functions."""
    functions, params = environment.functions, environment.params
    step, reset = jax.jit(functions.step), jax.jit(functions.reset)
    rng, state, said = np.random.default_rng(0), None, []
    for i in range(steps):
        if state is None:
            state = reset(jax.random.key(keys + i), params)
        legal = getattr(functions, "legal", lambda *_: None)(state, params)
        actions = np.arange(environment.n_actions) if legal is None else np.flatnonzero(legal)
        action = int(rng.choice(actions))
        before = state
        state, reward, ended = step(jax.random.key(i), state, action, params)
        said.append((before, action, state, float(reward), bool(ended)))
        state = None if ended else state
    return said


@pytest.mark.parametrize("name", ["tic_tac_toe", "2048", "minatar-breakout"])
def test_pgx(name):
    env = package("pgx").make(name)
    environment = FunctionalEnvironment(*pgx.functional(env), max_steps=64)
    assert isinstance(environment.observation, Seen)
    assert environment.observation.observation.shape == env.observation_shape
    said = played(environment, 100)
    rewards = [reward for *_, reward, _ in said]
    if name == "tic_tac_toe":
        assert {reward for *_, reward, ended in said if not ended} == {0.0}
        assert {-1.0, 1.0} <= set(rewards) <= {-1.0, 0.0, 1.0}
        for before, action, after, _, ended in said:
            assert int(before.current_player) == 0
            assert bool(before.legal_action_mask[action])
            taken = np.asarray(after._x.board if hasattr(after, "_x") else 0)
            assert ended or int(after.current_player) == 0, taken
    else:
        step = jax.jit(env.step)
        for i, (before, action, after, reward, _) in enumerate(said[:20]):
            theirs = step(before, action, jax.random.split(jax.random.key(i))[0])
            np.testing.assert_array_equal(theirs.observation, after.observation)
            assert float(theirs.rewards[0]) == reward
    result = trained(environment)
    if name == "tic_tac_toe":  # pgx punishes an illegal move by a loss, and ends the game
        assert (result.lengths >= 3).all()


def test_a_hundred_thousand_legal_moves_in_pgx():
    """An illegal move would end the game at once, with a reward of -1."""
    environment = FunctionalEnvironment(*pgx.functional(package("pgx").make("tic_tac_toe")), 9)
    result = train(LEARNER, environment, steps=100_000)
    lost = (result.returns == -1) & (result.lengths > 0)
    assert lost.sum() > 100  # a game that is lost has three moves of the other
    assert result.lengths[lost].min() >= 2
    assert result.lengths.max() <= 5


def test_navix():
    env = package("navix").make("Navix-Empty-5x5-v0")
    environment = FunctionalEnvironment(*navix.functional(env), env.max_steps)
    assert environment.observation == jax.ShapeDtypeStruct((5, 5, 3), np.uint8)
    step = jax.jit(env.step)
    for before, action, after, reward, ended in played(environment, 50):
        theirs = step(before, jnp.int32(action))
        np.testing.assert_array_equal(theirs.observation, after.observation)
        assert (float(theirs.reward), bool(theirs.is_termination())) == (reward, ended)
    trained(environment)


@pytest.mark.parametrize("name", ["Snake-v1", "Game2048-v1"])
def test_jumanji(name):
    env = package("jumanji").make(name)
    environment = FunctionalEnvironment(*jumanji.functional(env), max_steps=40)
    seen = environment.observation
    assert seen.legal.shape == (4,)
    assert "action_mask" not in seen.observation
    step = jax.jit(env.step)
    for before, action, after, reward, _ in played(environment, 40):
        assert bool(before.observation.action_mask[action])
        _, theirs = step(before.state, action)
        for x, y in zip(
            *map(jax.tree.leaves, (theirs.observation, after.observation)), strict=True
        ):
            np.testing.assert_array_equal(x, y)
        assert float(theirs.reward) == reward
    trained(environment)


def test_brax():
    package("brax")
    from brax.envs import get_environment

    env = get_environment("inverted_pendulum", backend="spring")
    table = [[-1.0], [0.0], [1.0]]
    environment = FunctionalEnvironment(*brax.functional(env, table), max_steps=50)
    assert environment.n_actions == 3
    assert environment.observation.shape == (env.observation_size,)
    step = jax.jit(env.step)
    for before, action, after, reward, ended in played(environment, 20):
        theirs = step(before, jnp.array(table[action]))
        np.testing.assert_allclose(theirs.obs, after.obs, rtol=1e-4, atol=1e-5)
        assert (float(theirs.reward), bool(theirs.done)) == (reward, ended)
    with pytest.raises(ValueError, match="`actions` must be rows of 1 numbers, got the shape"):
        brax.functional(env, [[1.0, 2.0]])


def test_what_is_no_such_environment_is_refused():
    """Without the packages: nothing is asked of it but the names."""
    for module in (pgx, navix, jumanji):
        with pytest.raises(
            TypeError, match=f"`env` must be an environment of {module.__name__[23:]}"
        ):
            module.functional(3)
    with pytest.raises(TypeError, match="`env` must be an environment like brax's, got 3"):
        brax.functional(3, [[1.0]])
    two = types.SimpleNamespace(action_spec=types.SimpleNamespace(num_values=np.array([2, 3])))
    with pytest.raises(
        ValueError, match="environment of jumanji's with discrete actions, got Simp"
    ):
        jumanji.functional(two)
