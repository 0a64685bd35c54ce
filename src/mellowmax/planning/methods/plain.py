"""Sweep after sweep: the paper's Algorithm 2 and its simultaneous form.

- In place: `Q(s, a)` is replaced at once, state by state and action by action, and the next update
  sees it (Algorithm 2).
- Synchronous: all of `Q` is replaced together.

Without a proof of convergence (Boltzmann) a sequence of sweeps can end in a cycle. It is found by
Brent's method: the current values are compared with those of an earlier sweep, which is replaced at
the sweeps 1, 2, 4, 8, ... A cycle is where they come back to within rounding.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...softmax import Softmax
from ..bounds import of_action_values
from ..loop import Iteration, repeat
from ..sweep import Model, action_values, entries, largest, values

__all__ = [
    "Earlier",
    "evidence",
    "in_place",
    "since",
    "synchronous",
]

RETURN = 64 * 2.0**-52
"""How near to an earlier `q`, relative to its size, is a return to it."""


class Earlier(NamedTuple):
    """Values of an earlier sweep, with which later ones are compared."""

    q: Any  # [S, A]
    age: Any  # how many sweeps ago they were current
    patience: Any  # how old they may get
    period: Any  # of the cycle that was found, or 0


def since(q: jax.Array) -> Earlier:
    """The memory of an iteration that begins with `q`."""
    return Earlier(q, np.int32(0), np.int32(1), np.int32(0))


def synchronous(
    model: Model, softmax: Softmax, state: Iteration, tolerance: Any, limit: Any
) -> Iteration:
    """All of `q` is replaced together."""

    def step(state: Iteration) -> tuple[Iteration, jax.Array]:
        new = action_values(model, values(model, softmax, state.x))
        change = largest(jnp.abs(new - state.x))
        return _watched(state._replace(x=new), softmax, change > tolerance), change

    return repeat(step, state, tolerance, limit, model.large, _period)


def in_place(
    model: Model, softmax: Softmax, state: Iteration, tolerance: Any, limit: Any
) -> Iteration:
    """`q` is replaced entry by entry, in the order of the paper's Algorithm 2."""
    n_states, n_actions = state.x.shape

    def update(i: Any, carry: Any) -> Any:
        q, v, change = carry
        s, a = i // n_actions, i % n_actions
        new = _one_value(model, s, a, v)
        change = jnp.maximum(change, jnp.abs(new - q[s, a]))
        q = q.at[s, a].set(new)
        row = None if model.allowed is None else model.allowed[s]
        return q, v.at[s].set(_of_state(softmax, s).value(q[s], where=row)), change

    def step(state: Iteration) -> tuple[Iteration, jax.Array]:
        start = (state.x, values(model, softmax, state.x), jnp.zeros((), state.x.dtype))
        q, _, change = jax.lax.fori_loop(0, n_states * n_actions, update, start)
        return _watched(state._replace(x=q), softmax, change > tolerance), change

    return repeat(step, state, tolerance, limit, False, _period)


def evidence(model: Model, softmax: Softmax, state: Iteration) -> Any:
    """What a further sweep says of the values there."""
    return of_action_values(model, softmax, state.x)


def _watched(state: Iteration, softmax: Softmax, going: jax.Array) -> Iteration:
    """With the period of the cycle, where the sweep came back to earlier values."""
    if softmax.non_expansion:
        return state
    earlier = state.memory
    age = earlier.age + 1
    distance = largest(jnp.abs(state.x - earlier.q))
    returned = (distance <= RETURN * largest(jnp.abs(state.x))) & going
    replace = ~returned & (age >= earlier.patience)
    memory = Earlier(
        jnp.where(replace, state.x, earlier.q),
        jnp.where(replace, 0, age),
        jnp.where(replace, 2 * earlier.patience, earlier.patience),
        jnp.where(returned, age, 0),
    )
    return state._replace(memory=memory)


def _period(state: Iteration, change: jax.Array) -> Any:
    """Of a cycle; 0 where there is none, or where none is looked for."""
    return state.memory.period if isinstance(state.memory, Earlier) else 0


def _one_value(model: Model, s: Any, a: Any, v: jax.Array) -> jax.Array:
    """One action value: `r(s, a) + discount * sum_k p v`."""
    if model.successors is None:
        expected = model.probabilities[s, a] @ v
    else:
        known = jnp.append(v, jnp.zeros(1, v.dtype)) if model.ends else v
        branches = entries(known, model.successors[:, s, a])
        expected = jnp.sum(model.probabilities[:, s, a] * branches)
    return model.rewards[s, a] + model.discount * expected


def _of_state(softmax: Softmax, s: Any) -> Softmax:
    """The softmax with the parameter of one state, where each has its own."""
    own: Softmax = jax.tree.map(lambda x: x[s] if jnp.ndim(x) else x, softmax)
    return own
