"""The manifold of a convex body and an edge of the ground: a normal and up to two points.

This is Box2D's rule for an edge without neighbours. Of all axes that might separate the two, the
normal of the edge and the normals of the body's faces, the one with the largest separation becomes
the reference. An axis of the body must win by a margin, so that the choice does not flip back and
forth. The face on the other side, the incident one, is clipped to the width of the reference face.
The points of what is left that lie within the radius of the skins are the contact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp

from ..arrays.materialise import materialise
from ..arrays.vectors import Array, Pose, Vector, dot, length, lookup, right_of, select
from ..game.terrain import Edge
from .settings import RADIUS

__all__ = ["Manifold", "ManifoldPoint", "edge_manifold", "no_manifold"]

NONE = -1
VERTEX_OF_EDGE, VERTEX_OF_BODY = 64, 128
"""Added to the number of a feature: which of the two shapes has a vertex there."""


class ManifoldPoint(NamedTuple):
    """A point of a manifold."""

    feature: Array
    """The features that touch there; -1 for no point."""
    place: Vector
    """The point in the world."""
    local: Vector
    """The point in the frame where it stays while the body moves: that of the body if the edge is
    the reference, else that of the world."""
    separation: Array


class Manifold(NamedTuple):
    """How a body touches an edge."""

    on_edge: Array
    """Is the edge the reference, and not a face of the body?"""
    normal: Vector
    """The direction from the ground to the body, in the world."""
    reference_normal: Vector
    """The normal of the reference face, in the world if it is the edge, else in the body."""
    reference_point: Vector
    """A point of the reference face, in the same frame."""
    first: ManifoldPoint
    second: ManifoldPoint

    @property
    def touches(self) -> Array:
        """Is there a point?"""
        return self.first.feature != NONE


class _Polygon(NamedTuple):
    """A body's corners and face normals, in its own frame and in the world."""

    vertices: Sequence[Vector]
    normals: Sequence[Vector]
    corners: Sequence[Vector]
    """The vertices in the world."""
    faces: Sequence[Vector]
    """The normals in the world, each of the face that begins at the corner of the same index."""
    n_vertices: int | Array


class _Axes(NamedTuple):
    """The best axes that might separate a body from an edge."""

    normal: Vector
    """The normal of the edge, on the side of the body."""
    in_front: Array
    """Is the body on the side of the edge's own normal?"""
    apart: Array
    """Does an axis separate the two?"""
    on_edge: Array
    """Is the edge the reference?"""
    best_face: Array
    """The face of the body with the largest separation."""
    opposite: Array
    """The face of the body that is turned most towards the edge."""


class _ClipVertex(NamedTuple):
    """An end of the incident face: where it is, and its feature of each shape."""

    place: Vector
    of_reference: Array
    of_incident: Array
    clipped: Array


class _Faces(NamedTuple):
    """The reference face, the incident face, and the body's face, which is one of the two."""

    start: Vector
    """Where the reference face begins."""
    end: Vector
    normal: Vector
    start_index: Array
    """The number of the vertex at `start`."""
    end_index: Array
    first: _ClipVertex
    """The incident face."""
    second: _ClipVertex
    local_normal: Vector
    """The normal of the body's face, in the frame of the body."""
    local_corner: Vector
    """The first corner of the body's face, in the frame of the body."""


def edge_manifold(
    vertices: Sequence[Vector],
    normals: Sequence[Vector],
    centre: Vector,
    pose: Pose,
    edge: Edge,
    n_vertices: int | Array | None = None,
) -> Manifold:
    """The manifold of a body and an edge.

    Args:
        vertices: the corners of the body, in its own frame, counter-clockwise.
        normals: the normal of the face that begins at each vertex.
        centre: the body's centre in the world; the normal of the edge points to its side.
        pose: the pose of the body.
        edge: the edge.
        n_vertices: the number of vertices if the last one is repeated; None if all are different.
    """
    n_vertices = len(vertices) if n_vertices is None else n_vertices
    corners = materialise([pose.to_world(vertex) for vertex in vertices])
    faces = materialise([pose.rotation.rotate(normal) for normal in normals])
    body = _Polygon(vertices, normals, corners, faces, n_vertices)
    axes = _separating_axes(body, centre, edge)
    axes = axes._replace(on_edge=materialise(axes.on_edge))
    chosen = _choose_faces(body, edge, axes)
    one, two, valid = _clip_incident(chosen, axes)
    first, second = _contact_points(one, two, chosen, axes.on_edge, pose, valid)
    return Manifold(
        axes.on_edge,
        select(axes.on_edge, chosen.normal, -chosen.normal),
        select(axes.on_edge, axes.normal, chosen.local_normal),
        select(axes.on_edge, chosen.start, chosen.local_corner),
        first,
        second,
    )


def no_manifold(like: Array) -> Manifold:
    """The manifold of a body that does not touch."""
    nowhere = Vector(like * 0.0, like * 0.0)
    none = jnp.full_like(like, NONE, jnp.int32)
    point = ManifoldPoint(none, nowhere, nowhere, like * 0.0)
    up = Vector(like * 0.0, jnp.ones_like(like))
    return Manifold(jnp.ones_like(like, jnp.bool_), up, up, nowhere, point, point)


def _separating_axes(body: _Polygon, centre: Vector, edge: Edge) -> _Axes:
    """The separation along the normal of the edge, and along the best normal of the body."""
    along = edge.end - edge.start
    along = along * (1.0 / length(along))
    up = right_of(along)
    in_front = dot(up, centre - edge.start) >= 0.0
    normal = select(in_front, up, -up)
    in_front, normal = materialise((in_front, normal))

    corners, faces = body.corners, body.faces
    edge_separation = dot(normal, corners[0] - edge.start)
    for corner in corners[1:]:
        edge_separation = jnp.minimum(edge_separation, dot(normal, corner - edge.start))

    def look(i: int) -> tuple[Array, Array]:
        """The separation along a face's normal, and how far that points with the edge's."""
        separation = jnp.minimum(
            dot(faces[i], edge.start - corners[i]), dot(faces[i], edge.end - corners[i])
        )
        return separation, dot(normal, faces[i])

    face_separation, most_opposed = look(0)
    best_face = jnp.zeros_like(in_front, jnp.int32)
    opposite = jnp.zeros_like(in_front, jnp.int32)
    for i in range(1, len(corners)):
        separation, facing = look(i)
        best_face = select(separation > face_separation, i, best_face)
        face_separation = jnp.maximum(separation, face_separation)
        opposite = select(facing < most_opposed, i, opposite)
        most_opposed = jnp.minimum(facing, most_opposed)
        if i % 2:
            face_separation, best_face, most_opposed, opposite = materialise(
                (face_separation, best_face, most_opposed, opposite)
            )
    edge_separation, face_separation, best_face, opposite = materialise(
        (edge_separation, face_separation, best_face, opposite)
    )
    apart = (edge_separation > RADIUS) | (face_separation > RADIUS)
    on_edge = face_separation <= 0.98 * edge_separation + 0.001
    return _Axes(normal, in_front, apart, on_edge, best_face, opposite)


def _choose_faces(body: _Polygon, edge: Edge, axes: _Axes) -> _Faces:
    """The reference face and the incident face: the edge, and a face of the body."""
    on_edge, in_front = axes.on_edge, axes.in_front
    face = materialise(select(on_edge, axes.opposite, axes.best_face))
    after = select(face == body.n_vertices - 1, 0, face + 1)
    corner, next_corner, face_normal = (
        lookup(face, body.corners),
        lookup(after, body.corners),
        lookup(face, body.faces),
    )
    local_normal, local_corner = lookup(face, body.normals), lookup(face, body.vertices)
    corner, next_corner, face_normal, local_normal, local_corner = materialise(
        (corner, next_corner, face_normal, local_normal, local_corner)
    )
    edge_start, edge_end = select(in_front, (edge.start, edge.end), (edge.end, edge.start))
    start, end, normal = select(
        on_edge, (edge_start, edge_end, axes.normal), (corner, next_corner, face_normal)
    )
    start, end, normal = materialise((start, end, normal))
    zero = jnp.zeros_like(face)
    no = jnp.zeros_like(axes.apart)
    of_reference = select(on_edge, zero, face)
    first = _ClipVertex(
        select(on_edge, corner, edge.start), of_reference, select(on_edge, face, zero), no
    )
    second = _ClipVertex(
        select(on_edge, next_corner, edge.end), of_reference, select(on_edge, after, zero), no
    )
    start_index = select(on_edge, select(in_front, 0, 1), face).astype(jnp.int32)
    end_index = select(on_edge, select(in_front, 1, 0), after).astype(jnp.int32)
    return _Faces(
        start, end, normal, start_index, end_index, first, second, local_normal, local_corner
    )


def _clip_incident(faces: _Faces, axes: _Axes) -> tuple[_ClipVertex, _ClipVertex, Array]:
    """The incident face between the ends of the reference face, and whether anything is left."""
    side = right_of(faces.normal)
    first, second, some = _clip(
        faces.first, faces.second, side, dot(side, faces.start), faces.start_index
    )
    first, second, rest = _clip(first, second, -side, -dot(side, faces.end), faces.end_index)
    return first, second, materialise(some & rest & ~axes.apart)


def _clip(
    one: _ClipVertex, two: _ClipVertex, side: Vector, offset: Array, index: Array
) -> tuple[_ClipVertex, _ClipVertex, Array]:
    """The part of a segment behind a line, and whether it still has two ends.

    Args:
        one: an end of the segment.
        two: the other end.
        side: the normal of the line.
        offset: the distance of the line from the origin.
        index: the vertex of the reference face on the line, which a cut end has as its feature.
    """
    first, second = materialise((dot(side, one.place) - offset, dot(side, two.place) - offset))
    both = (first <= 0.0) & (second <= 0.0)
    crosses = first * second < 0.0
    share = first / select(crosses, first - second, 1.0)
    cut = _ClipVertex(
        one.place + share * (two.place - one.place),
        index,
        one.of_incident,
        jnp.ones_like(crosses),
    )
    return materialise((select(first <= 0.0, one, two), select(both, two, cut), both | crosses))


def _contact_points(
    one: _ClipVertex,
    two: _ClipVertex,
    faces: _Faces,
    on_edge: Array,
    pose: Pose,
    valid: Array,
) -> tuple[ManifoldPoint, ManifoldPoint]:
    """The clipped ends within the radius of the skins; if there is one alone, it is the first."""
    one, two = materialise((one, two))
    first = _point(one, on_edge, faces.start, faces.normal, pose, valid)
    second = _point(two, on_edge, faces.start, faces.normal, pose, valid)
    first, second = materialise((first, second))
    only_second = first.feature == NONE
    first, second = (
        select(only_second, second, first),
        second._replace(feature=select(only_second, NONE, second.feature)),
    )
    return first, second


def _point(
    end: _ClipVertex, on_edge: Array, origin: Vector, normal: Vector, pose: Pose, valid: Array
) -> ManifoldPoint:
    """The point of a manifold from an end of the clipped face.

    Args:
        end: the end.
        on_edge: is the edge the reference?
        origin: a point of the reference face.
        normal: its normal.
        pose: the pose of the body.
        valid: do the two shapes touch at all?
    """
    separation = dot(normal, end.place - origin)
    of_edge = select(on_edge, end.of_reference, end.of_incident)
    of_body = select(on_edge, end.of_incident, end.of_reference)
    # A clipped end is a vertex of the reference, any other end a vertex of the other shape.
    is_edge_vertex = end.clipped == on_edge
    kind = select(is_edge_vertex, VERTEX_OF_EDGE, VERTEX_OF_BODY)
    feature = of_edge + 8 * of_body + kind
    return ManifoldPoint(
        select(valid & (separation <= RADIUS), feature, NONE),
        end.place,
        select(on_edge, pose.to_body(end.place), end.place),
        separation,
    )
