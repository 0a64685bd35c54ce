"""The numbers of landers as the rows of arrays.

All numbers of the landers are the rows of an array `[rows, landers]`, flags and integers as float32
too, so each lander is a column. A `Row` stands for one row of an array.
"""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from ..arrays.vectors import Array

__all__ = ["Row", "Source", "cast", "pack", "rows_of", "unpack"]

T = TypeVar("T")


@dataclasses.dataclass(frozen=True, eq=False)
class Source:
    """An array of rows."""

    array: Array
    compact: bool = False
    """Is there a column for each chosen lander, in the order of `Kernels.order`? Else there is one
    for each lander."""


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of an array."""

    source: Source
    number: int
    dtype: np.dtype[Any]
    """The dtype that its numbers stand for."""


def pack(tree: object) -> Array:
    """The leaves of a tree, `[n]` each, as the rows of one array."""
    return jnp.stack([leaf.astype(jnp.float32) for leaf in jax.tree.leaves(tree)])


def unpack(rows: Array, dtypes: T) -> T:
    """The tree that `pack` was given.

    Args:
        rows: the result of `pack`.
        dtypes: a tree of the same structure, whose leaves are the dtypes.
    """
    leaves, structure = jax.tree.flatten(dtypes)
    arrays = [cast(rows[i], jnp.dtype(dtype)) for i, dtype in enumerate(leaves)]
    return jax.tree.unflatten(structure, arrays)


def rows_of(source: Source, dtypes: T) -> T:
    """The rows of an array that `pack` made, as a tree of `Row`."""
    leaves, structure = jax.tree.flatten(dtypes)
    rows = [Row(source, i, jnp.dtype(dtype)) for i, dtype in enumerate(leaves)]
    return jax.tree.unflatten(structure, rows)


def cast(row: Array, dtype: np.dtype[Any]) -> Array:
    """The numbers of a row in the dtype that they stand for."""
    return row != 0.0 if dtype == jnp.bool_ else row.astype(dtype)
