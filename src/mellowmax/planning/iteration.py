"""A loop of sweeps that can be left and taken up again.

Every method is a `step`. `repeat` takes steps until the last change is within the tolerance, at
most `limit` of them, as one compiled loop; it can go on from what it returned, and then gives the
same numbers as if it had never stopped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .backup import largest

__all__ = ["HISTORY", "ROUNDING", "Iteration", "begin", "repeat"]

HISTORY = 1024
"""The most steps of one call, and the length of its record of changes."""
ROUNDING = 16 * float(np.finfo(np.float64).eps)
"""Changes of this size, relative to the values, are rounding."""


class Iteration(NamedTuple):
    """Where an iteration stands."""

    x: Any  # q [S, A], or v [S]
    change: Any  # the size of the last step, by which the method judges itself
    taken: Any  # steps of the last call
    history: Any  # [HISTORY], their changes
    period: Any  # of the cycle that was found, or 0
    report: Any  # [4]: taken, change, the largest entry of x, period
    memory: Any  # what the method needs from step to step


def begin(x: jax.Array, memory: Any = ()) -> Iteration:
    """Before the first step."""
    none = np.int32(0)
    return Iteration(x, np.float64(np.inf), none, np.zeros(HISTORY), none, np.zeros(4), memory)


def repeat(
    step: Callable[[Iteration], Iteration],
    state: Iteration,
    tolerance: Any,
    limit: Any,
    large: bool,
) -> Iteration:
    """Steps until the change is within `tolerance`, a cycle is found, or `limit` are taken.

    For a `large` model one step is taken and no loop made: XLA on a CPU runs it faster then.
    """

    def unfinished(state: Iteration) -> Any:
        return (state.taken < limit) & ~(state.change <= tolerance) & (state.period == 0)

    def advance(state: Iteration) -> Iteration:
        new = step(state)
        history = state.history.at[state.taken].set(new.change)
        return new._replace(taken=state.taken + 1, history=history)

    state = state._replace(taken=jnp.zeros((), jnp.int32))
    state = advance(state) if large else jax.lax.while_loop(unfinished, advance, state)
    numbers = (state.taken, state.change, largest(jnp.abs(state.x)), state.period)
    return state._replace(report=jnp.stack([x.astype(jnp.float64) for x in numbers]))
