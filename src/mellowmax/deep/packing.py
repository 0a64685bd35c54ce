"""Trees of arrays side by side in a few arrays, one for each dtype.

A step of an episode is an observation, an action and a reward. Records of many steps have one array
for each dtype, so that a step is written at once, and in no more bytes than it needs.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp

from .._typing import PyTree

__all__ = ["Packed", "Packing"]

Packed: TypeAlias = dict[str, jax.Array]
"""`[..., n]` for each dtype, by its name: the numbers of all arrays of that dtype side by side."""


class Packing(NamedTuple):
    """How the arrays of a tree are packed.

    Examples:
        >>> tree = {"image": jnp.ones((2, 2), jnp.bool_), "speed": jnp.float32(3.0)}
        >>> packing = Packing.of(tree)
        >>> packed = packing.pack(tree)
        >>> {name: row.tolist() for name, row in packed.items()}
        {'bool': [True, True, True, True], 'float32': [3.0]}
        >>> packing.unpack(packed)["image"].shape
        (2, 2)
    """

    tree: jax.tree_util.PyTreeDef
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]

    @classmethod
    def of(cls, example: PyTree) -> Packing:
        """The packing of trees like this one, whose leaves have shapes and dtypes."""
        leaves, tree = jax.tree.flatten(example)
        return cls(tree, tuple(x.shape for x in leaves), tuple(str(x.dtype) for x in leaves))

    @property
    def sizes(self) -> dict[str, int]:
        """How many numbers there are of each dtype."""
        sizes = dict.fromkeys(self.dtypes, 0)
        for shape, dtype in zip(self.shapes, self.dtypes, strict=True):
            sizes[dtype] += math.prod(shape)
        return sizes

    @property
    def bytes(self) -> int:
        """How many bytes a packed tree takes."""
        return sum(n * jnp.dtype(dtype).itemsize for dtype, n in self.sizes.items())

    def empty(self, *axes: int) -> Packed:
        """Room for many packed trees, all zeros."""
        return {dtype: jnp.zeros((*axes, n), dtype) for dtype, n in self.sizes.items()}

    def pack(self, tree: PyTree) -> Packed:
        """One tree, packed."""
        parts: dict[str, list[jax.Array]] = {dtype: [] for dtype in self.dtypes}
        for leaf, dtype in zip(jax.tree.leaves(tree), self.dtypes, strict=True):
            parts[dtype].append(jnp.ravel(leaf))
        return {dtype: jnp.concatenate(rows) for dtype, rows in parts.items()}

    def unpack(self, packed: Packed) -> Any:
        """The tree again; the arrays have the axes before the last of what is packed."""
        at, leaves = dict.fromkeys(self.dtypes, 0), []
        for shape, dtype in zip(self.shapes, self.dtypes, strict=True):
            rows, begin = packed[dtype], at[dtype]
            at[dtype] = begin + math.prod(shape)
            part = rows[..., begin : at[dtype]]
            leaves.append(part.reshape(*rows.shape[:-1], *shape))
        return jax.tree.unflatten(self.tree, leaves)
