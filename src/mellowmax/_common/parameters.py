"""The parameters of softmaxes, and of what has a softmax, as arrays.

A parameter is a number, or an array with one for each of some rows: states, settings or MDPs. A
field that is named `prior` has weights of the actions besides, along its last axis.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import numpy as np

from .._typing import Shape

__all__ = ["map_parameters", "parameter_shapes"]

T = TypeVar("T")


def map_parameters(function: Callable[[Any, int], Any], tree: T) -> T:
    """The tree with `function(parameter, inner)` in place of each parameter.

    `inner` is how many axes an array has behind those of its rows: 1 for a prior, 0 for others.
    """

    def of_leaf(path: tuple[Any, ...], leaf: Any) -> Any:
        return function(leaf, 1 if path and getattr(path[-1], "name", None) == "prior" else 0)

    return jax.tree_util.tree_map_with_path(of_leaf, tree)


def parameter_shapes(tree: object) -> list[Shape]:
    """The shapes of the rows that the parameters are for."""
    shapes = map_parameters(lambda x, inner: _Leaf(np.shape(x)[: np.ndim(x) - inner]), tree)
    return [leaf.shape for leaf in jax.tree.leaves(shapes, is_leaf=lambda x: isinstance(x, _Leaf))]


class _Leaf:
    """A shape that is a leaf of a tree, where a tuple would be a branch."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
