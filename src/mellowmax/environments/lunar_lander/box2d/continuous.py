"""Continuous collision: no body passes through the ground within a step.

A body that would come too near to an edge on the way from the solver is advanced to the time of
impact. There it is pushed out, loses its velocity towards the ground, and goes on for the rest of
the step. Joints take no part in that; the next step brings the leg back to the hull. Bodies do not
collide with each other, so each is looked at by itself, and again after each impact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from ..arrays.materialise import materialise
from ..arrays.vectors import Array, anywhere, cross, length, select
from ..game.bodies import SECONDS
from ..game.terrain import EDGES, FLOOR, Edge, edge_at
from ..state import Contact, Place, Speed
from . import contacts
from .broad_phase import MARGIN, near_ground, nearby_edges
from .collision import edge_manifolds
from .contacts import ContactConstraint, ContactImpulses
from .island import integrate
from .manifold import Manifold
from .settings import (
    CONVERGED,
    EPSILON,
    LINEAR_SLOP,
    TOI_POSITION_ITERATIONS,
    VELOCITY_ITERATIONS,
)
from .shapes import Shape, hull_or_leg
from .time_of_impact import Sweep, time_of_impact

__all__ = ["SweptBody", "solve_toi"]

MAX_IMPACTS = 8
LAST_MOMENT = 1 - 10 * EPSILON


class SweptBody(NamedTuple):
    """A body at the end of its way through a step."""

    place: Place
    speed: Speed
    contacts: tuple[Contact, Contact]
    on_ground: Array


class _SweepingBody(NamedTuple):
    """A body on its way through a step."""

    start: Place
    end: Place
    speed: Speed
    time: Array
    """When it is at `start`, as a fraction of the step."""
    contacts: tuple[Contact, Contact]
    on_ground: Array
    missed: Array
    """Edges that it came near without a point of contact, as bits: they are not looked at again."""


class _Impact(NamedTuple):
    """The first impact of a body with an edge."""

    hits: Array
    """Is there one?"""
    edge: Array
    part: Array
    """When, as a fraction of the way that is left."""


class _Stopping(NamedTuple):
    """A body between two iterations of the velocity solver."""

    done: Array
    """The number of iterations so far."""
    going: Array
    """Does its velocity still change?"""
    speed: Speed
    impulses: tuple[ContactImpulses, ContactImpulses]


def solve_toi(
    is_hull: Array,
    start: Place,
    end: Place,
    speed: Speed,
    old: tuple[Contact, Contact],
    on_ground: Array,
    terrain: Sequence[Array],
    active: Array,
) -> SweptBody:
    """Bodies at the end of the step, after all that they collide with on their way.

    Args:
        is_hull: is the body a hull? Else it is a leg.
        start: its place at the beginning of the step.
        end: where the solver has led it.
        speed: its velocity there.
        old: its contacts.
        on_ground: its observed flag.
        terrain: the ground below it.
        active: which bodies are looked at.
    """
    shape = hull_or_leg(is_hull)
    zero = jnp.zeros_like(start.angle)
    missed = jnp.zeros_like(zero, jnp.int32)
    body = _SweepingBody(start, end, speed, zero, old, on_ground, missed)

    def one_impact(
        carry: tuple[Array, Array, _SweepingBody],
    ) -> tuple[Array, Array, _SweepingBody]:
        done, going, body = carry
        impact = _first_impact(body, shape, terrain, going)
        time = body.time + (1.0 - body.time) * impact.part
        hits = going & impact.hits & (time < LAST_MOMENT)
        impact = impact._replace(hits=hits)
        body = lax.cond(
            anywhere(hits),
            lambda: _after_impact(body, is_hull, shape, terrain, impact, time),
            lambda: body,
        )
        return done + 1, hits, body

    def goes_on(carry: tuple[Array, Array, _SweepingBody]) -> Array:
        done, going, _ = carry
        return (done < MAX_IMPACTS) & anywhere(going)

    body = lax.while_loop(goes_on, one_impact, (jnp.int32(0), active, body))[2]
    return SweptBody(body.end, body.speed, body.contacts, body.on_ground)


def _first_impact(
    body: _SweepingBody, shape: Shape, terrain: Sequence[Array], active: Array
) -> _Impact:
    """The first impact of a body on the way that is left."""
    near, first, last = near_ground(shape, body.start, body.end, terrain)
    low = jnp.minimum(body.start.centre.y, body.end.centre.y)
    above_floor = low > shape.reach + 0.1
    sweep = Sweep(body.start, body.end, shape.mass.centre)
    # The edges below are looked at one by one, then the floor.
    count = last - first + select(above_floor, 1, 2)

    def look(carry: tuple[Array, _Impact]) -> tuple[Array, _Impact]:
        number, (hits, edge, part) = carry
        now = select(number > last - first, FLOOR, first + number)
        possible = active & near & (number < count) & ((body.missed >> now) & 1 == 0)
        edge_now = materialise(edge_at(now, terrain))
        possible = possible & ~_stays_away(body, shape, edge_now)
        touches, time = time_of_impact(edge_now, shape.vertices, sweep, possible)
        earlier = possible & touches & (time < part)
        return number + 1, _Impact(
            hits | earlier, select(earlier, now, edge), select(earlier, time, part)
        )

    def goes_on(carry: tuple[Array, _Impact]) -> Array:
        number, _ = carry
        return (number < EDGES + 1) & anywhere(active & near & (number < count))

    none = _Impact(jnp.zeros_like(active), jnp.zeros_like(first), jnp.ones_like(body.time))
    return lax.while_loop(goes_on, look, (jnp.int32(0), none))[1]


def _stays_away(body: _SweepingBody, shape: Shape, edge: Edge) -> Array:
    """Does a body stay on one side of an edge's line, further from it than it reaches?"""
    along = edge.end - edge.start
    start, end = (cross(along, at.centre - edge.start) for at in (body.start, body.end))
    far = length(along) * (shape.reach + MARGIN)
    return ((start > far) & (end > far)) | ((start < -far) & (end < -far))


def _after_impact(
    body: _SweepingBody,
    is_hull: Array,
    shape: Shape,
    terrain: Sequence[Array],
    impact: _Impact,
    time: Array,
) -> _SweepingBody:
    """A body after an impact, at `time` as a fraction of the whole step, with a new way to go."""
    hits, edge, part = impact
    rest = 1.0 - part
    at = Place(
        rest * body.start.centre + part * body.end.centre,
        rest * body.start.angle + part * body.end.angle,
    )
    at = materialise(at)
    one, two = nearby_edges(shape, at)
    other = materialise(select(one == edge, two, one))
    manifolds = edge_manifolds(shape, at, (edge, other), terrain)
    touches = materialise(hits & manifolds[0].touches)
    edges = (edge, other)
    new = (
        contacts.match_impulses(body.contacts, edge, manifolds[0]),
        contacts.match_impulses(body.contacts, other, manifolds[1]),
    )
    # A leg may leave the ground again within the step; a hull that has touched it has crashed.
    flag = contacts.on_ground_after(body.on_ground, body.contacts, new)
    two_edges = anywhere(touches & manifolds[1].touches)
    place = _push_out(at, shape, manifolds, two_edges, touches)
    speed = _stop(place, body.speed, shape, manifolds, edges, two_edges, touches)
    speed, end = integrate(place, speed, (1.0 - time) * SECONDS)
    after = _SweepingBody(
        place,
        end,
        speed,
        time,
        new,
        is_hull | flag,
        jnp.zeros_like(body.missed),
    )
    # Near, but without a point: an old contact with the edge has ended, and the body goes on.
    misses = hits & ~manifolds[0].touches
    first, second = (
        contact._replace(edge=select(misses & (contact.edge == edge), -1, contact.edge))
        for contact in body.contacts
    )
    flag = contacts.on_ground_after(body.on_ground, body.contacts, (first, second))
    body = body._replace(
        contacts=(first, second),
        on_ground=(is_hull & body.on_ground) | flag,
        missed=select(misses, body.missed | jnp.left_shift(1, edge), body.missed),
    )
    return select(touches, after, body)


def _push_out(
    place: Place,
    shape: Shape,
    manifolds: tuple[Manifold, Manifold],
    two_edges: Array,
    active: Array,
) -> Place:
    """The place of a body after the position solver has pushed it out of the ground.

    Args:
        place: its place at the time of impact.
        shape: its shape.
        manifolds: its manifolds with two edges.
        two_edges: does any body of the block touch its second edge?
        active: which bodies are solved at all.
    """

    def push(manifold: Manifold, place: Place, deep: Array) -> tuple[Place, Array]:
        place, deepest = contacts.solve_position(manifold, place, shape.mass, 0.75)
        return place, deep | (deepest < -1.5 * LINEAR_SLOP)

    def iterate(carry: tuple[Array, Array, Place]) -> tuple[Array, Array, Place]:
        done, going, place = carry
        first = push(manifolds[0], place, jnp.zeros_like(going))
        new, deep = lax.cond(two_edges, lambda: push(manifolds[1], *first), lambda: first)
        return done + 1, going & deep, select(going, new, place)

    def is_deep(carry: tuple[Array, Array, Place]) -> Array:
        done, going, _ = carry
        return (done < TOI_POSITION_ITERATIONS) & anywhere(going)

    return lax.while_loop(is_deep, iterate, (jnp.int32(0), active, place))[2]


def _stop(
    place: Place,
    speed: Speed,
    shape: Shape,
    manifolds: tuple[Manifold, Manifold],
    edges: tuple[Array, Array],
    two_edges: Array,
    active: Array,
) -> Speed:
    """The velocity of a body after the velocity solver has stopped it at the ground.

    Args:
        place: its place after the position solver.
        speed: its velocity before.
        shape: its shape.
        manifolds: its manifolds with two edges.
        edges: the numbers of these edges.
        two_edges: does any body of the block touch its second edge?
        active: which bodies are solved at all.
    """
    constraints: list[ContactConstraint] = []
    for manifold, edge in zip(manifolds, edges, strict=True):
        manifold = contacts.manifold_at(manifold, place, shape.mass)
        friction = contacts.mixed_friction(edge, shape.friction)
        constraints.append(contacts.prepare(manifold, friction, place.centre, shape.mass))
    zero = jnp.zeros_like(place.angle)
    none = ContactImpulses(zero, zero, zero, zero)

    def iterate(carry: _Stopping) -> _Stopping:
        done, going, speed, impulses = carry
        one, new = contacts.solve_velocity(constraints[0], impulses[0], speed, shape.mass)
        two, new = lax.cond(
            two_edges,
            lambda: contacts.solve_velocity(constraints[1], impulses[1], new, shape.mass),
            lambda: (impulses[1], new),
        )
        # The change is relative for a fast body, whose numbers are rounded more coarsely.
        change, size = jnp.zeros_like(new.spin), jnp.ones_like(new.spin)
        for a, b in zip(jax.tree.leaves(new), jax.tree.leaves(speed), strict=True):
            change, size = jnp.maximum(change, jnp.abs(a - b)), jnp.maximum(size, jnp.abs(a))
        speed, impulses = select(going, (new, (one, two)), (speed, impulses))
        return _Stopping(done + 1, going & (change > CONVERGED * size), speed, impulses)

    def moves(carry: _Stopping) -> Array:
        return (carry.done < VELOCITY_ITERATIONS) & anywhere(carry.going)

    start = _Stopping(jnp.int32(0), active, speed, (none, none))
    return lax.while_loop(moves, iterate, start).speed
