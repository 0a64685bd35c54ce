"""The first state of an episode."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp

from ..arrays.vectors import Array, Vector
from ..state import Joint, Leg, Motion, Place, Speed, State, no_contact
from .bodies import HULL, LEFT, RIGHT, SECONDS, VIEW, JointDef
from .terrain import smooth

__all__ = ["start"]


def start(uniforms: Sequence[Array]) -> State:
    """The state of `launch`, from 16 uniform numbers in [0, 1).

    Args:
        uniforms: 12 for the heights of the ground, 2 for the push that the hull gets, and 2 for
            where the patterns of gusts and of turbulence begin.
    """
    u = [jnp.asarray(x, jnp.float32) for x in uniforms]
    zero = jnp.zeros_like(u[0])
    no = jnp.zeros_like(u[0], jnp.bool_)
    push = [(2000.0 * x - 1000.0) * (SECONDS * HULL.inverse_mass) for x in u[12:14]]
    hull = Motion(
        Place(Vector(zero + VIEW.x / 2, zero + (VIEW.y + HULL.centre)), zero),
        Speed(Vector(push[0], push[1]), zero),
    )
    wind, turbulence = (jnp.floor(19998.0 * x).astype(jnp.int32) - 9999 for x in u[14:16])

    def leg(definition: JointDef) -> Leg:
        centre = Vector(zero + (VIEW.x / 2 - definition.anchor.x), zero + VIEW.y)
        motion = Motion(
            Place(centre, zero + definition.reference_angle), Speed(Vector(zero, zero), zero)
        )
        joint = Joint(Vector(zero, zero), zero, zero, jnp.zeros_like(zero, jnp.int32))
        nowhere = jnp.full_like(zero, -1, jnp.int32)
        return Leg(motion, joint, no_contact(zero), no_contact(zero), no, nowhere)

    return State(
        hull,
        leg(RIGHT),
        leg(LEFT),
        smooth([x * (VIEW.y / 2) for x in u[:12]]),
        shaping=zero,
        rest=jnp.zeros_like(zero, jnp.int32),
        wind=wind,
        turbulence=turbulence,
        fresh=~no,
        over=no,
        broken=no,
    )
