"""A loop of sweeps that can be left and taken up again.

Every method is a `step`. `repeat` takes steps until the last change is within the tolerance, at
most `limit` of them, as one compiled loop; it can go on from what it returned, and then gives the
same numbers as if it had never stopped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np

from .sweep import largest

__all__ = ["HISTORY", "ROUNDING", "Iteration", "Record", "begin", "repeat"]

HISTORY = 1024
"""The most steps of one call, and the length of its record of changes."""
NUMBERS = 4
"""What a record has before them."""
ROUNDING = 16 * float(np.finfo(np.float64).eps)
"""Changes of this size, relative to the values, are rounding."""


class Iteration(NamedTuple):
    """Where an iteration stands."""

    x: Any  # q [S, A], or v [S]
    record: Any  # of the last call: steps, change, size of x, signal; then the change of each step
    memory: Any  # what the method needs from step to step


class Record(NamedTuple):
    """What the record of a call says."""

    taken: int  # how many steps
    change: float  # the size of the last, by which the method judges itself
    size: float  # the largest entry of x
    signal: int  # the method's own
    changes: Any  # [taken]

    @classmethod
    def of(cls, state: Iteration) -> Self:
        """Read where an iteration stands, as soon as it is there."""
        record = np.asarray(state.record)
        taken, change, size, signal = record[:NUMBERS].tolist()
        return cls(int(taken), change, size, int(signal), record[NUMBERS:][: int(taken)])


def begin(x: jax.Array, memory: Any = ()) -> Iteration:
    """Before the first step."""
    return Iteration(x, np.zeros(NUMBERS + HISTORY), memory)


def repeat(
    step: Callable[[Iteration], tuple[Iteration, jax.Array]],
    state: Iteration,
    tolerance: Any,
    limit: Any,
    large: bool,
    signal: Callable[[Iteration, jax.Array], Any],
    taken: int = 0,
) -> Iteration:
    """Steps until the change is within `tolerance`, there is a signal, or `limit` are taken.

    Args:
        step: from where an iteration stands to where it stands then, and the size of the change.
        state: where it stands.
        tolerance: a change that ends it.
        limit: the most steps to record.
        large: take one step and make no loop? XLA on a CPU runs that of a large model faster so.
        signal: from both results of a step to a number; any but 0 ends it, and means what the
            method means by it.
        taken: steps that the record has already; without any, at least one is taken.
    """

    def unfinished(carry: Any) -> Any:
        state, taken, change = carry
        going = (taken < limit) & ~(change <= tolerance) & (signal(state, change) == 0)
        return (taken == 0) | going

    def advance(carry: Any) -> Any:
        state, taken, _ = carry
        new, change = step(state)
        record = jnp.asarray(state.record).at[NUMBERS + taken].set(change)
        return new._replace(record=record), taken + 1, change

    carry = state, jnp.int32(taken), jnp.asarray(state.record[1])
    carry = advance(carry) if large else jax.lax.while_loop(unfinished, advance, carry)
    state, number, change = carry
    numbers = (number, change, largest(jnp.abs(state.x)), signal(state, change))
    head = jnp.stack([jnp.asarray(x, jnp.float64) for x in numbers])
    return state._replace(record=state.record.at[:NUMBERS].set(head))
