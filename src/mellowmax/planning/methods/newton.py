"""Newton's method, truncated: modified policy iteration and Newton-Krylov for any softmax.

A sweep of state values is `T(x) = f(q(x))` with `q(x) = r + discount * P x`, and changes `x` by
`F = T(x) - x`. Newton's step `d` solves

    (I - J) d = F,    J = discount * W P,

where `W` is the operator's gradient at `q(x)`, so that `J` is the derivative of the sweep. For the
maximum `W` picks the best action, `I - J` is the linear system of the greedy policy, and Newton's
method is policy iteration (Puterman and Brumelle 1979); the other operators are convex or concave,
and the same argument carries over.

The system is solved roughly, in single precision (`linear_systems`): by a short or a long series,
which is modified policy iteration (Puterman and Shin 1978), or by BiCGStab, which makes it a
Newton-Krylov method (Knoll and Keyes 2004); `next_correction` decides. Each of the three is a
compiled program of its own. Whatever a step is worth, the next sweep is in double precision and
shows what is left to correct.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from ...softmax import Softmax
from ..bellman import action_values
from ..loop import Check, Report, State, Steps, repeat
from ..problem import Model, Problem
from .corrected_sweep import (
    CorrectedSweeps,
    Correction,
    LastSweep,
    has_rounded,
    next_correction,
    swept,
)
from .derivative import derivative
from .linear_systems import LINEAR_SOLVERS

__all__ = ["Newton"]

ENOUGH = 0.3
"""A short series is enough if it leaves at most this part of the excess."""


class Newton(CorrectedSweeps):
    """Newton's method."""

    name = "newton"

    def can_loop(self, model: Model) -> bool:
        """Where no episode ends: there the short series comes first, and often suffices."""
        return model.endless

    def steps(self, problem: Problem, last: Report | None) -> Steps:
        """Steps with the correction that the last ones call for."""
        correction = Correction.SHORT_SERIES if last is None else Correction(last.correction)
        return _steps_with(correction, problem.greedy)


@functools.cache
def _steps_with(correction: Correction, greedy: bool) -> Steps:
    """Newton's steps with one kind of correction; `greedy`: is the value the maximum?"""
    solve = LINEAR_SOLVERS[correction]

    def steps(
        model: Model,
        softmax: Softmax,
        state: State,
        tolerance: ArrayLike,
        limit: ArrayLike,
        taken: int = 0,
    ) -> State:
        def step(state: State) -> tuple[State, jax.Array]:
            last: LastSweep = state.memory
            summary = last.summary
            matrix = derivative(model, softmax, last.q, greedy)
            size = jnp.maximum(summary.high, -summary.low)
            d, left = solve(model, matrix, last.change, size)
            slow = (summary.slow > 0) | (left > ENOUGH * summary.excess)
            x = state.x + d
            return swept(model, softmax, state, x, action_values(model, x), left, slow)

        return repeat(step, state, tolerance, limit, large=model.large, check=_check, taken=taken)

    return steps


def _check(state: State, change: jax.Array) -> Check:
    """Leave the loop for another kind of correction, or where only rounding is left."""
    correction = next_correction(state)
    stop = (correction != int(Correction.SHORT_SERIES)) | has_rounded(state, change)
    return Check(stop=stop, correction=correction)
