"""Rough solutions of Newton's linear system `(I - J) d = F`, in single precision.

- By some terms of the series `d = F + J F + J^2 F + ...`. Where no episode ends, what is left of
  the series is nearly constant, and is added in closed form.
- By BiCGStab (van der Vorst 1992), which pays where the series converges slowly.

Each is a function of the model, `J`, `F` and the size of `F`, and returns `d` and the `excess` of
what it leaves of `F`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from ..devices import mean
from ..problem import Model
from .corrected_sweep import Correction, excess
from .derivative import Derivative, times

__all__ = ["LINEAR_SOLVERS", "bicgstab"]

SHORT, LONG = 5, 30
"""Terms of a series. A short one does where no episode ends: a shift makes up for the rest. A long
one is needed where a shift does not help, since each term carries a reward one state further."""
KRYLOV_STEPS = 200
KRYLOV_SHRINK = 0.03
"""When BiCGStab stops: the number of steps, and the size of the residual relative to `F`."""

LinearSolver = Callable[[Model, Derivative, jax.Array, jax.Array], tuple[jax.Array, jax.Array]]


def _series(
    terms: int, model: Model, matrix: Derivative, change: jax.Array, size: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """The sum of some terms, and the excess of the last one."""
    scale, term = _normalised(change, size)

    def add(_: jax.Array, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        term, total = carry
        term = times(model, matrix, term)
        return term, total + term

    term, total = jax.lax.fori_loop(0, terms, add, (term, term))
    d = total.astype(change.dtype)
    if model.endless:
        d = d + mean(term).astype(change.dtype) * (model.discount / (1 - model.discount))
    return scale * d, scale * excess(model, term)


_Krylov = tuple[
    jax.Array, jax.Array, jax.Array, jax.Array, jax.Array, jax.Array, jax.Array, jax.Array
]
"""`(i, x, r, p, product, rho, alpha, omega)`: what BiCGStab carries from step to step."""


def _bicgstab(
    model: Model, matrix: Derivative, change: jax.Array, size: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """BiCGStab's solution, and the excess of its residual."""
    scale, b = _normalised(change, size)

    def product_with(x: jax.Array) -> jax.Array:
        return x - times(model, matrix, x)

    x, r = bicgstab(product_with, b, KRYLOV_SHRINK, KRYLOV_STEPS)
    return scale * x.astype(change.dtype), scale * excess(model, r)


def bicgstab(
    product_with: Callable[[jax.Array], jax.Array], b: jax.Array, shrink: ArrayLike, steps: int
) -> tuple[jax.Array, jax.Array]:
    """A solution of `product_with(x) = b`, and what it leaves of `b`.

    It stops when that is `shrink` times `b`, or after `steps`.
    """

    def inner(x: jax.Array, y: jax.Array) -> jax.Array:
        return mean(x * y)

    target = shrink**2 * inner(b, b)

    def unfinished(carry: _Krylov) -> jax.Array:
        i, _, r, *_ = carry
        return (i < steps) & (inner(r, r) > target)

    def step(carry: _Krylov) -> _Krylov:
        i, x, r, p, product, rho, alpha, omega = carry
        rho, before = inner(b, r), rho
        p = r + _ratio(rho, before) * _ratio(alpha, omega) * (p - omega * product)
        product = product_with(p)
        alpha = _ratio(rho, inner(b, product))
        s = r - alpha * product
        t = product_with(s)
        omega = _ratio(inner(t, s), inner(t, t))
        return i + 1, x + alpha * p + omega * s, s - omega * t, p, product, rho, alpha, omega

    one, zero = jnp.ones((), b.dtype), jnp.zeros_like(b)
    start = (jnp.zeros((), jnp.int32), zero, b, zero, zero, one, one, one)
    _, x, r, *_ = jax.lax.while_loop(unfinished, step, start)
    return x, r


LINEAR_SOLVERS: dict[Correction, LinearSolver] = {
    Correction.SHORT_SERIES: functools.partial(_series, SHORT),
    Correction.LONG_SERIES: functools.partial(_series, LONG),
    Correction.KRYLOV: _bicgstab,
}
"""The one for each kind of correction."""


def _ratio(x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.where(y == 0, 0, x / jnp.where(y == 0, 1, y))


def _normalised(change: jax.Array, size: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The size, and the change relative to it: single precision has a small range."""
    scale = jnp.maximum(size, np.finfo(change.dtype).tiny)
    return scale, (change / scale).astype(jnp.float32)
