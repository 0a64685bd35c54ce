"""A step of many landers: on a CPU in blocks, one after another, on a GPU in kernels.

Most landers are in free flight. All are first computed as if they were (`physics.free_flight`).
Those that may touch the ground are gathered into blocks of their own for a full step, so that a
block in free flight does not wait for a lander with contacts.

`step_batch` is `physics.full_step` for any number of landers. `step_packed` is the same for landers
that are the rows of an array, so that a loop over steps carries one array instead of 78. It has its
own rule for `vmap`: landers that are `vmap`ped over, once or more often, become one long row of
landers, which is cut into blocks.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_batching import custom_vmap

from ...._typing import PyTree
from ..arrays.legs import PAIR, STACKED
from ..arrays.materialise import materialise_with
from ..arrays.vectors import Array, select
from ..box2d.island import CHUNK
from ..game.initial_state import start
from ..physics import FreeFlight, Inline, free_flight, full_step
from ..state import Inputs, State, Step, state_dtypes
from .kernels import Kernels
from .partition import partition
from .rows import Source, pack, rows_of, unpack

__all__ = [
    "launch_rows",
    "step_batch",
    "step_in_blocks",
    "step_in_kernels",
    "step_packed",
    "step_rows",
]

CPU_BLOCK, CPU_NEAR_BLOCK = 256, 32
"""The number of landers in a block: in free flight, and near the ground."""
GPU_BLOCK = 32
"""The number of landers in a block on a GPU: one warp, whose threads run in step anyway."""
FREE_ITERATIONS = 2 * CHUNK
"""The velocity iterations in free flight on a GPU. Five of six landers need no more. The others are
gathered too, since a block waits for its slowest lander."""


T = TypeVar("T")


def step_batch(state: State, inputs: Inputs) -> Step:
    """A step of each of a row of landers; every array is `[n]`."""
    if jax.default_backend() == "cpu":
        return step_in_blocks(state, inputs)
    return lax.platform_dependent(state, inputs, cuda=step_in_kernels, default=step_in_blocks)


@custom_vmap
def step_packed(numbers: Array, inputs: Inputs) -> tuple[Array, Array, Array]:
    """`step_batch` for landers that are the rows of an array.

    Args:
        numbers: the numbers of each lander, `[n, 78]`.
        inputs: their inputs, `[n]` each.

    Returns:
        The landers, their rewards, and whether their episodes have ended.
    """
    if jax.default_backend() == "cpu":
        return _packed_in_blocks(numbers, inputs)
    return lax.platform_dependent(
        numbers, inputs, cuda=_packed_in_kernels, default=_packed_in_blocks
    )


@step_packed.def_vmap
def _many_rows(
    size: int, batched: Sequence[object], *arguments: object
) -> tuple[tuple[Array, ...], tuple[bool, ...]]:
    """Several rows of landers as one row."""

    def flat(x: Array, is_batched: bool) -> Array:
        rows = x if is_batched else jnp.broadcast_to(x, (size, *x.shape))
        return rows.reshape(-1, *rows.shape[2:])

    result = step_packed(*jax.tree.map(flat, arguments, tuple(batched)))
    rows = jax.tree.map(lambda x: x.reshape(size, -1, *x.shape[1:]), result)
    return rows, jax.tree.map(lambda _: True, rows)


def _packed_in_blocks(numbers: Array, inputs: Inputs) -> tuple[Array, Array, Array]:
    step = step_in_blocks(unpack(numbers.T, state_dtypes()), inputs)
    return pack(step.state).T, step.reward, step.terminated


def _packed_in_kernels(numbers: Array, inputs: Inputs) -> tuple[Array, Array, Array]:
    count = len(inputs.action)
    (rows, inputs), _ = _padded((numbers.T, inputs), count, GPU_BLOCK)
    rows, reward, terminated = step_rows(rows, inputs)
    return jax.tree.map(lambda x: x[:count], (rows.T, reward, terminated))


def step_in_blocks(
    state: State, inputs: Inputs, *, block: int = CPU_BLOCK, near_block: int = CPU_NEAR_BLOCK
) -> Step:
    """A step of a row of landers, one block after another.

    Args:
        state: the landers.
        inputs: their inputs.
        block: the number of landers in a block in free flight.
        near_block: the number of landers in a block near the ground.
    """
    count = inputs.action.shape[0]
    block, near_block = min(block, count), min(near_block, count)
    free_step = functools.partial(free_flight, PAIR)
    if count == block:
        free = _materialised(free_step, state, inputs)
    else:
        padded, rows = _padded((state, inputs), count, block)
        blocks = jax.tree.map(lambda x: x.reshape(rows, block), padded)
        result = lax.map(lambda each: _materialised(free_step, *each), blocks)
        free = jax.tree.map(lambda x: x.reshape(-1)[:count], result)
    order, number = _indices(free.needs_contacts, near_block, count)

    def step_some(carry: tuple[Array, Step]) -> tuple[Array, Step]:
        done, step = carry
        which = lax.dynamic_slice(order, (done,), (near_block,))
        some = jax.tree.map(lambda x: x.at[which].get(mode="clip"), (step.state, inputs))
        new = _materialised(functools.partial(full_step, run=Inline()), *some)
        step = jax.tree.map(lambda x, new: x.at[which].set(new, mode="drop"), step, new)
        return done + near_block, step

    loop = (jnp.int32(0), free.step)
    return lax.while_loop(lambda carry: carry[0] < number, step_some, loop)[1]


def _materialised(function: Callable[[State, Inputs], T], state: State, inputs: Inputs) -> T:
    """A step of a block of landers, compiled for a CPU."""
    # No action is negative, but only the running program knows: the divisor is 1.
    with materialise_with(select(jnp.min(inputs.action) < 0, 2.0, 1.0)):
        return function(state, inputs)


def _indices(mask: Array, spare: int, fill: int) -> tuple[Array, Array]:
    """The indices at which a mask is true, and how many they are.

    Args:
        mask: the mask.
        spare: how many entries the result has beyond the length of the mask.
        fill: the value of the entries after the indices.
    """
    count = mask.shape[0]
    numbers = jnp.arange(count, dtype=jnp.int32)
    places = jnp.cumsum(mask, dtype=jnp.int32)
    order = jnp.full(count + spare, fill, jnp.int32)
    order = order.at[jnp.where(mask, places - 1, count + spare)].set(numbers, mode="drop")
    return order, places[-1]


def _padded(arguments: T, count: int, block: int) -> tuple[T, int]:
    """Arguments that fill whole blocks, with the last lander repeated, and the number of blocks."""
    rows = -(-count // block)
    missing = rows * block - count
    if not missing:
        return arguments, rows

    def pad(x: Array) -> Array:
        before = [(0, 0)] * (x.ndim - 1)
        return jnp.pad(x, [*before, (0, missing)], mode="edge")

    return jax.tree.map(pad, arguments), rows


def step_in_kernels(
    state: State, inputs: Inputs, *, block: int | None = None, interpret: bool = False
) -> Step:
    """A step of a row of landers in kernels, with a program for each block.

    Args:
        state: the landers.
        inputs: their inputs.
        block: the number of landers or bodies in a program, a power of two; None for `GPU_BLOCK`.
        interpret: run without a GPU, slowly, as a test does?
    """
    block = GPU_BLOCK if block is None else block
    count = inputs.action.shape[0]
    (state, inputs), _ = _padded((state, inputs), count, block)
    rows, reward, terminated = step_rows(pack(state), inputs, block=block, interpret=interpret)
    step = Step(unpack(rows, state_dtypes()), reward, terminated)
    return jax.tree.map(lambda x: x[:count], step)


def step_rows(
    rows: Array, inputs: Inputs, *, block: int | None = None, interpret: bool = False
) -> tuple[Array, Array, Array]:
    """A step of landers that are the columns of an array, in kernels.

    Args:
        rows: their states as `rows.pack` gives them, `[78, n]`, n a multiple of `block`.
        inputs: their inputs, `[n]` each.
        block: the number of landers or bodies in a program, a power of two; None for `GPU_BLOCK`.
        interpret: run without a GPU, slowly, as a test does?

    Returns:
        The landers, their rewards, and whether their episodes have ended.
    """
    block = GPU_BLOCK if block is None else block
    count = rows.shape[1]
    warps = max(1, block // 32)
    input_rows = rows_of(Source(pack(inputs)), jax.tree.map(lambda x: x.dtype, inputs))
    result_dtypes = (jnp.float32, jnp.bool_, jnp.bool_, jnp.bool_)
    result = Source(jnp.zeros((len(result_dtypes), count), jnp.float32))
    state: PyTree = rows_of(Source(rows), state_dtypes())
    reward, terminated, needs_contacts, needs_iterations = rows_of(result, result_dtypes)

    every = Kernels(count, block, warps, interpret)
    legs = tuple(
        leg._replace(first=_unwritten(leg.first), second=_unwritten(leg.second), on_ground=None)
        for leg in (state.right, state.left)
    )
    changed = state._replace(right=legs[0], left=legs[1], terrain=_unwritten(state.terrain))
    targets = FreeFlight(Step(changed, reward, terminated), needs_contacts, needs_iterations)
    free = every.call(_free_flight, [(state, input_rows)], targets)

    # From here on, landers and results are what free flight has written.
    after, result = free.step.state.hull.place.angle.source, free.needs_contacts.source
    state = rows_of(after, state_dtypes())
    reward, terminated, needs_contacts, needs_iterations = rows_of(result, result_dtypes)
    masks = (result.array[row.number] for row in (needs_contacts, needs_iterations))
    order, number = partition(*masks, interpret=interpret)
    step_targets = Step(state._replace(terrain=_unwritten(state.terrain)), reward, terminated)
    gathered = Kernels(
        count,
        block,
        warps,
        interpret,
        order,
        number,
        state.over,
        step_targets,
    )
    step: PyTree = full_step(state, input_rows, gathered)
    end, result = step.state.hull.place.angle.source, step.reward.source
    return end.array, result.array[0], result.array[1] != 0.0


def _free_flight(state: State, inputs: Inputs) -> FreeFlight:
    return free_flight(STACKED, state, inputs, FREE_ITERATIONS)


def launch_rows(
    rows: Array, uniforms: Array, ended: Array | None = None, *, interpret: bool = False
) -> Array:
    """Replace landers whose episodes are over by launched ones, in a kernel.

    Args:
        rows: the landers, as in `step_rows`.
        uniforms: random numbers in [0, 1), `[16, n]`, as `initial_state.start` takes them.
        ended: which landers are replaced; None for those whose episodes are over.
        interpret: run without a GPU, slowly, as a test does?
    """
    count = rows.shape[1]
    state: PyTree = rows_of(Source(rows), state_dtypes())
    numbers = rows_of(Source(uniforms), (jnp.float32,) * 16)
    block = min(count, 4 * GPU_BLOCK)
    every = Kernels(count, block, max(1, block // 32), interpret)
    only = state.over
    if ended is not None:
        only = rows_of(Source(ended.astype(jnp.float32)[None]), (jnp.bool_,))[0]
    new = every.call(_start, [numbers], state, only)
    return new.hull.place.angle.source.array


def _start(*uniforms: Array) -> State:
    return start(uniforms)


def _unwritten(tree: object) -> PyTree:
    """None for each row, which is then not written."""
    return jax.tree.map(lambda _: None, tree)
