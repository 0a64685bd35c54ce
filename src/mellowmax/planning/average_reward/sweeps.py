"""Relative value iteration: sweeps of state values that are kept from growing.

The next `h` is `h + 0.9 (d - c)`, with the middle `c` of the change `d` of a sweep. With a whole
step instead of 0.9, a chain that returns to a state only after a multiple of two or more steps
would make `d` repeat itself without end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np
from jax.typing import ArrayLike

from ..._typing import Floats
from ...softmax import Softmax
from ..bellman import action_values, values
from ..devices import largest, namespace, place_array, smallest
from ..loop import (
    Check,
    Iteration,
    Report,
    State,
    Steps,
    before_the_first_step,
    repeat,
)
from ..problem import Model, Problem

__all__ = ["RelativeValueIteration", "half_range"]

STEP = 0.9
"""How much of the change of a sweep is taken."""
LAST_DIGIT = float(np.finfo(np.float64).eps)
"""The last digit of a number, relative to the number."""
AT_REST = 1e-9
"""The part of the range of the change by which it may still differ from sweep to sweep when it has
settled."""


class _LastChange(NamedTuple):
    """What one sweep remembers of the one before."""

    change: jax.Array  # [S]
    moved: jax.Array | float  # the largest difference to the change before


class RelativeValueIteration(Iteration):
    """Sweeps of state values that are kept from growing."""

    name = "relative value iteration"

    def start(
        self, problem: Problem, initial: float | Floats, tolerance: float, limit: np.int32
    ) -> State:
        """The first sweeps, from equal values."""
        zeros = np.full(problem.mdp.n_states, initial)
        assert problem.mesh is not None
        x, change = (place_array(zeros.copy(), problem.mesh) for _ in range(2))
        state = before_the_first_step(x, _LastChange(change, np.float64(np.inf)))
        return self.advanced(problem, state, None, tolerance, limit)

    def best(self, state: State) -> Any:
        """The last values, `[S]`, which are the best."""
        return state.x

    def steps(self, problem: Problem, last: Report | None) -> Steps:
        """Sweeps, whatever came before."""
        return _sweeps


def _sweeps(
    model: Model, softmax: Softmax, state: State, tolerance: ArrayLike, limit: ArrayLike
) -> State:
    def step(state: State) -> tuple[State, jax.Array]:
        change = values(model, softmax, action_values(model, state.x)) - state.x
        moved = largest(abs(change - state.memory.change))
        middle = (smallest(change) + largest(change)) / 2
        x = state.x + STEP * (change - middle)
        left = half_range(state.x, change)
        return state._replace(x=x, memory=_LastChange(change, moved)), left

    return repeat(step, state, tolerance, limit, large=model.large, check=_at_rest)


def half_range(x: jax.Array, change: jax.Array) -> jax.Array:
    """Half the range of the change of a sweep from `x`; at least the last digit of `x`."""
    left = (largest(change) - smallest(change)) / 2
    return namespace(x).maximum(left, LAST_DIGIT * largest(abs(x)))


def _at_rest(state: State, change: jax.Array) -> Check:
    """Stop where sweep after sweep changes the states differently, and by the same as before."""
    rest = state.memory.moved <= AT_REST * change
    rest &= change > AT_REST * largest(abs(state.x))  # or it is rounding
    return Check(stop=rest, period=namespace(state.x).where(rest, 2, 0))
