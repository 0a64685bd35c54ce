"""The contacts of a body with edges of the ground: recognised, prepared and solved.

A contact pushes and never pulls, and its friction is at most a fraction of the push. The two points
of a contact are pushed together (the block solver of `b2ContactSolver`): of four cases, both points
push, the first alone, the second alone, or none, the first that fits is taken.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from ..arrays.materialise import materialise
from ..arrays.vectors import Array, Pose, Vector, clip, cross, dot, pose_at, right_of, select
from ..game.bodies import FLOOR_FRICTION, TERRAIN_FRICTION
from ..game.terrain import FLOOR
from ..state import Contact, Place, Point, Speed
from .manifold import Manifold, ManifoldPoint
from .settings import LINEAR_SLOP, MAX_LINEAR_CORRECTION, RADIUS
from .shapes import MassData

__all__ = [
    "ContactConstraint",
    "ContactImpulses",
    "PointConstraint",
    "manifold_at",
    "match_impulses",
    "mixed_friction",
    "on_ground_after",
    "prepare",
    "solve_position",
    "solve_velocity",
    "store_impulses",
    "warm_start",
]


class PointConstraint(NamedTuple):
    """How the impulses at a point of contact change the velocity of the body."""

    active: Array
    normal_arm: Array
    """The lever arm of the normal impulse about the centre of mass."""
    tangent_arm: Array
    """The lever arm of friction."""
    inverse_normal_mass: Array
    """The change of the normal velocity by a normal impulse of 1."""
    normal_mass: Array
    tangent_mass: Array


class ContactConstraint(NamedTuple):
    """What the velocity solver needs of a contact and does not change."""

    normal: Vector
    friction: Array
    first: PointConstraint
    second: PointConstraint
    k12: Array
    """The change of the normal velocity at one point by a normal impulse of 1 at the other."""
    minus_inverse: tuple[Array, Array, Array]
    """Minus the inverse of the matrix of both normal impulses: entries 11, 12, 22."""


class ContactImpulses(NamedTuple):
    """The impulses of the two points of a contact."""

    first_normal: Array
    second_normal: Array
    first_tangent: Array
    second_tangent: Array


def mixed_friction(edge: Array, friction: float | Array) -> Array:
    """The friction between a body and an edge: the geometric mean of both."""
    ground = select(edge == FLOOR, FLOOR_FRICTION, TERRAIN_FRICTION)
    return jnp.sqrt(ground * friction)


def on_ground_after(
    on_ground: Array,
    old: tuple[Contact, Contact],
    new: tuple[Contact, Contact],
    newest: Array | None = None,
) -> Array:
    """The observed flag of a leg after the events of contacts that begin and end.

    The last event counts. Box2D looks at the newest contact first: if that one ends and another
    begins, the leg is on the ground; the other way round it is not.

    Args:
        on_ground: the flag before.
        old: the contacts before.
        new: the contacts now.
        newest: the edge of the newest contact; None if it is one that begins.
    """
    begins = ends = jnp.zeros_like(on_ground)
    newest_ends = jnp.zeros_like(on_ground)
    for contact in new:
        known = (contact.edge == old[0].edge) | (contact.edge == old[1].edge)
        begins = begins | ((contact.edge >= 0) & ~known)
    for contact in old:
        lasts = (contact.edge == new[0].edge) | (contact.edge == new[1].edge)
        ended = (contact.edge >= 0) & ~lasts
        ends = ends | ended
        if newest is not None:
            newest_ends = newest_ends | (ended & (contact.edge == newest))
    return ((on_ground | begins) & ~ends) | (begins & newest_ends)


def match_impulses(old: tuple[Contact, ...], edge: Array, manifold: Manifold) -> Contact:
    """The contact of a manifold, with the impulses that its points had in the last step.

    Args:
        old: the contacts of the body in the last step.
        edge: the edge of the manifold.
        manifold: the manifold now.
    """

    def match(point: ManifoldPoint) -> Point:
        normal = tangent = jnp.zeros_like(point.separation)
        exists = point.feature >= 0
        for contact in old:
            # If two points have the same feature, the first one counts.
            for before in (contact.second, contact.first):
                same = exists & (contact.edge == edge) & (before.feature == point.feature)
                normal = select(same, before.normal_impulse, normal)
                tangent = select(same, before.tangent_impulse, tangent)
        return Point(point.feature, normal, tangent)

    first, second = match(manifold.first), match(manifold.second)
    return Contact(select(manifold.touches, edge, -1), first, second)


def store_impulses(contact: Contact, impulses: ContactImpulses) -> Contact:
    """A contact with the impulses that the solver found, for the next step."""
    first, second = contact.first, contact.second
    return contact._replace(
        first=first._replace(
            normal_impulse=impulses.first_normal, tangent_impulse=impulses.first_tangent
        ),
        second=second._replace(
            normal_impulse=impulses.second_normal, tangent_impulse=impulses.second_tangent
        ),
    )


def prepare(
    manifold: Manifold, friction: Array, centre: Vector, mass: MassData
) -> ContactConstraint:
    """The constraint of a contact.

    Args:
        manifold: its manifold.
        friction: the mixed friction of body and edge.
        centre: the body's centre of mass.
        mass: the mass of the body.
    """
    normal = manifold.normal
    tangent = right_of(normal)
    reference = select(manifold.on_edge, normal, -normal)

    def prepare_point(point: ManifoldPoint) -> PointConstraint:
        # The point lies halfway between the two skins.
        place = point.place - 0.5 * point.separation * reference
        arm = place - centre
        normal_arm, tangent_arm = cross(arm, normal), cross(arm, tangent)
        normal_arm, tangent_arm = materialise((normal_arm, tangent_arm))
        k = mass.inverse_mass + mass.inverse_inertia * normal_arm * normal_arm
        k_tangent = mass.inverse_mass + mass.inverse_inertia * tangent_arm * tangent_arm
        return PointConstraint(
            point.feature >= 0, normal_arm, tangent_arm, k, 1.0 / k, 1.0 / k_tangent
        )

    first, second = prepare_point(manifold.first), prepare_point(manifold.second)
    k11, k22 = first.inverse_normal_mass, second.inverse_normal_mass
    k12 = mass.inverse_mass + mass.inverse_inertia * first.normal_arm * second.normal_arm
    determinant = k11 * k22 - k12 * k12
    # Points that are too close to each other count as one.
    distinct = k11 * k11 < 1000.0 * determinant
    second = second._replace(active=second.active & first.active & distinct)
    scale = -1.0 / select(second.active, determinant, 1.0)
    return ContactConstraint(
        normal,
        friction,
        first,
        second,
        k12,
        (scale * k22, -scale * k12, scale * k11),
    )


def manifold_at(manifold: Manifold, place: Place, mass: MassData) -> Manifold:
    """A manifold after its body has moved to another place, with the same features."""
    pose = pose_at(place.centre, place.angle, mass.centre)
    on_edge = manifold.on_edge
    reference = select(
        on_edge, manifold.reference_normal, pose.rotation.rotate(manifold.reference_normal)
    )
    plane = select(on_edge, manifold.reference_point, pose.to_world(manifold.reference_point))

    def move(old: ManifoldPoint) -> ManifoldPoint:
        where = select(on_edge, pose.to_world(old.local), old.local)
        return old._replace(place=where, separation=dot(where - plane, reference))

    pose, reference, plane = materialise((pose, reference, plane))
    return manifold._replace(
        normal=select(on_edge, reference, -reference),
        first=move(manifold.first),
        second=move(manifold.second),
    )


def warm_start(
    constraint: ContactConstraint, contact: Contact, speed: Speed, mass: MassData
) -> tuple[ContactImpulses, Speed]:
    """The impulses of the last step, and the velocity of the body after them."""
    impulses = ContactImpulses(
        contact.first.normal_impulse,
        contact.second.normal_impulse,
        contact.first.tangent_impulse,
        contact.second.tangent_impulse,
    )
    velocity, spin = speed
    tangent = right_of(constraint.normal)
    for point, normal_impulse, tangent_impulse in (
        (constraint.first, impulses.first_normal, impulses.first_tangent),
        (constraint.second, impulses.second_normal, impulses.second_tangent),
    ):
        along_normal = select(point.active, normal_impulse, 0.0)
        along_tangent = select(point.active, tangent_impulse, 0.0)
        impulse = along_normal * constraint.normal + along_tangent * tangent
        turn = along_normal * point.normal_arm + along_tangent * point.tangent_arm
        velocity += mass.inverse_mass * impulse
        spin += mass.inverse_inertia * turn
    return impulses, Speed(velocity, spin)


def solve_velocity(
    constraint: ContactConstraint, impulses: ContactImpulses, speed: Speed, mass: MassData
) -> tuple[ContactImpulses, Speed]:
    """One iteration of a contact: friction at each point, then the normal impulses of both."""
    tangents, speed = _solve_friction(constraint, impulses, speed, mass)
    changes, speed = _solve_normals(constraint, impulses, speed, mass)
    impulses = ContactImpulses(
        impulses.first_normal + changes[0], impulses.second_normal + changes[1], *tangents
    )
    return impulses, materialise(speed)


def _solve_friction(
    constraint: ContactConstraint, impulses: ContactImpulses, speed: Speed, mass: MassData
) -> tuple[list[Array], Speed]:
    """The tangent impulses of both points, and the velocity after them."""
    velocity, spin = speed
    tangent = right_of(constraint.normal)
    tangents = []
    for point, normal_impulse, old in (
        (constraint.first, impulses.first_normal, impulses.first_tangent),
        (constraint.second, impulses.second_normal, impulses.second_tangent),
    ):
        slip = dot(velocity, tangent) + spin * point.tangent_arm
        most = constraint.friction * normal_impulse
        new = clip(old - point.tangent_mass * slip, -most, most)
        change = materialise(select(point.active, new - old, 0.0))
        velocity += mass.inverse_mass * change * tangent
        spin += mass.inverse_inertia * change * point.tangent_arm
        tangents.append(old + change)
    return tangents, materialise(Speed(velocity, spin))


def _solve_normals(
    constraint: ContactConstraint, impulses: ContactImpulses, speed: Speed, mass: MassData
) -> tuple[tuple[Array, Array], Speed]:
    """The changes of the normal impulses of both points, and the velocity after them."""
    velocity, spin = speed
    first, second = constraint.first, constraint.second
    old1, old2 = impulses.first_normal, impulses.second_normal
    along = dot(velocity, constraint.normal)
    speed1, speed2 = along + spin * first.normal_arm, along + spin * second.normal_arm
    alone = jnp.maximum(old1 - first.normal_mass * speed1, 0.0)

    # The normal velocities without the impulses so far: b in `velocity = K impulse + b`.
    b1 = speed1 - (first.inverse_normal_mass * old1 + constraint.k12 * old2)
    b2 = speed2 - (constraint.k12 * old1 + second.inverse_normal_mass * old2)
    b1, b2, alone = materialise((b1, b2, alone))
    new1, new2 = _block_solution(constraint, b1, b2, old1, old2, alone)

    change1 = materialise(select(first.active, new1 - old1, 0.0))
    change2 = materialise(select(second.active, new2 - old2, 0.0))
    velocity += mass.inverse_mass * (change1 + change2) * constraint.normal
    spin += mass.inverse_inertia * (change1 * first.normal_arm + change2 * second.normal_arm)
    return (change1, change2), Speed(velocity, spin)


def _block_solution(
    constraint: ContactConstraint, b1: Array, b2: Array, old1: Array, old2: Array, alone: Array
) -> tuple[Array, Array]:
    """The normal impulses of two points, neither of which pulls or lets the body sink in.

    Args:
        constraint: the contact.
        b1: the normal velocity at the first point without impulses.
        b2: that at the second point.
        old1: the impulse at the first point so far, which stays if no case fits.
        old2: that at the second point.
        alone: the impulse at the first point where there is no second one.
    """
    first, second = constraint.first, constraint.second
    i11, i12, i22 = constraint.minus_inverse
    both1, both2 = i11 * b1 + i12 * b2, i12 * b1 + i22 * b2
    # Minus the impulse of the first point, and of the second, if it is alone.
    one, two = first.normal_mass * b1, second.normal_mass * b2
    by_both = (both1 >= 0.0) & (both2 >= 0.0)
    by_first = (one <= 0.0) & (b2 - constraint.k12 * one >= 0.0)
    by_second = (two <= 0.0) & (b1 - constraint.k12 * two >= 0.0)
    by_none = (b1 >= 0.0) & (b2 >= 0.0)
    zero = jnp.zeros_like(one)
    one, two = zero - one, zero - two
    new1 = select(by_none, zero, old1)
    new2 = select(by_none, zero, old2)
    new1, new2 = select(by_second, (zero, two), (new1, new2))
    new1, new2 = select(by_first, (one, zero), (new1, new2))
    new1, new2 = select(by_both, (both1, both2), (new1, new2))
    return select(second.active, new1, alone), select(second.active, new2, zero)


def solve_position(
    manifold: Manifold, place: Place, mass: MassData, factor: float
) -> tuple[Place, Array]:
    """Push a body out of the ground, point by point, and say how deep it was.

    Args:
        manifold: the manifold at the beginning of the step.
        place: the place of the body now.
        mass: the mass of the body.
        factor: the fraction of the overlap that is removed.

    Returns:
        The place of the body after that, and the least separation before it, at most 0.
    """
    centre, angle = place
    deepest = jnp.zeros_like(angle)
    for point in (manifold.first, manifold.second):
        active = point.feature >= 0
        pose: Pose = materialise(pose_at(centre, angle, mass.centre))
        turned, placed = (
            pose.rotation.rotate(manifold.reference_normal),
            pose.to_world(manifold.reference_point),
        )
        normal = select(manifold.on_edge, manifold.reference_normal, turned)
        plane = select(manifold.on_edge, manifold.reference_point, placed)
        where = select(manifold.on_edge, pose.to_world(point.local), point.local)
        separation = dot(where - plane, normal) - RADIUS
        normal = select(manifold.on_edge, normal, -normal)
        where, normal, separation = materialise((where, normal, separation))
        deepest = select(active, jnp.minimum(deepest, separation), deepest)
        error = clip(factor * (separation + LINEAR_SLOP), -MAX_LINEAR_CORRECTION, 0.0)
        arm = cross(where - centre, normal)
        inverse_normal_mass = mass.inverse_mass + mass.inverse_inertia * arm * arm
        impulse = materialise(select(active, -error / inverse_normal_mass, 0.0))
        centre += mass.inverse_mass * impulse * normal
        angle += mass.inverse_inertia * impulse * arm
        centre, angle = materialise((centre, angle))
    return Place(centre, angle), deepest
