"""What comes of a step: what is observed, what it has earned, and whether it was the last one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from ..arrays.materialise import keep
from ..arrays.vectors import Array, Vector, pose_at, select
from ..state import Speed, State, Step
from .bodies import HULL, SECONDS, VIEW
from .engines import fuel_of
from .terrain import PAD_HEIGHT

__all__ = ["REST_STEPS", "Told", "World", "judge", "obeyed", "observation"]

REST_STEPS = 25
"""For how long nothing may move: half a second."""
LEG_DOWN = 18 / 30


class World(NamedTuple):
    """What a step needs to know of the world, as numbers."""

    gravity: Array
    wind: Array
    """The force of the strongest gust."""
    turbulence: Array
    """The torque of the strongest gust."""
    height: Array
    """How many metres are a 1 in the observed height."""


class Told(NamedTuple):
    """What a lander is told in a step."""

    action: Array
    """0 nothing, 1 left engine, 2 main engine, 3 right engine."""
    one: Array
    """A random number in [-1, 1), of the engine's dispersion."""
    two: Array
    """Another."""
    world: World


def judge(state: State, new: State, told: Told, crash: Array) -> Step:
    """What a step has earned, and whether it was the last one."""
    active = ~state.over
    asleep = new.rest >= REST_STEPS
    # What rests is stopped, as can be seen in the last observation.
    zero = jnp.zeros_like(new.hull.speed.spin)
    speed = select(asleep, Speed(Vector(zero, zero), zero), new.hull.speed)
    new = new._replace(hull=new.hull._replace(speed=speed))
    calm = state.right.on_ground | state.left.on_ground
    seen = keep(observation(new, told.world.height))
    shaping = keep(_shaping(seen))
    reward = select(state.fresh, 0.0, shaping - state.shaping) - fuel_of(obeyed(told, state.fresh))
    # No lander comes below the floor; one that is put there is lost, and does not fall for ever.
    lost = crash | (jnp.abs(seen[0]) >= 1.0) | (new.hull.place.centre.y < -VIEW.y)
    reward = select(lost, -100.0, reward)
    reward = select(asleep, 100.0, reward)
    finite, reward, lost = keep((_is_finite(new), reward, lost))
    ended = (lost | asleep) & ~state.fresh | ~finite
    reward = select(finite, select(state.fresh, 0.0, reward), -100.0)
    new = new._replace(
        shaping=shaping,
        wind=select(calm, state.wind, state.wind + 1),
        turbulence=select(calm, state.turbulence, state.turbulence + 1),
        fresh=jnp.zeros_like(state.fresh),
        over=ended,
    )
    stays = state._replace(over=state.over | ended, broken=state.broken | (active & ~finite))
    new = select(active & finite, new, stays)._replace(terrain=state.terrain)
    return Step(new, select(active, reward, 0.0), new.over)


def obeyed(told: Told, fresh: Array) -> Array:
    """The action that is taken: in the step of `reset` no engine fires."""
    action: Array = select(fresh, 0, told.action)
    return action


def observation(state: State, height: Array) -> tuple[Array, ...]:
    """The eight numbers that are observed of a lander."""
    place, speed = state.hull
    origin = pose_at(place.centre, place.angle, HULL.centre).origin
    return (
        (origin.x - VIEW.x / 2) / (VIEW.x / 2),
        (origin.y - (PAD_HEIGHT + LEG_DOWN)) / height,
        speed.velocity.x * (VIEW.x / 2 * SECONDS),
        speed.velocity.y * (VIEW.y / 2 * SECONDS),
        place.angle,
        speed.spin * (20.0 * SECONDS),
        state.right.on_ground.astype(jnp.float32),
        state.left.on_ground.astype(jnp.float32),
    )


def _shaping(seen: Sequence[Array]) -> Array:
    """The closer to the pad, the slower and the more upright, the better."""
    x, y, velocity_x, velocity_y, angle, _, right, left = seen
    return (
        -100.0 * jnp.sqrt(x * x + y * y)
        - 100.0 * jnp.sqrt(velocity_x * velocity_x + velocity_y * velocity_y)
        - 100.0 * jnp.abs(angle)
        + 10.0 * right
        + 10.0 * left
    )


def _is_finite(state: State) -> Array:
    finite = ~jnp.zeros_like(state.over)
    for x in jax.tree.leaves((state.hull, state.right.motion, state.left.motion)):
        finite = finite & (jnp.abs(x) < 1e30)  # NaN is not
    return finite
