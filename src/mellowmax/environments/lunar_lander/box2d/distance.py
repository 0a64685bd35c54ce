"""The distance of an edge and a convex body, as by Gilbert, Johnson and Keerthi.

It is the distance of the origin from the Minkowski difference of the two shapes. A simplex of up to
three vertices of the difference is moved towards the origin. As in Box2D (`b2SimplexCache`), the
simplex of one call is where the next one begins, and tells the time of impact its separating axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax

from ..arrays.materialise import materialise
from ..arrays.vectors import (
    Array,
    Pose,
    Vector,
    anywhere,
    cross,
    dot,
    left_of,
    length,
    lookup,
    right_of,
    select,
)
from ..game.terrain import Edge
from .settings import EPSILON

__all__ = [
    "Simplex",
    "SimplexVertex",
    "distance",
    "no_simplex",
    "support_of_body",
    "support_of_edge",
]

MAX_ITERATIONS = 20


class SimplexVertex(NamedTuple):
    """A vertex of the difference: a vertex of the body minus an end of the edge."""

    place: Vector
    of_edge: Array
    """The number of the end of the edge."""
    of_body: Array
    """The number of the vertex of the body."""


class Simplex(NamedTuple):
    """Up to three vertices."""

    count: Array  # type: ignore[assignment]  # a tuple's method has the name too
    first: SimplexVertex
    second: SimplexVertex
    third: SimplexVertex
    metric: Array
    """Its length or area. If that has changed much, the simplex is not used again."""


class _Search(NamedTuple):
    """The search between two iterations."""

    done: Array
    """The number of iterations so far."""
    going: Array
    """Is the nearest simplex not found yet?"""
    simplex: Simplex
    result: tuple[Simplex, Array]
    """The simplex before a vertex was added to it, and where on it the nearest point is."""


_MakeVertex = Callable[[Array, Array], SimplexVertex]
"""From the numbers of an edge's end and of a body's vertex to a vertex of the difference."""


def no_simplex(like: Array) -> Simplex:
    """An empty simplex."""
    zero, none = jnp.zeros_like(like), jnp.zeros_like(like, jnp.int32)
    vertex = SimplexVertex(Vector(zero, zero), none, none)
    return Simplex(none, vertex, vertex, vertex, zero)


def support_of_body(vertices: Sequence[Vector], direction: Vector) -> Array:
    """The number of the vertex furthest in a direction, both in the frame of the body."""
    best, furthest = jnp.zeros_like(direction.x, jnp.int32), dot(vertices[0], direction)
    for i, vertex in enumerate(vertices[1:], 1):
        far = dot(vertex, direction)
        best = select(far > furthest, i, best)
        furthest = jnp.maximum(far, furthest)
    return best


def support_of_edge(edge: Edge, direction: Vector) -> Array:
    """The number of the end furthest in a direction."""
    further = dot(edge.end, direction) > dot(edge.start, direction)
    return further.astype(jnp.int32)


def distance(
    edge: Edge, vertices: Sequence[Vector], pose: Pose, cache: Simplex, active: Array
) -> tuple[Array, Simplex]:
    """The distance between an edge and a body, and the simplex that shows it.

    Args:
        edge: the edge.
        vertices: the vertices of the body, in its own frame.
        pose: the pose of the body.
        cache: the simplex of an earlier call.
        active: where the result is needed.
    """

    def make_vertex(of_edge: Array, of_body: Array) -> SimplexVertex:
        of_edge, of_body = materialise((of_edge, of_body))
        place = pose.to_world(lookup(of_body, vertices)) - select(
            of_edge == 0, edge.start, edge.end
        )
        place = materialise(place)
        return SimplexVertex(place, of_edge, of_body)

    start = _read_cache(cache, make_vertex)

    def iterate(carry: _Search) -> _Search:
        done, going, simplex, before_end = carry
        solved, part = materialise(_closest_part(simplex))
        inside = solved.count == 3
        direction = _search_direction(solved)
        degenerate = dot(direction, direction) < EPSILON * EPSILON
        new = make_vertex(
            support_of_edge(edge, -direction),
            support_of_body(vertices, pose.rotation.rotate_back(direction)),
        )
        known = jnp.zeros_like(going)
        for i, old in enumerate((simplex.first, simplex.second, simplex.third)):
            same = (old.of_edge == new.of_edge) & (old.of_body == new.of_body)
            known = known | (same & (simplex.count > i))
        ends = materialise(inside | degenerate | known)
        two = solved.count == 2
        grown = Simplex(
            solved.count + 1,
            solved.first,
            select(two, solved.second, new),
            new,
            solved.metric,
        )
        result = select(going, (solved, part), before_end)
        simplex = select(going & ~ends, grown, simplex)
        return _Search(done + 1, going & ~ends, simplex, result)

    def goes_on(carry: _Search) -> Array:
        return (carry.done < MAX_ITERATIONS) & anywhere(carry.going)

    half = jnp.zeros_like(start.metric)
    search = _Search(jnp.int32(0), active, start, (start, half))
    final, share = lax.while_loop(goes_on, iterate, search).result
    nearest = select(
        final.count == 2,
        (1.0 - share) * final.first.place + share * final.second.place,
        final.first.place,
    )
    apart = select(final.count == 3, 0.0, length(nearest))
    return apart, final._replace(metric=_metric(final))


def _read_cache(cache: Simplex, make_vertex: _MakeVertex) -> Simplex:
    """The simplex of an earlier call in the present pose, or a single vertex if it is of no use."""
    first, second, third = (
        make_vertex(old.of_edge, old.of_body) for old in (cache.first, cache.second, cache.third)
    )
    kept = Simplex(cache.count, first, second, third, cache.metric)
    metric = _metric(kept)
    differs = (metric < 0.5 * cache.metric) | (2.0 * cache.metric < metric) | (metric < EPSILON)
    empty = materialise((cache.count == 0) | ((cache.count > 1) & differs))
    zero = jnp.zeros_like(cache.count)
    first = select(empty, make_vertex(zero, zero), first)
    return Simplex(select(empty, 1, cache.count), first, second, third, cache.metric)


def _metric(simplex: Simplex) -> Array:
    """The length or the area of a simplex."""
    side = simplex.second.place - simplex.first.place
    area = cross(side, simplex.third.place - simplex.first.place)
    size = select(simplex.count == 2, length(side), area)
    return select(simplex.count <= 1, 0.0, size)


def _search_direction(solved: Simplex) -> Vector:
    """The direction from a vertex or a side towards the origin."""
    single = solved.count == 1
    side = solved.second.place - solved.first.place
    leftwards = cross(side, -solved.first.place) > 0.0
    return materialise(
        select(single, -solved.first.place, select(leftwards, left_of(side), right_of(side)))
    )


def _closest_part(simplex: Simplex) -> tuple[Simplex, Array]:
    """The smallest part of a simplex that is as near to the origin: a vertex, a side or all of it.

    Returns:
        That part, and where on it the nearest point is, from 0 at its first vertex to 1.
    """
    w1, w2, w3 = simplex.first.place, simplex.second.place, simplex.third.place
    e12, e13, e23 = w2 - w1, w3 - w1, w3 - w2
    d12_1, d12_2 = dot(w2, e12), -dot(w1, e12)
    d13_1, d13_2 = dot(w3, e13), -dot(w1, e13)
    d23_1, d23_2 = dot(w3, e23), -dot(w2, e23)
    area = cross(e12, e13)
    d123_1, d123_2, d123_3 = area * cross(w2, w3), area * cross(w3, w1), area * cross(w1, w2)
    d12_1, d12_2, d13_1, d13_2, d23_1, d23_2, d123_1, d123_2, d123_3 = materialise(
        (d12_1, d12_2, d13_1, d13_2, d23_1, d23_2, d123_1, d123_2, d123_3)
    )
    one, two, three = (simplex.count == i for i in (1, 2, 3))

    at1 = one | (two & (d12_2 <= 0.0)) | (three & (d12_2 <= 0.0) & (d13_2 <= 0.0))
    on12 = (two & (d12_1 > 0.0)) | (three & (d12_1 > 0.0) & (d12_2 > 0.0) & (d123_3 <= 0.0))
    on13 = three & (d13_1 > 0.0) & (d13_2 > 0.0) & (d123_2 <= 0.0)
    at2 = two | (three & (d12_1 <= 0.0) & (d23_2 <= 0.0))
    at3 = (d13_1 <= 0.0) & (d23_1 <= 0.0)
    on23 = (d23_1 > 0.0) & (d23_2 > 0.0) & (d123_1 <= 0.0)

    at1, on12, on13, at2, at3, on23 = materialise((at1, on12, on13, at2, at3, on23))

    def share(of_first: Array, of_second: Array) -> Array:
        total = of_first + of_second
        return of_second / select(total == 0.0, 1.0, total)

    zero = jnp.zeros_like(area)
    point, line, triangle = (jnp.full_like(simplex.count, n) for n in (1, 2, 3))
    first, second, third = simplex.first, simplex.second, simplex.third
    # Later selections override earlier ones: the cases go from the last to the first.
    chosen = (triangle, first, second, zero)
    chosen = select(on23, (line, third, second, share(d23_2, d23_1)), chosen)
    chosen = select(at3, (point, third, second, zero), chosen)
    chosen = select(at2, (point, second, second, zero), chosen)
    chosen = select(on13, (line, first, third, share(d13_1, d13_2)), chosen)
    chosen = select(on12, (line, first, second, share(d12_1, d12_2)), chosen)
    chosen = select(at1, (point, first, second, zero), chosen)
    count, first, second, part = chosen
    return simplex._replace(count=count, first=first, second=second), part
