"""What an observation is: an array, or a tree of arrays, of fixed shapes and dtypes."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp

from .._typing import PyTree

__all__ = ["as_shapes", "as_vector", "count", "vector"]


def vector(size: int) -> jax.ShapeDtypeStruct:
    """The shape of an observation that is a vector of numbers."""
    return jax.ShapeDtypeStruct((size,), jnp.float32)


def as_shapes(observation: int | PyTree) -> PyTree:
    """The shapes and dtypes of an observation, from those or from an example; a number is the size
    of a vector.
    """
    if isinstance(observation, int):
        return vector(observation)
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), observation)


def count(observation: PyTree) -> int:
    """How many numbers an observation has, from its shapes."""
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(observation))


def as_vector(observation: PyTree) -> jax.Array:
    """The numbers of one observation side by side, `[D]`.

    Examples:
        >>> print(as_vector({"at": jnp.array([1, 2]), "door": jnp.array([[True]])}))
        [1. 2. 1.]
    """
    leaves: list[Any] = jax.tree.leaves(observation)
    if len(leaves) == 1 and leaves[0].ndim == 1 and jnp.isdtype(leaves[0].dtype, "real floating"):
        return leaves[0]
    return jnp.concatenate([jnp.ravel(leaf).astype(jnp.float32) for leaf in leaves])
