"""Vectors of the plane, rotations and poses, of arrays with a number for each lander.

Nothing here stacks arrays, which a kernel cannot do: code that is written with these functions is
traced on a CPU and inside a kernel alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, SupportsIndex, TypeAlias, TypeVar, overload

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
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
"""One number for each lander of a block, `[block]`; a scalar for a single lander."""

Number: TypeAlias = float | Array | npt.NDArray[Any]
"""One number for all landers, or one for each."""

T = TypeVar("T")


class Vector(NamedTuple):
    """A vector of the plane. `+` and `*` are those of vectors, not of tuples.

    Its coordinates are `Number`s. A type checker is not told which kind, since what is written for
    arrays serves the constants of the game too.
    """

    x: Any
    y: Any

    def __add__(self, other: Vector) -> Vector:  # type: ignore[override]
        return Vector(self.x + other.x, self.y + other.y)

    def __sub__(self, other: Vector) -> Vector:
        return Vector(self.x - other.x, self.y - other.y)

    def __neg__(self) -> Vector:
        return Vector(-self.x, -self.y)

    def __mul__(self, factor: Number | SupportsIndex) -> Vector:
        return Vector(self.x * factor, self.y * factor)

    def __rmul__(self, factor: Number | SupportsIndex) -> Vector:
        return Vector(self.x * factor, self.y * factor)


class Rotation(NamedTuple):
    """A rotation, given by its sine and cosine (`b2Rot`)."""

    sin: Array
    cos: Array

    def rotate(self, v: Vector) -> Vector:
        """From the frame of the body to that of the world."""
        return Vector(self.cos * v.x - self.sin * v.y, self.sin * v.x + self.cos * v.y)

    def rotate_back(self, v: Vector) -> Vector:
        """From the frame of the world to that of the body."""
        return Vector(self.cos * v.x + self.sin * v.y, self.cos * v.y - self.sin * v.x)


class Pose(NamedTuple):
    """Where a body is: its origin and its rotation (`b2Transform`)."""

    origin: Vector
    rotation: Rotation

    def to_world(self, point: Vector) -> Vector:
        """A point of the body, in the frame of the world."""
        return self.rotation.rotate(point) + self.origin

    def to_body(self, point: Vector) -> Vector:
        """A point of the world, in the frame of the body."""
        return self.rotation.rotate_back(point - self.origin)


def anywhere(condition: Array) -> Array:
    """Is a condition true for any lander of the block? Kernels have a maximum, but no `any`."""
    return jnp.max(condition.astype(jnp.int32)) > 0


def clip(x: Array, low: Number, high: Number) -> Array:
    """The nearest number between two bounds. `jnp.clip` would compute in 64 bits."""
    return jnp.minimum(jnp.maximum(x, low), high)


def rotation(angle: Array) -> Rotation:
    """The rotation by an angle.

    Sine and cosine are computed together, without a branch and in half the instructions that two
    separate calls take. They are right to one or two rounding errors for angles of up to some
    thousand turns. A greater angle gives some pair of numbers between -1 and 1.
    """
    quarters = jnp.floor(angle * (2 / math.pi) + 0.5)
    # A quarter turn as the sum of three parts. The first two have so few bits that their products
    # are exact.
    rest = ((angle - quarters * 1.5703125) - quarters * 4.837512969970703e-4) - (
        quarters * 7.549789948768648e-8
    )
    rest = clip(rest, -1.0, 1.0)
    square = rest * rest
    sin = (-1.9515295891e-4 * square + 8.3321608736e-3) * square - 1.6666654611e-1
    sin = sin * square * rest + rest
    cos = (2.443315711809948e-5 * square - 1.388731625493765e-3) * square + 4.166664568298827e-2
    cos = cos * square * square - 0.5 * square + 1.0
    # The sum is so great that the lowest bits of its representation are the whole number
    # `quarters`. Reading them is faster than a conversion.
    quadrant = lax.bitcast_convert_type(quarters + 1.5 * 2.0**23, jnp.int32)
    odd = (quadrant & 1) == 1
    sin, cos = select(odd, cos, sin), select(odd, sin, cos)
    return Rotation(_flip_sign(quadrant & 2, sin), _flip_sign((quadrant + 1) & 2, cos))


def _flip_sign(flag: Array, x: Array) -> Array:
    """`x` where the flag is 0, `-x` where it is 2, by means of the sign bit."""
    bits = lax.bitcast_convert_type(x, jnp.int32) ^ (flag << 30)
    return lax.bitcast_convert_type(bits, jnp.float32)


def pose_at(centre: Vector, angle: Array, local_centre: Number) -> Pose:
    """The pose of a body whose centre of mass lies `local_centre` above its origin."""
    turned = rotation(angle)
    return Pose(
        Vector(centre.x + turned.sin * local_centre, centre.y - turned.cos * local_centre), turned
    )


def dot(a: Vector, b: Vector) -> Array:
    """The inner product."""
    return a.x * b.x + a.y * b.y


def cross(a: Vector, b: Vector) -> Array:
    """The cross product, a number in the plane."""
    return a.x * b.y - a.y * b.x


def length(v: Vector) -> Array:
    """The length of a vector."""
    return jnp.sqrt(dot(v, v))


def left_of(v: Vector) -> Vector:
    """A vector, turned a quarter turn to the left."""
    return Vector(-v.y, v.x)


def right_of(v: Vector) -> Vector:
    """A vector, turned a quarter turn to the right."""
    return Vector(v.y, -v.x)


@overload
def select(condition: Array, yes: Number, no: Number) -> Array: ...
@overload
def select(condition: Array, yes: T, no: T) -> T: ...
def select(condition: Array, yes: object, no: object) -> object:
    """`jnp.where` for trees of arrays and Python numbers, which become 32-bit numbers."""

    def choose(a: Number, b: Number) -> Array:
        dtypes = [x.dtype for x in (a, b) if isinstance(x, jax.Array)]
        dtype = dtypes[0] if dtypes else np.int32 if isinstance(a, int) else np.float32
        a, b = (x if isinstance(x, jax.Array) else np.asarray(x, dtype)[()] for x in (a, b))
        return jnp.where(condition, a, b)

    return jax.tree.map(choose, yes, no)


def lookup(index: Array, entries: Sequence[T]) -> T:
    """The entry at the index of each lander; the last entry for any other index."""
    chosen = entries[-1]
    for i in range(len(entries) - 2, -1, -1):
        chosen = select(index == i, entries[i], chosen)
    return chosen
