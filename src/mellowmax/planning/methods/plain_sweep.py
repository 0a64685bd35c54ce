"""What in-place and synchronous sweeps share: a state that is `q` itself, watched for cycles.

The change of a sweep is `max |new q - q|`. One further sweep at the end gives the bounds.
"""

from __future__ import annotations

import jax
import numpy as np

from ..._typing import Floats
from ...softmax import Softmax
from ..bounds import Evidence, of_action_values
from ..loop import Check, Method, State, before_the_first_step
from ..problem import Model, Problem
from .cycles import Earlier, compared, since

__all__ = ["PlainSweeps", "cycle_check", "watched"]


class PlainSweeps(Method):
    """A method that repeats sweeps of action values and nothing else."""

    def start(
        self, problem: Problem, initial: float | Floats, tolerance: float, limit: np.int32
    ) -> State:
        """The first sweeps."""
        q = problem.action_values(initial)
        state = before_the_first_step(problem.place_pairs(q))
        if not problem.softmax.non_expansion:  # a copy of its own: the state's memory is donated
            state = state._replace(memory=since(problem.place_pairs(q.copy())))
        return self.advanced(problem, state, None, tolerance, limit)

    @staticmethod
    def evidence(model: Model, softmax: Softmax, state: State) -> Evidence:
        """The evidence at `q`, by a further sweep."""
        return of_action_values(model, softmax, state.x)

    @staticmethod
    def action_values(state: State) -> jax.Array:
        """`q` is the state."""
        return state.x


def watched(state: State, softmax: Softmax, unfinished: jax.Array) -> State:
    """The state after a sweep, with the period of a cycle where one was found."""
    if softmax.non_expansion:  # sweeps converge
        return state
    return state._replace(memory=compared(state.memory, state.x, unfinished))


def cycle_check(state: State, change: jax.Array) -> Check:
    """Stop in a cycle."""
    if not isinstance(state.memory, Earlier):
        return Check()
    period = state.memory.period
    return Check(stop=period > 0, period=period)
