"""Environments as pure functions: over all uniform numbers, what they lead to is the MDP."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mellowmax.environments import tabular, taxi, two_state
from mellowmax.environments.gymnasium import TabularEnv
from mellowmax.mdp import MDP, garnet, multi_passenger_taxi, random_mdp
from mellowmax.mdp import two_state as two_state_mdp

FINE = (np.arange(20_000, dtype=np.float32) + 0.5) / 20_000


def awkward():
    """Masks, a terminal state, ends that lead nowhere, rewards of branches, padding in between."""
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.ones(3), (6, 3))
    probabilities[1, 2] = [0.0, 1.0, 0.0]
    probabilities[2, 0] = [0.25, 0.0, 0.75]
    allowed = np.ones((6, 3), np.bool_)
    allowed[4, 1] = allowed[0, 2] = False
    return MDP(
        rng.integers(0, 7, (6, 3, 3)),
        probabilities,
        rng.normal(size=(6, 3, 3)),
        0.9,
        allowed=allowed,
        terminal=np.arange(6) == 3,
    )


MODELS = {
    "two-state": two_state_mdp(),
    "taxi": multi_passenger_taxi(),
    "random": random_mdp(3),
    "garnet": garnet(12, 2, 3, seed=0),
    "awkward": awkward(),
}


@pytest.mark.parametrize("name", MODELS)
def test_moves_have_the_probabilities_and_the_rewards_of_the_mdp(name):
    mdp = MODELS[name]
    params = tabular.params(mdp)
    move = jax.jit(jax.vmap(tabular.move, in_axes=(0, None, None, None)))
    n = mdp.n_states
    dense, expected_rewards = mdp.to_numpy()
    rng = np.random.default_rng(1)
    states = np.unique(rng.integers(0, n, 40))
    for s in (s for s in states if not mdp.terminal[s]):
        for a in range(mdp.n_actions):
            if mdp.allowed is not None and not mdp.allowed[s, a]:
                continue
            state, reward, terminated = map(np.asarray, move(FINE, s, a, params))
            share = np.bincount(state, minlength=n + 1) / len(FINE)
            np.testing.assert_allclose(share[:n], dense[s, a], atol=1e-4)
            np.testing.assert_allclose(
                reward.mean(dtype=np.float64), expected_rewards[s, a], atol=2e-3
            )
            ends = np.append(mdp.terminal, True)
            np.testing.assert_array_equal(terminated, ends[state])


@pytest.mark.parametrize("name", ["two-state", "taxi", "awkward"])
def test_a_terminal_state_is_never_left(name):
    mdp = MODELS[name]
    params = tabular.params(mdp)
    for s in np.flatnonzero(mdp.terminal):
        for u in (0.0, 0.5, 0.999):
            moved = tabular.move(u, int(s), 0, params)
            assert [x.item() for x in moved] == [s, 0.0, True]


def test_no_uniform_number_leads_past_the_last_branch():
    params = tabular.params(MODELS["awkward"])
    largest = np.nextafter(np.float32(1), np.float32(0))
    for s, a in np.ndindex(6, 3):
        if params.allowed[s, a] and s != 3:
            row = MODELS["awkward"].probabilities[s, a]
            state, reward, _ = tabular.move(largest, s, a, params)
            last = np.flatnonzero(row)[-1]
            assert state == MODELS["awkward"].successors[s, a, last]
            assert reward == np.float32(MODELS["awkward"].rewards[s, a, last])


def test_episodes_begin_where_they_should():
    mdp = awkward()
    begin = jax.jit(jax.vmap(tabular.start, in_axes=(0, None)))
    shares = [0.1, 0.2, 0.0, 0.0, 0.3, 0.4]
    for start, expected in (
        (2, np.eye(6)[2]),
        (shares, shares),
        (None, np.array([1, 1, 1, 0, 1, 1]) / 5),
    ):
        states = np.asarray(begin(FINE, tabular.params(mdp, start=start)))
        np.testing.assert_allclose(
            np.bincount(states, minlength=6) / len(FINE), expected, atol=1e-4
        )
    assert int(tabular.start(0.3, two_state.params())) == 0
    assert int(tabular.start(0.3, taxi.params())) == 0


@pytest.mark.parametrize("module", [two_state, taxi])
def test_reset_and_step_are_functions_of_a_key_for_one_instance(module):
    params = module.params()
    keys = jax.random.split(jax.random.key(0), 500)
    states = jax.vmap(module.reset, in_axes=(0, None))(keys, params)
    actions = jnp.arange(500, dtype=jnp.int32) % params.n_actions
    step = jax.jit(jax.vmap(module.step, in_axes=(0, 0, 0, None)))
    result = step(keys, states, actions, params)
    assert result.state.dtype == np.int32
    assert result.reward.dtype == np.float32
    assert result.terminated.dtype == np.bool_
    one = module.step(keys[7], states[7], actions[7], params)
    assert [x.item() for x in one] == [x[7].item() for x in result]
    assert len(set(np.asarray(result.state).tolist())) > 1  # keys matter


def test_the_parameters_of_the_environments():
    printed = two_state.params(printed=True, discount=0.5)
    assert printed.discount == np.float32(0.5)
    assert printed.rewards[0, 1, 0] == np.float32(0.033)
    params = taxi.params("SFD", slip=0.0, rewards=[0.0, 2.0], discount=0.5)
    state = taxi.reset(jax.random.key(0), params)
    state, reward, terminated = taxi.step(jax.random.key(1), state, 2, params)
    assert (reward, terminated) == (0.0, False)
    state, reward, terminated = taxi.step(jax.random.key(2), state, 2, params)
    assert (reward, terminated) == (2.0, True)


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (6, r"`start` must be a whole number in \[0, 5\], got 6"),
        (3, r"`start` must be where no episode ends, got state 3"),
        ([0.5, 0.5], r"`start` must be a state or have the shape \(6,\), got \(2,\)"),
        ([0.5, 0.4, 0, 0, 0, 0], r"`start` must sum to 1, got 0.9"),
        ([1.5, -0.5, 0, 0, 0, 0], r"`start` must not be negative, got -0.5 in state 1"),
    ],
)
@pytest.mark.parametrize("make", [tabular.params, TabularEnv])
def test_a_bad_start_is_one_sentence(make, start, message):
    with pytest.raises(ValueError, match=message):
        make(awkward(), start=start)
