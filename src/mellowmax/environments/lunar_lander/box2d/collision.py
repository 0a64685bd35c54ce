"""Which edges of the ground a body touches, and how.

Bodies are looked at one by one, whatever they belong to: here a block is a row of bodies, hulls and
legs alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..arrays.materialise import keep
from ..arrays.vectors import Array, Vector, anywhere, lookup, pose_at, rotation, select
from ..game.bodies import HULL, LEG, Body
from ..game.terrain import EDGES, FLOOR, edge_at, edges_below
from ..state import Contact, Place
from .contacts import Weight, no_contact, remember, touch_events, weight_of
from .manifold import Manifold, collide, no_manifold

__all__ = [
    "MARGIN",
    "PAIR",
    "Shape",
    "Touch",
    "any_body",
    "any_near_ground",
    "came_near",
    "manifold_with",
    "manifolds_with",
    "near_ground",
    "nearby_edges",
    "shape_of",
    "touch",
]

MARGIN = 0.1
"""Wider than the skins, and than what rounding does."""
NEAR = 0.2
"""How near the boxes are that Box2D puts around a leg and an edge when they become a contact."""
PAIR = 16
"""What `newest` has more where two edges are near."""


class Shape(NamedTuple):
    """A convex body, of numbers or of arrays."""

    vertices: Sequence[Vector]
    normals: Sequence[Vector]
    corners: int | Array
    """How many of the vertices there are; the last one is repeated."""
    weight: Weight
    friction: float | Array
    reach: float | Array


def shape_of(body: Body) -> Shape:
    """The shape of a body."""
    return Shape(
        body.vertices,
        body.normals,
        len(body.vertices),
        weight_of(body),
        body.friction,
        body.reach,
    )


def any_body(is_hull: Array) -> Shape:
    """The shape of the hull or that of a leg."""
    most = len(HULL.vertices)

    def of(body: Body) -> Shape:
        missing = most - len(body.vertices)
        return shape_of(body)._replace(
            vertices=body.vertices + body.vertices[-1:] * missing,
            normals=body.normals + body.normals[-1:] * missing,
        )

    shape: Shape = select(is_hull, of(HULL), of(LEG))
    return shape


def manifold_with(shape: Shape, place: Place, edge: Array, terrain: Sequence[Array]) -> Manifold:
    """How a body touches the edge with a number."""
    pose = keep(pose_at(place.centre, place.angle, shape.weight.centre))
    return collide(
        shape.vertices,
        shape.normals,
        place.centre,
        pose,
        keep(edge_at(edge, terrain)),
        shape.corners,
    )


def manifolds_with(
    shape: Shape, place: Place, edges: tuple[Array, Array], terrain: Sequence[Array]
) -> tuple[Manifold, Manifold]:
    """How a body touches two edges, one after the other: that is compiled once."""

    def look(number: Array, found: tuple[Manifold, Manifold]) -> tuple[Manifold, Manifold]:
        first = number == 0
        manifold = manifold_with(shape, place, select(first, edges[0], edges[1]), terrain)
        return select(first, manifold, found[0]), manifold

    nothing = no_manifold(place.angle)
    bounds = np.int32(0), np.int32(2)
    found: tuple[Manifold, Manifold] = lax.fori_loop(*bounds, look, (nothing, nothing))
    return found


def nearby_edges(shape: Shape, place: Place) -> tuple[Array, Array]:
    """The two edges that a body may touch: no body is as wide as an edge.

    Where it is above one edge alone, the other one is the floor.
    """
    pose = keep(pose_at(place.centre, place.angle, shape.weight.centre))
    low = high = pose.place(shape.vertices[0]).x
    for vertex in shape.vertices[1:]:
        x = pose.place(vertex).x
        low, high = jnp.minimum(low, x), jnp.maximum(high, x)
    first, last = keep(edges_below(low - MARGIN, high + MARGIN))
    return first, select(first == last, FLOOR, last)


def near_ground(
    shape: Shape, one: Place, other: Place, terrain: Sequence[Array]
) -> tuple[Array, Array, Array]:
    """May a body touch the ground on its way from one place to another?

    Returns:
        That, and the first and the last edge of the terrain below the way.
    """
    reach = shape.reach + MARGIN
    first, last = edges_below(
        jnp.minimum(one.centre.x, other.centre.x) - reach,
        jnp.maximum(one.centre.x, other.centre.x) + reach,
    )
    first, last = keep((first, last))
    highest = jnp.maximum(lookup(first, terrain), lookup(first + 1, terrain))
    highest = jnp.maximum(highest, lookup(last, terrain))
    highest = jnp.maximum(highest, lookup(last + 1, terrain))
    lowest = jnp.minimum(one.centre.y, other.centre.y) - reach
    return (lowest <= highest) | (last - first > 2), first, jnp.minimum(last, EDGES - 1)


def any_near_ground(
    ways: Sequence[tuple[Place, Place]], bodies: Sequence[Body], terrain: Sequence[Array]
) -> Array:
    """May any of some bodies touch the ground on its way? True wherever `near_ground` is."""
    places = [place.centre for way in ways for place in way]
    low = high = places[0].x
    for place in places[1:]:
        low, high = jnp.minimum(low, place.x), jnp.maximum(high, place.x)
    reach = max(body.reach for body in bodies) + MARGIN
    first, last = keep(edges_below(low - reach, high + reach))
    highest = lookup(first, terrain)
    for number in (first + 1, last, last + 1):
        highest = jnp.maximum(highest, lookup(number, terrain))
    near = last - first > 2
    for (start, end), body in zip(ways, bodies, strict=True):
        lowest = jnp.minimum(start.centre.y, end.centre.y) - (body.reach + MARGIN)
        near = near | ~(lowest > highest)
    return near


Found: TypeAlias = tuple[tuple[Contact, Contact], tuple[Manifold, Manifold]]


class Touch(NamedTuple):
    """Up to two edges that a body touches; what touches comes first."""

    contacts: tuple[Contact, Contact]
    manifolds: tuple[Manifold, Manifold]
    on_ground: Array
    """Is it said to be on the ground?"""
    newest: Array
    """The edge that it has come near to last, as `Leg.newest` has it."""


def came_near(newest: Array, leg: Place, terrain: Sequence[Array]) -> Array:
    """The edge that a leg came near to last, as `Leg.newest` has it, from that of a step ago.

    Box2D has a contact for each edge whose box comes near to that of the leg, touch it or not, and
    solves the newest one first.
    """
    half = LEG.vertices[2]
    turned = rotation(leg.angle)
    sin, cos = jnp.abs(turned.sin), jnp.abs(turned.cos)
    width, height = cos * half.x + sin * half.y, sin * half.x + cos * half.y
    left, right = leg.centre.x - width - NEAR, leg.centre.x + width + NEAR
    first, last = keep(edges_below(left, right))
    tops = [keep(_top(edge, terrain)) for edge in (first, last)]
    near_first, near_last = (leg.centre.y - height - NEAR <= top for top in tops)
    both = near_first & near_last & (first != last)
    before = newest & (PAIR - 1)
    lasts = (newest >= PAIR) & ((before == first) | (before == last))
    # Of two that it comes near to at once, the lower one.
    lower = select(tops[1] <= tops[0], last, first)
    joins = select(before == first, last, select(before == last, first, lower))
    pair = PAIR + select(lasts, before, joins)
    alone = select(near_first, first, select(near_last, last, -1))
    return keep(select(both, pair, alone))


def _top(edge: Array, terrain: Sequence[Array]) -> Array:
    """How high the higher end of an edge lies."""
    start, end = edge_at(edge, terrain)
    return jnp.maximum(start.y, end.y)


def touch(
    is_hull: Array,
    place: Place,
    old: tuple[Contact, Contact],
    on_ground: Array,
    newest: Array,
    terrain: Sequence[Array],
    active: Array,
) -> Touch:
    """What of the ground bodies touch where they are.

    Args:
        is_hull: is it a hull, or a leg?
        place: where it is.
        old: its contacts in the last step, whose impulses are remembered.
        on_ground: was it said to be on the ground?
        newest: the edge that it came near to last, which counts first.
        terrain: the ground below it.
        active: which bodies are looked at.
    """
    shape = any_body(is_hull)

    def look() -> Found:
        edges = nearby_edges(shape, place)
        one, two = manifolds_with(shape, place, edges, terrain)
        first, second = (
            remember(old, edge, manifold) for edge, manifold in zip(edges, (one, two), strict=True)
        )
        in_order: Found = select(
            one.touches & ~(two.touches & (newest == PAIR + edges[1])),
            ((first, second), (one, two)),
            ((second, first), (two, one)),
        )
        return in_order

    none, nothing = no_contact(place.angle), no_manifold(place.angle)
    near, _, _ = near_ground(shape, place, place, terrain)
    contacts, manifolds = lax.cond(
        anywhere(active & near), look, lambda: ((none, none), (nothing, nothing))
    )
    heard = touch_events(on_ground, old, contacts, newest & (PAIR - 1))
    return Touch(contacts, manifolds, heard, newest)
