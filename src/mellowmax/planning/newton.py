"""Truncated Newton: modified policy iteration and Newton-Krylov for any softmax.

A sweep is `T(v) = f(q(v))`, `q(v) = r + discount * P v`. With the operator's gradient `W` at
`q(v)`, its derivative is `J = discount * W P`, and Newton's step `d` solves
`(I - J) d = F = T(v) - v`.

For the maximum `W` picks the best action, `I - J` is the system of the greedy policy, and Newton's
method is policy iteration; the other operators are convex or concave, and the same argument carries
over. The system is only solved roughly, in single precision and in one of two ways:

- by a few terms of `d = F + J F + J^2 F + ...`: modified policy iteration. Where no episode ends,
  what is left of the sum is nearly constant and is added in closed form.
- by BiCGStab (Newton-Krylov), which pays where the sum converges slowly and the linear model has
  just predicted well.

Whatever the inner solution is worth, the residual is computed anew in double precision. A step is
two compiled programs without a loop around them: XLA on a CPU runs a sweep of a large model
faster outside of loops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as Spec

from ..softmax import Softmax
from .backup import (
    STATES,
    Model,
    action_values,
    dot,
    everywhere,
    largest,
    mean,
    on_every_device,
    smallest,
    values,
)
from .iteration import ROUNDING, Iteration

__all__ = ["Derivative", "Memory", "Sweep", "first", "newton"]

FEW_TERMS, MANY_TERMS = 5, 30
"""Terms of the sum: few where no episode ends and a shift does the rest; many where values have to
travel, a state a term, or where few were not enough."""
CONVERGED = 0.3
"""Few terms are enough if the last is on average this much smaller than the first."""
KRYLOV_STEPS = 200
KRYLOV_SHRINK = 0.03
"""When BiCGStab stops: steps, and the size of the residual."""
TRUST = 2.0
"""The linear model predicted well if the residual is at most this many times what it said."""


class Sweep(NamedTuple):
    """A sweep from `v`."""

    q: jax.Array  # [S, A]
    change: jax.Array  # [S], T(v) - v
    numbers: jax.Array  # its minimum, its maximum, its mean size, the largest |v|


class Memory(NamedTuple):
    """What Newton's method remembers from step to step."""

    predicted: float  # the mean size that the linear model left of the change
    slow: bool  # are few terms not enough?
    q: jax.Array  # [S, A], of the last sweep


class Derivative(NamedTuple):
    """`J`, in single precision; its branches are arrays of their own, which loops read faster."""

    weights: Any  # K of [S] or [S, A]; dense [S, S]
    successors: tuple[jax.Array, ...] | None  # K of [S]; None for the model's own


def newton(
    model: Model, softmax: Softmax, mesh: Mesh, tolerance: float, greedy: bool
) -> Callable[[Iteration], Iteration]:
    """Newton's step as a function of where the iteration stands.

    Args:
        model: on the devices of `mesh`.
        softmax: likewise.
        mesh: the devices.
        tolerance: a smaller change ends it, with a last shift.
        greedy: is the value the maximum, so that one action of each state makes up `J`?
    """
    sweep = on_every_device(_sweep, mesh, Sweep(model.pairs, Spec(STATES), Spec()), reuse=3)
    outputs = Derivative(Spec(STATES), None)
    if model.successors is not None:
        branches = (Spec(STATES) if greedy else model.pairs,) * len(model.probabilities)
        outputs = Derivative(branches, branches if greedy else None)
    derivative = on_every_device(_derivative_of_best if greedy else _derivative, mesh, outputs)

    def step(state: Iteration) -> Iteration:
        predicted, slow, q = state.memory
        q, change, numbers = sweep(model, softmax, state.x, q)
        low, high, norm, size = np.asarray(numbers).tolist()
        moved = (high - low) / 2 if model.endless else max(high, -low)
        if moved <= max(tolerance, ROUNDING * size):
            rest = (low + high) / 2 / (1 - float(model.discount)) if model.endless else 0.0
            v = state.x + rest
        else:
            matrix = derivative(model, softmax, q)
            kind = "few" if not slow else "krylov" if norm <= TRUST * predicted else "many"
            correct = on_every_device(CORRECTIONS[kind], mesh, (Spec(STATES), Spec()))
            v, left = correct(model, matrix, state.x, change)
            predicted = float(left)
            slow = slow or predicted > CONVERGED * norm
        report = np.array([1, moved, size, 0])
        return state._replace(
            x=v, history=report[1:2], report=report, memory=Memory(predicted, slow, q)
        )

    return step


def first(model: Model, q: jax.Array) -> Memory:
    """What there is to remember before the first step; `q` is some memory like that of `q`."""
    return Memory(np.inf, not model.endless, q)


def _sweep(model: Model, softmax: Softmax, v: jax.Array, old: jax.Array) -> Sweep:
    """A sweep, into the memory of an old `q`."""
    q = action_values(model, v)
    change = values(model, softmax, q) - v
    numbers = smallest(change), largest(change), _norm(model, change), largest(jnp.abs(v))
    return Sweep(q, change, jnp.stack(numbers))


def _derivative_of_best(model: Model, softmax: Softmax, q: jax.Array) -> Derivative:
    """`J` of the maximum: the transitions of the best action."""
    q = q + _tie_break(q)
    if model.allowed is not None:
        q = jnp.where(model.allowed, q, -jnp.inf)
    best = jnp.argmax(q, model.axis).astype(jnp.int32)
    if model.successors is None:
        rows = jnp.take_along_axis(model.probabilities, best[:, None, None], axis=1)
        return Derivative(_scaled(model, jnp.squeeze(rows, 1)), None)
    states = jnp.arange(best.size, dtype=jnp.int32)
    n_actions = np.int32(q.shape[model.axis])
    flat = states * n_actions + best if model.axis == 1 else best * np.int32(best.size) + states

    def of_best(x: jax.Array) -> jax.Array:
        return x.reshape(-1).at[flat].get(mode="promise_in_bounds")

    weights = tuple(_scaled(model, of_best(x)) for x in model.probabilities)
    return Derivative(weights, tuple(map(of_best, model.successors)))


def _tie_break(q: jax.Array) -> jax.Array:
    """Noise of the size of rounding, the same at each call.

    Where values have not arrived yet all actions tie. If the first were always taken, values could
    not travel against it, and a step would bring them one state further; so ties fall at random.
    """
    bits = jnp.arange(q.size, dtype=jnp.uint32).reshape(q.shape)
    for multiplier in (0x7FEB352D, 0x846CA68B):  # mixes them well
        bits = (bits ^ (bits >> 16)) * np.uint32(multiplier)
    noise = (bits ^ (bits >> 16)).astype(q.dtype) * 2.0**-32
    return noise * (largest(jnp.abs(q)) * 2.0**-48)


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
    product = dot(matrix.weights, successors, d)
    return product if product.ndim == 1 else jnp.sum(product, model.axis)


def _few_terms(model: Model, matrix: Derivative, v: Any, change: Any) -> Any:
    return _series(model, matrix, v, change, FEW_TERMS)


def _many_terms(model: Model, matrix: Derivative, v: Any, change: Any) -> Any:
    return _series(model, matrix, v, change, MANY_TERMS)


def _series(model: Model, matrix: Derivative, v: Any, change: Any, terms: int) -> Any:
    """The values corrected by a sum, and the mean size of its last term."""
    scale, term = _normalised(change)

    def add(_: Any, carry: Any) -> Any:
        term, total = carry
        term = _times(model, matrix, term)
        return term, total + term

    term, total = jax.lax.fori_loop(0, terms, add, (term, term))
    d = total.astype(v.dtype)
    if model.endless:
        d = d + mean(term).astype(v.dtype) * (model.discount / (1 - model.discount))
    return v + scale * d, scale * _norm(model, term)


def _krylov(model: Model, matrix: Derivative, v: Any, change: Any) -> Any:
    """The values corrected by BiCGStab (van der Vorst 1992), and the mean size of its residual."""
    scale, b = _normalised(change)

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
    return v + scale * x.astype(v.dtype), scale * _norm(model, r)


CORRECTIONS = {"few": _few_terms, "many": _many_terms, "krylov": _krylov}


def _ratio(x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.where(y == 0, 0, x / jnp.where(y == 0, 1, y))


def _normalised(change: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Its largest entry, and all relative to it: single precision has a small range."""
    scale = jnp.maximum(largest(jnp.abs(change)), jnp.finfo(change.dtype).tiny)
    return scale, (change / scale).astype(jnp.float32)


def _norm(model: Model, x: jax.Array) -> jax.Array:
    """The mean size; of what a shift does not remove, where no episode ends."""
    if model.endless:
        x = x - mean(x)
    return mean(jnp.abs(x)).astype(jnp.float64)
