"""Synchronous sweeps: all of `q` is replaced together, `q <- r + discount * P f(q)`.

This is value iteration with a softmax in place of the maximum (Littman and Szepesvari 1996). If
the softmax is a non-expansion, each sweep shrinks the distance to the fixed point by the discount.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from ...softmax import Softmax
from ..bellman import action_values, values
from ..devices import largest
from ..loop import Report, State, Steps, repeat
from ..problem import Model, Problem
from .plain_sweep import PlainSweeps, cycle_check, watched

__all__ = ["Synchronous"]


class Synchronous(PlainSweeps):
    """Synchronous sweeps."""

    name = "synchronous"

    def steps(self, problem: Problem, last: Report | None) -> Steps:
        """Sweeps, whatever came before."""
        return _sweeps


def _sweeps(
    model: Model, softmax: Softmax, state: State, tolerance: ArrayLike, limit: ArrayLike
) -> State:
    def step(state: State) -> tuple[State, jax.Array]:
        new = action_values(model, values(model, softmax, state.x))
        change = largest(jnp.abs(new - state.x))
        return watched(state._replace(x=new), softmax, change > tolerance), change

    return repeat(step, state, tolerance, limit, large=model.large, check=cycle_check)
