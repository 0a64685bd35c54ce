"""Intermediate results that XLA on a CPU stores, so that it does not compute them again.

XLA on a CPU makes one loop for each result that it stores, and recomputes in each loop everything
since the last stored results. Physics is a long chain of short formulas, each of which is used by
many later ones, so much would be computed several times. XLA counts a division as too expensive to
be recomputed: a division by 1 stores a result, as long as the compiler cannot know that the divisor
is 1. It changes no bit.

`materialise_with` sets the divisor for a whole trace. As an argument it would go through nearly
every function of the physics, most of which would only pass it on. Without a divisor, as inside a
GPU kernel, `materialise` does nothing.

Is it still needed? `python benchmarks/lunar_lander_speed.py` prints the speed with it, and with
`--recompute` the speed without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

import jax
import jax.numpy as jnp

from .vectors import Array

__all__ = ["materialise", "materialise_with"]

T = TypeVar("T")

_divisor: ContextVar[Array | None] = ContextVar("divisor", default=None)


@contextmanager
def materialise_with(one: Array) -> Iterator[None]:
    """While a program is traced inside this, `materialise` divides by `one`.

    Args:
        one: the number 1, computed in a way that only the running program knows its value.
    """
    token = _divisor.set(one)
    try:
        yield
    finally:
        _divisor.reset(token)


def materialise(tree: T) -> T:
    """Make XLA on a CPU store numbers, where it would compute them anew at each use."""
    one = _divisor.get()
    if one is None:
        return tree

    def store(x: Array) -> Array:
        if not isinstance(x, jax.Array):
            return x
        stored = x.astype(jnp.float32) / one
        return stored > 0.5 if x.dtype == jnp.bool_ else stored.astype(x.dtype)

    return jax.tree.map(store, tree)
