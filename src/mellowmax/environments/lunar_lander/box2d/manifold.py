"""Where a convex body meets an edge of the ground: up to two points and a normal.

Box2D's rule for an edge that stands alone. Of all axes that might separate the two, the edge's own
normal and those of the body's faces, the one with the greatest separation becomes the reference;
the body's axes must win by a margin, so that the choice does not flutter. The face on the other
side is then clipped to the width of the reference face, and of what is left the points within the
radius of the skins are the contact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp

from ..arrays.materialise import keep
from ..arrays.vectors import Array, Pose, Vector, dot, length, lookup, right_of, select
from ..game.bodies import RADIUS
from ..game.terrain import Edge

__all__ = ["Manifold", "ManifoldPoint", "collide", "no_manifold"]

NONE = -1
VERTEX_OF_EDGE, VERTEX_OF_BODY = 64, 128
"""What the number of a feature says besides the indices of the two: which of them is a vertex."""


class ManifoldPoint(NamedTuple):
    """A point of a manifold."""

    feature: Array
    """Which features meet there; -1 if there is no point."""
    place: Vector
    """In the world."""
    fixed: Vector
    """Where it stays while the body moves: in the body if the edge is the reference, else in the
    world."""
    separation: Array


class Manifold(NamedTuple):
    """How a body touches an edge."""

    on_edge: Array
    """Is the edge the reference, rather than a face of the body?"""
    normal: Vector
    """From the ground to the body, in the world."""
    reference_normal: Vector
    """Of the reference face: in the world, or in the body."""
    reference_point: Vector
    """On the reference face, likewise."""
    first: ManifoldPoint
    second: ManifoldPoint

    @property
    def touches(self) -> Array:
        """Is there a point?"""
        return self.first.feature != NONE


class _End(NamedTuple):
    """An end of the face that is clipped: where it is, and what feature of each shape it is."""

    place: Vector
    of_reference: Array
    of_incident: Array
    clipped: Array


def collide(
    vertices: Sequence[Vector],
    normals: Sequence[Vector],
    centre: Vector,
    pose: Pose,
    edge: Edge,
    count: int | Array | None = None,
) -> Manifold:
    """The manifold of a body and an edge.

    Args:
        vertices: of the body, in its own frame, counter-clockwise.
        normals: of the face that begins at each vertex.
        centre: of the body, in the world: the edge's normal points to its side.
        pose: of the body.
        edge: the edge.
        count: how many of the vertices there are, where the last one is repeated; None for all.
    """
    count = len(vertices) if count is None else count
    corners = keep([pose.place(vertex) for vertex in vertices])
    faces = keep([pose.rotation.turn(normal) for normal in normals])
    along = edge.end - edge.start
    along = along * (1.0 / length(along))
    up = right_of(along)
    in_front = dot(up, centre - edge.start) >= 0.0
    normal = select(in_front, up, -up)
    in_front, normal = keep((in_front, normal))

    # How far apart they are along the edge's normal, and along the best of the body's.
    edge_separation = dot(normal, corners[0] - edge.start)
    for corner in corners[1:]:
        edge_separation = jnp.minimum(edge_separation, dot(normal, corner - edge.start))
    best_face, face_separation = None, None
    opposite, most_opposed = None, None
    for i in range(len(vertices)):
        separation = jnp.minimum(
            dot(faces[i], edge.start - corners[i]), dot(faces[i], edge.end - corners[i])
        )
        facing = dot(normal, faces[i])
        if best_face is None or face_separation is None or most_opposed is None:
            face_separation, best_face = separation, jnp.zeros_like(in_front, jnp.int32)
            most_opposed, opposite = facing, jnp.zeros_like(in_front, jnp.int32)
        else:
            best_face = select(separation > face_separation, i, best_face)
            face_separation = jnp.maximum(separation, face_separation)
            opposite = select(facing < most_opposed, i, opposite)
            most_opposed = jnp.minimum(facing, most_opposed)
        if i % 2:
            face_separation, best_face, most_opposed, opposite = keep(
                (face_separation, best_face, most_opposed, opposite)
            )
    assert best_face is not None
    assert face_separation is not None
    assert opposite is not None
    edge_separation, face_separation, best_face, opposite = keep(
        (edge_separation, face_separation, best_face, opposite)
    )
    apart = (edge_separation > RADIUS) | (face_separation > RADIUS)
    on_edge = face_separation <= 0.98 * edge_separation + 0.001

    # The face of the body that takes part, as the reference or opposite to it.
    on_edge = keep(on_edge)
    face = keep(select(on_edge, opposite, best_face))
    after = select(face == count - 1, 0, face + 1)
    corner, next_corner, face_normal = (
        lookup(face, corners),
        lookup(after, corners),
        lookup(face, faces),
    )
    local_normal, local_corner = lookup(face, normals), lookup(face, vertices)
    corner, next_corner, face_normal, local_normal, local_corner = keep(
        (corner, next_corner, face_normal, local_normal, local_corner)
    )
    start, end = select(in_front, (edge.start, edge.end), (edge.end, edge.start))
    from_here, to_there, reference_normal = select(
        on_edge, (start, end, normal), (corner, next_corner, face_normal)
    )
    from_here, to_there, reference_normal = keep((from_here, to_there, reference_normal))
    zero = jnp.zeros_like(face)
    no = jnp.zeros_like(apart)
    of_reference = select(on_edge, zero, face)
    one = _End(select(on_edge, corner, edge.start), of_reference, select(on_edge, face, zero), no)
    two = _End(
        select(on_edge, next_corner, edge.end), of_reference, select(on_edge, after, zero), no
    )
    index_here = select(on_edge, select(in_front, 0, 1), face).astype(jnp.int32)
    index_there = select(on_edge, select(in_front, 1, 0), after).astype(jnp.int32)
    side = right_of(reference_normal)
    one, two, some = _clip(one, two, side, dot(side, from_here), index_here, on_edge)
    one, two, all_of = _clip(one, two, -side, -dot(side, to_there), index_there, on_edge)
    valid = keep(some & all_of & ~apart)

    one, two = keep((one, two))
    first = _point(one, on_edge, from_here, reference_normal, pose, valid)
    second = _point(two, on_edge, from_here, reference_normal, pose, valid)
    first, second = keep((first, second))
    only_second = first.feature == NONE
    first, second = (
        select(only_second, second, first),
        second._replace(feature=select(only_second, NONE, second.feature)),
    )
    return Manifold(
        on_edge,
        select(on_edge, reference_normal, -reference_normal),
        select(on_edge, normal, local_normal),
        select(on_edge, from_here, local_corner),
        first,
        second,
    )


def no_manifold(like: Array) -> Manifold:
    """The manifold of what does not touch."""
    nowhere = Vector(like * 0.0, like * 0.0)
    none = jnp.full_like(like, NONE, jnp.int32)
    point = ManifoldPoint(none, nowhere, nowhere, like * 0.0)
    up = Vector(like * 0.0, jnp.ones_like(like))
    return Manifold(jnp.ones_like(like, jnp.bool_), up, up, nowhere, point, point)


def _clip(
    one: _End, two: _End, side: Vector, offset: Array, index: Array, on_edge: Array
) -> tuple[_End, _End, Array]:
    """What of a segment lies behind a line, and are there still two ends?

    An end that is cut off is a vertex of the reference face on the incident one.
    """
    first, second = keep((dot(side, one.place) - offset, dot(side, two.place) - offset))
    both = (first <= 0.0) & (second <= 0.0)
    crosses = first * second < 0.0
    share = first / select(crosses, first - second, 1.0)
    cut = _End(
        one.place + share * (two.place - one.place),
        index,
        one.of_incident,
        jnp.ones_like(crosses),
    )
    return keep((select(first <= 0.0, one, two), select(both, two, cut), both | crosses))


def _point(
    end: _End, on_edge: Array, origin: Vector, normal: Vector, pose: Pose, valid: Array
) -> ManifoldPoint:
    separation = dot(normal, end.place - origin)
    of_edge = select(on_edge, end.of_reference, end.of_incident)
    of_body = select(on_edge, end.of_incident, end.of_reference)
    # A cut end is a vertex of the reference; one that is not cut is a vertex of the other shape.
    of_edge_vertex = end.clipped == on_edge
    kind = select(of_edge_vertex, VERTEX_OF_EDGE, VERTEX_OF_BODY)
    feature = of_edge + 8 * of_body + kind
    return ManifoldPoint(
        select(valid & (separation <= RADIUS), feature, NONE),
        end.place,
        select(on_edge, pose.find(end.place), end.place),
        separation,
    )
