"""Where to start the next sweep: what further sweeps from here would add up to.

A sweep is `T(x) = f(q(x))`, `q(x) = r + discount * P x`, and changes `x` by `F = T(x) - x`.

- Shift: where no episode ends, adding a constant to all values changes a sweep's result by that
  constant times the discount. So all values are shifted by what the middle of the last change would
  still add up to, `discount / (1 - discount)` times it; what is left shrinks as fast as the chain
  mixes (MacQueen 1966; Puterman 2005, section 6.6).
- Newton's step `d` solves `(I - J) d = F`, where `J = discount * W P` is the derivative of a sweep
  and `W` the operator's gradient at `q(x)`. For the maximum `W` picks the best action, `I - J` is
  the system of the greedy policy, and Newton's method is policy iteration; the other operators are
  convex or concave, and the same argument carries over. The system is only solved roughly, in
  single precision and in one of two ways:
    - by some terms of `d = F + J F + J^2 F + ...`: modified policy iteration. Where no episode
      ends, what is left of the sum is nearly constant and is added in closed form.
    - by BiCGStab (Newton-Krylov), which pays where the sum converges slowly and the linear model
      has just predicted well.

Whatever a correction is worth, the next sweep is in double precision.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...softmax import Softmax
from ..sweep import Model, dot, entries, everywhere, largest, mean, smallest

__all__ = ["CORRECTIONS", "Derivative", "derivative", "excess", "shift"]

FEW_TERMS, MANY_TERMS = 5, 30
"""Terms of the sum: few where no episode ends and a shift does the rest; many where values have to
travel, a state a term, or where few were not enough."""
TIE = 2.0**-48
"""Actions of a state are as good as each other to within this, relative to their values."""
KRYLOV_STEPS = 200
KRYLOV_SHRINK = 0.03
"""When BiCGStab stops: steps, and the size of the residual."""


class Derivative(NamedTuple):
    """`J`, in single precision; its branches are arrays of their own, which loops read faster."""

    weights: Any  # K of [S] or [S, A]; dense [S, S]
    successors: tuple[jax.Array, ...] | None  # K of [S]; None for the model's own


def shift(model: Model, low: Any, high: Any) -> Any:
    """What all values are shifted by, beyond a change from `low` to `high`; 0 where episodes end.

    There 0 is the value of the end, and all others are relative to it.
    """
    if not model.endless:
        return 0.0
    return (low + high) / 2 * (model.discount / (1 - model.discount))


def derivative(model: Model, softmax: Softmax, q: jax.Array, greedy: bool) -> Derivative:
    """`J` at `q`; `greedy` says that the value is the maximum, so that one action makes it up."""
    return _derivative_of_best(model, q) if greedy else _derivative(model, softmax, q)


def _derivative_of_best(model: Model, q: jax.Array) -> Derivative:
    """`J` of the maximum: the transitions of the best action."""
    best = _best(model, q)
    states = jnp.arange(best.size, dtype=jnp.int32)
    n_actions = np.int32(q.shape[model.axis])
    flat = states * n_actions + best if model.axis == 1 else best * np.int32(best.size) + states

    def of_best(x: jax.Array) -> jax.Array:
        return entries(x.reshape(q.size, *x.shape[2:]), flat)

    if model.successors is None:
        return Derivative(_scaled(model, of_best(model.probabilities)), None)
    weights = tuple(_scaled(model, of_best(x)) for x in model.probabilities)
    return Derivative(weights, tuple(map(of_best, model.successors)))


def _best(model: Model, q: jax.Array) -> jax.Array:
    """The best action of each state; of those that tie, to rounding, the first from a random one.

    Where values have not arrived yet all actions tie. If action 0 were always taken, values could
    not travel against it, and a step would bring them one state further.
    """
    if model.allowed is not None:
        q = jnp.where(model.allowed, q, -jnp.inf)
    top = jnp.max(q, model.axis, keepdims=True)
    tied = q >= top - TIE * jnp.abs(top)
    n_actions = np.int32(q.shape[model.axis])
    start = _random(top.shape, n_actions)
    steps = jax.lax.broadcasted_iota(jnp.int32, q.shape, model.axis) - start
    steps = jnp.where(steps < 0, steps + n_actions, steps)
    nearest = jnp.min(jnp.where(tied, steps, n_actions), model.axis, keepdims=True)
    best = jnp.squeeze(start + nearest, model.axis)
    return jnp.where(best >= n_actions, best - n_actions, best)


def _random(shape: tuple[int, ...], n: np.int32) -> jax.Array:
    """A number below `n` for each entry, the same at each call."""
    bits = jnp.arange(math.prod(shape), dtype=jnp.uint32).reshape(shape)
    for multiplier in (0x7FEB352D, 0x846CA68B):  # mixes them well
        bits = (bits ^ (bits >> 16)) * np.uint32(multiplier)
    return (bits % np.uint32(n)).astype(jnp.int32)


def _derivative(model: Model, softmax: Softmax, q: jax.Array) -> Derivative:
    """`J` from the operator's gradient."""
    weights = softmax.gradient(q, axis=model.axis, where=model.allowed)
    if model.successors is None:
        matrix = jnp.einsum("sa,sat->st", weights, model.probabilities)
        return Derivative(_scaled(model, matrix), None)
    return Derivative(tuple(_scaled(model, weights * x) for x in model.probabilities), None)


def _scaled(model: Model, x: jax.Array) -> jax.Array:
    return (model.discount * x).astype(jnp.float32)


def _times(model: Model, matrix: Derivative, d: jax.Array) -> jax.Array:
    """`J d`."""
    d = everywhere(d)
    successors = model.successors if matrix.successors is None else matrix.successors
    if successors is None:
        return matrix.weights @ d
    if model.ends:
        d = jnp.append(d, jnp.zeros(1, d.dtype))
    product = dot(model, matrix.weights, successors, d)
    return product if product.ndim == 1 else jnp.sum(product, model.axis)


def _series(terms: int, model: Model, matrix: Derivative, change: Any, size: Any) -> Any:
    """Newton's step by a sum, and the excess of its last term."""
    scale, term = _normalised(change, size)

    def add(_: Any, carry: Any) -> Any:
        term, total = carry
        term = _times(model, matrix, term)
        return term, total + term

    term, total = jax.lax.fori_loop(0, terms, add, (term, term))
    d = total.astype(change.dtype)
    if model.endless:
        d = d + mean(term).astype(change.dtype) * (model.discount / (1 - model.discount))
    return scale * d, scale * excess(model, term)


def _krylov(model: Model, matrix: Derivative, change: Any, size: Any) -> Any:
    """Newton's step by BiCGStab (van der Vorst 1992), and the excess of its residual."""
    scale, b = _normalised(change, size)

    def times(x: jax.Array) -> jax.Array:
        return x - _times(model, matrix, x)

    def inner(x: jax.Array, y: jax.Array) -> jax.Array:
        return mean(x * y)

    target = KRYLOV_SHRINK**2 * inner(b, b)

    def unfinished(carry: Any) -> Any:
        i, _, r, *_ = carry
        return (i < KRYLOV_STEPS) & (inner(r, r) > target)

    def step(carry: Any) -> Any:
        i, x, r, p, product, rho, alpha, omega = carry
        rho, before = inner(b, r), rho
        p = r + _ratio(rho, before) * _ratio(alpha, omega) * (p - omega * product)
        product = times(p)
        alpha = _ratio(rho, inner(b, product))
        s = r - alpha * product
        t = times(s)
        omega = _ratio(inner(t, s), inner(t, t))
        return i + 1, x + alpha * p + omega * s, s - omega * t, p, product, rho, alpha, omega

    one, zero = jnp.ones((), b.dtype), jnp.zeros_like(b)
    start = (jnp.zeros((), jnp.int32), zero, b, zero, zero, one, one, one)
    _, x, r, *_ = jax.lax.while_loop(unfinished, step, start)
    return scale * x.astype(change.dtype), scale * excess(model, r)


CORRECTIONS = (
    functools.partial(_series, FEW_TERMS),
    functools.partial(_series, MANY_TERMS),
    _krylov,
)
"""Newton's, as functions of the model, `J`, and a change and its size: the step `d`, and the excess
of what it leaves of the change by the linear model."""


def _ratio(x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.where(y == 0, 0, x / jnp.where(y == 0, 1, y))


def _normalised(change: jax.Array, size: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Its largest entry, and all relative to it: single precision has a small range."""
    scale = jnp.maximum(size, jnp.finfo(change.dtype).tiny)
    return scale, (change / scale).astype(jnp.float32)


def excess(model: Model, x: jax.Array) -> jax.Array:
    """The mean size; where no episode ends, half the range, which no shift removes."""
    size = (largest(x) - smallest(x)) / 2 if model.endless else mean(jnp.abs(x))
    return size.astype(jnp.float64)
