"""Dataclasses that JAX's transformations see through, made before or after JAX is imported."""

from __future__ import annotations

import dataclasses
import importlib.abc
import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TypeVar

__all__ = ["pytree"]

T = TypeVar("T")


def pytree(cls: type[T]) -> type[T]:
    """A frozen dataclass whose fields are data to JAX, whether JAX is imported before or after."""
    names = [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]

    def register() -> None:
        from jax import tree_util

        def flatten(tree: T) -> tuple[list[tuple[object, object]], None]:
            return [(tree_util.GetAttrKey(name), getattr(tree, name)) for name in names], None

        def unflatten(_: None, data: Sequence[object]) -> T:
            tree = object.__new__(cls)  # JAX puts placeholders into fields: nothing to check
            for name, value in zip(names, data, strict=True):
                object.__setattr__(tree, name, value)
            return tree

        tree_util.register_pytree_with_keys(cls, flatten, unflatten)

    if "jax" in sys.modules:
        register()
    else:
        _once_jax_is_imported.calls.append(register)
    return cls


class _OnceJaxIsImported(importlib.abc.MetaPathFinder):
    """Makes calls at the end of the first import of JAX."""

    def __init__(self) -> None:
        self.calls: list[Callable[[], None]] = []

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """JAX's own module spec, with the calls added to its loader; None for other modules."""
        if name != "jax" or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            sys.meta_path.insert(0, self)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_call(module: ModuleType) -> None:
                execute(module)
                sys.meta_path.remove(self)
                for call in self.calls:
                    call()

            spec.loader.exec_module = execute_and_call  # type: ignore[method-assign]
        return spec


_once_jax_is_imported = _OnceJaxIsImported()
if "jax" not in sys.modules:
    sys.meta_path.insert(0, _once_jax_is_imported)
