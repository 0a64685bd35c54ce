"""The engines, their fuel, and the wind."""

from __future__ import annotations

import math

import jax.numpy as jnp

from ..arrays.vectors import Array, Vector, cross, pose_at, rotation, select
from ..state import Dispersion, Motion, Speed
from .bodies import HULL, PIXELS

__all__ = ["fire", "fuel_cost", "gust"]

MAIN_POWER, SIDE_POWER = 13.0, 0.6
MAIN_FUEL, SIDE_FUEL = 0.30, 0.03


def fire(hull: Motion, action: Array, dispersion: Dispersion) -> Speed:
    """The velocity of the hull after the impulse of an engine.

    Args:
        hull: the hull before it.
        action: 0 for no engine, 1 left, 2 main, 3 right.
        dispersion: the random offset of the nozzle.
    """
    pose = pose_at(hull.place.centre, hull.place.angle, HULL.centre)
    tip = Vector(pose.rotation.sin, pose.rotation.cos)
    side = Vector(-tip.y, tip.x)
    along, across = dispersion.along * (1 / PIXELS), dispersion.across * (1 / PIXELS)
    main = action == 2
    sideways = (action == 1) | (action == 3)
    direction = (action - 2).astype(jnp.float32)
    down = select(main, 4 / PIXELS + 2.0 * along, along)
    away = select(main, across, 3.0 * across + direction * (12 / PIXELS))
    offset = Vector(tip.x * down + side.x * away, -tip.y * down - side.y * away)
    # 17 in x and 14 in y, where a side engine acts: a slip of Gymnasium's that is kept.
    up = Vector(tip.x * (-17 / PIXELS), tip.y * (14 / PIXELS))
    zero = jnp.zeros_like(tip.x)
    up = select(main, Vector(zero, zero), up)
    power = select(main, MAIN_POWER, select(sideways, SIDE_POWER, 0.0))
    impulse = -power * offset
    arm = (pose.origin + offset + up) - hull.place.centre
    return Speed(
        hull.speed.velocity + HULL.inverse_mass * impulse,
        hull.speed.spin + HULL.inverse_inertia * cross(arm, impulse),
    )


def fuel_cost(action: Array) -> Array:
    """The cost of an action's fuel."""
    side = select((action == 1) | (action == 3), SIDE_FUEL, 0.0)
    return select(action == 2, MAIN_FUEL, side)


def gust(index: Array) -> Array:
    """The strength of the wind from -1 to 1, a pattern that never repeats.

    It is tanh(sin(0.02 i) + sin(0.01 pi i)). The angles are large, and computed as plain products
    they would lose digits in 32 bits.
    """
    time = index.astype(jnp.float32)
    # A whole number, exact whichever way the quotient is rounded.
    whole = jnp.floor(time * 0.02)
    angle, part = rotation(whole), rotation(0.02 * (time - 50.0 * whole))
    slow = angle.sin * part.cos + angle.cos * part.sin
    within = time - 200.0 * jnp.floor(time * 0.005)
    return jnp.tanh(slow + rotation(0.01 * math.pi * within).sin)
