"""The kernels, run without a GPU, compared with the plain trace."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mellowmax.environments import lunar_lander
from mellowmax.environments.lunar_lander import environment
from mellowmax.environments.lunar_lander.devices import batch
from mellowmax.environments.lunar_lander.devices.kernels import Kernels
from mellowmax.environments.lunar_lander.devices.rows import Source, pack, rows_of, unpack
from mellowmax.environments.lunar_lander.state import Dispersion, Inputs, state_dtypes

COUNT, BLOCK = 16, 8


def uniforms(seed=0):
    return np.random.default_rng(seed).uniform(size=(16, COUNT)).astype(np.float32)


def test_kernels_are_given_what_they_ask_for():
    numbers = np.arange(4 * COUNT, dtype=np.float32).reshape(4, COUNT)
    a, b, flags, over = rows_of(
        Source(jnp.asarray(numbers % 7)), (np.float32, np.int32, bool, bool)
    )
    numbers_of = np.array([3, 5, 6, 9, 10, 11, 12, 13, 14], np.int32)
    lanes = np.array([0, 1, 2, 10, 11, 12, 13, 14, 15])  # three first, six last, in two programs
    order = jnp.zeros(COUNT, jnp.int32).at[lanes].set(numbers_of)
    near = Kernels(
        COUNT, BLOCK, 1, True, order, jnp.array([3, 6], jnp.int32), over, targets=[a, None]
    )
    want_a, want_b = numbers[0] % 7, (numbers[1] % 7).astype(np.int32)

    # Each part of the bodies reads its own rows, and knows whether it is that of the hulls.
    three = near.bodies(_of_body, [(a,), (a,), (a,)], b)
    first, second, _ = (np.asarray(x.source.array)[x.number][lanes] for x in three)
    np.testing.assert_array_equal(first, (want_a + want_b)[numbers_of])
    np.testing.assert_array_equal(second, want_a[numbers_of])

    # Results are written in place, for the chosen landers only.
    new, _ = near.finish(_of_lander, a, flags)
    written = np.asarray(new.source.array)
    expected = numbers % 7
    expected[0, numbers_of] = np.where(expected[2] != 0, 100 + want_a, want_a)[numbers_of]
    np.testing.assert_array_equal(written, expected)


def _of_body(hull, body, shared):
    return jnp.where(hull, body[0] + shared.astype(jnp.float32), body[0])


def _of_lander(a, flag):
    return [jnp.where(flag, a + np.float32(100), a), a]


@pytest.mark.parametrize("given", [False, True])
def test_landers_that_are_over_start_again(given):
    state = environment.start(list(uniforms()))
    over = jnp.asarray(np.arange(COUNT) % 3 == 0)
    played = state._replace(over=state.over if given else over, rest=state.rest + 7)
    fresh = environment.start(list(uniforms(1)))
    ended = over if given else None
    rows = batch.launch_rows(pack(played), jnp.asarray(uniforms(1)), ended, interpret=True)
    expected = jax.tree.map(lambda new, old: jnp.where(over, new, old), fresh, played)
    for want, got in zip(
        jax.tree.leaves(expected), jax.tree.leaves(unpack(rows, state_dtypes())), strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.release
def test_a_step_in_kernels_is_the_plain_step(program):
    world = environment.world(lunar_lander.params())
    world = jax.tree.map(lambda x: jnp.broadcast_to(x, (COUNT,)), world)
    kernels = jax.jit(functools.partial(batch.step_in_kernels, block=BLOCK, interpret=True))
    rng = np.random.default_rng(2)
    state = environment.start(list(uniforms()))
    met = 0
    for number in range(140):
        one, two = rng.uniform(-1, 1, (2, COUNT)).astype(np.float32)
        action = rng.integers(0, 4, COUNT).astype(np.int32)
        step = program(state, action, one, two)
        if number % 4 == 0:
            other = kernels(state, Inputs(action, Dispersion(one, two), world))
            for a, b in zip(jax.tree.leaves(step), jax.tree.leaves(other), strict=True):
                np.testing.assert_allclose(
                    np.asarray(a, np.float64), np.asarray(b, np.float64), rtol=1e-4, atol=1e-4
                )
            met += int((step.state.right.on_ground | step.state.left.on_ground).sum())
        state = step.state
    assert met > 0
