"""Generalised value iteration (Algorithm 2) for thousands of small MDPs.

Algorithm 2 sweeps over the states and actions of an MDP and replaces each action value in place,

    q(s, a) = r(s, a) + discount * sum_t P(s, a, t) f(q(t, .)),

until the largest change of a sweep is below a tolerance, the paper's delta. Here many MDPs are
swept at once, and one run records for each of several tolerances after how many sweeps the change
first fell below it. What an MDP gives does not depend on the others in the batch, nor on how much
it is padded, bit for bit.

The MDPs are the last axis of every array, and a block of `_BLOCK` MDPs is one call of a compiled
program. Within a sweep only the value of the state whose action value was replaced is computed
again. MDPs of equal sizes share blocks, so that a block's loops are as short as its MDPs allow.
After every `_STAGE` sweeps the MDPs that have converged are left out, and the others are put into
new blocks.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from ..._common import checks
from ..._common.compiled_programs import keep_compiled_programs
from ..._common.threads import on_all_cores
from ..._typing import ArrayLike, Bools, Floats, Integers
from ...softmax import Softmax
from ..bellman import worth
from .mdps import Batch, discount_of_each, softmax_of_each

__all__ = ["ValueIterationResult", "value_iteration"]

_BLOCK = 128  # MDPs
_STAGE = 64  # sweeps
_METHODS = ("in-place", "synchronous")


class ValueIterationResult(NamedTuple):
    """The number of sweeps that value iteration took, and the final values."""

    iterations: Integers
    """`[T, N]`: sweeps until the largest change was below each of T tolerances, the last of these
    sweeps counted; 0 where it never was."""
    q: Floats
    """`[N, S, A]`: action values after the sweep that met the last tolerance, or the last sweep;
    -inf where there is no such state, or the action is not allowed in it."""

    @property
    def converged(self) -> Bools:
        """`[T, N]`: was each tolerance met?"""
        return self.iterations > 0


def value_iteration(
    batch: Batch,
    softmax: Softmax,
    *,
    tolerances: Sequence[float] = (1e-8,),
    discount: ArrayLike | None = None,
    initial: ArrayLike = 0.0,
    max_iterations: int = 1000,
    method: str = "in-place",
) -> ValueIterationResult:
    """Value iteration under a softmax in each MDP of a batch.

    Args:
        batch: the MDPs, N of them.
        softmax: any pair, with one parameter or one for each MDP.
        tolerances: where to stop, the paper's delta: when a sweep changes every value by less than
            this. Several are in descending order, and sweeps end at the last of them.
        discount: in [0, 1]: one number, or one for each MDP; None for the MDPs' own.
        initial: the values to begin with: a number, one for each MDP, or an array that broadcasts
            to `[N, S, A]`. Terminal states have 0.
        max_iterations: the most sweeps; the paper's experiments stop at 1000 (section 7.1).
        method: `"in-place"` is Algorithm 2; `"synchronous"` replaces all values of a sweep
            together.

    Returns:
        The number of sweeps for each tolerance and MDP, and the values.

    Raises:
        ValueError: if an argument is out of range.

    Examples:
        The two-state MDP from two initial values, which lead to different fixed points (section
        4), and the sweeps that two tolerances take:

        >>> from mellowmax import Boltzmann
        >>> from mellowmax.mdp import two_state
        >>> batch = Batch.of([two_state()])[[0, 0]]
        >>> options = {"tolerances": [1e-3, 1e-8], "max_iterations": 10_000}
        >>> result = value_iteration(batch, Boltzmann(16.55), initial=[0.0, 1.4], **options)
        >>> print(result.q[:, 0].round(3))
        [[0.491 0.587]
         [0.688 0.885]]
        >>> print(result.iterations)
        [[  53  124]
         [1023 3338]]

    References:
        Asadi and Littman (2017), Algorithm 2 and section 7.1.
    """
    keep_compiled_programs()
    limits = checks.numbers("tolerances", tolerances)
    falling = limits.ndim == 1 and len(limits) and (np.diff(limits) <= 0).all()
    if not (falling and (limits >= 0).all()):
        raise ValueError(
            f"`tolerances` must be numbers of at least 0 in descending order, got {tolerances}"
        )
    checks.one_of("method", method, _METHODS)
    max_iterations = checks.whole("max_iterations", max_iterations, 1)
    discounts = discount_of_each(batch, discount, below_one=False)
    pair = softmax_of_each(batch, softmax)
    q = _initial_values(batch, initial)
    iterations = np.zeros((len(limits), len(batch)), np.int32)
    left = np.lexsort((batch.sizes[:, 1], batch.sizes[:, 0]))
    cpu = jax.local_devices(backend="cpu")[0]  # an accelerator gains nothing with so few MDPs

    def advance(chosen: Integers, done: int) -> None:
        """Take a block further, at most to the end of a stage."""
        full = np.resize(chosen, _BLOCK) if len(chosen) < _BLOCK else chosen
        flow = batch.transitions[full] * discounts[full, None, None, None]
        arrays = (batch.rewards[full], flow, batch.allowed[full], batch.terminal[full])
        model = tuple(np.moveaxis(array, 0, -1) for array in arrays)
        own = jax.tree.map(lambda x: x[full], pair)
        ends = np.int32(done), np.int32(min(done + _STAGE, max_iterations))
        loops = batch.sizes[full].max(0)
        with jax.enable_x64(True), jax.default_device(cpu):
            start = np.moveaxis(q[full], 0, -1)
            result = _program(model, own, start, limits, loops, ends, method == "synchronous")
        now, counts = (np.moveaxis(np.asarray(x), -1, 0)[: len(chosen)] for x in result)
        q[chosen] = now
        iterations[:, chosen] = np.where(
            iterations[:, chosen] == 0, counts.T, iterations[:, chosen]
        )

    for done in range(0, max_iterations, _STAGE):
        blocks = [left[i : i + _BLOCK] for i in range(0, len(left), _BLOCK)]
        on_all_cores(functools.partial(advance, done=done), blocks)
        left = left[iterations[-1, left] == 0]
    return ValueIterationResult(iterations, np.where(batch.allowed, q, -np.inf))


def _initial_values(batch: Batch, initial: ArrayLike) -> Floats:
    """`[N, S, A]`, 0 where no action can be taken."""
    values = checks.numbers("initial", initial)
    by_mdp = values.reshape(*values.shape, *([1] * (3 - values.ndim)))
    shape = batch.rewards.shape
    try:
        q = np.where(batch.available, np.broadcast_to(by_mdp, shape), 0.0)
    except ValueError as error:
        raise ValueError(
            f"`initial` must be a number, one for each of the {len(batch)} MDPs, or broadcast to "
            f"{shape}, got the shape {values.shape}"
        ) from error
    if not np.isfinite(q).all():
        raise ValueError(f"`initial` must be finite, got {q[~np.isfinite(q)].flat[0]}")
    return q


_Block: TypeAlias = tuple[jax.Array, jax.Array, jax.Array, jax.Array]
"""Rewards `[S, A, B]`, flow `[S, A, S, B]`, allowed `[S, A, B]` and terminal `[S, B]`."""
_Values: TypeAlias = tuple[jax.Array, jax.Array, jax.Array]  # q, v and the largest change
_Sweep: TypeAlias = tuple[jax.Array, jax.Array, jax.Array, jax.Array]  # its number, q, v, counts


def _sweeps(
    model: _Block,
    softmax: Softmax,
    q: jax.Array,
    tolerances: jax.Array,
    loops: jax.Array,
    ends: tuple[jax.Array, jax.Array],
    synchronous: bool,
) -> tuple[jax.Array, jax.Array]:
    """Sweeps `ends[0]` to `ends[1]` of a block: `q [S, A, B]` and counts `[T, B]`."""
    rewards, flow, allowed, terminal = model
    n_states, _, width = q.shape
    first, last = ends
    padding = ~jnp.any(allowed, 1)  # a state that is not there has the value 0, of its action 0
    there = allowed.at[:, 0].set(allowed[:, 0] | padding)

    def values(q: jax.Array) -> jax.Array:
        return worth(softmax, softmax.value(q, axis=1, where=there), terminal)

    def one_state(s: jax.Array, carry: _Values) -> _Values:
        q, v, change = carry

        def update(a: jax.Array, carry: _Values) -> _Values:
            row, v, change = carry
            expected = functools.reduce(jnp.add, [flow[s, a, k] * v[k] for k in range(n_states)])
            new = rewards[s, a] + expected
            change = jnp.maximum(change, jnp.abs(new - row[a]))
            row = row.at[a].set(new)
            value = worth(softmax, softmax.value(row, axis=0, where=there[s]), terminal[s])
            return row, v.at[s].set(value), change

        row, v, change = jax.lax.fori_loop(0, loops[1], update, (q[s], v, change))
        return q.at[s].set(row), v, change

    def all_states(q: jax.Array, v: jax.Array) -> _Values:
        parts = [flow[:, :, k] * v[k][None, None] for k in range(n_states)]
        new = rewards + functools.reduce(jnp.add, parts)
        return new, values(new), jnp.max(jnp.abs(new - q), (0, 1))

    def sweep(carry: _Sweep) -> _Sweep:
        done, q, v, counts = carry
        if synchronous:
            new_q, new_v, change = all_states(q, v)
        else:
            begin = (q, v, jnp.zeros(width))
            new_q, new_v, change = jax.lax.fori_loop(0, loops[0], one_state, begin)
        unmet = counts[-1] == 0
        below = (change[None] < tolerances[:, None]) & (counts == 0)
        return (
            done + 1,
            jnp.where(unmet[None, None], new_q, q),
            jnp.where(unmet[None], new_v, v),
            jnp.where(below, done + 1, counts),
        )

    def unfinished(carry: _Sweep) -> jax.Array:
        done, _, _, counts = carry
        return (done < last) & jnp.any(counts[-1] == 0)

    v = values(q)
    counts = jnp.zeros((len(tolerances), width), jnp.int32)
    _, q, _, counts = jax.lax.while_loop(unfinished, sweep, (first, q, v, counts))
    return q, counts


_program = jax.jit(_sweeps, static_argnums=6)
