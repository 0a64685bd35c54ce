"""Both legs of a lander, each treated in the same way.

On a CPU they are a pair, treated one after the other. In a kernel they are in one array, `[2, n]`:
with a thread for each, neither waits for the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
from jax import lax

from .vectors import Array

__all__ = ["Both", "apart", "beside", "of_each", "side_by_side"]

T = TypeVar("T")

Both: TypeAlias = Any
"""Something of the right and of the left leg: a pair of trees, or a tree of arrays `[2, n]`."""

_in_one_array: ContextVar[bool] = ContextVar("in_one_array", default=False)


@contextmanager
def side_by_side() -> Iterator[None]:
    """While a program is traced within this, both legs are in one array."""
    token = _in_one_array.set(True)
    try:
        yield
    finally:
        _in_one_array.reset(token)


def beside(right: T, left: T) -> Both:
    """What two legs have, as what both have."""
    if not _in_one_array.get():
        return right, left
    return jax.tree.map(lambda a, b: jnp.where(_is_right(a), a[None], b[None]), right, left)


def apart(both: Both) -> tuple[Any, Any]:
    """What both legs have, as what the right and the left one have."""
    if not _in_one_array.get():
        right, left = both
        return right, left
    return jax.tree.map(lambda x: _row(x, 0), both), jax.tree.map(lambda x: _row(x, 1), both)


def of_each(function: Callable[..., Any], *both: Both) -> Both:
    """What a function gives for each leg."""
    if _in_one_array.get():
        return function(*both)
    right, left = (function(*each) for each in zip(*both, strict=True))
    return right, left


def _is_right(like: Array) -> Array:
    return lax.broadcasted_iota(jnp.int32, (2, like.shape[-1]), 0) == 0


def _row(x: Array, number: int) -> Array:
    """A row of two. Kernels know a maximum, and no index."""
    if x.dtype == jnp.bool_:
        return _row(x.astype(jnp.float32), number) > 0.0
    chosen = _is_right(x) if number == 0 else ~_is_right(x)
    return jnp.max(jnp.where(chosen, x, -jnp.inf), axis=0)
