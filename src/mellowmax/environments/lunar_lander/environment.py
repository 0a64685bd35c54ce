"""Lunar Lander as pure functions of one lander."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..._common import checks
from ..._rows.pytrees import pytree
from ..._typing import ArrayLike
from .bodies import HULL, LEG, LEFT, RIGHT, SECONDS, VIEW, Hinge
from .physics import World, advance, no_contact, observation
from .state import Joint, Leg, Motion, Place, Speed, State, Step
from .terrain import smooth
from .vectors import Vector

__all__ = ["Params", "launch", "observe", "params", "reset", "start", "step"]

DRAWS = 16
"""How many random numbers a start takes: heights, a push, and where the gusts begin."""


@pytree
@dataclasses.dataclass(frozen=True)
class Params:
    """The world of a lander."""

    gravity: Any
    wind_power: Any
    turbulence_power: Any
    height_scale: Any
    n_actions: int = dataclasses.field(default=4, metadata={"static": True})


def params(
    *,
    gravity: float = -10.0,
    wind_power: float = 0.0,
    turbulence_power: float = 0.0,
    height: str = "v3",
) -> Params:
    scales = {"v3": VIEW.y / 2, "first": VIEW.x / 2}
    return Params(
        *(np.float32(x) for x in (gravity, wind_power, turbulence_power, scales[height]))
    )


def start(uniforms: Any) -> State:
    """A lander before its first step, from 16 uniform numbers in [0, 1)."""
    u = [jnp.asarray(x, jnp.float32) for x in uniforms]
    terrain = smooth([x * (VIEW.y / 2) for x in u[:12]])
    zero = jnp.zeros_like(u[0])
    push = [(2000.0 * x - 1000.0) * (SECONDS * HULL.inverse_mass) for x in u[12:14]]
    hull = Motion(
        Place(Vector(zero + VIEW.x / 2, zero + (VIEW.y + HULL.centre)), zero),
        Speed(Vector(push[0], push[1]), zero),
    )
    index = [jnp.floor(19998.0 * x).astype(jnp.int32) - 9999 for x in u[14:16]]

    def leg(hinge: Hinge) -> Leg:
        place = Place(Vector(zero + (VIEW.x / 2 - hinge.anchor.x), zero + VIEW.y), zero + hinge.reference)
        none = no_contact(zero)
        joint = Joint(Vector(zero, zero), zero, zero, zero.astype(jnp.int32))
        motion = Motion(place, Speed(Vector(zero, zero), zero))
        return Leg(motion, joint, none, none, zero.astype(jnp.bool_))

    return State(
        hull,
        leg(RIGHT),
        leg(LEFT),
        terrain,
        shaping=zero,
        rest=zero.astype(jnp.int32),
        wind=index[0],
        turbulence=index[1],
        fresh=~zero.astype(jnp.bool_),
        over=zero.astype(jnp.bool_),
    )


def world_of(params: Params) -> World:
    return World(*(jnp.asarray(x, jnp.float32) for x in (params.gravity, params.wind_power, params.turbulence_power, params.height_scale)))
_ = LEG, checks, ArrayLike, observation, advance, Step, jax
