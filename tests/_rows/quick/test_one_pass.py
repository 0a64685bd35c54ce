"""Mellowmax in one pass over a row, as accelerators compute it, here on whatever there is."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from hypothesis import example, given

import mellowmax as mm
from helpers import reference
from helpers.awkward import many, parameters, rows
from mellowmax._rows.quick import one_pass


@jax.jit
def in_one_pass(q, omega, mask):
    return one_pass.mellowmax(jnp, q, omega, mask)[0]


@many
@given(rows, parameters)
@example([0.0, 1e-12, 1.0], 1e13)
@example([1e300, -1e300], 1e8)
@example([0.0, 1e-8], -1e-8)
@example([1e300, -1e300, 0.0], 1e-300)
def test_mellowmax_in_one_pass(q, omega):
    exact = reference.mellowmax(q, omega)
    value = in_one_pass(np.array(q)[:, None], np.full((1, 1), omega), None)[0]
    error = abs(mpmath.mpf(float(value)) - exact)
    normal = np.finfo(np.float64).tiny  # XLA on a CPU takes what is below for 0
    assert (
        error <= 4 * np.finfo(np.float64).eps * (reference.value_range(q) + abs(exact)) + 4 * normal
    )


@pytest.mark.parametrize("actions", [2, 4, 5, 31, 32, 33, 1000])
def test_one_pass_over_rows_of_any_length_with_anything_in_them(actions, rng):
    q = rng.choice([0.0, 1.0, -2.0, 3.3, 1e308, -1.7e308, np.inf, -np.inf, np.nan], (500, actions))
    q[:250] = rng.normal(size=(250, actions))
    mask = rng.random(q.shape) < 0.8
    mask[:, 0] = True
    omega = rng.choice([0.0, 1e-300, 1e-5, 1.0, -3.0, 40.0, 1.7e308, np.inf, -np.inf], 500)
    for where in (None, mask):
        value = in_one_pass(q.T, omega[None, :], None if where is None else where.T)
        expected = mm.mellowmax(q, omega, where=where)
        np.testing.assert_allclose(value, expected, rtol=1e-14, atol=1e-14 * np.log(actions))
