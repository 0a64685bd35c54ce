"""The contacts of a leg: found, known again, and solved one after another.

A contact pushes and never pulls, and its friction is no more than a part of the push. Two points of
one edge are pushed together, by the first of four cases that solves them: both push, the first
alone, the second alone, none.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from ..arrays.materialise import keep
from ..arrays.vectors import Array, Pose, Vector, clip, cross, dot, pose_at, right_of, select
from ..game.bodies import (
    FLOOR_FRICTION,
    LINEAR_SLOP,
    MAX_LINEAR_CORRECTION,
    RADIUS,
    TERRAIN_FRICTION,
    Body,
)
from ..game.terrain import FLOOR
from ..state import Contact, Place, Point, Speed
from .manifold import Manifold, ManifoldPoint

__all__ = [
    "ContactRow",
    "PointRow",
    "Pressed",
    "Weight",
    "correct_position",
    "friction_on",
    "moved",
    "no_contact",
    "prepare",
    "press",
    "remember",
    "stored",
    "touch_events",
    "warm_start",
    "weight_of",
]


class Weight(NamedTuple):
    """The inverse mass and inertia of a body, and how far its centre is above its origin."""

    inverse_mass: float | Array
    inverse_inertia: float | Array
    centre: float | Array


def no_contact(like: Array) -> Contact:
    """The contact of a leg in the air."""
    none = jnp.full_like(like, -1, jnp.int32)
    point = Point(none, jnp.zeros_like(like), jnp.zeros_like(like))
    return Contact(none, point, point)


def weight_of(body: Body) -> Weight:
    """The weight of a body."""
    return Weight(body.inverse_mass, body.inverse_inertia, body.centre)


def friction_on(edge: Array, friction: float | Array) -> Array:
    """The friction of a body on an edge."""
    ground = select(edge == FLOOR, FLOOR_FRICTION, TERRAIN_FRICTION)
    return jnp.sqrt(ground * friction)


def touch_events(
    on_ground: Array,
    old: tuple[Contact, Contact],
    new: tuple[Contact, Contact],
    newest: Array | None = None,
) -> Array:
    """Whether a leg is said to be on the ground, from the contacts that begin and end.

    What is heard last counts. Box2D looks at the newest contact first, so where that one ends and
    another begins, the leg is on the ground; the other way round it is not.

    Args:
        on_ground: whether it was.
        old: its contacts before.
        new: its contacts now.
        newest: the edge of its newest contact; None if that is one that begins.
    """
    begins = ends = jnp.zeros_like(on_ground)
    first = jnp.zeros_like(on_ground)
    for contact in new:
        known = (contact.edge == old[0].edge) | (contact.edge == old[1].edge)
        begins = begins | ((contact.edge >= 0) & ~known)
    for contact in old:
        lasts = (contact.edge == new[0].edge) | (contact.edge == new[1].edge)
        ended = (contact.edge >= 0) & ~lasts
        ends = ends | ended
        if newest is not None:
            first = first | (ended & (contact.edge == newest))
    return ((on_ground | begins) & ~ends) | (begins & first)


class PointRow(NamedTuple):
    """What a point of contact does to the body that it pushes."""

    active: Array
    arm: Array
    """Of the push, about the centre of mass."""
    tangent_arm: Array
    inverse_mass: Array
    """How much an impulse of 1 changes the speed there."""
    mass: Array
    tangent_mass: Array


class ContactRow(NamedTuple):
    """A contact as the solver of the velocities has it: all that a step does not change."""

    normal: Vector
    friction: Array
    first: PointRow
    second: PointRow
    coupling: Array
    """What a push at one point does to the speed at the other."""
    inverse: tuple[Array, Array, Array]
    """Of the symmetric matrix of both, negative."""


class Pressed(NamedTuple):
    """The impulses of a contact: across and along, of the first and the second point."""

    first: Array
    second: Array
    first_tangent: Array
    second_tangent: Array


def remember(old: tuple[Contact, ...], edge: Array, manifold: Manifold) -> Contact:
    """The contact of a manifold with the impulses that its points had in the last step."""

    def known(point: ManifoldPoint) -> Point:
        normal = tangent = jnp.zeros_like(point.separation)
        there = point.feature >= 0
        for contact in old:
            # Of two points with the same feature the first one counts.
            for before in (contact.second, contact.first):
                same = there & (contact.edge == edge) & (before.feature == point.feature)
                normal = select(same, before.normal, normal)
                tangent = select(same, before.tangent, tangent)
        return Point(point.feature, normal, tangent)

    first, second = known(manifold.first), known(manifold.second)
    return Contact(select(manifold.touches, edge, -1), first, second)


def stored(contact: Contact, pressed: Pressed) -> Contact:
    """A contact with the impulses that were found for it."""
    first, second = contact.first, contact.second
    return contact._replace(
        first=first._replace(normal=pressed.first, tangent=pressed.first_tangent),
        second=second._replace(normal=pressed.second, tangent=pressed.second_tangent),
    )


def prepare(manifold: Manifold, friction: Array, centre: Vector, weight: Weight) -> ContactRow:
    """A contact, ready for the solver of the velocities."""
    normal = manifold.normal
    tangent = right_of(normal)
    reference = select(manifold.on_edge, normal, -normal)

    def row(point: ManifoldPoint) -> PointRow:
        # The point lies in the middle between the skins.
        place = point.place - 0.5 * point.separation * reference
        arm = place - centre
        across, along = cross(arm, normal), cross(arm, tangent)
        across, along = keep((across, along))
        k = weight.inverse_mass + weight.inverse_inertia * across * across
        k_along = weight.inverse_mass + weight.inverse_inertia * along * along
        return PointRow(point.feature >= 0, across, along, k, 1.0 / k, 1.0 / k_along)

    first, second = row(manifold.first), row(manifold.second)
    k11, k22 = first.inverse_mass, second.inverse_mass
    k12 = weight.inverse_mass + weight.inverse_inertia * first.arm * second.arm
    determinant = k11 * k22 - k12 * k12
    # Points too close to each other are one.
    distinct = k11 * k11 < 1000.0 * determinant
    second = second._replace(active=second.active & first.active & distinct)
    scale = -1.0 / select(second.active, determinant, 1.0)
    return ContactRow(
        normal,
        friction,
        first,
        second,
        k12,
        (scale * k22, -scale * k12, scale * k11),
    )


def moved(manifold: Manifold, place: Place, weight: Weight) -> Manifold:
    """A manifold once its body has moved, with the same features."""
    pose = pose_at(place.centre, place.angle, weight.centre)
    on_edge = manifold.on_edge
    reference = select(
        on_edge, manifold.reference_normal, pose.rotation.turn(manifold.reference_normal)
    )
    plane = select(on_edge, manifold.reference_point, pose.place(manifold.reference_point))

    def point(old: ManifoldPoint) -> ManifoldPoint:
        where = select(on_edge, pose.place(old.fixed), old.fixed)
        return old._replace(place=where, separation=dot(where - plane, reference))

    pose, reference, plane = keep((pose, reference, plane))
    return manifold._replace(
        normal=select(on_edge, reference, -reference),
        first=point(manifold.first),
        second=point(manifold.second),
    )


def warm_start(
    row: ContactRow, contact: Contact, speed: Speed, weight: Weight
) -> tuple[Pressed, Speed]:
    """The impulses that a contact begins with, and how the body moves once they are applied."""
    pressed = Pressed(
        contact.first.normal, contact.second.normal, contact.first.tangent, contact.second.tangent
    )
    velocity, spin = speed
    tangent = right_of(row.normal)
    for point, push, rub in (
        (row.first, pressed.first, pressed.first_tangent),
        (row.second, pressed.second, pressed.second_tangent),
    ):
        push, rub = select(point.active, push, 0.0), select(point.active, rub, 0.0)
        velocity += weight.inverse_mass * (push * row.normal + rub * tangent)
        spin += weight.inverse_inertia * (push * point.arm + rub * point.tangent_arm)
    return pressed, Speed(velocity, spin)


def press(row: ContactRow, pressed: Pressed, speed: Speed, weight: Weight) -> tuple[Pressed, Speed]:
    """One pass over a contact: friction at each point, then the push of both."""
    velocity, spin = speed
    tangent = right_of(row.normal)
    first, second = row.first, row.second
    rubs = []
    for point, pushed, rubbed in (
        (first, pressed.first, pressed.first_tangent),
        (second, pressed.second, pressed.second_tangent),
    ):
        slip = dot(velocity, tangent) + spin * point.tangent_arm
        most = row.friction * pushed
        impulse = clip(rubbed - point.tangent_mass * slip, -most, most)
        change = keep(select(point.active, impulse - rubbed, 0.0))
        velocity += weight.inverse_mass * change * tangent
        spin += weight.inverse_inertia * change * point.tangent_arm
        rubs.append(rubbed + change)

    velocity, spin = keep((velocity, spin))
    along = dot(velocity, row.normal)
    speed1, speed2 = along + spin * first.arm, along + spin * second.arm
    alone = jnp.maximum(pressed.first - first.mass * speed1, 0.0)

    # The speeds if both points had not been pushed yet: b of `speed = K push + b`.
    b1 = speed1 - (first.inverse_mass * pressed.first + row.coupling * pressed.second)
    b2 = speed2 - (row.coupling * pressed.first + second.inverse_mass * pressed.second)
    b1, b2, alone = keep((b1, b2, alone))
    i11, i12, i22 = row.inverse
    both1, both2 = i11 * b1 + i12 * b2, i12 * b1 + i22 * b2
    # What the first or the second point pulls with if it is alone.
    one, two = first.mass * b1, second.mass * b2
    by_both = (both1 >= 0.0) & (both2 >= 0.0)
    by_first = (one <= 0.0) & (b2 - row.coupling * one >= 0.0)
    by_second = (two <= 0.0) & (b1 - row.coupling * two >= 0.0)
    by_none = (b1 >= 0.0) & (b2 >= 0.0)
    zero = jnp.zeros_like(one)
    one, two = zero - one, zero - two
    push1 = select(by_none, zero, pressed.first)
    push2 = select(by_none, zero, pressed.second)
    push1, push2 = select(by_second, (zero, two), (push1, push2))
    push1, push2 = select(by_first, (one, zero), (push1, push2))
    push1, push2 = select(by_both, (both1, both2), (push1, push2))
    push1 = select(second.active, push1, alone)
    push2 = select(second.active, push2, zero)

    change1 = keep(select(first.active, push1 - pressed.first, 0.0))
    change2 = keep(select(second.active, push2 - pressed.second, 0.0))
    velocity += weight.inverse_mass * (change1 + change2) * row.normal
    spin += weight.inverse_inertia * (change1 * first.arm + change2 * second.arm)
    pressed = Pressed(pressed.first + change1, pressed.second + change2, rubs[0], rubs[1])
    return pressed, keep(Speed(velocity, spin))


def correct_position(
    manifold: Manifold, place: Place, weight: Weight, factor: float
) -> tuple[Place, Array]:
    """Push a body out of the ground, point by point, and say how deep it was.

    Args:
        manifold: as it was at the beginning of the step.
        place: of the body now.
        weight: of the body.
        factor: the part of the overlap that is taken back.

    Returns:
        Where the body is then, and the least separation, 0 at most.
    """
    centre, angle = place
    deepest = jnp.zeros_like(angle)
    for point in (manifold.first, manifold.second):
        active = point.feature >= 0
        pose: Pose = keep(pose_at(centre, angle, weight.centre))
        turned, placed = (
            pose.rotation.turn(manifold.reference_normal),
            pose.place(manifold.reference_point),
        )
        normal = select(manifold.on_edge, manifold.reference_normal, turned)
        plane = select(manifold.on_edge, manifold.reference_point, placed)
        where = select(manifold.on_edge, pose.place(point.fixed), point.fixed)
        separation = dot(where - plane, normal) - RADIUS
        normal = select(manifold.on_edge, normal, -normal)
        where, normal, separation = keep((where, normal, separation))
        deepest = select(active, jnp.minimum(deepest, separation), deepest)
        error = clip(factor * (separation + LINEAR_SLOP), -MAX_LINEAR_CORRECTION, 0.0)
        across = cross(where - centre, normal)
        mass = weight.inverse_mass + weight.inverse_inertia * across * across
        impulse = keep(select(active, -error / mass, 0.0))
        centre += weight.inverse_mass * impulse * normal
        angle += weight.inverse_inertia * impulse * across
        centre, angle = keep((centre, angle))
    return Place(centre, angle), deepest
