"""Objects that JAX's transformations see through, whether JAX is imported before or after.

The fields of a dataclass are its data, but for those with `metadata={"static": True}`, as in
JAX. Of any other object the attributes are, but for text and functions. What is not data is
compared when JAX looks for a compiled program, so it must be hashable.

For a dataclass `jax.tree_util.register_dataclass` does the same, faster. Planning's models and the
learners take it: their modules need JAX, and they check nothing when they are made, since it makes
objects by their constructor, with JAX's placeholders in their fields.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, TypeAlias, TypeVar, cast

from .on_import import once_imported

__all__ = ["pytree", "register"]

T = TypeVar("T")
Static: TypeAlias = tuple[tuple[str, ...], tuple[tuple[str, object], ...]]
"""The names of what is data, and the names and values of what is not."""

_registered: set[type] = set()


def pytree(cls: type[T]) -> type[T]:
    """A class whose objects JAX sees through, as a decorator."""
    register(cls)
    return cls


def register(cls: type) -> None:
    """Let JAX see through the objects of a class, unless it does so already."""
    if cls in _registered:
        return
    _registered.add(cls)
    once_imported("jax", lambda: _register(cls))


def _register(cls: type) -> None:
    from jax import tree_util

    def flatten(tree: object) -> tuple[list[tuple[object, object]], Static]:
        names, static = _parts(tree)
        return [(tree_util.GetAttrKey(name), getattr(tree, name)) for name in names], (
            names,
            static,
        )

    def unflatten(parts: Static, data: Sequence[object]) -> object:
        names, static = parts
        tree: object = object.__new__(cls)  # JAX puts placeholders into fields: nothing to check
        for name, value in (*zip(names, data, strict=True), *static):
            object.__setattr__(tree, name, value)
        return tree

    try:
        tree_util.register_pytree_with_keys(cls, flatten, cast(Any, unflatten))
    except ValueError as error:
        if "Duplicate" not in str(error):  # its author has registered it
            raise


def _parts(tree: object) -> Static:
    if dataclasses.is_dataclass(tree):
        fields = {field.name: field.metadata.get("static") for field in dataclasses.fields(tree)}
    else:
        fields = {name: isinstance(x, str) or callable(x) for name, x in vars(tree).items()}
    names = tuple(name for name, is_static in fields.items() if not is_static)
    return names, tuple((name, getattr(tree, name)) for name in fields if name not in names)
