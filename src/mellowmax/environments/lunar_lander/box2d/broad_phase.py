"""Which edges of the ground are near a body, before it is known which of them it touches.

As in `collision`, a block is a row of bodies, hulls and legs alike.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp

from ..arrays.materialise import materialise
from ..arrays.vectors import Array, lookup, pose_at, rotation, select
from ..game.bodies import LEG, Body
from ..game.terrain import EDGES, FLOOR, edge_at, edges_below
from ..state import Place
from .shapes import Shape

__all__ = [
    "MARGIN",
    "PAIR",
    "any_near_ground",
    "near_ground",
    "nearby_edges",
    "newest_edge",
]

MARGIN = 0.1
"""Wider than the skins of the shapes and than any rounding error."""
NEAR = 0.2
"""The distance at which the boxes that Box2D puts around a leg and an edge overlap, and a contact
of the two begins to exist."""
PAIR = 16
"""Added to `Leg.newest` where two edges are near."""


def nearby_edges(shape: Shape, place: Place) -> tuple[Array, Array]:
    """The two edges that a body may touch, since no body is as wide as an edge.

    If it is above a single edge, the other one is the floor.
    """
    pose = materialise(pose_at(place.centre, place.angle, shape.mass.centre))
    low = high = pose.to_world(shape.vertices[0]).x
    for vertex in shape.vertices[1:]:
        x = pose.to_world(vertex).x
        low, high = jnp.minimum(low, x), jnp.maximum(high, x)
    first, last = materialise(edges_below(low - MARGIN, high + MARGIN))
    return first, select(first == last, FLOOR, last)


def near_ground(
    shape: Shape, start: Place, end: Place, terrain: Sequence[Array]
) -> tuple[Array, Array, Array]:
    """May a body touch the ground on its way from one place to another?

    Returns:
        Whether it may, and the first and the last edge of the terrain below its way.
    """
    reach = shape.reach + MARGIN
    first, last = edges_below(
        jnp.minimum(start.centre.x, end.centre.x) - reach,
        jnp.maximum(start.centre.x, end.centre.x) + reach,
    )
    first, last = materialise((first, last))
    highest = jnp.maximum(lookup(first, terrain), lookup(first + 1, terrain))
    highest = jnp.maximum(highest, lookup(last, terrain))
    highest = jnp.maximum(highest, lookup(last + 1, terrain))
    lowest = jnp.minimum(start.centre.y, end.centre.y) - reach
    return (lowest <= highest) | (last - first > 2), first, jnp.minimum(last, EDGES - 1)


def any_near_ground(
    ways: Sequence[tuple[Place, Place]], bodies: Sequence[Body], terrain: Sequence[Array]
) -> Array:
    """May any of several bodies touch the ground on its way? True wherever `near_ground` is."""
    places = [place.centre for way in ways for place in way]
    low = high = places[0].x
    for place in places[1:]:
        low, high = jnp.minimum(low, place.x), jnp.maximum(high, place.x)
    reach = max(body.reach for body in bodies) + MARGIN
    first, last = materialise(edges_below(low - reach, high + reach))
    highest = lookup(first, terrain)
    for number in (first + 1, last, last + 1):
        highest = jnp.maximum(highest, lookup(number, terrain))
    near = last - first > 2
    for (start, end), body in zip(ways, bodies, strict=True):
        lowest = jnp.minimum(start.centre.y, end.centre.y) - (body.reach + MARGIN)
        near = near | ~(lowest > highest)
    return near


def newest_edge(newest: Array, leg: Place, terrain: Sequence[Array]) -> Array:
    """`Leg.newest` after a step: the edge that a leg came near to last.

    Box2D has a contact for each edge whose box overlaps that of the leg, whether or not they touch,
    and solves the newest contact first.

    Args:
        newest: `Leg.newest` before the step.
        leg: the place of the leg.
        terrain: the ground below it.
    """
    half = LEG.vertices[2]
    turned = rotation(leg.angle)
    sin, cos = jnp.abs(turned.sin), jnp.abs(turned.cos)
    width, height = cos * half.x + sin * half.y, sin * half.x + cos * half.y
    left, right = leg.centre.x - width - NEAR, leg.centre.x + width + NEAR
    first, last = materialise(edges_below(left, right))
    tops = [materialise(_top(edge, terrain)) for edge in (first, last)]
    near_first, near_last = (leg.centre.y - height - NEAR <= top for top in tops)
    both = near_first & near_last & (first != last)
    before = newest & (PAIR - 1)
    stays = (newest >= PAIR) & ((before == first) | (before == last))
    # Of two that it comes near to at once, the lower one counts as the newest.
    lower = select(tops[1] <= tops[0], last, first)
    joins = select(before == first, last, select(before == last, first, lower))
    pair = PAIR + select(stays, before, joins)
    alone = select(near_first, first, select(near_last, last, -1))
    return materialise(select(both, pair, alone))


def _top(edge: Array, terrain: Sequence[Array]) -> Array:
    """The height of the higher end of an edge."""
    start, end = edge_at(edge, terrain)
    return jnp.maximum(start.y, end.y)
