"""What the Array API standard does not have, and each library does in its own way.

- `truth`: is a condition known now, or only when a traced program runs?
- `iterate`: a loop that leaves as soon as every row has converged;
- `uniform`: random numbers;
- `pytree`: a dataclass that JAX's transformations see through.

With `_rowwise`, which knows how each library compiles and differentiates, this is all that is
written for one library; everything else is written once.

JAX and PyTorch are only ever imported for a caller who passed one of their arrays.
"""

from __future__ import annotations

import dataclasses
import importlib.abc
import importlib.util
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from array_api_compat import is_jax_namespace, is_torch_namespace

__all__ = ["iterate", "pytree", "truth", "uniform"]

T = TypeVar("T")


def truth(condition: Any) -> bool | None:
    """The value of a condition, or None while it is being traced and has none."""
    try:
        return bool(condition)
    except Exception as error:  # each library has its own class for this
        if "Tracer" in type(error).__name__ or "vmap" in str(error):
            return None
        raise


def iterate(xp: Any, step: Callable[[Any], tuple[Any, Any]], state: Any, limit: int) -> Any:
    """Apply `step: state -> (state, done)` until `done` everywhere, about `limit` times at most.

    A state that is done must bear further steps: rows end at different times.
    """
    if is_jax_namespace(xp):
        import jax

        def unfinished(carry: Any) -> Any:
            i, _, done = carry
            return (i < limit) & ~xp.all(done)

        # An accelerator waits at each test of the condition, longer than a step takes.
        at_once = 1 if jax.default_backend() == "cpu" else 2

        def advance(carry: Any) -> Any:
            i, inner, done = carry
            for _ in range(at_once):
                inner, done = step(inner)
            return i + at_once, inner, done

        first = (1, *step(state))
        return jax.lax.while_loop(unfinished, advance, first)[1]
    for _ in range(limit):
        state, done = step(state)
        if xp.all(done):
            break
    return state


def uniform(xp: Any, key: Any, shape: tuple[int, ...], like: Any) -> Any:
    """Uniform numbers from 0 to 1 (by rounding, 1 itself) from the library's own random `key`."""
    if is_jax_namespace(xp):
        import jax

        return jax.random.uniform(key, shape, like.dtype)
    if is_torch_namespace(xp):
        import torch

        if isinstance(key, int):
            key = torch.Generator(device=like.device).manual_seed(key)
        return torch.rand(shape, generator=key, dtype=like.dtype, device=like.device)
    draws = np.random.default_rng(key).random(shape)
    return xp.asarray(draws, dtype=like.dtype)


def pytree(cls: type[T]) -> type[T]:
    """A frozen dataclass whose fields are data to JAX, whether JAX is imported before or after."""
    names = [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]

    def register() -> None:
        from jax import tree_util

        def flatten(tree: Any) -> Any:
            return [(tree_util.GetAttrKey(name), getattr(tree, name)) for name in names], None

        def unflatten(_: Any, data: Any) -> Any:
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

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
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

            def execute_and_call(module: Any) -> None:
                execute(module)
                sys.meta_path.remove(self)
                for call in self.calls:
                    call()

            spec.loader.exec_module = execute_and_call  # type: ignore[method-assign]
        return spec


_once_jax_is_imported = _OnceJaxIsImported()
if "jax" not in sys.modules:
    sys.meta_path.insert(0, _once_jax_is_imported)
