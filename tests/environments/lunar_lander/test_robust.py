"""Whatever its state, the numbers of a lander stay finite and its episode ends."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from mellowmax.environments import lunar_lander
from mellowmax.environments.lunar_lander import environment
from mellowmax.environments.lunar_lander.devices import batch
from mellowmax.environments.lunar_lander.state import Dispersion, Inputs

COUNT = 16


def launched(program):
    uniforms = np.random.default_rng(0).uniform(size=(16, COUNT)).astype(np.float32)
    zero = np.zeros(COUNT, np.float32)
    state = environment.start(list(uniforms))
    return program(state, np.zeros(COUNT, np.int32), zero, zero).state, zero


def finite(tree):
    return all(np.isfinite(np.asarray(x, np.float64)).all() for x in jax.tree.leaves(tree))


def test_absurd_landers_end_and_stay_finite(program):
    state, zero = launched(program)
    speed, place = state.hull.speed, state.hull.place
    spread = np.zeros(COUNT, np.float32)
    fast, wild, turned, deep, mountain = (spread.copy() for _ in range(5))
    fast[0:3] = 1e4, -1e12, 3e38
    wild[3:6] = 1e3, -1e9, 1e30
    turned[6:9] = 1e3, -1e7, 1e25
    deep[9:12] = -5.0, -50.0, -1e6
    mountain[12:15] = 30.0, 1e6, -1e30
    hull = state.hull._replace(
        place=place._replace(
            centre=place.centre._replace(y=place.centre.y + deep), angle=place.angle + turned
        ),
        speed=speed._replace(
            velocity=speed.velocity._replace(x=speed.velocity.x + fast), spin=speed.spin + wild
        ),
    )
    terrain = tuple(height + mountain for height in state.terrain)
    state = state._replace(hull=hull, terrain=terrain)
    for _ in range(300):
        step = program(state, np.zeros(COUNT, np.int32), zero, zero)
        assert finite((step.state.hull, step.reward, step.state.right, step.state.left))
        state = step.state
        if bool(state.over.all()):
            break
    assert bool(state.over.all())


def test_a_lander_whose_numbers_are_not_finite_is_counted_as_broken(program):
    state, zero = launched(program)
    spin = np.asarray(state.hull.speed.spin).copy()
    spin[4] = np.nan
    state = state._replace(hull=state.hull._replace(speed=state.hull.speed._replace(spin=spin)))
    step = program(state, np.zeros(COUNT, np.int32), zero, zero)
    expected = np.arange(COUNT) == 4
    np.testing.assert_array_equal(step.state.broken, expected)
    np.testing.assert_array_equal(step.terminated, expected)
    assert step.reward[4] == -100


def test_what_is_over_stays_as_it_is(program):
    state, zero = launched(program)
    state = state._replace(over=np.arange(COUNT) % 2 == 0)
    step = program(state, np.full(COUNT, 2, np.int32), zero, zero)
    for old, new in zip(jax.tree.leaves(state), jax.tree.leaves(step.state), strict=True):
        np.testing.assert_array_equal(np.asarray(old)[::2], np.asarray(new)[::2])
    assert not step.reward[::2].any()


def test_numbers_have_32_bits_also_where_jax_has_64():
    with jax.enable_x64(True), jax.numpy_dtype_promotion("strict"):
        world = environment.world(lunar_lander.params())
        world = jax.tree.map(lambda x: jnp.broadcast_to(x, (COUNT,)), world)
        state = environment.start(list(np.zeros((16, COUNT), np.float32)))
        zero = np.zeros(COUNT, np.float32)
        action = np.zeros(COUNT, np.int32)
        inputs = Inputs(action, Dispersion(zero, zero), world)
        traced = jax.make_jaxpr(batch.step_in_blocks)(state, inputs)
    assert "f64" not in str(traced)
