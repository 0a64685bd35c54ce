"""Shifted sweeps: each sweep is followed by a shift of all values (MacQueen 1966).

Where no episode ends, adding a constant to all values changes the result of a sweep by the discount
times that constant. So whatever a sweep adds to all values alike, `c`, further sweeps would add
again and again: `discount c + discount^2 c + ... = c * discount / (1 - discount)`. The shift adds
this sum at once, with the middle of the sweep's change as `c`. What is left shrinks as fast as the
Markov chain forgets where it started, times the discount (Puterman 2005, section 6.6). Where
episodes end there is no shift, and these are synchronous sweeps of state values.
"""

from __future__ import annotations

import jax
from jax.typing import ArrayLike

from ...softmax import Softmax
from ..bellman import action_values
from ..loop import Check, Report, State, Steps, repeat
from ..problem import Model, Problem
from .corrected_sweep import CorrectedSweeps, LastSweep, has_rounded, shifted, swept

__all__ = ["Shifted"]


class Shifted(CorrectedSweeps):
    """Shifted sweeps."""

    name = "shifted"

    def can_loop(self, model: Model) -> bool:
        """Always: there is one way to shift."""
        return True

    def steps(self, problem: Problem, last: Report | None) -> Steps:
        """Sweeps, whatever came before."""
        return _sweeps


def _sweeps(
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
        x = shifted(model, state)
        q = action_values(model, x)
        return swept(model, softmax, state, x, q, summary.predicted, summary.slow)

    def check(state: State, change: jax.Array) -> Check:
        return Check(stop=has_rounded(state, change))

    return repeat(step, state, tolerance, limit, large=model.large, check=check, taken=taken)
