"""What shifted sweeps and Newton's method share: a sweep, and a correction before the next one.

The state is `x [S]`, the state values that the last sweep started from. With that sweep,
`q = r + discount * P x` and `F = f(q) - x`, it has all that a correction `d` needs; the next sweep
starts from `x + d`. Since both methods have the same state, one can resume where the other stopped,
and the last sweep is also what the bounds are computed from.

The change of a step is `max |F|`. Where no episode ends, a constant that is added to all values is
easily found, so that only the rest counts: the change is half the range of `F`, and the values that
are returned are shifted by what is missing.
"""

from __future__ import annotations

import enum
import functools
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import PartitionSpec as P
from jax.typing import ArrayLike

from ..._typing import Floats
from ...softmax import Softmax
from ..bellman import action_values, values
from ..bounds import EVIDENCE_SPECS, Evidence, of_sweep
from ..devices import STATES, largest, mean, namespace, smallest, stacked
from ..loop import (
    ROUNDING_OF_A_CHANGE,
    Check,
    Method,
    State,
    Steps,
    before_the_first_step,
    repeat,
)
from ..problem import Model, Problem

__all__ = [
    "CorrectedSweeps",
    "Correction",
    "LastSweep",
    "SweepSummary",
    "excess",
    "has_rounded",
    "next_correction",
    "shift",
    "shifted",
    "swept",
]


TRUST = 2.0
"""The linear model predicted well if the excess is at most this many times its prediction."""


class Correction(enum.IntEnum):
    """How Newton's method solves its linear system."""

    SHORT_SERIES = 0
    LONG_SERIES = 1
    KRYLOV = 2


class LastSweep(NamedTuple):
    """The sweep from `x`."""

    q: jax.Array  # [S, A], r + discount * P x
    change: jax.Array  # [S], F = f(q) - x
    numbers: jax.Array  # those of `SweepSummary` in one array: each array costs time at a call

    @property
    def summary(self) -> SweepSummary:
        """The numbers by name."""
        return SweepSummary(*self.numbers)


class SweepSummary(NamedTuple):
    """A sweep in numbers, and what Newton's method has learnt by then.

    In main memory, `slow` is the number of its steps, and nothing is predicted.
    """

    low: jax.Array  # the minimum of F
    high: jax.Array  # the maximum of F
    excess: jax.Array  # of F
    predicted: jax.Array | float  # the excess that the correction before should have left
    slow: jax.Array | float  # has a short series turned out not to be enough? 0 or 1
    size: jax.Array  # the largest absolute value of `x`


def shift(model: Model, low: ArrayLike, high: ArrayLike) -> ArrayLike:
    """What all values are shifted by after a change from `low` to `high`; 0 where episodes end.

    If a sweep adds `c` to all values, the sweeps after it add `discount c + discount^2 c + ...`;
    `c` is the middle of the change. Where episodes end, there is nothing to shift: the end is worth
    0, and all values are relative to it.
    """
    if not model.endless:
        return 0.0
    return (low + high) / 2 * (model.discount / (1 - model.discount))


def shifted(model: Model, state: State) -> jax.Array:
    """The state values from which the next sweep starts where nothing but a shift comes before."""
    last: LastSweep = state.memory
    summary = last.summary
    return state.x + (last.change + shift(model, summary.low, summary.high))


def excess(model: Model, x: jax.Array) -> jax.Array:
    """How large a change is: the mean size, or half the range where a shift removes the rest."""
    size = (largest(x) - smallest(x)) / 2 if model.endless else mean(abs(x))
    return size.astype(np.float64)


def swept(
    model: Model,
    softmax: Softmax,
    state: State,
    x: jax.Array,
    q: jax.Array,
    predicted: jax.Array | float,
    slow: jax.Array | float,
) -> tuple[State, jax.Array]:
    """The state after a sweep from `x` to `q`, and the size of its change."""
    change = values(model, softmax, q) - x
    low, high = smallest(change), largest(change)
    left = excess(model, change)
    summary = SweepSummary(low, high, left, predicted, slow, largest(abs(x)))
    size = left if model.endless else namespace(x).maximum(high, -low)
    return state._replace(x=x, memory=LastSweep(q, change, stacked(summary, x))), size


def next_correction(state: State) -> jax.Array:
    """The `Correction` that Newton's method takes next.

    A short series is taken until it turns out to be too slow. After that BiCGStab is taken, which
    relies on the linear model, if that model has predicted the last sweep well; otherwise a long
    series.
    """
    last: LastSweep = state.memory
    summary = last.summary
    trusted = summary.excess <= TRUST * summary.predicted
    xp = namespace(last.numbers)
    other = xp.where(trusted, int(Correction.KRYLOV), int(Correction.LONG_SERIES))
    return xp.where(summary.slow > 0, other, int(Correction.SHORT_SERIES))


def has_rounded(state: State, change: jax.Array) -> jax.Array:
    """Is no more than rounding left to change?"""
    last: LastSweep = state.memory
    return change <= ROUNDING_OF_A_CHANGE * last.summary.size


class CorrectedSweeps(Method):
    """A method that corrects the values before each sweep."""

    @abstractmethod
    def can_loop(self, model: Model) -> bool:
        """Is one correction taken again and again, so that steps can be one compiled loop?"""

    def start(
        self, problem: Problem, initial: float | Floats, tolerance: float, limit: np.int32
    ) -> State:
        """The first sweep; for a small model the loop and the evidence are in the same program."""
        model = problem.model
        first: Callable[..., State] = _from_number
        start: ArrayLike = initial
        if not isinstance(initial, float):
            first = _from_action_values
            start = problem.place_pairs(problem.action_values(initial))
        each = P(STATES)
        memory: Any = LastSweep(model.pairs, each, P())  # type: ignore[arg-type]
        specs = State(each, P(), memory)  # type: ignore[arg-type]
        state: State
        if problem.mesh is None or model.large or not self.can_loop(model):
            state = problem.call(first, specs, start)
        else:
            whole = _in_one_program(first, self.steps(problem, None))
            specs = specs._replace(evidence=EVIDENCE_SPECS)
            state = problem.call(whole, specs, start, tolerance, limit)
        return state

    @staticmethod
    def evidence(model: Model, softmax: Softmax, state: State) -> Evidence:
        """What the last sweep says of `q`, shifted by what is missing."""
        last: LastSweep = state.memory
        by = shift(model, last.summary.low, last.summary.high)
        return of_sweep(model, softmax, state.x, last.q, last.change, by)

    @staticmethod
    def action_values(state: State) -> jax.Array:
        """`q` of the last sweep."""
        last: LastSweep = state.memory
        return last.q


def _from_number(model: Model, softmax: Softmax, start: ArrayLike) -> State:
    """The first sweep, from equal values: where no episode ends it needs no transitions."""
    x = namespace(model.terminal).where(model.terminal, 0.0, start)
    if model.endless:
        return _first(model, softmax, x, model.rewards + model.discount * start)
    return _first(model, softmax, x, action_values(model, x))


def _from_action_values(model: Model, softmax: Softmax, q: jax.Array) -> State:
    """The first sweep, from given action values."""
    x = values(model, softmax, q)
    return _first(model, softmax, x, action_values(model, x))


def _first(model: Model, softmax: Softmax, x: jax.Array, q: jax.Array) -> State:
    """The first sweep; where episodes end, a short series is known to be slow."""

    def step(state: State) -> tuple[State, jax.Array]:
        return swept(model, softmax, state, x, q, np.inf, not model.endless)

    def check(state: State, change: jax.Array) -> Check:
        return Check(correction=next_correction(state))

    return repeat(step, before_the_first_step(x), 0.0, 1, large=True, check=check)


@functools.cache
def _in_one_program(first: Callable[..., State], steps: Steps) -> Callable[..., State]:
    """The first sweep, steps, and the evidence for where they end."""

    def whole(
        model: Model, softmax: Softmax, start: ArrayLike, tolerance: ArrayLike, limit: ArrayLike
    ) -> State:
        state = steps(model, softmax, first(model, softmax, start), tolerance, limit, taken=1)
        return state._replace(evidence=CorrectedSweeps.evidence(model, softmax, state))

    return whole
