"""When a moving body first comes as near to an edge as `TARGET`, by conservative advancement.

This is `b2TimeOfImpact`. The distance at some time gives an axis that separates the two shapes.
Along this axis the time is found at which the deepest vertex comes to the target, by the secant
rule and by bisection in turn. That is repeated with the vertex that is deepest then, until none is
deeper. The next axis is taken at that time, and so on until the shapes are near, or it is clear
that they never will be.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax

from ..arrays.materialise import materialise
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
from ..game.terrain import Edge
from ..state import Place
from .distance import Simplex, distance, no_simplex, support_of_body, support_of_edge
from .settings import LINEAR_SLOP, RADIUS

__all__ = ["Sweep", "time_of_impact"]

TARGET = max(LINEAR_SLOP, RADIUS - 3 * LINEAR_SLOP)
TOLERANCE = 0.25 * LINEAR_SLOP
MAX_AXES, MAX_VERTICES, MAX_ROOT_STEPS = 20, 16, 50


class Sweep(NamedTuple):
    """The motion of a body from one place to another."""

    start: Place
    end: Place
    centre: Array | float
    """The height of the body's centre of mass above its origin."""

    def at(self, time: Array) -> Pose:
        """The pose of the body at a time from 0 to 1."""
        rest = 1.0 - time
        centre = rest * self.start.centre + time * self.end.centre
        angle = rest * self.start.angle + time * self.end.angle
        return materialise(pose_at(centre, angle, self.centre))


class _Axis(NamedTuple):
    """A separating axis: the normal of the edge, of a face of the body, or of neither."""

    of_edge: Array
    of_body: Array
    direction: Vector
    """The direction, in the body if it is the normal of a face, else in the world."""
    anchor: Vector
    """A point of the face or of the edge, in the same frame."""


class _Advance(NamedTuple):
    """Bodies on their way, between two axes."""

    done: Array
    """The number of axes so far."""
    going: Array
    """Must another axis be tried?"""
    touches: Array
    """Has the body come near the edge?"""
    time: Array
    cache: Simplex
    """The simplex of the last distance."""


class _Deepest(NamedTuple):
    """The advance along an axis, between two vertices."""

    done: Array
    """The number of vertices so far."""
    going: Array
    """May another vertex be deeper?"""
    until: Array
    """The time at which the deepest vertex is looked for: the root for the vertex before."""
    again: Array
    """Must another axis be tried?"""
    touches: Array
    """Do the shapes touch?"""
    time: Array
    """The time to which the body has been advanced."""


class _Bracket(NamedTuple):
    """Two times between which the root is, and the separation at each."""

    done: Array
    """The number of steps so far."""
    going: Array
    """Is the root not found yet?"""
    low: Array
    high: Array
    at_low: Array
    at_high: Array
    root: Array


def time_of_impact(
    edge: Edge, vertices: Sequence[Vector], sweep: Sweep, active: Array
) -> tuple[Array, Array]:
    """When a body comes near an edge on its way.

    Args:
        edge: the edge.
        vertices: the vertices of the body, in its own frame.
        sweep: the motion of the body.
        active: where the result is needed.

    Returns:
        Whether it comes near, and when, from 0 to 1.
    """
    turns = 2 * math.pi * jnp.floor(sweep.start.angle * (1 / (2 * math.pi)))
    sweep = sweep._replace(
        start=sweep.start._replace(angle=sweep.start.angle - turns),
        end=sweep.end._replace(angle=sweep.end.angle - turns),
    )
    none = jnp.zeros_like(active)
    zero = jnp.zeros_like(sweep.start.angle)

    def advance(carry: _Advance) -> _Advance:
        done, going, touches, time, cache = carry
        apart, simplex = distance(edge, vertices, sweep.at(time), cache, going)
        cache = select(going, simplex, cache)
        overlap = apart <= 0.0
        near = apart < TARGET + TOLERANCE
        touches = touches | (going & near & ~overlap)
        going = going & ~near & ~overlap
        axis = materialise(_separating_axis(edge, vertices, sweep.at(time), cache))
        going, now_touches, time = _advance_along(edge, vertices, sweep, axis, going, time)
        return _Advance(done + 1, going, touches | now_touches, time, cache)

    def goes_on(carry: _Advance) -> Array:
        return (carry.done < MAX_AXES) & anywhere(carry.going)

    start = _Advance(jnp.int32(0), active, none, zero, no_simplex(zero))
    end = lax.while_loop(goes_on, advance, start)
    return end.touches, end.time


def _advance_along(
    edge: Edge,
    vertices: Sequence[Vector],
    sweep: Sweep,
    axis: _Axis,
    going: Array,
    time: Array,
) -> tuple[Array, Array, Array]:
    """Advance the time until the deepest vertex along an axis meets the target.

    Returns:
        Whether another axis must be tried, whether the shapes touch, and the time.
    """
    none = jnp.zeros_like(going)

    def resolve_deepest(carry: _Deepest) -> _Deepest:
        done, going, until, again, touches, then = carry
        pose = sweep.at(until)
        of_edge, of_body = materialise(_deepest(edge, vertices, pose, axis))
        late = _separation(edge, vertices, pose, axis, of_edge, of_body)
        separate = late > TARGET + TOLERANCE
        reached = ~separate & (late > TARGET - TOLERANCE)
        early = _separation(edge, vertices, sweep.at(time), axis, of_edge, of_body)
        failed = early < TARGET - TOLERANCE
        at_once = ~failed & (early <= TARGET + TOLERANCE)
        separate, reached, failed, at_once = materialise((separate, reached, failed, at_once))
        again = again | (going & reached)
        then = select(going & reached, until, then)
        touches = touches | (going & ~separate & ~reached & at_once)
        going = going & ~(separate | reached | failed | at_once)
        root = _root(edge, vertices, sweep, axis, of_edge, of_body, time, until, early, late, going)
        # As in Box2D, a search that finds no root leaves the time as it was.
        return _Deepest(done + 1, going, select(going, root, until), again, touches, then)

    def goes_on(carry: _Deepest) -> Array:
        return (carry.done < MAX_VERTICES) & anywhere(carry.going)

    start = _Deepest(jnp.int32(0), going, jnp.ones_like(time), none, none, time)
    end = lax.while_loop(goes_on, resolve_deepest, start)
    return end.again | end.going, end.touches, end.time


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
    """The time at which two vertices are as far apart along an axis as the target."""

    def iterate(carry: _Bracket) -> _Bracket:
        done, going, low, high, at_low, at_high, root = carry
        fall = at_high - at_low
        secant = low + (TARGET - at_low) * (high - low) / select(fall == 0.0, 1.0, fall)
        time = materialise(select(done % 2 == 1, secant, 0.5 * (low + high)))
        separation = _separation(edge, vertices, sweep.at(time), axis, of_edge, of_body)
        found = jnp.abs(separation - TARGET) < TOLERANCE
        root = select(going & found, time, root)
        going = going & ~found
        above = separation > TARGET
        low, at_low = select(going & above, (time, separation), (low, at_low))
        high, at_high = select(going & ~above, (time, separation), (high, at_high))
        return _Bracket(done + 1, going, low, high, at_low, at_high, root)

    def goes_on(carry: _Bracket) -> Array:
        return (carry.done < MAX_ROOT_STEPS) & anywhere(carry.going)

    start = _Bracket(jnp.int32(0), going, low, high, at_low, at_high, high)
    return lax.while_loop(goes_on, iterate, start).root


def _separating_axis(edge: Edge, vertices: Sequence[Vector], pose: Pose, simplex: Simplex) -> _Axis:
    """The axis between the features that are nearest to each other."""
    single = simplex.count == 1
    of_body = ~single & (simplex.first.of_edge == simplex.second.of_edge)
    of_edge = ~single & ~of_body
    end = select(simplex.first.of_edge == 0, edge.start, edge.end)
    corner = lookup(simplex.first.of_body, vertices)
    other = lookup(simplex.second.of_body, vertices)
    end, corner, other = materialise((end, corner, other))
    placed = materialise(pose.to_world(corner))

    between = _unit(placed - end)
    face = _unit(right_of(other - corner))
    middle = 0.5 * (corner + other)
    inwards = dot(end - pose.to_world(middle), pose.rotation.rotate(face)) < 0.0
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
    """The vector of length 1 in the direction of another one."""
    size = length(v)
    scale = 1.0 / select(size > 0.0, size, 1.0)
    return Vector(v.x * scale, v.y * scale)


def _deepest(
    edge: Edge, vertices: Sequence[Vector], pose: Pose, axis: _Axis
) -> tuple[Array, Array]:
    """The vertices of edge and body that are nearest along an axis."""
    in_world = select(axis.of_body, pose.rotation.rotate(axis.direction), axis.direction)
    towards_edge = select(axis.of_body, -in_world, in_world)
    of_edge = support_of_edge(edge, towards_edge)
    of_body = support_of_body(vertices, pose.rotation.rotate_back(-in_world))
    return of_edge, of_body


def _separation(
    edge: Edge,
    vertices: Sequence[Vector],
    pose: Pose,
    axis: _Axis,
    of_edge: Array,
    of_body: Array,
) -> Array:
    """How far two vertices, or a vertex and a face, are apart along an axis."""
    end = select(of_edge == 0, edge.start, edge.end)
    end = select(axis.of_edge, axis.anchor, end)
    local = select(axis.of_body, axis.anchor, lookup(of_body, vertices))
    gap = pose.to_world(local) - end
    gap = materialise(gap)
    along = dot(gap, axis.direction)
    against = -dot(gap, pose.rotation.rotate(axis.direction))
    return materialise(select(axis.of_body, against, along))
