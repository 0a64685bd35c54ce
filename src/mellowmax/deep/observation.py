"""What is seen before an action: an observation, and the actions that are legal there.

An observation is an array, or a tree of arrays (dicts and tuples of them), of fixed shapes. Each
array stays as it is, in its own dtype: of a step of MinAtar booleans take a quarter of the memory
that float32 would. Floating numbers are float32, which networks have, and so are whole numbers of
64 bits.

Where not every action is legal, what is seen is a `Seen`: the observation with a mask. It takes the
place of the observation everywhere, in playing, in episodes and replay buffers, and in learning, so
nothing in between knows of masks; `Policy` and the targets of `dqn` take the two apart.
"""

from __future__ import annotations

import json
import math
from collections import namedtuple
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from .._common.shown import shown
from .._typing import PyTree

__all__ = [
    "Seen",
    "as_kept",
    "as_shapes",
    "as_text",
    "as_vector",
    "count",
    "from_text",
    "in_arrays",
    "kept",
    "n_bytes",
    "parted",
    "unmasked",
    "values_in",
    "vector",
]


class Seen(NamedTuple):
    """An observation with the actions that are legal."""

    observation: PyTree
    legal: Any
    """`[A]`, boolean. Where none is legal, as in a terminal state, all are."""


def parted(seen: PyTree) -> tuple[PyTree, jax.Array | None]:
    """One observation, and the mask of the legal actions; None if all are."""
    if not isinstance(seen, Seen):
        return seen, None
    return seen.observation, seen.legal | ~seen.legal.any()


def unmasked(seen: PyTree) -> PyTree:
    """The observation alone."""
    return seen.observation if isinstance(seen, Seen) else seen


def values_in(
    network: Callable[[PyTree], jax.Array], seen: PyTree
) -> tuple[jax.Array, jax.Array | None]:
    """What a network says of many observations, `[B, A]`, and their masks, `[B, A]` or None."""

    def one(seen: PyTree) -> tuple[jax.Array, jax.Array | None]:
        observation, legal = parted(seen)
        return network(observation), legal

    return jax.vmap(one)(seen)


def vector(size: int) -> jax.ShapeDtypeStruct:
    """The shape of an observation that is a vector of numbers."""
    return jax.ShapeDtypeStruct((size,), jnp.float32)


def kept(dtype: npt.DTypeLike | None) -> np.dtype[Any]:
    """The dtype in which an array of an observation is kept."""
    dtype = np.dtype(dtype)
    return dtype if dtype.kind in "biu" and dtype.itemsize < 8 else np.dtype(np.float32)


def as_kept(seen: PyTree) -> PyTree:
    """What is seen, in the dtypes in which it is kept."""
    return jax.tree.map(lambda x: jnp.asarray(x).astype(kept(jnp.asarray(x).dtype)), seen)


def in_arrays(like: PyTree, seen: PyTree) -> PyTree:
    """What Gymnasium environments have returned, in the form and the dtypes of `like`.

    An environment may return a list for an array or a tuple, and any kind of dictionary.
    """
    if isinstance(like, Seen):
        parts = zip(like, (seen["observation"], seen["legal"]), strict=True)
        return Seen(*(in_arrays(one, x) for one, x in parts))
    if isinstance(like, dict):
        return {name: in_arrays(one, seen[name]) for name, one in like.items()}
    if isinstance(like, tuple):
        return tuple(in_arrays(one, x) for one, x in zip(like, seen, strict=True))
    return np.array(seen, like.dtype)


def as_shapes(seen: int | PyTree) -> PyTree:
    """The shapes and dtypes of what is seen, from those or from an example; a number is the size of
    a vector.
    """
    if isinstance(seen, int):
        return vector(seen)
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), seen)


def count(observation: PyTree) -> int:
    """How many numbers an observation has, from its shapes."""
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(observation))


def n_bytes(seen: PyTree) -> int:
    """How many bytes are seen, from their shapes."""
    return sum(math.prod(x.shape) * x.dtype.itemsize for x in jax.tree.leaves(seen))


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


def as_text(observation: PyTree) -> str:
    """The shapes of an observation as JSON: for each array, its path in the tree, dtype and shape.

    Examples:
        >>> as_text({"board": jax.ShapeDtypeStruct((3, 3), jnp.bool_)})
        '[[[["key", "board"]], "bool", [3, 3]]]'
    """
    leaves = jax.tree_util.tree_leaves_with_path(observation)
    return json.dumps([[[*map(_part, path)], str(x.dtype), x.shape] for path, x in leaves])


def from_text(text: str) -> PyTree:
    """The shapes that `as_text` has written; an object with named parts becomes a named tuple.

    Raises:
        ValueError: for any other text.
    """
    try:
        leaves = [
            ([(kind, name) for kind, name in path], jax.ShapeDtypeStruct(shape, np.dtype(dtype)))
            for path, dtype, shape in json.loads(text)
        ]
        return _built(leaves)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        rule = "field 'settings.observation' must be the path, dtype and shape of each array"
        raise ValueError(f"{rule}, got {shown(text)}") from error


def _part(key: Any) -> tuple[str, str | int]:
    """A part of a path."""
    if isinstance(key, jax.tree_util.DictKey):
        return "key", key.key
    if isinstance(key, jax.tree_util.GetAttrKey):
        return "name", key.name
    return "place", key.idx if isinstance(key, jax.tree_util.SequenceKey) else key.key


def _built(leaves: list[tuple[list[tuple[str, Any]], Any]]) -> PyTree:
    """A tree of leaves with their paths."""
    if not leaves[0][0]:
        return leaves[0][1]
    parts: dict[Any, list[tuple[list[tuple[str, Any]], Any]]] = {}
    for path, leaf in leaves:
        parts.setdefault(path[0][1], []).append((path[1:], leaf))
    trees = {name: _built(part) for name, part in parts.items()}
    kind = leaves[0][0][0][0]
    if kind == "name":
        return namedtuple("Observation", trees)(**trees)
    return trees if kind == "key" else tuple(trees.values())
