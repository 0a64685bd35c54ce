"""Convex shapes and their masses, of plain numbers or of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..arrays.vectors import Array, Vector, select
from ..game.bodies import HULL, LEG, Body

__all__ = ["MassData", "Shape", "hull_or_leg", "mass_data", "shape_of"]


class MassData(NamedTuple):
    """The inverse mass and inertia of a body, and the height of its centre above its origin."""

    inverse_mass: float | Array
    inverse_inertia: float | Array
    centre: float | Array


class Shape(NamedTuple):
    """The convex shape of a body."""

    vertices: Sequence[Vector]
    normals: Sequence[Vector]
    n_vertices: int | Array
    """The number of vertices; further entries repeat the last one."""
    mass: MassData
    friction: float | Array
    reach: float | Array
    """The largest distance of a vertex from the centre of mass."""


def mass_data(body: Body) -> MassData:
    """The mass of a body."""
    return MassData(body.inverse_mass, body.inverse_inertia, body.centre)


def shape_of(body: Body) -> Shape:
    """The shape of a body."""
    return Shape(
        body.vertices,
        body.normals,
        len(body.vertices),
        mass_data(body),
        body.friction,
        body.reach,
    )


def hull_or_leg(is_hull: Array) -> Shape:
    """The shape of the hull where a flag is true, elsewhere that of a leg."""
    most = len(HULL.vertices)

    def padded(body: Body) -> Shape:
        missing = most - len(body.vertices)
        return shape_of(body)._replace(
            vertices=body.vertices + body.vertices[-1:] * missing,
            normals=body.normals + body.normals[-1:] * missing,
        )

    return select(is_hull, padded(HULL), padded(LEG))
