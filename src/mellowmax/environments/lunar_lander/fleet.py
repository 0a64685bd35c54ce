"""Many landers at once, in blocks: on a CPU one after another, on a GPU in four kernels.

`fly` is `physics.advance` for any number of landers. It is its own rule for `vmap`: landers that
are `vmap`ped over, once or more often, become one long row of landers, which is cut into blocks.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_batching import custom_vmap

from .keep import kept_by
from .physics import World, advance
from .state import State, Step
from .vectors import Array, select

__all__ = ["fly", "fly_in_blocks", "fly_in_kernels"]

CPU_BLOCK = 256
GPU_BLOCK = 128


@custom_vmap  # type: ignore[untyped-decorator]
def fly(state: State, action: Array, one: Array, two: Array, world: World) -> Step:
    """A step of each of a row of landers; the arguments are `physics.advance`'s, `[n]` each."""
    arguments = (state, action, one, two, world)
    if jax.default_backend() == "cpu":
        return fly_in_blocks(*arguments)
    result: Step = lax.platform_dependent(*arguments, cuda=fly_in_kernels, default=fly_in_blocks)
    return result


@fly.def_vmap  # type: ignore[untyped-decorator]
def _many_rows(size: int, batched: Any, *arguments: Any) -> tuple[Step, Any]:
    """Rows of landers as one row."""

    def flat(x: Array, is_batched: bool) -> Array:
        rows = x if is_batched else jnp.broadcast_to(x, (size, *x.shape))
        return rows.reshape(-1)

    result = fly(*jax.tree.map(flat, arguments, tuple(batched)))
    rows = jax.tree.map(lambda x: x.reshape(size, -1), result)
    return rows, jax.tree.map(lambda _: True, rows)


def fly_in_blocks(
    state: State, action: Array, one: Array, two: Array, world: World, *, block: int = CPU_BLOCK
) -> Step:
    """A step of a row of landers, one block after another."""
    arguments = (state, action, one, two, world)
    count = action.shape[0]
    block = min(block, count)

    if count == block:
        return _kept(*arguments)
    padded, rows = _padded(arguments, count, block)
    blocks = jax.tree.map(lambda x: x.reshape(rows, block), padded)
    result = lax.map(lambda each: _kept(*each), blocks)
    step: Step = jax.tree.map(lambda x: x.reshape(-1)[:count], result)
    return step


def _kept(state: State, action: Array, one: Array, two: Array, world: World) -> Step:
    """A step of a block of landers, compiled for a CPU."""
    # No action is below 0, but only the running program knows.
    with kept_by(select(jnp.min(action) < 0, 2.0, 1.0)):
        return advance(state, action, one, two, world)


def _padded(arguments: Any, count: int, block: int) -> tuple[Any, int]:
    """Arguments for whole blocks, with the last lander repeated, and the number of blocks."""
    rows = -(-count // block)
    missing = rows * block - count
    if not missing:
        return arguments, rows
    pad = functools.partial(jnp.pad, pad_width=(0, missing), mode="edge")
    return jax.tree.map(pad, arguments), rows


def fly_in_kernels(
    state: State,
    action: Array,
    one: Array,
    two: Array,
    world: World,
    *,
    block: int | None = None,
    warps: int | None = None,
    interpret: bool = False,
) -> Step:
    """A step of a row of landers in four kernels, with a program for each block.

    Args:
        state: the landers.
        action: their actions.
        one: their dispersion.
        two: likewise.
        world: their worlds.
        block: how many landers or bodies a program has, a power of two; None for `GPU_BLOCK`.
        warps: how many groups of 32 threads run a program; None for one lander a thread.
        interpret: run it without a GPU, slowly, as a test does?
    """
    block = GPU_BLOCK if block is None else block
    warps = max(1, block // 32) if warps is None else warps
    run = functools.partial(_in_kernel, block, warps, interpret)
    return advance(state, action, one, two, world, run)


def _in_kernel(
    block: int, warps: int, interpret: bool, function: Callable[..., Any], *arguments: Any
) -> Any:
    """What a function of arrays of one length gives, as a kernel of a program for each block."""
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import triton

    count = jax.tree.leaves(arguments)[0].shape[0]
    padded, rows = _padded(arguments, count, block)
    inputs, structure = jax.tree.flatten(padded)
    outputs, result_structure = jax.tree.flatten(jax.eval_shape(function, *arguments))
    kinds = [leaf.dtype for leaf in inputs]

    def kernel(*references: Any) -> None:
        read, write = references[: len(inputs)], references[len(inputs) :]
        values = [
            reference[...] if kind != jnp.bool_ else reference[...] != 0
            for reference, kind in zip(read, kinds, strict=True)
        ]
        result = function(*jax.tree.unflatten(structure, values))
        for reference, value in zip(write, jax.tree.leaves(result), strict=True):
            reference[...] = value.astype(reference.dtype)

    spec = pl.BlockSpec((block,), lambda i: (i,))
    written = [jax.ShapeDtypeStruct((rows * block,), _stored(leaf.dtype)) for leaf in outputs]
    values = pl.pallas_call(
        kernel,
        grid=(rows,),
        in_specs=[spec] * len(inputs),
        out_specs=[spec] * len(outputs),
        out_shape=written,
        compiler_params=triton.CompilerParams(num_warps=warps, num_stages=1),
        interpret=interpret,
        name=f"lunar_lander_{function.__name__}",
    )(*(leaf.astype(_stored(leaf.dtype)) for leaf in inputs))
    values = [value[:count].astype(leaf.dtype) for value, leaf in zip(values, outputs, strict=True)]
    return jax.tree.unflatten(result_structure, values)


def _stored(kind: Any) -> Any:
    """How a number is stored: a truth value as an integer."""
    return jnp.int32 if kind == jnp.bool_ else kind
