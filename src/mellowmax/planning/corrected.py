"""Sweeps with a correction before each: shifted sweeps, and truncated Newton for any softmax.

A sweep from `x` shows what the next `corrections` need; the next sweep starts from the corrected
`x`, and so on. Both methods share this step, so that one can take over where the other stands, and
the last sweep is what the bounds are computed from.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as Spec

from ..softmax import Softmax
from .backup import STATES, Model, action_values, largest, smallest, values
from .bounds import of_sweep
from .corrections import CORRECTIONS, derivative, excess, shift
from .iteration import ROUNDING, Iteration, begin, repeat

__all__ = [
    "Sweep",
    "at_once",
    "evidence",
    "from_action_values",
    "from_number",
    "newton",
    "outputs",
    "shifted",
]

FEW_TERMS, MANY_TERMS, KRYLOV = range(len(CORRECTIONS))
CONVERGED = 0.3
"""Few terms are enough if the last is on average this much smaller than the first."""
TRUST = 2.0
"""The linear model predicted well if the residual is at most this many times what it said."""


class Sweep(NamedTuple):
    """A sweep from `x`, and what Newton's method has learnt by then."""

    q: Any  # [S, A], r + discount * P x
    change: Any  # [S], f(q) - x
    low: Any  # its minimum
    high: Any  # its maximum
    excess: Any  # the mean size of the change
    predicted: Any  # what the correction before should have left of it
    slow: Any  # are few terms not enough?


def shifted(
    model: Model, softmax: Softmax, state: Iteration, tolerance: Any, limit: Any, taken: int = 0
) -> Iteration:
    """Sweeps with a shift before each."""

    def step(state: Iteration) -> tuple[Iteration, jax.Array]:
        sweep: Sweep = state.memory
        x = state.x + (sweep.change + shift(model, sweep.low, sweep.high))
        q = action_values(model, x)
        return _swept(model, softmax, state, x, q, sweep.predicted, sweep.slow)

    return repeat(step, state, tolerance, limit, model.large, _rounded, taken)


@functools.cache
def newton(number: int, greedy: bool) -> Callable[..., Iteration]:
    """Newton's steps.

    Args:
        number: of the correction, as the sweep before has signalled it.
        greedy: is the value the maximum?
    """

    def steps(
        model: Model, softmax: Softmax, state: Iteration, tolerance: Any, limit: Any, taken: int = 0
    ) -> Iteration:
        def step(state: Iteration) -> tuple[Iteration, jax.Array]:
            sweep: Sweep = state.memory
            matrix = derivative(model, softmax, sweep.q, greedy)
            size = jnp.maximum(sweep.high, -sweep.low)
            x, left = CORRECTIONS[number](model, matrix, state.x, sweep.change, size)
            slow = sweep.slow | (left > CONVERGED * sweep.excess)
            return _swept(model, softmax, state, x, action_values(model, x), left, slow)

        return repeat(step, state, tolerance, limit, model.large, _next_correction, taken)

    return steps


def from_number(model: Model, softmax: Softmax, start: Any) -> Iteration:
    """The first sweep, from equal values: where no episode ends it needs no transitions."""
    x = jnp.where(model.terminal, 0.0, start)
    if model.endless:
        return _first(model, softmax, x, model.rewards + model.discount * start)
    return _first(model, softmax, x, action_values(model, x))


def from_action_values(model: Model, softmax: Softmax, q: jax.Array) -> Iteration:
    """The first sweep, from given action values."""
    x = values(model, softmax, q)
    return _first(model, softmax, x, action_values(model, x))


@functools.cache
def at_once(first: Callable[..., Iteration], steps: Callable[..., Iteration]) -> Callable[..., Any]:
    """The first sweep, steps, and the evidence for where they end, all in one program."""

    def whole(model: Model, softmax: Softmax, start: Any, tolerance: Any, limit: Any) -> Any:
        state = steps(model, softmax, first(model, softmax, start), tolerance, limit, taken=1)
        return state, evidence(model, softmax, state)

    return whole


def evidence(model: Model, softmax: Softmax, state: Iteration) -> Any:
    """What the last sweep says of the values there, shifted by what would be added to them all."""
    sweep: Sweep = state.memory
    return of_sweep(model, softmax, state.x, sweep.q, shift(model, sweep.low, sweep.high))


def outputs(model: Model) -> Iteration:
    """How the results are spread over devices."""
    each, all_ = Spec(STATES), Spec()
    return Iteration(each, all_, Sweep(model.pairs, each, *(all_,) * 5))


def _first(model: Model, softmax: Softmax, x: jax.Array, q: jax.Array) -> Iteration:
    def step(state: Iteration) -> tuple[Iteration, jax.Array]:
        return _swept(model, softmax, state, x, q, jnp.float64(np.inf), jnp.bool(not model.endless))

    return repeat(step, begin(x), 0.0, 1, True, _next_correction)


def _swept(
    model: Model,
    softmax: Softmax,
    state: Iteration,
    x: jax.Array,
    q: jax.Array,
    predicted: jax.Array,
    slow: jax.Array,
) -> tuple[Iteration, jax.Array]:
    """Where the iteration stands after a sweep from `x` to `q`, and the size of the change."""
    change = values(model, softmax, q) - x
    low, high = smallest(change), largest(change)
    size = (high - low) / 2 if model.endless else jnp.maximum(high, -low)
    sweep = Sweep(q, change, low, high, excess(model, change), predicted, slow)
    return state._replace(x=x, memory=sweep), size


def _next_correction(state: Iteration, change: jax.Array) -> jax.Array:
    """Its number; the first one is gone on with, and the others are chosen anew each time."""
    sweep: Sweep = state.memory
    other = jnp.where(sweep.excess <= TRUST * sweep.predicted, KRYLOV, MANY_TERMS)
    return jnp.maximum(jnp.where(sweep.slow, other, FEW_TERMS), _rounded(state, change))


def _rounded(state: Iteration, change: jax.Array) -> jax.Array:
    """1 where no more than rounding is left to change."""
    return (change <= ROUNDING * largest(jnp.abs(state.x))).astype(jnp.int32)
