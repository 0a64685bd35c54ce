"""The order of the landers that a kernel is for, computed without a GPU."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from mellowmax.environments.lunar_lander.devices.partition import partition


@pytest.mark.parametrize("n", [16, 1000])
def test_those_that_are_chosen_come_first_and_last(n):
    kind = np.random.default_rng(n).integers(0, 3, n)
    masks = (jnp.asarray(kind == i, jnp.float32) for i in (1, 2))
    order, (first, last) = (np.asarray(x) for x in partition(*masks, interpret=True))
    np.testing.assert_array_equal(np.sort(order[:first]), np.flatnonzero(kind == 1))
    np.testing.assert_array_equal(np.sort(order[n - last : n]), np.flatnonzero(kind == 2))
    np.testing.assert_array_equal(np.sort(order), np.arange(n))
