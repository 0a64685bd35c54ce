"""Derivatives of a fixed point by the implicit function theorem, and their linear systems.

If `T` is a sweep of state values with the parameters `p`, and `J` its derivative, a move of the
parameters moves the fixed point by

    dv = (I - J)^-1 (dT / dp) dp,

whatever the way to it. A tangent costs one linear system, a cotangent the transposed one. What `dv`
depends on is differentiated in the same manner, so that second derivatives are right too.

**The linear systems** of a dense model, and of a sparse one with at most 128 states, are solved by
the LU factors of `I - J`, which are computed once and serve all tangents of a point, of any order.
Those of a larger sparse model are solved by BiCGStab, without a matrix of states by states, to
rounding. With few states that matrix is small, and its solution takes less time than BiCGStab's,
above all where many models are mapped: a third at 25 states, as much at 128, and more beyond.

**Where there is no derivative** all of them are NaN: where the iterations have not converged, where
a linear system could not be solved, and where `I - J` is singular, as at a fold of Boltzmann's
fixed points, where two of them meet and vanish. The derivative grows beyond all bounds near a fold.
At the maximum's ties, where the value has two one-sided derivatives, it is their mean.

The derivative with respect to the probabilities is that of each entry by itself. It leads off the
simplex unless the rows of the direction sum to 0, and for a sparse model it exists for the branches
that are stored.

References:
    Krantz and Parks (2013), The implicit function theorem.
    Rust (1987), Optimal replacement of GMC bus engines: an empirical model of Harold Zurcher,
        Econometrica 55: the derivative of log-sum-exp's fixed point.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from ..mdp import Model as Arrays
from ..softmax import Softmax
from .bellman import action_values, values
from .devices import largest
from .factors import Factors, factorise, solution
from .methods.derivative import Derivative, exact_derivative, times
from .methods.linear_systems import bicgstab
from .problem import Model

__all__ = [
    "EXACT",
    "RESTARTS",
    "SOLVED",
    "attached",
    "factors_at",
    "in_double",
    "krylov",
    "newton_step",
    "placed",
    "solver",
]

EXACT = 1e-13
"""What BiCGStab leaves of the right side of a system that is solved to rounding."""
SOLVED = 1e-9
"""A linear system that is left with more than this part of its right side is not solved."""
KRYLOV_STEPS, RESTARTS = 2000, 5
FEW_STATES = 128
"""A sparse model of so few states has its linear systems solved as a dense one has."""

Product = Callable[[jax.Array], jax.Array]
"""A product with a matrix."""


# From arrays to what sweeps take.


def placed(arrays: Arrays) -> Model:
    """The model of a sweep from arrays; terminal states earn nothing and lead nowhere."""
    live = ~jnp.asarray(arrays.terminal)
    rewards = jnp.where(live[:, None], jnp.asarray(arrays.rewards, float), 0.0)
    probabilities = jnp.where(live[:, None, None], jnp.asarray(arrays.probabilities, float), 0.0)
    successors = arrays.successors
    if successors is not None:
        probabilities = jnp.moveaxis(probabilities, -1, 0)
        successors = jnp.moveaxis(jnp.asarray(successors), -1, 0)
    allowed = arrays.allowed
    if allowed is not None:  # a state without actions is padding of a batch, and is terminal
        none = ~jnp.any(allowed, axis=1, keepdims=True)
        first = jnp.arange(rewards.shape[1])[None] == 0
        allowed = jnp.asarray(allowed) | (none & first)
    return Model(
        probabilities=probabilities,
        successors=successors,
        rewards=rewards,
        allowed=allowed,
        terminal=~live,
        discount=jnp.asarray(arrays.discount, float),
        axis=1,
        ends=successors is not None,
        endless=False,
        large=False,
    )


def in_double(softmax: Softmax) -> Softmax:
    """The softmax with parameters that are arrays of float64."""
    return jax.tree.map(lambda x: jnp.asarray(x, float), softmax)


# Linear systems and derivatives.


def newton_step(
    model: Model, softmax: Softmax, q: jax.Array, change: jax.Array, left: jax.Array
) -> jax.Array:
    """`(I - J)^-1 change`, of which BiCGStab may leave the part `left`."""
    matrix = exact_derivative(model, softmax, q)
    if _direct(model):
        return solution(factorise(_system(model, matrix)), change)
    return krylov(lambda x: x - times(model, matrix, x), change, left)


def factors_at(model: Model, softmax: Softmax, q: jax.Array) -> Factors | None:
    """The factors of `I - J` that `solver` takes; None where BiCGStab solves its systems."""
    if not _direct(model):
        return None
    return factorise(_system(model, exact_derivative(model, softmax, q)))


def solver(model: Model, softmax: Softmax, q: jax.Array, factors: Factors | None) -> Product:
    """The solution of `(I - J) x = b` for any `b`, which can be differentiated and transposed."""
    matrix = exact_derivative(model, softmax, q)

    def product(x: jax.Array) -> jax.Array:
        return x - times(model, matrix, x)

    def direct(product: Product, b: jax.Array) -> jax.Array:
        return krylov(product, b, EXACT) if factors is None else solution(factors, b)

    def transposed(product: Product, b: jax.Array) -> jax.Array:
        return krylov(product, b, EXACT) if factors is None else solution(factors, b, True)

    return lambda b: jax.lax.custom_linear_solve(product, b, direct, transposed)


def _direct(model: Model) -> bool:
    return model.successors is None or len(model.rewards) <= FEW_STATES


def _system(model: Model, matrix: Derivative) -> jax.Array:
    return jnp.eye(len(model.rewards)) - _whole(model, matrix)


def _whole(model: Model, matrix: Derivative) -> jax.Array:
    """`J` as a matrix of states by states."""
    if isinstance(matrix.weights, jax.Array):
        return matrix.weights
    assert model.successors is not None
    n_states = len(model.rewards)
    result = jnp.zeros((n_states, n_states))
    states = jnp.arange(n_states)[:, None]
    for weights, successors in zip(matrix.weights, model.successors, strict=True):
        result = result.at[states, successors].add(weights, mode="drop")
    return result


def krylov(product: Product, b: jax.Array, left: jax.Array | float) -> jax.Array:
    """BiCGStab, started again from what it leaves; NaN where that is too much in the end."""
    size = largest(jnp.abs(b))
    limit = left * size

    def unfinished(carry: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
        _, r, restarts = carry
        return (largest(jnp.abs(r)) > limit) & (restarts < RESTARTS)

    def step(
        carry: tuple[jax.Array, jax.Array, jax.Array],
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        x, r, restarts = carry
        shrink = 0.3 * limit / largest(jnp.abs(r))
        x = x + bicgstab(product, r, shrink, KRYLOV_STEPS)[0]
        return x, b - product(x), restarts + 1

    x, r, _ = jax.lax.while_loop(unfinished, step, (jnp.zeros_like(b), b, jnp.asarray(0)))
    solved = largest(jnp.abs(r)) <= jnp.maximum(limit, SOLVED * size)
    return x * jnp.where(solved, 1.0, jnp.nan)


@jax.custom_jvp
def attached(
    model: Model, softmax: Softmax, v: jax.Array, valid: jax.Array, factors: Factors | None
) -> jax.Array:
    """The fixed point `v` with its derivatives, by `factors_at` it; NaN where it is not `valid`."""
    return v


@attached.defjvp
def _moved(primals: Any, tangents: Any) -> tuple[jax.Array, jax.Array]:
    model, softmax, _, valid, factors = primals
    v = attached(*primals)

    def sweep(model: Model, softmax: Softmax) -> jax.Array:
        return values(model, softmax, action_values(model, v))

    _, moved = jax.jvp(sweep, primals[:2], tangents[:2])
    solve = solver(model, softmax, action_values(model, v), factors)
    return v, solve(moved) * jnp.where(valid, 1.0, jnp.nan)
