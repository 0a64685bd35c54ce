"""States as rows of numbers."""

from __future__ import annotations

import jax
import numpy as np

from mellowmax.environments.lunar_lander import environment
from mellowmax.environments.lunar_lander.devices.rows import pack, unpack
from mellowmax.environments.lunar_lander.state import state_dtypes


def test_packed_states_are_the_same():
    state = environment.start(list(np.random.default_rng(0).uniform(size=(16, 5))))
    again = unpack(pack(state), state_dtypes())
    assert jax.tree.structure(again) == jax.tree.structure(state)
    for old, new in zip(jax.tree.leaves(state), jax.tree.leaves(again), strict=True):
        assert old.dtype == new.dtype
        np.testing.assert_array_equal(old, new)
