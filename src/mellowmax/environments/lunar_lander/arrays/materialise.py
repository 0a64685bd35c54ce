"""Intermediate results that a CPU's compiler is to keep, instead of computing them again.

XLA on a CPU makes one loop for each result, and computes in each of them again all that leads to it
from the last result that was kept: of a long chain of short formulas, as physics is, it would make
hundreds of times the work. A quotient counts as too expensive to be computed again, so a division
by a number that only the running program knows to be 1 keeps a result where it is. It changes no
bit.

Inside a kernel for an accelerator there is no unit, and nothing is divided.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

import jax
import jax.numpy as jnp

from .vectors import Array

__all__ = ["keep", "kept_by"]

T = TypeVar("T")

_unit: ContextVar[Array | None] = ContextVar("unit", default=None)


@contextmanager
def kept_by(unit: Array) -> Iterator[None]:
    """While a program is traced within this, `keep` divides by the unit."""
    token = _unit.set(unit)
    try:
        yield
    finally:
        _unit.reset(token)


def keep(tree: T) -> T:
    """The same numbers, computed once."""
    unit = _unit.get()
    if unit is None:
        return tree

    def one(x: Array) -> Array:
        if not isinstance(x, jax.Array):
            return x
        kept = x.astype(jnp.float32) / unit
        return kept > 0.5 if x.dtype == jnp.bool_ else kept.astype(x.dtype)

    kept: T = jax.tree.map(one, tree)
    return kept
