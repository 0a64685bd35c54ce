"""The derivative `J = discount * W P` of a sweep of state values.

Newton's method needs it in single precision, and gradients in double (`fixed_point`).

`W` is the gradient of the softmax's operator: weights of the actions of each state. The derivative
of the maximum is that of its best action, which takes one action's transitions instead of all.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..._typing import Shape
from ...softmax import Softmax
from ..bellman import entries, expected, successor_values
from ..problem import Means, Model

__all__ = ["Derivative", "derivative", "exact_derivative", "times"]

TIE = 2.0**-48
"""Actions of a state are as good as each other to within this, relative to their values."""


class Derivative(NamedTuple):
    """`J`; its branches are arrays of their own, which loops read faster."""

    weights: jax.Array | tuple[jax.Array, ...]  # K of [S] or [S, A]; dense [S, S]; [S, A] of means
    successors: tuple[jax.Array, ...] | None  # K of [S]; None for the model's own


def derivative(model: Model, softmax: Softmax, q: jax.Array, greedy: bool) -> Derivative:
    """`J` at `q` in single precision; `greedy`: is the value the maximum?"""
    exact = _of_best_action(model, q) if greedy else exact_derivative(model, softmax, q)
    return exact._replace(weights=jax.tree.map(lambda x: x.astype(jnp.float32), exact.weights))


def exact_derivative(model: Model, softmax: Softmax, q: jax.Array) -> Derivative:
    """`J` at `q` in double precision; actions that tie for the maximum share its weight."""
    weights = softmax.gradient(q, axis=model.axis, where=model.allowed)
    if isinstance(model.probabilities, Means):
        return Derivative(model.discount * weights, None)
    if model.successors is None:
        matrix = jnp.einsum("sa,sat->st", weights, model.probabilities)
        return Derivative(model.discount * matrix, None)
    return Derivative(tuple(model.discount * (weights * x) for x in model.probabilities), None)


def times(model: Model, matrix: Derivative, d: jax.Array) -> jax.Array:
    """`J d`."""
    d = successor_values(model, d)
    if isinstance(model.probabilities, Means):
        assert isinstance(matrix.weights, jax.Array)
        return jnp.sum(matrix.weights * (model.probabilities @ d), model.axis)
    successors = model.successors if matrix.successors is None else matrix.successors
    if successors is None:
        assert isinstance(matrix.weights, jax.Array)
        return matrix.weights @ d
    product = expected(model, matrix.weights, successors, d)
    return product if product.ndim == 1 else jnp.sum(product, model.axis)


def _of_best_action(model: Model, q: jax.Array) -> Derivative:
    best = _best_action(model, q)
    if isinstance(model.probabilities, Means):
        weights = jax.nn.one_hot(best, q.shape[model.axis], dtype=q.dtype, axis=model.axis)
        return Derivative(model.discount * weights, None)
    states = jnp.arange(best.size, dtype=jnp.int32)
    n_actions = np.int32(q.shape[model.axis])
    flat = states * n_actions + best if model.axis == 1 else best * np.int32(best.size) + states

    def of_best(x: jax.Array) -> jax.Array:
        return entries(x.reshape(q.size, *x.shape[2:]), flat)

    if model.successors is None:
        return Derivative(model.discount * of_best(model.probabilities), None)
    of_branches = tuple(model.discount * of_best(x) for x in model.probabilities)
    return Derivative(of_branches, tuple(map(of_best, model.successors)))


def _best_action(model: Model, q: jax.Array) -> jax.Array:
    """The best action of each state; of those that tie, to rounding, the first from a random one.

    Before a reward further away is known, all actions of a state tie. If action 0 were taken in all
    of them, the reward would be known one state further after each step; where the choice differs
    from state to state, it gets much further.
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


def _random(shape: Shape, n: np.int32) -> jax.Array:
    """A number below `n` for each entry, the same at each call."""
    bits = jnp.arange(math.prod(shape), dtype=jnp.uint32).reshape(shape)
    for multiplier in (0x7FEB352D, 0x846CA68B):  # mixes them well
        bits = (bits ^ (bits >> 16)) * np.uint32(multiplier)
    return (bits % np.uint32(n)).astype(jnp.int32)
