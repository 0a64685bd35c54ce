"""Generalised value iteration (Algorithm 2) for thousands of small MDPs.

`iterate` runs the paper's in-place sweeps for many lanes at once: a lane is an MDP, a softmax with
its parameter, a discount and initial values. One run records for each of several `deltas` the sweep
whose largest change first fell below it. What a lane gives does not depend on the lanes beside it,
nor on how much its MDP is padded, bit for bit.

The lanes are the last axis, and a block of `WIDTH` is one compiled program; in a sweep only the
value of the state that changed is computed again. Lanes of equal sizes share blocks, so that a
block's loops are as short as its MDPs allow. Every `STAGE` sweeps the lanes that are done leave,
and the others close ranks.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from ..._common.threads import on_all_cores
from ...softmax import Softmax
from .mdps import Batch

__all__ = ["Run", "iterate"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int32]

WIDTH = 128
"""How many lanes a block has."""
STAGE = 64
"""Sweeps after which the lanes that are done leave."""


class Run(NamedTuple):
    """What sweeps came to."""

    iterations: Integers  # [deltas, lanes], sweeps until the change is below; 0 where it never is
    q: Floats  # [lanes, S, A], after the last sweep that counts


def iterate(
    batch: Batch,
    softmax: Softmax,
    *,
    discount: Any,
    deltas: Sequence[float],
    lanes: Any = None,
    initial: Any = 0.0,
    limit: int = 1000,
    synchronous: bool = False,
) -> Run:
    """Sweeps in place until no value changes by `delta` or more, for each of several deltas.

    Args:
        batch: the MDPs; their own discounts do not count.
        softmax: any pair, with one parameter or one for each lane.
        discount: one number, or one for each lane.
        deltas: where to stop, in descending order; sweeps go on to the last.
        lanes: the MDP of each lane, as its place in `batch`; None for each once.
        initial: the values to begin with: a number, or one for each lane, or `[lanes, S, A]`. A
            terminal state has 0.
        limit: the most sweeps.
        synchronous: replace all values of a sweep together? That is not Algorithm 2.

    Returns:
        The counts, where the sweep whose change is below `delta` counts too, and the values.
    """
    if list(deltas) != sorted(deltas, reverse=True):
        raise ValueError(f"`deltas` must be in descending order, got {list(deltas)}")
    where = np.arange(len(batch)) if lanes is None else np.asarray(lanes)
    total = len(where)
    discounts = np.broadcast_to(np.asarray(discount, np.float64), total)
    pair = jax.tree.map(lambda x: np.broadcast_to(np.asarray(x, np.float64), total), softmax)
    values = np.asarray(initial, np.float64)
    values = values.reshape(*values.shape, *([1] * (3 - values.ndim)))
    q = np.where(batch.allowed[where] & batch.live[where, :, None], values, 0.0)
    iterations = np.zeros((len(deltas), total), np.int32)
    sizes = batch.sizes[where]
    left = np.lexsort((sizes[:, 1], sizes[:, 0]))
    limits = np.asarray(deltas, np.float64)
    cpu = jax.local_devices(backend="cpu")[0]  # an accelerator gains nothing with so few lanes

    def advance(chosen: Any, done: int) -> None:
        """Take the lanes of a block further, at most to the end of a stage."""
        full = np.resize(chosen, WIDTH) if len(chosen) < WIDTH else chosen
        mdps = where[full]
        model = (
            np.moveaxis(batch.rewards[mdps], 0, -1),
            np.moveaxis(batch.transitions[mdps] * discounts[full, None, None, None], 0, -1),
            np.moveaxis(batch.allowed[mdps], 0, -1),
        )
        own = jax.tree.map(lambda x: x[full], pair)
        ends = np.int32(done), np.int32(min(done + STAGE, limit))
        loops = sizes[full].max(0)
        with jax.enable_x64(True), jax.default_device(cpu):
            start = np.moveaxis(q[full], 0, -1)
            result = _program(model, own, start, limits, loops, ends, synchronous)
        now, counts = (np.moveaxis(np.asarray(x), -1, 0)[: len(chosen)] for x in result)
        q[chosen] = now
        iterations[:, chosen] = np.where(
            iterations[:, chosen] == 0, counts.T, iterations[:, chosen]
        )

    for done in range(0, limit, STAGE):
        blocks = [left[i : i + WIDTH] for i in range(0, len(left), WIDTH)]
        on_all_cores(functools.partial(advance, done=done), blocks)
        left = left[iterations[-1, left] == 0]
    return Run(iterations, q)


def _sweeps(
    model: Any, softmax: Softmax, q: Any, deltas: Any, loops: Any, ends: Any, synchronous: bool
) -> Any:
    """Sweeps `ends[0]` to `ends[1]` of a block: `q [S, A, B]` and counts `[deltas, B]`."""
    rewards, flow, allowed = model
    n_states, _, width = q.shape
    first, last = ends
    there = allowed.at[:, 0].set(True)  # a state that is only padding has the value 0

    def one_state(s: Any, carry: Any) -> Any:
        q, v, change = carry

        def update(a: Any, carry: Any) -> Any:
            row, v, change = carry
            expected = functools.reduce(jnp.add, [flow[s, a, k] * v[k] for k in range(n_states)])
            new = rewards[s, a] + expected
            change = jnp.maximum(change, jnp.abs(new - row[a]))
            row = row.at[a].set(new)
            return row, v.at[s].set(softmax.value(row, axis=0, where=there[s])), change

        row, v, change = jax.lax.fori_loop(0, loops[1], update, (q[s], v, change))
        return q.at[s].set(row), v, change

    def all_states(q: Any, v: Any) -> Any:
        parts = [flow[:, :, k] * v[k][None, None] for k in range(n_states)]
        new = rewards + functools.reduce(jnp.add, parts)
        return new, softmax.value(new, axis=1, where=there), jnp.max(jnp.abs(new - q), (0, 1))

    def sweep(carry: Any) -> Any:
        done, q, v, counts = carry
        if synchronous:
            new_q, new_v, change = all_states(q, v)
        else:
            begin = (q, v, jnp.zeros(width))
            new_q, new_v, change = jax.lax.fori_loop(0, loops[0], one_state, begin)
        going = counts[-1] == 0
        below = (change[None] < deltas[:, None]) & (counts == 0)
        return (
            done + 1,
            jnp.where(going[None, None], new_q, q),
            jnp.where(going[None], new_v, v),
            jnp.where(below, done + 1, counts),
        )

    def unfinished(carry: Any) -> Any:
        done, _, _, counts = carry
        return (done < last) & jnp.any(counts[-1] == 0)

    v = softmax.value(q, axis=1, where=there)
    counts = jnp.zeros((len(deltas), width), jnp.int32)
    _, q, _, counts = jax.lax.while_loop(unfinished, sweep, (first, q, v, counts))
    return q, counts


_program = jax.jit(_sweeps, static_argnums=6)
