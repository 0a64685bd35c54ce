"""The constraints of a lander, an island in Box2D's words: first velocities, then positions.

The velocity solver goes over the joints and then over the contacts, 180 times, and begins with the
impulses of the last step. Then the bodies move. The position solver goes over the contacts and then
over the joints, up to 60 times, and removes what overlaps or has come apart.

Two shortcuts save time and change nothing that can be observed. A lander whose velocities changed
by at most `CONVERGED` within `CHUNK` iterations is done: in the iterations that are left, each
motor would gain the same impulse against its limit, and `joints.extrapolate` adds all of that at
once. And a block of landers without first or second contacts skips these. The contacts of the hull
are not solved, since the episode ends when the hull touches the ground.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..arrays.legs import BothLegs, LegLayout
from ..arrays.materialise import materialise
from ..arrays.vectors import Array, anywhere, dot, select
from ..game.bodies import LEFT, LEG, RIGHT
from ..state import Contact, Joint, Motion, Place, Speed
from . import contacts, joints
from .contacts import ContactConstraint, ContactImpulses, mixed_friction
from .joints import JointConstraint
from .manifold import Manifold
from .settings import (
    CONVERGED,
    LINEAR_SLOP,
    MAX_ROTATION,
    MAX_TRANSLATION,
    POSITION_ITERATIONS,
    VELOCITY_ITERATIONS,
)
from .shapes import mass_data

__all__ = [
    "CHUNK",
    "Manifolds",
    "PositionSolution",
    "VelocitySolution",
    "integrate",
    "solve_positions",
    "solve_velocities",
]

CHUNK = 6
"""The number of iterations between two checks of whether a lander is done."""
JOINTS = (RIGHT, LEFT)
LEG_MASS = mass_data(LEG)

T = TypeVar("T")

Manifolds: TypeAlias = tuple[tuple[Manifold, Manifold], ...]
"""The first contacts of both legs, and their second ones; empty for landers in free flight."""


class VelocitySolution(NamedTuple):
    """The velocities of a lander and the impulses that lead to them."""

    hull: Speed
    legs: tuple[Speed, Speed]
    joints: tuple[Joint, Joint]
    impulses: tuple[tuple[ContactImpulses, ContactImpulses], ...]
    """The impulses of both legs' first contacts, and of their second ones."""
    solved: Array
    """Was the lander done within the iterations that were allowed?"""


class PositionSolution(NamedTuple):
    """The positions of a lander."""

    hull: Place
    legs: tuple[Place, Place]
    solved: Array
    """Are all positions right?"""


class _Constraints(NamedTuple):
    """What the velocity solver needs and does not change."""

    joints: list[JointConstraint]
    contacts: list[BothLegs]
    """The constraints of both legs' first contacts, and of their second ones."""
    touching: tuple[Array, ...]
    """Does any lander of the block have a first contact, and does any have a second one?"""


class _Velocities(NamedTuple):
    """What an iteration of the velocity solver changes."""

    hull: Speed
    legs: tuple[Speed, Speed]
    joints: tuple[Joint, Joint]
    impulses: tuple[BothLegs, ...]
    """The impulses of both legs' first contacts, and of their second ones."""


class _Positions(NamedTuple):
    """What an iteration of the position solver changes."""

    done: Array
    """The number of iterations so far."""
    going: Array
    """Are some positions not right yet?"""
    hull: Place
    legs: tuple[Place, Place]


def solve_velocities(
    layout: LegLayout,
    hull: Motion,
    legs: tuple[Motion, Motion],
    joints_before: tuple[Joint, Joint],
    contacts_before: tuple[tuple[Contact, ...], tuple[Contact, ...]],
    manifolds: Manifolds,
    active: Array,
    max_iterations: int = VELOCITY_ITERATIONS,
) -> VelocitySolution:
    """The velocities that keep the legs on their joints and out of the ground.

    Args:
        layout: how the values of both legs are held together.
        hull: the hull, after gravity and engines have changed its velocity.
        legs: the legs, after gravity.
        joints_before: their joints, with the impulses of the last step.
        contacts_before: the contacts of each leg, with the impulses of the last step.
        manifolds: the manifolds of these contacts.
        active: which landers are solved at all.
        max_iterations: how many iterations are allowed, a multiple of `CHUNK`.
    """
    constraints, start = _prepare_velocities(
        layout, hull, legs, joints_before, contacts_before, manifolds, active
    )

    def chunk(carry: tuple[Array, Array, _Velocities]) -> tuple[Array, Array, _Velocities]:
        done, going, now = carry
        first, last = np.int32(0), np.int32(CHUNK)
        new = lax.fori_loop(
            first, last, lambda _, x: _iterate_velocities(layout, constraints, x), now
        )
        done = done + CHUNK
        ends, finished = _extrapolate(constraints, now, new, done)
        new = select(going, select(ends, finished, new), now)
        return done, going & ~ends, new

    def goes_on(carry: tuple[Array, Array, _Velocities]) -> Array:
        done, going, _ = carry
        return (done < max_iterations) & anywhere(going)

    final: _Velocities
    _, going, final = lax.while_loop(goes_on, chunk, (jnp.int32(0), active, start))
    solved = jnp.ones_like(active) if max_iterations == VELOCITY_ITERATIONS else ~going
    impulses = tuple(layout.split(both) for both in final.impulses)
    return VelocitySolution(final.hull, final.legs, final.joints, impulses, solved)


def _prepare_velocities(
    layout: LegLayout,
    hull: Motion,
    legs: tuple[Motion, Motion],
    joints_before: tuple[Joint, Joint],
    contacts_before: tuple[tuple[Contact, ...], tuple[Contact, ...]],
    manifolds: Manifolds,
    active: Array,
) -> tuple[_Constraints, _Velocities]:
    """The constraints of a lander, and its velocities after warm starting."""
    touching = _touching(manifolds, active)
    joint_constraints: list[JointConstraint] = []
    contact_constraints: list[list[ContactConstraint]] = [[] for _ in manifolds]
    started_joints: list[Joint] = []
    impulses: list[list[ContactImpulses]] = [[] for _ in manifolds]
    speeds: list[Speed] = []
    hull_speed = hull.speed
    for i, (definition, leg) in enumerate(zip(JOINTS, legs, strict=True)):
        constraint, joint = joints.prepare(definition, joints_before[i], hull.place, leg.place)
        speed = leg.speed
        for j, contact in enumerate(contacts_before[i]):
            contact_constraint = contacts.prepare(
                manifolds[j][i],
                mixed_friction(contact.edge, LEG.friction),
                leg.place.centre,
                LEG_MASS,
            )
            first, speed = contacts.warm_start(contact_constraint, contact, speed, LEG_MASS)
            contact_constraints[j].append(contact_constraint)
            impulses[j].append(first)
        hull_speed, speed = joints.warm_start(constraint, joint, hull_speed, speed)
        joint_constraints.append(constraint)
        started_joints.append(joint)
        speeds.append(speed)

    of_both = [layout.join(*of_legs) for of_legs in contact_constraints]
    start = _Velocities(
        hull_speed,
        (speeds[0], speeds[1]),
        (started_joints[0], started_joints[1]),
        tuple(layout.join(*of_legs) for of_legs in impulses),
    )
    return _Constraints(joint_constraints, of_both, touching), start


def _iterate_velocities(
    layout: LegLayout, constraints: _Constraints, now: _Velocities
) -> _Velocities:
    """One iteration: the joints, then the contacts."""
    hull, legs, new_joints = now.hull, list(now.legs), list(now.joints)
    for i in (1, 0):
        new_joints[i], hull, legs[i] = joints.solve_velocity(
            JOINTS[i], constraints.joints[i], new_joints[i], hull, legs[i]
        )

    def solve(
        constraint: ContactConstraint, before: tuple[ContactImpulses, Speed]
    ) -> tuple[ContactImpulses, Speed]:
        return contacts.solve_velocity(constraint, *before, LEG_MASS)

    impulses, speeds = [], (legs[0], legs[1])
    if constraints.contacts:
        both = layout.join(*speeds)
        for j, constraint in enumerate(constraints.contacts):
            old = layout.map(lambda *each: each, now.impulses[j], both)
            solve_legs = functools.partial(layout.map, solve, constraint, old)
            new = _if(constraints.touching[j], solve_legs, old)
            impulses.append(layout.map(lambda each: each[0], new))
            both = layout.map(lambda each: each[1], new)
        speeds = layout.split(both)
    return _Velocities(hull, speeds, (new_joints[0], new_joints[1]), tuple(impulses))


def _extrapolate(
    constraints: _Constraints, before: _Velocities, after: _Velocities, done: Array
) -> tuple[Array, _Velocities]:
    """Is a lander done after a chunk of iterations, and what would all 180 lead to?"""
    left = (VELOCITY_ITERATIONS - done).astype(jnp.float32)
    change = materialise(_change((before.hull, before.legs), (after.hull, after.legs)))
    ended = [
        joints.extrapolate(
            constraint, joint, (joint.motor_impulse - old.motor_impulse) * (1 / CHUNK), left
        )
        for constraint, joint, old in zip(
            constraints.joints, after.joints, before.joints, strict=True
        )
    ]
    ended = materialise(ended)
    ends = materialise((change <= CONVERGED) & ended[0][1] & ended[1][1])
    return ends, after._replace(joints=(ended[0][0], ended[1][0]))


def _touching(manifolds: Manifolds, active: Array) -> tuple[Array, ...]:
    """Does any lander of the block have a first contact, and does any have a second one?"""
    return tuple(anywhere(active & (right.touches | left.touches)) for right, left in manifolds)


def _if(condition: Array, function: Callable[[], T], otherwise: T) -> T:
    """What a function gives if a condition holds for the block."""
    return lax.cond(condition, function, lambda: otherwise)


def _change(before: T, after: T) -> Array:
    """The largest change of any number."""
    differences = [
        jnp.abs(a - b) for a, b in zip(jax.tree.leaves(after), jax.tree.leaves(before), strict=True)
    ]
    greatest = differences[0]
    for difference in differences[1:]:
        greatest = jnp.maximum(greatest, difference)
    return greatest


def integrate(place: Place, speed: Speed, seconds: float | Array) -> tuple[Speed, Place]:
    """The velocity and the place of a body after some time, within what a step allows."""
    way = seconds * speed.velocity
    square = dot(way, way)
    far = square > MAX_TRANSLATION**2
    ratio = MAX_TRANSLATION / jnp.sqrt(select(far, square, 1.0))
    velocity = select(far, speed.velocity * ratio, speed.velocity)
    turn = seconds * speed.spin
    fast = turn * turn > MAX_ROTATION**2
    ratio = MAX_ROTATION / select(fast, jnp.abs(turn), 1.0)
    spin = select(fast, speed.spin * ratio, speed.spin)
    moved = Place(place.centre + seconds * velocity, place.angle + seconds * spin)
    return Speed(velocity, spin), moved


def solve_positions(
    layout: LegLayout,
    hull: Place,
    legs: tuple[Place, Place],
    limit_states: tuple[Array, Array],
    manifolds: Manifolds,
    active: Array,
    max_iterations: int = POSITION_ITERATIONS,
) -> PositionSolution:
    """The positions in which nothing overlaps and no joint is apart, as far as they are reached.

    Args:
        layout: how the values of both legs are held together.
        hull: the place of the hull.
        legs: the places of the legs.
        limit_states: the limit that each joint is at.
        manifolds: the manifolds of the legs' contacts at the beginning of the step.
        active: which landers are solved at all.
        max_iterations: how many iterations are allowed.
    """
    touching = _touching(manifolds, active)
    manifolds_of_both = [layout.join(*of_legs) for of_legs in manifolds]

    def push_out(manifold: Manifold, now: tuple[Place, Array]) -> tuple[Place, Array]:
        """One iteration of a contact: the place of the leg after it, and did it fit before?"""
        leg, fits = now
        place, deepest = contacts.solve_position(manifold, leg, LEG_MASS, 0.2)
        return place, fits & (deepest >= -3 * LINEAR_SLOP)

    def iterate(carry: _Positions) -> _Positions:
        done, going, hull, legs = carry
        new_hull, new_legs, fits = hull, list(legs), jnp.ones_like(going)
        if manifolds:
            now = layout.join(*((leg, fits) for leg in legs))
            for here, manifold in zip(touching, manifolds_of_both, strict=True):
                now = _if(here, functools.partial(layout.map, push_out, manifold, now), now)
            (new_legs[0], right_fits), (new_legs[1], left_fits) = layout.split(now)
            fits = right_fits & left_fits
        for i in (1, 0):
            new_hull, new_legs[i], joint_fits = joints.solve_position(
                JOINTS[i], limit_states[i], new_hull, new_legs[i]
            )
            new_hull, new_legs[i], fits = materialise((new_hull, new_legs[i], fits & joint_fits))
        hull, legs = select(going, (new_hull, (new_legs[0], new_legs[1])), (hull, legs))
        return _Positions(done + 1, going & ~fits, hull, legs)

    def goes_on(carry: _Positions) -> Array:
        return (carry.done < max_iterations) & anywhere(carry.going)

    end = lax.while_loop(goes_on, iterate, _Positions(jnp.int32(0), active, hull, legs))
    return PositionSolution(end.hull, end.legs, ~end.going)
