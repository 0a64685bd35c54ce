"""Which edges of the ground a body touches, and how."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from .bodies import HULL, LEG, Body
from .contacts import Weight, weight_of
from .keep import keep
from .manifold import Manifold, collide
from .state import Place
from .terrain import EDGES, FLOOR, edge_at, edges_below
from .vectors import Array, Vector, lookup, pose_at

__all__ = ["Shape", "any_body", "manifold_with", "near_ground", "nearby_edges", "shape_of"]

MARGIN = 0.1
"""Wider than the skins, and than what rounding does."""


class Shape(NamedTuple):
    """A convex body, of numbers or of arrays."""

    vertices: Sequence[Vector]
    normals: Sequence[Vector]
    count: int | Array
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

    # Products with 1 and 0: kernels do not choose between two constants.
    hull = is_hull.astype(jnp.float32)
    leg = 1.0 - hull
    mixed: Shape = jax.tree.map(lambda a, b: hull * a + leg * b, of(HULL), of(LEG))
    return mixed._replace(count=mixed.count.astype(jnp.int32))  # type: ignore[union-attr]


def manifold_with(shape: Shape, place: Place, edge: Array, terrain: Sequence[Array]) -> Manifold:
    """How a body touches the edge with a number."""
    pose = keep(pose_at(place.centre, place.angle, shape.weight.centre))
    return collide(
        shape.vertices,
        shape.normals,
        place.centre,
        pose,
        keep(edge_at(edge, terrain)),
        shape.count,
    )


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
    return first, jnp.where(first == last, FLOOR, last)


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
