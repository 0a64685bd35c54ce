"""The ground: ten edges from x = 0 to 20, each 2 wide, and a floor below them at y = 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp

from ..arrays.vectors import Array, Vector, clip, lookup, select
from .bodies import VIEW

__all__ = ["EDGES", "FLOOR", "PAD_HEIGHT", "Edge", "edge_at", "edges_below", "smooth"]

EDGES = 10
FLOOR = 10
"""The number of the floor as an edge."""
SPACING = VIEW.x / EDGES
PAD_HEIGHT = VIEW.y / 4
"""The nominal height of the helipad. The smoothed ground lies 1 % lower, as in Gymnasium."""


class Edge(NamedTuple):
    """A straight piece of the ground."""

    start: Vector
    end: Vector


def smooth(heights: Sequence[Array]) -> tuple[Array, ...]:
    """The 11 heights of the ground from 12 random ones, with the helipad in the middle."""
    raw = list(heights)
    for i in range(3, 8):
        raw[i] = jnp.zeros_like(raw[i]) + PAD_HEIGHT
    return tuple(0.33 * (raw[i - 1] + raw[i] + raw[i + 1]) for i in range(EDGES + 1))


def edge_at(number: Array, terrain: Sequence[Array]) -> Edge:
    """The edge with a number; the floor for any number outside of [0, 9]."""
    start = lookup(number, terrain)
    end = lookup(number + 1, terrain)
    x = SPACING * number.astype(jnp.float32)
    ground = Edge(Vector(x, start), Vector(x + SPACING, end))
    floor = Edge(
        Vector(jnp.zeros_like(x), jnp.zeros_like(x)),
        Vector(jnp.zeros_like(x) + VIEW.x, jnp.zeros_like(x)),
    )
    return select((number >= 0) & (number < EDGES), ground, floor)


def edges_below(low: Array, high: Array) -> tuple[Array, Array]:
    """The numbers of the first and the last edge of the terrain between two values of x."""
    numbers = (jnp.floor(x * (1 / SPACING)) for x in (low, high))
    first, last = (clip(number, 0.0, EDGES - 1.0).astype(jnp.int32) for number in numbers)
    return first, last
