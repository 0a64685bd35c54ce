"""How far an edge and a convex body are apart, by the method of Gilbert, Johnson and Keerthi.

The distance is that of the origin from the difference of the two shapes. A simplex of up to three
of its corners is moved towards the origin; two of them are kept from one call to the next, as Box2D
keeps them, for the axis that the time of impact is found on.
"""

from __future__ import annotations

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
    cross,
    dot,
    left_of,
    length,
    lookup,
    right_of,
    select,
)
from ..game.terrain import Edge

__all__ = ["Corner", "Simplex", "distance", "no_simplex", "support_of_body", "support_of_edge"]

MAX_ITERATIONS = 20
EPSILON = 1.1920929e-07
"""Of float32."""


class Corner(NamedTuple):
    """A corner of the difference: a corner of the body less one of the edge."""

    place: Vector
    of_edge: Array
    of_body: Array


class Simplex(NamedTuple):
    """Up to three corners."""

    count: Array
    first: Corner
    second: Corner
    third: Corner
    metric: Array
    """How large it is: tells whether it may be used again."""


def no_simplex(like: Array) -> Simplex:
    """An empty one."""
    zero, none = jnp.zeros_like(like), jnp.zeros_like(like, jnp.int32)
    corner = Corner(Vector(zero, zero), none, none)
    return Simplex(none, corner, corner, corner, zero)


def support_of_body(vertices: Sequence[Vector], direction: Vector) -> Array:
    """The number of the vertex that lies furthest in a direction, both in the body's frame."""
    best, furthest = jnp.zeros_like(direction.x, jnp.int32), dot(vertices[0], direction)
    for i, vertex in enumerate(vertices[1:], 1):
        far = dot(vertex, direction)
        best = select(far > furthest, i, best)
        furthest = jnp.maximum(far, furthest)
    return best


def support_of_edge(edge: Edge, direction: Vector) -> Array:
    """The number of the end that lies furthest in a direction."""
    further = dot(edge.end, direction) > dot(edge.start, direction)
    return further.astype(jnp.int32)


def distance(
    edge: Edge, vertices: Sequence[Vector], pose: Pose, cache: Simplex, active: Array
) -> tuple[Array, Simplex]:
    """The distance between an edge and a body, and the simplex that shows it.

    Args:
        edge: the edge.
        vertices: of the body, in its own frame.
        pose: of the body.
        cache: the simplex of an earlier call.
        active: where the answer is needed.
    """

    def corner(of_edge: Array, of_body: Array) -> Corner:
        of_edge, of_body = keep((of_edge, of_body))
        place = pose.place(lookup(of_body, vertices)) - select(of_edge == 0, edge.start, edge.end)
        place = keep(place)
        return Corner(place, of_edge, of_body)

    first, second, third = (
        corner(old.of_edge, old.of_body) for old in (cache.first, cache.second, cache.third)
    )
    kept = Simplex(cache.count, first, second, third, cache.metric)
    metric = _metric(kept)
    differs = (metric < 0.5 * cache.metric) | (2.0 * cache.metric < metric) | (metric < EPSILON)
    empty = keep((cache.count == 0) | ((cache.count > 1) & differs))
    zero = jnp.zeros_like(cache.count)
    first = select(empty, corner(zero, zero), first)
    start = Simplex(select(empty, 1, cache.count), first, second, third, cache.metric)

    def iterate(carry: Any) -> Any:
        done, going, simplex, before_end = carry
        solved, part = keep(_reduced(simplex))
        inside = solved.count == 3
        single = solved.count == 1
        side = solved.second.place - solved.first.place
        leftwards = cross(side, -solved.first.place) > 0.0
        direction = select(
            single, -solved.first.place, select(leftwards, left_of(side), right_of(side))
        )
        direction = keep(direction)
        unfit = dot(direction, direction) < EPSILON * EPSILON
        new = corner(
            support_of_edge(edge, -direction),
            support_of_body(vertices, pose.rotation.turn_back(direction)),
        )
        known = jnp.zeros_like(going)
        for i, old in enumerate((simplex.first, simplex.second, simplex.third)):
            same = (old.of_edge == new.of_edge) & (old.of_body == new.of_body)
            known = known | (same & (simplex.count > i))
        ends = keep(inside | unfit | known)
        two = solved.count == 2
        grown = Simplex(
            solved.count + 1,
            solved.first,
            select(two, solved.second, new),
            new,
            solved.metric,
        )
        # The shares belong to the simplex before a corner was added.
        result = select(going, (solved, part), before_end)
        simplex = select(going & ~ends, grown, simplex)
        return done + 1, going & ~ends, simplex, result

    def goes_on(carry: Any) -> Array:
        done, going, _, _ = carry
        return (done < MAX_ITERATIONS) & anywhere(going)

    half = jnp.zeros_like(start.metric)
    loop = (jnp.int32(0), active, start, (start, half))
    _, _, _, (final, share) = lax.while_loop(goes_on, iterate, loop)
    nearest = select(
        final.count == 2,
        (1.0 - share) * final.first.place + share * final.second.place,
        final.first.place,
    )
    apart = select(final.count == 3, 0.0, length(nearest))
    return apart, final._replace(metric=_metric(final))


def _metric(simplex: Simplex) -> Array:
    side = simplex.second.place - simplex.first.place
    area = cross(side, simplex.third.place - simplex.first.place)
    size = select(simplex.count == 2, length(side), area)
    return select(simplex.count <= 1, 0.0, size)


def _reduced(simplex: Simplex) -> tuple[Simplex, Array]:
    """The least part of a simplex that is as near to the origin.

    Returns:
        That part, and where on it the nearest point is, from 0 at its first corner to 1.
    """
    w1, w2, w3 = simplex.first.place, simplex.second.place, simplex.third.place
    e12, e13, e23 = w2 - w1, w3 - w1, w3 - w2
    d12_1, d12_2 = dot(w2, e12), -dot(w1, e12)
    d13_1, d13_2 = dot(w3, e13), -dot(w1, e13)
    d23_1, d23_2 = dot(w3, e23), -dot(w2, e23)
    area = cross(e12, e13)
    d123_1, d123_2, d123_3 = area * cross(w2, w3), area * cross(w3, w1), area * cross(w1, w2)
    d12_1, d12_2, d13_1, d13_2, d23_1, d23_2, d123_1, d123_2, d123_3 = keep(
        (d12_1, d12_2, d13_1, d13_2, d23_1, d23_2, d123_1, d123_2, d123_3)
    )
    one, two, three = (simplex.count == i for i in (1, 2, 3))

    at1 = one | (two & (d12_2 <= 0.0)) | (three & (d12_2 <= 0.0) & (d13_2 <= 0.0))
    on12 = (two & (d12_1 > 0.0)) | (three & (d12_1 > 0.0) & (d12_2 > 0.0) & (d123_3 <= 0.0))
    on13 = three & (d13_1 > 0.0) & (d13_2 > 0.0) & (d123_2 <= 0.0)
    at2 = two | (three & (d12_1 <= 0.0) & (d23_2 <= 0.0))
    at3 = (d13_1 <= 0.0) & (d23_1 <= 0.0)
    on23 = (d23_1 > 0.0) & (d23_2 > 0.0) & (d123_1 <= 0.0)

    at1, on12, on13, at2, at3, on23 = keep((at1, on12, on13, at2, at3, on23))

    def share(of_first: Array, of_second: Array) -> Array:
        total = of_first + of_second
        return of_second / select(total == 0.0, 1.0, total)

    zero = jnp.zeros_like(area)
    point, line, triangle = (jnp.full_like(simplex.count, n) for n in (1, 2, 3))
    first, second, third = simplex.first, simplex.second, simplex.third
    # From the last case to the first, which counts before the others.
    chosen = (triangle, first, second, zero)
    chosen = select(on23, (line, third, second, share(d23_2, d23_1)), chosen)
    chosen = select(at3, (point, third, second, zero), chosen)
    chosen = select(at2, (point, second, second, zero), chosen)
    chosen = select(on13, (line, first, third, share(d13_1, d13_2)), chosen)
    chosen = select(on12, (line, first, second, share(d12_1, d12_2)), chosen)
    chosen = select(at1, (point, first, second, zero), chosen)
    count, first, second, part = chosen
    return simplex._replace(count=count, first=first, second=second), part
