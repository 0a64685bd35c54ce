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

from ...softmax import Softmax
from ..bounds import of_sweep
from ..loop import ROUNDING, Iteration, begin, repeat
from ..sweep import STATES, Model, action_values, largest, smallest, values
from .corrections import CORRECTIONS, derivative, excess, shift

__all__ = [
    "Facts",
    "Sweep",
    "at_once",
    "evidence",
    "from_action_values",
    "from_number",
    "newton",
    "outputs",
    "shifted",
]

FEW, MANY, KRYLOV = range(len(CORRECTIONS))
CONVERGED = 0.3
"""Few terms are enough if the excess of the last is at most this part of the first's."""
TRUST = 2.0
"""The linear model predicted well if the residual is at most this many times what it said."""


class Sweep(NamedTuple):
    """A sweep from `x`, and what Newton's method has learnt by then."""

    q: Any  # [S, A], r + discount * P x
    change: Any  # [S], f(q) - x
    numbers: Any  # those of `Facts`, as one array: each array costs time at a call

    @property
    def facts(self) -> Facts:
        """The numbers by name."""
        return Facts(*self.numbers)


class Facts(NamedTuple):
    """Of the change of a sweep."""

    low: Any  # its minimum
    high: Any  # its maximum
    excess: Any  # its mean size; where no episode ends, half its range
    predicted: Any  # what the correction before should have left of that
    slow: Any  # are few terms not enough? 0 or 1
    size: Any  # the largest entry of `x`, in absolute value


def shifted(
    model: Model, softmax: Softmax, state: Iteration, tolerance: Any, limit: Any, taken: int = 0
) -> Iteration:
    """Sweeps with a shift before each."""

    def step(state: Iteration) -> tuple[Iteration, jax.Array]:
        sweep: Sweep = state.memory
        facts = sweep.facts
        x = state.x + (sweep.change + shift(model, facts.low, facts.high))
        q = action_values(model, x)
        return _swept(model, softmax, state, x, q, facts.predicted, facts.slow)

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
            facts = sweep.facts
            matrix = derivative(model, softmax, sweep.q, greedy)
            size = jnp.maximum(facts.high, -facts.low)
            d, left = CORRECTIONS[number](model, matrix, sweep.change, size)
            slow = (facts.slow > 0) | (left > CONVERGED * facts.excess)
            x = state.x + d
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
    by = shift(model, sweep.facts.low, sweep.facts.high)
    return of_sweep(model, softmax, state.x, sweep.q, by)


def outputs(model: Model) -> Iteration:
    """How the results are spread over devices."""
    each = Spec(STATES)
    return Iteration(each, Spec(), Sweep(model.pairs, each, Spec()))


def _first(model: Model, softmax: Softmax, x: jax.Array, q: jax.Array) -> Iteration:
    def step(state: Iteration) -> tuple[Iteration, jax.Array]:
        return _swept(model, softmax, state, x, q, np.inf, not model.endless)

    return repeat(step, begin(x), 0.0, 1, True, _next_correction)


def _swept(
    model: Model,
    softmax: Softmax,
    state: Iteration,
    x: jax.Array,
    q: jax.Array,
    predicted: Any,
    slow: Any,
) -> tuple[Iteration, jax.Array]:
    """Where the iteration stands after a sweep from `x` to `q`, and the size of the change."""
    change = values(model, softmax, q) - x
    low, high = smallest(change), largest(change)
    facts = Facts(low, high, excess(model, change), predicted, slow, largest(jnp.abs(x)))
    numbers = jnp.stack([jnp.asarray(fact, x.dtype) for fact in facts])
    left = facts.excess if model.endless else jnp.maximum(high, -low)
    return state._replace(x=x, memory=Sweep(q, change, numbers)), left


def _next_correction(state: Iteration, change: jax.Array) -> jax.Array:
    """Its number; the first one is gone on with, and the others are chosen anew each time."""
    sweep: Sweep = state.memory
    facts = sweep.facts
    other = jnp.where(facts.excess <= TRUST * facts.predicted, KRYLOV, MANY)
    return jnp.maximum(jnp.where(facts.slow > 0, other, FEW), _rounded(state, change))


def _rounded(state: Iteration, change: jax.Array) -> jax.Array:
    """1 where no more than rounding is left to change."""
    sweep: Sweep = state.memory
    return (change <= ROUNDING * sweep.facts.size).astype(jnp.int32)
