"""In-place sweeps: the paper's Algorithm 2.

`Q(s, a)` is replaced at once, state by state and action by action, and the next update sees it. The
value of a state is computed again after each of its actions. Since an update waits for the one
before, this runs on one device, and on the CPU unless the caller asks otherwise.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from ...softmax import Softmax
from ..bellman import entries, successor_values, values, worth
from ..loop import Report, State, Steps, repeat
from ..problem import Model, Problem
from .plain_sweep import PlainSweeps, cycle_check, watched

__all__ = ["InPlace"]


class InPlace(PlainSweeps):
    """The paper's Algorithm 2."""

    name = "in-place"
    sweeps_of_a_step = 200

    def steps(self, problem: Problem, last: Report | None) -> Steps:
        """Sweeps, whatever came before."""
        return _sweeps


def _sweeps(
    model: Model, softmax: Softmax, state: State, tolerance: ArrayLike, limit: ArrayLike
) -> State:
    n_states, n_actions = state.x.shape

    def update(i: jax.Array, carry: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        q, v, change = carry
        s, a = i // n_actions, i % n_actions
        pair = _of_state(softmax, s)
        new = _action_value(model, s, a, v)
        change = jnp.maximum(change, jnp.abs(new - q[s, a]))
        q = q.at[s, a].set(new)
        row = None if model.allowed is None else model.allowed[s]
        value = worth(pair, pair.value(q[s], where=row), model.terminal[s])
        return q, v.at[s].set(value), change

    def step(state: State) -> tuple[State, jax.Array]:
        start = (state.x, values(model, softmax, state.x), jnp.zeros((), state.x.dtype))
        q, _, change = jax.lax.fori_loop(0, n_states * n_actions, update, start)
        return watched(state._replace(x=q), softmax, change > tolerance), change

    return repeat(step, state, tolerance, limit, large=False, check=cycle_check)


def _action_value(model: Model, s: jax.Array, a: jax.Array, v: jax.Array) -> jax.Array:
    """One action value: `r(s, a) + discount * sum_k p_k v_k` over the branches `k`."""
    known = successor_values(model, v)
    if model.successors is None:
        expected = model.probabilities[s, a] @ known
    else:
        branches = entries(known, model.successors[:, s, a])
        expected = jnp.sum(model.probabilities[:, s, a] * branches)
    return model.rewards[s, a] + model.discount * expected


def _of_state(softmax: Softmax, s: jax.Array) -> Softmax:
    """The softmax with the parameter of one state, where each has its own."""
    return jax.tree.map(lambda x: x[s] if jnp.ndim(x) else x, softmax)
