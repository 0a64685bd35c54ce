"""One sweep of planning: `v <- f(r + discount * P v)`, equation 8 of the paper for state values.

`action_values` is the first half, `q = r + discount * P v`, and `values` the second, `v = f(q)`,
where `f` is the softmax's operator. Both see the states of one device, or all of them in NumPy's
arrays (`devices`).

A terminal state is worth 0. That is what an attained softmax makes of its action values, which are
0; a regularised one would pay its bonus there (`worth`).
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..softmax import Max, Softmax
from .devices import gather, namespace
from .greedy import maximum
from .problem import Model

__all__ = [
    "action_values",
    "best_values",
    "entries",
    "expected",
    "successor_values",
    "values",
    "worth",
]

UNROLLED = 32
"""Up to this many branches are added up in one fused operation."""


def action_values(model: Model, v: jax.Array) -> jax.Array:
    """`q = r + discount * P v`."""
    known = successor_values(model, v)
    if model.successors is None:
        return model.rewards + model.probabilities @ (model.discount * known)
    mean = expected(model, model.probabilities, model.successors, known)
    return model.rewards + model.discount * mean


def best_values(model: Model, q: jax.Array) -> jax.Array:
    """The maximum of `q` over the actions of each state."""
    allowed: Any = model.allowed
    if isinstance(q, np.ndarray):
        return maximum(q, allowed)
    return (q if allowed is None else jnp.where(allowed, q, -jnp.inf)).max(axis=model.axis)


def values(model: Model, softmax: Softmax, q: jax.Array) -> jax.Array:
    """`v = f(q)`."""
    if isinstance(q, np.ndarray) and isinstance(softmax, Max):
        return best_values(model, q)
    value = softmax.value(q, axis=model.axis, where=model.allowed)
    return worth(softmax, value, model.terminal)


def worth(softmax: Softmax, value: jax.Array, terminal: jax.Array) -> jax.Array:
    """The value of states, given that of their actions: 0 where the episode has ended."""
    return value if softmax.attained else namespace(value).where(terminal, 0.0, value)


def successor_values(model: Model, v: jax.Array) -> jax.Array:
    """The values of all that a branch can lead to: the states of all devices, and 0 for the end."""
    v = gather(v)
    return jnp.append(v, jnp.zeros(1, v.dtype)) if model.ends else v


def expected(
    model: Model,
    weights: jax.Array | tuple[jax.Array, ...],
    successors: jax.Array | tuple[jax.Array, ...],
    v: jax.Array,
) -> jax.Array:
    """`sum_k weights[k] * v[successors[k]]`, over the branches `k`."""

    def branch(k: int | jax.Array) -> jax.Array:
        return weights[k] * entries(v, successors[k], model.large)

    if isinstance(weights, tuple) or len(weights) <= UNROLLED:
        return functools.reduce(jnp.add, map(branch, range(len(weights))))
    return jax.lax.fori_loop(1, len(weights), lambda k, total: total + branch(k), branch(0))


def entries(x: jax.Array, indices: jax.Array, large: bool = False) -> jax.Array:
    """`x[indices]`, for indices that are known to be in range.

    JAX would allow negative ones too, and copy all indices for that. On a CPU the sweep of a large
    model is faster with that copy, so it is kept there; all else is faster without it.
    """
    return x.at[indices].get(mode="promise_in_bounds", wrap_negative_indices=large)
