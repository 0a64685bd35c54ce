"""The discount of an environment, wherever it carries it."""

from __future__ import annotations

import gymnasium
import pytest

from mellowmax._common.discount import discount_of
from mellowmax.environments import two_state
from mellowmax.mdp import chain


def test_the_discount_of_an_environment():
    assert discount_of(chain(4, discount=0.5)) == 0.5
    assert discount_of(two_state.params(discount=0.5)) == 0.5
    env = gymnasium.make("mellowmax/TwoState-v0", discount=0.25)
    assert discount_of(gymnasium.wrappers.TimeLimit(env, 10)) == 0.25
    assert discount_of(gymnasium.make("FrozenLake-v1")) == 0.99
    env.unwrapped.discount = 3
    with pytest.raises(ValueError, match=r"`environment.discount` must be in \[0, 1\], got"):
        discount_of(env)
