"""When a moving body first comes as near to an edge as `TARGET`, by conservative advancement.

Box2D's method. From the distance at some time follows an axis that separates the two shapes. Along
it the time is found at which the deepest corner comes to the target, by the secant rule and by
bisection in turn; that is repeated with the corner that is deepest then, until none is deeper. From
there the next axis is taken, until the shapes are near, or never will be.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from ..arrays.materialise import keep
from ..arrays.vectors import (
    Array,
    Pose,
    Vector,
    anywhere,
    dot,
    length,
    lookup,
    pose_at,
    right_of,
    select,
)
from ..game.bodies import LINEAR_SLOP, RADIUS
from ..game.terrain import Edge
from ..state import Place
from .distance import Simplex, distance, no_simplex, support_of_body, support_of_edge

__all__ = ["Sweep", "time_of_impact"]

TARGET = max(LINEAR_SLOP, RADIUS - 3 * LINEAR_SLOP)
TOLERANCE = 0.25 * LINEAR_SLOP
MAX_AXES, MAX_CORNERS, MAX_ROOT_STEPS = 20, 16, 50


class Sweep(NamedTuple):
    """The way of a body from one place to another."""

    start: Place
    end: Place
    centre: Array
    """How far above its origin the body's centre of mass lies."""

    def at(self, time: Array) -> Pose:
        """Where the body is at a time from 0 to 1."""
        rest = 1.0 - time
        centre = rest * self.start.centre + time * self.end.centre
        angle = rest * self.start.angle + time * self.end.angle
        return keep(pose_at(centre, angle, self.centre))


class _Axis(NamedTuple):
    """A direction along which two shapes are apart: of the edge, of a face, or of neither."""

    of_edge: Array
    of_body: Array
    direction: Vector
    """In the world, or in the body."""
    anchor: Vector
    """A point of the face: in the world, or in the body."""


def time_of_impact(
    edge: Edge, vertices: Sequence[Vector], sweep: Sweep, active: Array
) -> tuple[Array, Array]:
    """When a body comes to an edge on its way.

    Args:
        edge: the edge.
        vertices: of the body, in its own frame.
        sweep: the body's way.
        active: where the answer is needed.

    Returns:
        Does it come near, and when, from 0 to 1?
    """
    turns = 2 * math.pi * jnp.floor(sweep.start.angle * (1 / (2 * math.pi)))
    sweep = sweep._replace(
        start=sweep.start._replace(angle=sweep.start.angle - turns),
        end=sweep.end._replace(angle=sweep.end.angle - turns),
    )
    none = jnp.zeros_like(active)
    zero = jnp.zeros_like(sweep.start.angle)

    def advance(carry: Any) -> Any:
        done, going, touches, time, cache = carry
        apart, simplex = distance(edge, vertices, sweep.at(time), cache, going)
        cache = select(going, simplex, cache)
        overlap = apart <= 0.0
        near = apart < TARGET + TOLERANCE
        touches = touches | (going & near & ~overlap)
        going = going & ~near & ~overlap
        axis = keep(_axis(edge, vertices, sweep.at(time), cache))
        going, now_touches, time = _along(edge, vertices, sweep, axis, going, time)
        return done + 1, going, touches | now_touches, time, cache

    def goes_on(carry: Any) -> Array:
        done, going, _, _, _ = carry
        return (done < MAX_AXES) & anywhere(going)

    start = (jnp.int32(0), active, none, zero, no_simplex(zero))
    _, _, touches, time, _ = lax.while_loop(goes_on, advance, start)
    return touches, time


def _along(
    edge: Edge,
    vertices: Sequence[Vector],
    sweep: Sweep,
    axis: _Axis,
    going: Array,
    time: Array,
) -> tuple[Array, Array, Array]:
    """Move the time to where the deepest corner along an axis meets the target.

    Returns:
        Must another axis be tried, do they touch, and the time.
    """
    none = jnp.zeros_like(going)

    def deepest(carry: Any) -> Any:
        done, going, until, result = carry
        pose = sweep.at(until)
        of_edge, of_body = keep(_deepest(edge, vertices, pose, axis))
        late = _separation(edge, vertices, pose, axis, of_edge, of_body)
        separate = late > TARGET + TOLERANCE
        reached = ~separate & (late > TARGET - TOLERANCE)
        early = _separation(edge, vertices, sweep.at(time), axis, of_edge, of_body)
        failed = early < TARGET - TOLERANCE
        at_once = ~failed & (early <= TARGET + TOLERANCE)
        separate, reached, failed, at_once = keep((separate, reached, failed, at_once))
        again, touches, then = result
        again = again | (going & reached)
        then = select(going & reached, until, then)
        touches = touches | (going & ~separate & ~reached & at_once)
        going = going & ~(separate | reached | failed | at_once)
        root = _root(edge, vertices, sweep, axis, of_edge, of_body, time, until, early, late, going)
        # As in Box2D, a search for the root that has failed leaves the time as it was.
        return done + 1, going, select(going, root, until), (again, touches, then)

    def goes_on(carry: Any) -> Array:
        done, going, _, _ = carry
        return (done < MAX_CORNERS) & anywhere(going)

    start = (jnp.int32(0), going, jnp.ones_like(time), (none, none, time))
    _, left, _, (again, touches, time) = lax.while_loop(goes_on, deepest, start)
    return again | left, touches, time


def _root(
    edge: Edge,
    vertices: Sequence[Vector],
    sweep: Sweep,
    axis: _Axis,
    of_edge: Array,
    of_body: Array,
    low: Array,
    high: Array,
    at_low: Array,
    at_high: Array,
    going: Array,
) -> Array:
    """The time at which two corners are as far apart as the target, along an axis."""

    def iterate(carry: Any) -> Any:
        done, going, low, high, at_low, at_high, root = carry
        fall = at_high - at_low
        secant = low + (TARGET - at_low) * (high - low) / select(fall == 0.0, 1.0, fall)
        time = keep(select(done % 2 == 1, secant, 0.5 * (low + high)))
        separation = _separation(edge, vertices, sweep.at(time), axis, of_edge, of_body)
        found = jnp.abs(separation - TARGET) < TOLERANCE
        root = select(going & found, time, root)
        going = going & ~found
        above = separation > TARGET
        low, at_low = select(going & above, (time, separation), (low, at_low))
        high, at_high = select(going & ~above, (time, separation), (high, at_high))
        return done + 1, going, low, high, at_low, at_high, root

    def goes_on(carry: Any) -> Array:
        return (carry[0] < MAX_ROOT_STEPS) & anywhere(carry[1])

    start = (jnp.int32(0), going, low, high, at_low, at_high, high)
    result: Array = lax.while_loop(goes_on, iterate, start)[-1]
    return result


def _axis(edge: Edge, vertices: Sequence[Vector], pose: Pose, simplex: Simplex) -> _Axis:
    """The axis between the features that are nearest to each other."""
    single = simplex.count == 1
    of_body = ~single & (simplex.first.of_edge == simplex.second.of_edge)
    of_edge = ~single & ~of_body
    end = select(simplex.first.of_edge == 0, edge.start, edge.end)
    corner = lookup(simplex.first.of_body, vertices)
    other = lookup(simplex.second.of_body, vertices)
    end, corner, other = keep((end, corner, other))
    placed = keep(pose.place(corner))

    between = _unit(placed - end)
    face = _unit(right_of(other - corner))
    middle = 0.5 * (corner + other)
    inwards = dot(end - pose.place(middle), pose.rotation.turn(face)) < 0.0
    face = select(inwards, -face, face)
    other_end = select(simplex.second.of_edge == 0, edge.start, edge.end)
    ground = _unit(right_of(other_end - end))
    ground_middle = 0.5 * (end + other_end)
    below = dot(placed - ground_middle, ground) < 0.0
    ground = select(below, -ground, ground)
    return _Axis(
        of_edge,
        of_body,
        select(of_body, face, select(of_edge, ground, between)),
        select(of_body, middle, ground_middle),
    )


def _unit(v: Vector) -> Vector:
    size = length(v)
    scale = 1.0 / select(size > 0.0, size, 1.0)
    return Vector(v.x * scale, v.y * scale)


def _deepest(
    edge: Edge, vertices: Sequence[Vector], pose: Pose, axis: _Axis
) -> tuple[Array, Array]:
    """The corners of edge and body that are nearest along an axis; a face counts as a whole."""
    in_world = select(axis.of_body, pose.rotation.turn(axis.direction), axis.direction)
    towards_edge = select(axis.of_body, -in_world, in_world)
    of_edge = support_of_edge(edge, towards_edge)
    of_body = support_of_body(vertices, pose.rotation.turn_back(-in_world))
    return of_edge, of_body


def _separation(
    edge: Edge,
    vertices: Sequence[Vector],
    pose: Pose,
    axis: _Axis,
    of_edge: Array,
    of_body: Array,
) -> Array:
    """How far two corners, or a corner and a face, are apart along an axis."""
    end = select(of_edge == 0, edge.start, edge.end)
    end = select(axis.of_edge, axis.anchor, end)
    local = select(axis.of_body, axis.anchor, lookup(of_body, vertices))
    gap = pose.place(local) - end
    gap = keep(gap)
    along = dot(gap, axis.direction)
    against = -dot(gap, pose.rotation.turn(axis.direction))
    return keep(select(axis.of_body, against, along))
