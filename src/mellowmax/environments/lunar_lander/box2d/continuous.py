"""Continuous collision: no body passes through the ground within a step.

When a body would come too near to an edge on the way that the solver has given it, it goes there,
is pushed out, loses the velocity towards the ground, and goes on for the rest of the step. The
hinges take no part in that: the next step brings the leg back to the hull. Bodies do not meet each
other, so each is looked at by itself, and as often as it comes to the ground.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from ..arrays.materialise import keep
from ..arrays.vectors import Array, anywhere, cross, length, select
from ..game.bodies import LINEAR_SLOP, SECONDS
from ..game.terrain import EDGES, FLOOR, Edge, edge_at
from ..state import Contact, Place, Speed
from . import contacts
from .collision import MARGIN, Shape, any_body, manifolds_with, near_ground, nearby_edges
from .contacts import ContactRow, Pressed
from .island import integrate
from .manifold import Manifold
from .time_of_impact import Sweep, time_of_impact

__all__ = ["Flight", "Flown", "fly_on"]

MAX_IMPACTS = 8
LAST_MOMENT = 1 - 10 * 1.1920929e-07
POSITION_ITERATIONS = 20
VELOCITY_ITERATIONS = 180
SETTLED = 1e-6


class Flight(NamedTuple):
    """A body on its way through a step."""

    start: Place
    end: Place
    speed: Speed
    time: Array
    """When it is at `start`, as a part of the step."""
    contacts: tuple[Contact, Contact]
    on_ground: Array
    missed: Array
    """Edges that it came near to without a point of contact, as bits: they count no more."""


class Flown(NamedTuple):
    """A body at the end of its way."""

    place: Place
    speed: Speed
    contacts: tuple[Contact, Contact]
    on_ground: Array


def fly_on(
    is_hull: Array,
    start: Place,
    end: Place,
    speed: Speed,
    old: tuple[Contact, Contact],
    on_ground: Array,
    terrain: Sequence[Array],
    active: Array,
) -> Flown:
    """Let bodies go their way with all that they meet.

    Args:
        is_hull: is it a hull, or a leg?
        start: where it is at the beginning of the step.
        end: where the solver has led it.
        speed: how it moves then.
        old: its contacts.
        on_ground: is it said to be on the ground?
        terrain: the ground below it.
        active: which bodies are looked at.
    """
    shape = any_body(is_hull)
    zero = jnp.zeros_like(start.angle)
    flight = Flight(start, end, speed, zero, old, on_ground, jnp.zeros_like(zero, jnp.int32))

    def impact(carry: Any) -> Any:
        done, going, flight = carry
        hits, edge, part = _first_impact(flight, shape, terrain, going)
        time = flight.time + (1.0 - flight.time) * part
        hits = going & hits & (time < LAST_MOMENT)
        flight = lax.cond(
            anywhere(hits),
            lambda: _respond(flight, is_hull, shape, terrain, edge, part, time, hits),
            lambda: flight,
        )
        return done + 1, hits, flight

    def goes_on(carry: Any) -> Array:
        done, going, _ = carry
        return (done < MAX_IMPACTS) & anywhere(going)

    flight = lax.while_loop(goes_on, impact, (jnp.int32(0), active, flight))[2]
    return Flown(flight.end, flight.speed, flight.contacts, flight.on_ground)


def _first_impact(
    flight: Flight, shape: Shape, terrain: Sequence[Array], active: Array
) -> tuple[Array, Array, Array]:
    """Does a body come to an edge, to which one first, and when on the way that is left?"""
    near, first, last = near_ground(shape, flight.start, flight.end, terrain)
    low = jnp.minimum(flight.start.centre.y, flight.end.centre.y)
    above_floor = low > shape.reach + 0.1
    sweep = Sweep(flight.start, flight.end, shape.weight.centre)
    # The edges below, one by one, and then the floor.
    count = last - first + select(above_floor, 1, 2)

    def look(carry: Any) -> Any:
        number, hits, edge, part = carry
        now = select(number > last - first, FLOOR, first + number)
        possible = active & near & (number < count) & ((flight.missed >> now) & 1 == 0)
        edge_now = keep(edge_at(now, terrain))
        possible = possible & ~_stays_away(flight, shape, edge_now)
        touches, time = time_of_impact(edge_now, shape.vertices, sweep, possible)
        earlier = possible & touches & (time < part)
        return (
            number + 1,
            hits | earlier,
            select(earlier, now, edge),
            select(earlier, time, part),
        )

    def goes_on(carry: Any) -> Array:
        return (carry[0] < EDGES + 1) & anywhere(active & near & (carry[0] < count))

    start = (
        jnp.int32(0),
        jnp.zeros_like(active),
        jnp.zeros_like(first),
        jnp.ones_like(flight.time),
    )
    _, hits, edge, part = lax.while_loop(goes_on, look, start)
    return hits, edge, part


def _stays_away(flight: Flight, shape: Shape, edge: Edge) -> Array:
    """Is a body on one side of an edge's line all the way, further from it than it is wide?"""
    along = edge.end - edge.start
    start, end = (cross(along, at.centre - edge.start) for at in (flight.start, flight.end))
    far = length(along) * (shape.reach + MARGIN)
    return ((start > far) & (end > far)) | ((start < -far) & (end < -far))


def _respond(
    flight: Flight,
    is_hull: Array,
    shape: Shape,
    terrain: Sequence[Array],
    edge: Array,
    part: Array,
    time: Array,
    hits: Array,
) -> Flight:
    rest = 1.0 - part
    at = Place(
        rest * flight.start.centre + part * flight.end.centre,
        rest * flight.start.angle + part * flight.end.angle,
    )
    at = keep(at)
    one, two = nearby_edges(shape, at)
    other = keep(select(one == edge, two, one))
    manifolds = manifolds_with(shape, at, (edge, other), terrain)
    touches = keep(hits & manifolds[0].touches)
    numbers = (edge, other)
    known = (
        contacts.remember(flight.contacts, edge, manifolds[0]),
        contacts.remember(flight.contacts, other, manifolds[1]),
    )
    # A leg may leave the ground again within the step; a hull that has touched it has crashed.
    heard = contacts.touch_events(flight.on_ground, flight.contacts, known)
    place, speed = _push_out(at, flight.speed, shape, manifolds, numbers, touches)
    speed, end = integrate(place, speed, (1.0 - time) * SECONDS)
    after = Flight(
        place,
        end,
        speed,
        time,
        known,
        is_hull | heard,
        jnp.zeros_like(flight.missed),
    )
    # Near, and yet no point: a contact that there was has ended, and the body goes on.
    misses = hits & ~manifolds[0].touches
    first, second = (
        contact._replace(edge=select(misses & (contact.edge == edge), -1, contact.edge))
        for contact in flight.contacts
    )
    heard = contacts.touch_events(flight.on_ground, flight.contacts, (first, second))
    flight = flight._replace(
        contacts=(first, second),
        on_ground=(is_hull & flight.on_ground) | heard,
        missed=select(misses, flight.missed | jnp.left_shift(1, edge), flight.missed),
    )
    result: Flight = select(touches, after, flight)
    return result


def _push_out(
    place: Place,
    speed: Speed,
    shape: Shape,
    manifolds: tuple[Manifold, Manifold],
    edges: tuple[Array, Array],
    active: Array,
) -> tuple[Place, Speed]:
    """Where a body is and how it moves once the ground has stopped it."""
    two_edges = anywhere(active & manifolds[1].touches)

    def push(manifold: Manifold, place: Place, deep: Array) -> tuple[Place, Array]:
        place, deepest = contacts.correct_position(manifold, place, shape.weight, 0.75)
        return place, deep | (deepest < -1.5 * LINEAR_SLOP)

    def correct(carry: Any) -> Any:
        done, going, place = carry
        first = push(manifolds[0], place, jnp.zeros_like(going))
        new, deep = lax.cond(two_edges, lambda: push(manifolds[1], *first), lambda: first)
        return done + 1, going & deep, select(going, new, place)

    def is_deep(carry: Any) -> Array:
        return (carry[0] < POSITION_ITERATIONS) & anywhere(carry[1])

    place = lax.while_loop(is_deep, correct, (jnp.int32(0), active, place))[2]
    rows: list[ContactRow] = []
    for manifold, edge in zip(manifolds, edges, strict=True):
        manifold = contacts.moved(manifold, place, shape.weight)
        friction = contacts.friction_on(edge, shape.friction)
        rows.append(contacts.prepare(manifold, friction, place.centre, shape.weight))
    zero = jnp.zeros_like(place.angle)
    none = Pressed(zero, zero, zero, zero)

    def iterate(carry: Any) -> Any:
        done, going, speed, pressed = carry
        one, new = contacts.press(rows[0], pressed[0], speed, shape.weight)
        two, new = lax.cond(
            two_edges,
            lambda: contacts.press(rows[1], pressed[1], new, shape.weight),
            lambda: (pressed[1], new),
        )
        # The numbers of a fast body are rounded more coarsely: that is no change.
        change, size = jnp.zeros_like(new.spin), jnp.ones_like(new.spin)
        for a, b in zip(jax.tree.leaves(new), jax.tree.leaves(speed), strict=True):
            change, size = jnp.maximum(change, jnp.abs(a - b)), jnp.maximum(size, jnp.abs(a))
        speed, pressed = select(going, (new, (one, two)), (speed, pressed))
        return done + 1, going & (change > SETTLED * size), speed, pressed

    def moves(carry: Any) -> Array:
        return (carry[0] < VELOCITY_ITERATIONS) & anywhere(carry[1])

    start = (jnp.int32(0), active, speed, (none, none))
    speed = lax.while_loop(moves, iterate, start)[2]
    return place, speed
