"""Two ways to lay out both legs of a lander, which are treated alike.

On a CPU they are a pair of trees, computed one after the other. In a GPU kernel they are one tree
of arrays `[2, n]`: each leg has its own thread, and neither waits for the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
from jax import lax

from .vectors import Array

__all__ = ["PAIR", "STACKED", "BothLegs", "LegLayout"]

T = TypeVar("T")

BothLegs: TypeAlias = Any
"""Values of the right and the left leg: a pair of trees, or one tree of arrays `[2, n]`."""


class LegLayout(Protocol):
    """How the values of both legs are held together."""

    def join(self, right: T, left: T) -> BothLegs:
        """The values of two legs, held together."""

    def split(self, both: BothLegs) -> tuple[Any, Any]:
        """The values of the right and of the left leg."""

    def map(self, function: Callable[..., Any], *both: BothLegs) -> BothLegs:
        """What a function of one leg gives for each of the two."""


class _Pair:
    """A pair of trees."""

    def join(self, right: T, left: T) -> BothLegs:
        return right, left

    def split(self, both: BothLegs) -> tuple[Any, Any]:
        right, left = both
        return right, left

    def map(self, function: Callable[..., Any], *both: BothLegs) -> BothLegs:
        right, left = (function(*each) for each in zip(*both, strict=True))
        return right, left


class _Stacked:
    """One tree of arrays `[2, n]`."""

    def join(self, right: T, left: T) -> BothLegs:
        return jax.tree.map(lambda a, b: jnp.where(_is_right(a), a[None], b[None]), right, left)

    def split(self, both: BothLegs) -> tuple[Any, Any]:
        return jax.tree.map(lambda x: _row(x, 0), both), jax.tree.map(lambda x: _row(x, 1), both)

    def map(self, function: Callable[..., Any], *both: BothLegs) -> BothLegs:
        return function(*both)


PAIR: LegLayout = _Pair()
STACKED: LegLayout = _Stacked()


def _is_right(like: Array) -> Array:
    return lax.broadcasted_iota(jnp.int32, (2, like.shape[-1]), 0) == 0


def _row(x: Array, number: int) -> Array:
    """One of two rows: a kernel can take a maximum, but cannot index."""
    if x.dtype == jnp.bool_:
        return _row(x.astype(jnp.float32), number) > 0.0
    chosen = _is_right(x) if number == 0 else ~_is_right(x)
    return jnp.max(jnp.where(chosen, x, -jnp.inf), axis=0)
