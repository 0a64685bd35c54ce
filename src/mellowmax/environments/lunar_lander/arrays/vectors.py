"""Vectors of the plane, rotations and poses, made of plain arrays: one number for each lander.

Nothing here stacks arrays: what is written with these is traced on a CPU and inside a kernel alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

__all__ = [
    "Array",
    "Pose",
    "Rotation",
    "Vector",
    "anywhere",
    "clip",
    "cross",
    "dot",
    "left_of",
    "length",
    "lookup",
    "pose_at",
    "right_of",
    "rotation",
    "select",
]

Array: TypeAlias = jax.Array
"""One number for each lander of a block: `[block]`, or no axis for a single one."""

T = TypeVar("T")


class Vector(NamedTuple):
    """A vector of the plane; its sums and multiples are those of vectors, not of tuples."""

    x: Any
    y: Any

    def __add__(self, other: Vector) -> Vector:  # type: ignore[override]
        return Vector(self.x + other.x, self.y + other.y)

    def __sub__(self, other: Vector) -> Vector:
        return Vector(self.x - other.x, self.y - other.y)

    def __neg__(self) -> Vector:
        return Vector(-self.x, -self.y)

    def __mul__(self, factor: Any) -> Vector:
        return Vector(self.x * factor, self.y * factor)

    def __rmul__(self, factor: Any) -> Vector:
        return Vector(self.x * factor, self.y * factor)


class Rotation(NamedTuple):
    """A rotation, by its sine and cosine."""

    sin: Array
    cos: Array

    def turn(self, v: Vector) -> Vector:
        """A vector of the body in the world."""
        return Vector(self.cos * v.x - self.sin * v.y, self.sin * v.x + self.cos * v.y)

    def turn_back(self, v: Vector) -> Vector:
        """A vector of the world in the body."""
        return Vector(self.cos * v.x + self.sin * v.y, self.cos * v.y - self.sin * v.x)


class Pose(NamedTuple):
    """Where a body is: its origin, and how it is turned."""

    origin: Vector
    rotation: Rotation

    def place(self, point: Vector) -> Vector:
        """A point of the body in the world."""
        return self.rotation.turn(point) + self.origin

    def find(self, point: Vector) -> Vector:
        """A point of the world in the body."""
        return self.rotation.turn_back(point - self.origin)


def anywhere(condition: Array) -> Array:
    """Is it so anywhere in the block? Kernels know a maximum, and no `any`."""
    return jnp.max(condition.astype(jnp.int32)) > 0


def clip(x: Array, low: float | Array, high: float | Array) -> Array:
    """A number, brought between two others. `jnp.clip` would pass through 64 bits."""
    return jnp.minimum(jnp.maximum(x, low), high)


def rotation(angle: Array) -> Rotation:
    """The rotation by an angle.

    Sine and cosine together, to a rounding error or two for angles of up to some thousand turns:
    in half the instructions of the two apart, and none of them is a branch. A greater angle gives a
    pair of numbers between -1 and 1.
    """
    quarters = jnp.floor(angle * (2 / math.pi) + 0.5)
    # A quarter turn in three parts, of which the first have so few bits that a product is exact.
    rest = ((angle - quarters * 1.5703125) - quarters * 4.837512969970703e-4) - (
        quarters * 7.549789948768648e-8
    )
    rest = clip(rest, -1.0, 1.0)
    square = rest * rest
    sin = (-1.9515295891e-4 * square + 8.3321608736e-3) * square - 1.6666654611e-1
    sin = sin * square * rest + rest
    cos = (2.443315711809948e-5 * square - 1.388731625493765e-3) * square + 4.166664568298827e-2
    cos = cos * square * square - 0.5 * square + 1.0
    # A number this great has its whole part in its lowest bits: faster than to convert it.
    which = lax.bitcast_convert_type(quarters + 1.5 * 2.0**23, jnp.int32)
    odd = (which & 1) == 1
    sin, cos = select(odd, cos, sin), select(odd, sin, cos)
    return Rotation(_negative_if(which & 2, sin), _negative_if((which + 1) & 2, cos))


def _negative_if(two: Array, x: Array) -> Array:
    """A number where another one is 0, its negative where that is 2: the bit of its sign."""
    bits = lax.bitcast_convert_type(x, jnp.int32) ^ (two << 30)
    return lax.bitcast_convert_type(bits, jnp.float32)


def pose_at(centre: Vector, angle: Array, local_centre: Any) -> Pose:
    """The pose of a body from its centre of mass, which lies `local_centre` above its origin."""
    turned = rotation(angle)
    return Pose(
        Vector(centre.x + turned.sin * local_centre, centre.y - turned.cos * local_centre), turned
    )


def dot(a: Vector, b: Vector) -> Any:
    """The inner product."""
    return a.x * b.x + a.y * b.y


def cross(a: Vector, b: Vector) -> Any:
    """The outer product."""
    return a.x * b.y - a.y * b.x


def length(v: Vector) -> Any:
    """How long a vector is."""
    return jnp.sqrt(dot(v, v))


def left_of(v: Vector) -> Vector:
    """The vector a quarter turn to the left."""
    return Vector(-v.y, v.x)


def right_of(v: Vector) -> Vector:
    """The vector a quarter turn to the right."""
    return Vector(v.y, -v.x)


def select(condition: Array, yes: Any, no: Any) -> Any:
    """`jnp.where` for trees of arrays and plain numbers, which become numbers of 32 bits."""

    def one(a: Any, b: Any) -> Array:
        kinds = [x.dtype for x in (a, b) if isinstance(x, jax.Array)]
        kind = kinds[0] if kinds else np.int32 if isinstance(a, int) else np.float32
        a, b = (x if isinstance(x, jax.Array) else np.asarray(x, kind)[()] for x in (a, b))
        return jnp.where(condition, a, b)

    return jax.tree.map(one, yes, no)


def lookup(index: Array, entries: Sequence[T]) -> T:
    """The entry with an index of each lander; the last one for an index past the end."""
    chosen = entries[-1]
    for i in range(len(entries) - 2, -1, -1):
        chosen = select(index == i, entries[i], chosen)
    return chosen
