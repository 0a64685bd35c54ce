"""Truncated Newton: modified policy iteration and Newton-Krylov for any softmax.

A sweep is `T(v) = f(q(v))`, `q(v) = r + discount * P v`. With the operator's gradient `W` at
`q(v)`, its derivative is `J = discount * W P`, and Newton's step `d` solves
`(I - J) d = F = T(v) - v`.

For the maximum `W` picks the best action, `I - J` is the system of the greedy policy, and Newton's
method is policy iteration; the other operators are convex or concave, and the same argument carries
over. The system is only solved roughly, in single precision and in one of two ways:

- by repeated sweeps with `J`, `d = F + J F + J^2 F + ...`: modified policy iteration. Where no
  episode ends, what is left of the sum is nearly constant and is added in closed form.
- by BiCGStab (Newton-Krylov), which pays where the sum converges slowly and the linear model has
  just predicted well.

Whatever the inner solution is worth, the residual is computed anew in double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..softmax import Softmax
from .backup import Model, action_values, dot, everywhere, largest, mean, smallest, values
from .iteration import Iteration, repeat

__all__ = ["Forecast", "newton", "no_forecast", "policy_iteration"]

TERMS = 20
"""Terms of the sum, where episodes end: values have to travel, and travel a state a term."""
TERMS_OF_A_SHIFT = 30
SHRINK = 0.1
"""Where none ends, the terms to take are those until the sum has converged this far."""
KRYLOV_PRODUCTS = 400
KRYLOV_SHRINK = 0.03
"""When BiCGStab stops: products with `J`, and the size of the residual."""
TRUST = 2.0
"""The linear model predicted well if the residual is at most this many times what it said."""


class Forecast(NamedTuple):
    """What the last step promised."""

    norm: Any  # the mean size that the linear model left of the change
    slow: Any  # was it BiCGStab's, or of a sum that had not converged?
    products: Any  # products with J so far


def no_forecast() -> Forecast:
    """The memory of an iteration that begins."""
    return Forecast(np.float64(0), np.bool_(False), np.int32(0))


class Derivative(NamedTuple):
    """`J`, in single precision."""

    weights: jax.Array  # [K, S] or [K, S, A]; dense [S, S]
    successors: jax.Array | None  # like the weights


class Correction(NamedTuple):
    """An approximate solution of `(I - J) d = F`."""

    d: jax.Array  # [S]
    norm: jax.Array  # the mean size of what the linear model leaves of F
    products: jax.Array
    slow: jax.Array


def newton(
    model: Model, softmax: Softmax, state: Iteration, tolerance: Any, limit: Any
) -> Iteration:
    """Newton's steps in the state values."""

    def derivative(q: jax.Array) -> Derivative:
        return _derivative(model, softmax, q)

    return _newton(model, softmax, derivative, state, tolerance, limit)


def policy_iteration(
    model: Model, softmax: Softmax, state: Iteration, tolerance: Any, limit: Any
) -> Iteration:
    """The same where the value is the maximum, whose derivative takes one action of each state."""

    def derivative(q: jax.Array) -> Derivative:
        return _derivative_of_best(model, q)

    return _newton(model, softmax, derivative, state, tolerance, limit)


def _newton(
    model: Model,
    softmax: Softmax,
    derivative: Callable[[jax.Array], Derivative],
    state: Iteration,
    tolerance: Any,
    limit: Any,
) -> Iteration:
    def step(state: Iteration) -> Iteration:
        v = state.x
        q = action_values(model, v)
        change = values(model, softmax, q) - v
        low, high = smallest(change), largest(change)
        size = (high - low) / 2 if model.endless else jnp.maximum(high, -low)

        def last() -> Any:
            """What is left is a shift."""
            rest = (low + high) / 2 / (1 - model.discount) if model.endless else 0.0
            return v + rest, state.memory

        def further() -> Any:
            matrix, forecast = derivative(q), state.memory
            trusted = forecast.slow & (_norm(model, change) <= TRUST * forecast.norm)
            found = jax.lax.cond(
                trusted,
                lambda: _krylov(model, matrix, change),
                lambda: _series(model, matrix, change),
            )
            products = forecast.products + found.products
            return v + found.d, Forecast(found.norm, found.slow, products)

        v, memory = jax.lax.cond(size <= tolerance, last, further)
        return state._replace(x=v, change=size, memory=memory)

    return repeat(step, state, tolerance, limit)


def _derivative_of_best(model: Model, q: jax.Array) -> Derivative:
    """`J` of the maximum: the transitions of the best action."""
    if model.allowed is not None:
        q = jnp.where(model.allowed, q, -jnp.inf)
    best = jnp.expand_dims(jnp.argmax(q, model.axis), model.axis)
    if model.successors is None:
        rows = jnp.take_along_axis(model.probabilities, best[..., None], axis=1)
        return Derivative(_scaled(model, jnp.squeeze(rows, 1)), None)
    axis = model.axis + 1

    def of_best(x: jax.Array) -> jax.Array:
        chosen = jnp.take_along_axis(x, best[None], axis, mode="promise_in_bounds")
        return jnp.squeeze(chosen, axis)

    return Derivative(_scaled(model, of_best(model.probabilities)), of_best(model.successors))


def _derivative(model: Model, softmax: Softmax, q: jax.Array) -> Derivative:
    """`J` from the operator's gradient."""
    weights = softmax.gradient(q, axis=model.axis, where=model.allowed)
    if model.successors is None:
        matrix = jnp.einsum("sa,sat->st", weights, model.probabilities)
        return Derivative(_scaled(model, matrix), None)
    return Derivative(_scaled(model, weights[None] * model.probabilities), model.successors)


def _scaled(model: Model, x: jax.Array) -> jax.Array:
    return (model.discount * x).astype(jnp.float32)


def _times(model: Model, matrix: Derivative, d: jax.Array) -> jax.Array:
    """`J d`."""
    d = everywhere(d)
    if matrix.successors is None:
        return matrix.weights @ d
    if model.ends:
        d = jnp.append(d, jnp.zeros(1, d.dtype))
    product = dot(matrix.weights, matrix.successors, d)
    return product if product.ndim == 1 else jnp.sum(product, model.axis)


def _series(model: Model, matrix: Derivative, change: jax.Array) -> Correction:
    """`F + J F + J^2 F + ...`, cut off."""
    scale, term = _normalised(change)
    first = _norm(model, term)
    limit, target = (TERMS_OF_A_SHIFT, SHRINK) if model.endless else (TERMS, 0.0)

    def unfinished(carry: Any) -> Any:
        i, _, _, norm = carry
        return (i < limit) & (norm > target * first)

    def add(carry: Any) -> Any:
        i, total, term, norm = carry
        term = _times(model, matrix, term)
        norm = _norm(model, term) if model.endless else norm
        return i + 1, total + term, term, norm

    start = (jnp.zeros((), jnp.int32), term, term, first)
    taken, total, term, _ = jax.lax.while_loop(unfinished, add, start)
    d = total.astype(scale.dtype)
    if model.endless:
        d = d + mean(term).astype(scale.dtype) * (model.discount / (1 - model.discount))
    return Correction(scale * d, scale * _norm(model, term), taken, taken == limit)


def _krylov(model: Model, matrix: Derivative, change: jax.Array) -> Correction:
    """BiCGStab (van der Vorst 1992)."""
    scale, b = _normalised(change)

    def times(x: jax.Array) -> jax.Array:
        return x - _times(model, matrix, x)

    def inner(x: jax.Array, y: jax.Array) -> jax.Array:
        return mean(x * y)

    target = KRYLOV_SHRINK**2 * inner(b, b)

    def unfinished(carry: Any) -> Any:
        i, _, r, *_ = carry
        return (i < KRYLOV_PRODUCTS) & (inner(r, r) > target)

    def step(carry: Any) -> Any:
        i, x, r, p, product, rho, alpha, omega = carry
        rho, before = inner(b, r), rho
        p = r + _ratio(rho, before) * _ratio(alpha, omega) * (p - omega * product)
        product = times(p)
        alpha = _ratio(rho, inner(b, product))
        s = r - alpha * product
        t = times(s)
        omega = _ratio(inner(t, s), inner(t, t))
        return i + 2, x + alpha * p + omega * s, s - omega * t, p, product, rho, alpha, omega

    one, zero = jnp.ones((), b.dtype), jnp.zeros_like(b)
    start = (jnp.zeros((), jnp.int32), zero, b, zero, zero, one, one, one)
    taken, x, r, *_ = jax.lax.while_loop(unfinished, step, start)
    d = scale * x.astype(scale.dtype)
    return Correction(d, scale * _norm(model, r), taken, taken == taken)


def _ratio(x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.where(y == 0, 0, x / jnp.where(y == 0, 1, y))


def _normalised(change: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Its largest entry, and the rest relative to it: single precision has a small range."""
    scale = jnp.maximum(largest(jnp.abs(change)), jnp.finfo(change.dtype).tiny)
    return scale, (change / scale).astype(jnp.float32)


def _norm(model: Model, x: jax.Array) -> jax.Array:
    """The mean size; of what a shift does not remove, where no episode ends."""
    if model.endless:
        x = x - mean(x)
    return mean(jnp.abs(x)).astype(jnp.float64)
