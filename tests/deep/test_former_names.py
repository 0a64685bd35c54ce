"""The names of mellowmax 0.1 work as they did, and warn."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from helpers.trainings import assert_same, on_cartpole, on_two_states
from mellowmax import Boltzmann, deep
from mellowmax.environments import tabular, two_state


def former(name):
    with pytest.warns(DeprecationWarning, match=rf"`deep\.{name}` is now `deep\."):
        return getattr(deep, name)


class Wrapped:
    """The user's own rollouts around those of the library, as in 0.1."""

    name = "wrapped"

    def __init__(self, inner):
        self.inner = inner
        self.n_observations, self.n_actions = inner.n_observations, inner.n_actions
        self.max_steps, self.discount = inner.max_steps, inner.discount

    def play(self, policies, keys, done, until, batch):
        for lanes, episodes, computed in self.inner.play(policies, keys, done, until, batch):
            yield former("Played")(lanes, episodes, computed)


@pytest.mark.parametrize("wrap", [lambda rollouts: rollouts, Wrapped], ids=["itself", "wrapped"])
def test_rollouts_are_environments(wrap):
    functional = wrap(
        former("FunctionalRollouts")(environment=tabular, params=two_state.params(), max_steps=32)
    )
    trained = on_two_states(environment=functional, max_steps=None, episodes=8, runs=2)
    assert_same(trained, on_two_states(episodes=8, runs=2))
    gymnasium = wrap(former("GymnasiumRollouts")(environment="CartPole-v1", max_steps=256))
    options = {"max_steps": None, "workers": None, "episodes": 8, "runs": 2}
    trained = on_cartpole(environment=gymnasium, **options)
    assert_same(trained, on_cartpole(episodes=8, runs=2))


def test_the_former_name_of_a_baseline():
    with pytest.warns(DeprecationWarning, match="baseline 'others' is now 'leave-one-out'"):
        learner = deep.reinforce(Boltzmann(1.0), baseline="others")
    assert learner == deep.reinforce(Boltzmann(1.0), baseline="leave-one-out")


def test_the_former_sizes_of_a_network():
    with pytest.warns(DeprecationWarning, match=r"`hidden` .* are now `network=mlp\(hidden, dep"):
        learner = deep.reinforce(Boltzmann(1.0), hidden=8)
    assert learner == deep.reinforce(Boltzmann(1.0), network=deep.mlp(8, 1))
    with pytest.warns(DeprecationWarning, match="`n_observations` is now `observation`"):
        state = learner.init(jax.random.key(0), n_observations=3, n_actions=2)
    assert state.network.layers[0].weight.shape == (8, 3)


def test_the_former_names_of_returns_and_masks():
    nothing = np.zeros((128, 1), np.float32)
    episodes = deep.Episodes(nothing[..., None], nothing, nothing + 1, np.int32([3]))
    for old, new, arguments in (("earned", "returns_to_go", (0.5,)), ("live", "mask", ())):
        with pytest.warns(DeprecationWarning, match=rf"`Episodes\.{old}` is now `Episodes\.{new}`"):
            former = getattr(episodes, old)(*arguments)
        np.testing.assert_array_equal(former, jax.jit(getattr(episodes, new))(*arguments))


def test_any_other_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"module 'mellowmax\.deep' has no attribute 'sarsa'"):
        _ = deep.sarsa
