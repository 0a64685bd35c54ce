"""Which edges of the ground a body touches, and how.

Each body is looked at by itself: here a block is a row of bodies, hulls and legs alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from jax import lax

from ..arrays.materialise import materialise
from ..arrays.vectors import Array, anywhere, pose_at, select
from ..game.terrain import edge_at
from ..state import Contact, Place, no_contact
from .broad_phase import PAIR, near_ground, nearby_edges
from .contacts import match_impulses, on_ground_after
from .manifold import Manifold, edge_manifold, no_manifold
from .shapes import Shape, hull_or_leg

__all__ = ["Collision", "collide", "edge_manifolds"]


class Collision(NamedTuple):
    """The contacts of a body with up to two edges; one that touches comes first."""

    contacts: tuple[Contact, Contact]
    manifolds: tuple[Manifold, Manifold]
    on_ground: Array
    """The observed flag of a leg."""
    newest: Array
    """The edge that a leg came near to last: see `Leg.newest`."""


_Found: TypeAlias = tuple[tuple[Contact, Contact], tuple[Manifold, Manifold]]


def collide(
    is_hull: Array,
    place: Place,
    old: tuple[Contact, Contact],
    on_ground: Array,
    newest: Array,
    terrain: Sequence[Array],
    active: Array,
) -> Collision:
    """The contacts of bodies where they are now.

    Args:
        is_hull: is the body a hull? Else it is a leg.
        place: where it is.
        old: its contacts in the last step, whose impulses carry over.
        on_ground: its observed flag before.
        newest: the edge that it came near to last, whose contact comes first.
        terrain: the ground below it.
        active: which bodies are looked at.
    """
    shape = hull_or_leg(is_hull)

    def look() -> _Found:
        edges = nearby_edges(shape, place)
        one, two = edge_manifolds(shape, place, edges, terrain)
        first, second = (
            match_impulses(old, edge, manifold)
            for edge, manifold in zip(edges, (one, two), strict=True)
        )
        return select(
            one.touches & ~(two.touches & (newest == PAIR + edges[1])),
            ((first, second), (one, two)),
            ((second, first), (two, one)),
        )

    none, nothing = no_contact(place.angle), no_manifold(place.angle)
    near, _, _ = near_ground(shape, place, place, terrain)
    contacts, manifolds = lax.cond(
        anywhere(active & near), look, lambda: ((none, none), (nothing, nothing))
    )
    flag = on_ground_after(on_ground, old, contacts, newest & (PAIR - 1))
    return Collision(contacts, manifolds, flag, newest)


def edge_manifolds(
    shape: Shape, place: Place, edges: tuple[Array, Array], terrain: Sequence[Array]
) -> tuple[Manifold, Manifold]:
    """The manifolds of a body and two edges, by their numbers.

    They are computed one after the other in a loop, so that the code is compiled once.
    """

    def look(number: Array, found: tuple[Manifold, Manifold]) -> tuple[Manifold, Manifold]:
        first = number == 0
        manifold = _manifold(shape, place, select(first, edges[0], edges[1]), terrain)
        return select(first, manifold, found[0]), manifold

    nothing = no_manifold(place.angle)
    bounds = np.int32(0), np.int32(2)
    return lax.fori_loop(*bounds, look, (nothing, nothing))


def _manifold(shape: Shape, place: Place, edge: Array, terrain: Sequence[Array]) -> Manifold:
    """The manifold of a body and the edge with a number."""
    pose = materialise(pose_at(place.centre, place.angle, shape.mass.centre))
    return edge_manifold(
        shape.vertices,
        shape.normals,
        place.centre,
        pose,
        materialise(edge_at(edge, terrain)),
        shape.n_vertices,
    )
