"""What the engines and the wind do to the hull before a step."""

from __future__ import annotations

import math

import jax.numpy as jnp

from ..arrays.vectors import Array, Vector, cross, pose_at, rotation, select
from ..state import Motion, Speed
from .bodies import HULL, PIXELS

__all__ = ["fire", "fuel_of", "gust"]

MAIN_POWER, SIDE_POWER = 13.0, 0.6
MAIN_FUEL, SIDE_FUEL = 0.30, 0.03


def fire(hull: Motion, action: Array, one: Array, two: Array) -> Speed:
    """How the hull moves once the engine of an action has fired: 0 none, 1 left, 2 main, 3 right.

    Args:
        hull: the hull.
        action: the action.
        one: a random number in [-1, 1), which moves the nozzle.
        two: another.
    """
    pose = pose_at(hull.place.centre, hull.place.angle, HULL.centre)
    tip = Vector(pose.rotation.sin, pose.rotation.cos)
    side = Vector(-tip.y, tip.x)
    one, two = one * (1 / PIXELS), two * (1 / PIXELS)
    main = action == 2
    sideways = (action == 1) | (action == 3)
    direction = (action - 2).astype(jnp.float32)
    down = select(main, 4 / PIXELS + 2.0 * one, one)
    away = select(main, two, 3.0 * two + direction * (12 / PIXELS))
    offset = Vector(tip.x * down + side.x * away, -tip.y * down - side.y * away)
    # The side engines' point of action is 17 or 14 pixels up: a slip of the original, kept.
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


def fuel_of(action: Array) -> Array:
    """What the fuel of an action costs."""
    side = select((action == 1) | (action == 3), SIDE_FUEL, 0.0)
    fuel: Array = select(action == 2, MAIN_FUEL, side)
    return fuel


def gust(index: Array) -> Array:
    """How strong the wind blows, from -1 to 1: a pattern that never repeats.

    It is tanh(sin(0.02 i) + sin(0.01 pi i)). The angles are far from 0, and as plain products they
    would lose what 32 bits do not hold.
    """
    time = index.astype(jnp.float32)
    # Whole numbers, exact however the quotient is rounded.
    whole = jnp.floor(time * 0.02)
    angle, part = rotation(whole), rotation(0.02 * (time - 50.0 * whole))
    slow = angle.sin * part.cos + angle.cos * part.sin
    within = time - 200.0 * jnp.floor(time * 0.005)
    return jnp.tanh(slow + rotation(0.01 * math.pi * within).sin)
