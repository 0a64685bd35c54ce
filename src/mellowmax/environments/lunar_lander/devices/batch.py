"""Many landers at once, in blocks: on a CPU one after another, on a GPU in kernels.

Most landers are in free flight. All of them are flown as if they were, and those that may meet the
ground are left; these are gathered into blocks of their own, and take the long way. So a block in
free flight does not wait for one that has a contact to solve.

`fly` is `physics.advance` for any number of landers. `fly_numbers` is the same for landers whose
numbers are the rows of an array, so that a loop over steps carries one array and not 78. It is its
own rule for `vmap`: landers that are `vmap`ped over, once or more often, become one long row of
landers, which is cut into blocks.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_batching import custom_vmap

from ..arrays.materialise import kept_by
from ..arrays.vectors import Array, select
from ..box2d.island import CHUNK
from ..game.initial_state import start
from ..game.reward import Told, World
from ..physics import AtOnce, Free, advance, soar
from ..state import State, Step, kinds
from .kernels import Kernels, Source, chosen, pack, rows_of, unpack

__all__ = [
    "fly",
    "fly_in_blocks",
    "fly_in_kernels",
    "fly_numbers",
    "fly_rows",
    "restart_rows",
]

CPU_BLOCK, CPU_NEAR_BLOCK = 256, 32
"""How many landers are in a block: in free flight, and near the ground."""
GPU_BLOCK = 32
"""As many as a group of threads that runs in step: none of them waits for another one."""
FEW_ITERATIONS = 2 * CHUNK
"""Of the velocities, in free flight on a GPU. Five of six landers need no more; as each block waits
for its slowest lander, the sixth is gathered too."""


def fly(state: State, action: Array, one: Array, two: Array, world: World) -> Step:
    """A step of each of a row of landers; the arguments are `physics.advance`'s, `[n]` each."""
    arguments = (state, action, one, two, world)
    if jax.default_backend() == "cpu":
        return fly_in_blocks(*arguments)
    result: Step = lax.platform_dependent(*arguments, cuda=fly_in_kernels, default=fly_in_blocks)
    return result


@custom_vmap  # type: ignore[untyped-decorator]
def fly_numbers(
    numbers: Array, action: Array, one: Array, two: Array, world: World
) -> tuple[Array, Array, Array]:
    """`fly`, of landers that are the rows of an array, as `kernels.pack` gives one lander.

    Args:
        numbers: `[n, 78]`.
        action: `[n]`, as all others.
        one: their dispersion.
        two: likewise.
        world: their worlds.

    Returns:
        The landers, their rewards, and whether their episodes have ended.
    """
    arguments = (numbers, action, one, two, world)
    if jax.default_backend() == "cpu":
        return _numbers_in_blocks(*arguments)
    result: tuple[Array, Array, Array] = lax.platform_dependent(
        *arguments, cuda=_numbers_in_kernels, default=_numbers_in_blocks
    )
    return result


@fly_numbers.def_vmap  # type: ignore[untyped-decorator]
def _many_rows(size: int, batched: Any, *arguments: Any) -> tuple[tuple[Array, ...], Any]:
    """Rows of landers as one row."""

    def flat(x: Array, is_batched: bool) -> Array:
        rows = x if is_batched else jnp.broadcast_to(x, (size, *x.shape))
        return rows.reshape(-1, *rows.shape[2:])

    result = fly_numbers(*jax.tree.map(flat, arguments, tuple(batched)))
    rows = jax.tree.map(lambda x: x.reshape(size, -1, *x.shape[1:]), result)
    return rows, jax.tree.map(lambda _: True, rows)


def _numbers_in_blocks(
    numbers: Array, action: Array, one: Array, two: Array, world: World
) -> tuple[Array, Array, Array]:
    step = fly_in_blocks(unpack(numbers.T, kinds()), action, one, two, world)
    return pack(step.state).T, step.reward, step.terminated


def _numbers_in_kernels(
    numbers: Array, action: Array, one: Array, two: Array, world: World
) -> tuple[Array, Array, Array]:
    (rows, told), _ = _padded((numbers.T, Told(action, one, two, world)), len(action), GPU_BLOCK)
    rows, reward, terminated = fly_rows(rows, told)
    first: tuple[Array, Array, Array] = jax.tree.map(
        lambda x: x[: len(action)], (rows.T, reward, terminated)
    )
    return first


def fly_in_blocks(
    state: State,
    action: Array,
    one: Array,
    two: Array,
    world: World,
    *,
    block: int = CPU_BLOCK,
    near_block: int = CPU_NEAR_BLOCK,
) -> Step:
    """A step of a row of landers, one block after another."""
    told = Told(action, one, two, world)
    count = action.shape[0]
    block, near_block = min(block, count), min(near_block, count)
    if count == block:
        free = _kept(soar, state, told)
    else:
        padded, rows = _padded((state, told), count, block)
        blocks = jax.tree.map(lambda x: x.reshape(rows, block), padded)
        result = lax.map(lambda each: _kept(soar, *each), blocks)
        free = jax.tree.map(lambda x: x.reshape(-1)[:count], result)
    order, number = _chosen(free.meets, near_block, count)

    def some(carry: tuple[Array, Step]) -> tuple[Array, Step]:
        done, step = carry
        which = lax.dynamic_slice(order, (done,), (near_block,))
        few = jax.tree.map(lambda x: x.at[which].get(mode="clip"), (step.state, told))
        met = _kept(functools.partial(advance, run=AtOnce()), *few)
        step = jax.tree.map(lambda x, new: x.at[which].set(new, mode="drop"), step, met)
        return done + near_block, step

    loop = (jnp.int32(0), free.step)
    step: Step = lax.while_loop(lambda carry: carry[0] < number, some, loop)[1]
    return step


def _kept(function: Any, state: State, told: Told) -> Any:
    """A step of a block of landers, compiled for a CPU."""
    # No action is below 0, but only the running program knows.
    with kept_by(select(jnp.min(told.action) < 0, 2.0, 1.0)):
        return function(state, told)


def _chosen(mask: Array, spare: int, rest: int) -> tuple[Array, Array]:
    """The numbers of those for which a mask is true, and how many they are.

    Args:
        mask: the mask.
        spare: how many entries there are besides as many as the mask has.
        rest: what stands after the numbers.
    """
    count = mask.shape[0]
    numbers = jnp.arange(count, dtype=jnp.int32)
    places = jnp.cumsum(mask, dtype=jnp.int32)
    order = jnp.full(count + spare, rest, jnp.int32)
    order = order.at[jnp.where(mask, places - 1, count + spare)].set(numbers, mode="drop")
    return order, places[-1]


def _padded(arguments: Any, count: int, block: int) -> tuple[Any, int]:
    """Arguments for whole blocks, with the last lander repeated, and the number of blocks."""
    rows = -(-count // block)
    missing = rows * block - count
    if not missing:
        return arguments, rows

    def pad(x: Array) -> Array:
        before = [(0, 0)] * (x.ndim - 1)
        return jnp.pad(x, [*before, (0, missing)], mode="edge")

    return jax.tree.map(pad, arguments), rows


def fly_in_kernels(
    state: State,
    action: Array,
    one: Array,
    two: Array,
    world: World,
    *,
    block: int | None = None,
    interpret: bool = False,
) -> Step:
    """A step of a row of landers in kernels, with a program for each block.

    Args:
        state: the landers.
        action: their actions.
        one: their dispersion.
        two: likewise.
        world: their worlds.
        block: how many landers or bodies a program has, a power of two; None for `GPU_BLOCK`.
        interpret: run it without a GPU, slowly, as a test does?
    """
    block = GPU_BLOCK if block is None else block
    count = action.shape[0]
    (state, told), _ = _padded((state, Told(action, one, two, world)), count, block)
    rows, reward, terminated = fly_rows(pack(state), told, block=block, interpret=interpret)
    step = Step(unpack(rows, kinds()), reward, terminated)
    first: Step = jax.tree.map(lambda x: x[:count], step)
    return first


def fly_rows(
    rows: Array, told: Told, *, block: int | None = None, interpret: bool = False
) -> tuple[Array, Array, Array]:
    """A step of landers that are kept as the rows of an array, in kernels.

    Args:
        rows: what `kernels.pack` gives for their states, `[rows, n]`, of whole blocks.
        told: what they are told, `[n]` each.
        block: how many landers or bodies a program has, a power of two; None for `GPU_BLOCK`.
        interpret: run it without a GPU, slowly, as a test does?

    Returns:
        The landers, likewise; their rewards, and whether their episodes have ended.
    """
    block = GPU_BLOCK if block is None else block
    count = rows.shape[1]
    warps = max(1, block // 32)
    told_rows = rows_of(Source(pack(told)), jax.tree.map(lambda x: x.dtype, told))
    result_kinds = (jnp.float32, jnp.bool_, jnp.bool_, jnp.bool_)
    result = Source(jnp.zeros((len(result_kinds), count), jnp.float32))
    state = rows_of(Source(rows), kinds())
    reward, terminated, meets, slow = rows_of(result, result_kinds)

    every = Kernels(count, block, warps, interpret)
    legs = tuple(
        leg._replace(first=_nowhere(leg.first), second=_nowhere(leg.second), on_ground=None)
        for leg in (state.right, state.left)
    )
    changed = state._replace(right=legs[0], left=legs[1], terrain=_nowhere(state.terrain))
    flown = Free(Step(changed, reward, terminated), meets, slow)
    free = every.call(_soar, [(state, told_rows)], flown)

    # From here on the landers and the results are those that free flight has written.
    after, result = free.step.state.hull.place.angle.source, free.meets.source
    state = rows_of(after, kinds())
    reward, terminated, meets, slow = rows_of(result, result_kinds)
    masks = (result.array[row.number] for row in (meets, slow))
    order, number = chosen(*masks, interpret=interpret)
    targets = Step(state._replace(terrain=_nowhere(state.terrain)), reward, terminated)
    near = Kernels(
        count,
        block,
        warps,
        interpret,
        order,
        number,
        state.over,
        targets,
    )
    step = advance(state, told_rows, near)
    end, result = step.state.hull.place.angle.source, step.reward.source
    return end.array, result.array[0], result.array[1] != 0.0


def _soar(state: State, told: Told) -> Free:
    return soar(state, told, FEW_ITERATIONS)


def restart_rows(
    rows: Array, uniforms: Array, ended: Array | None = None, *, interpret: bool = False
) -> Array:
    """New landers in the place of those whose episodes are over, in a kernel.

    Args:
        rows: the landers, as `fly_rows` has them.
        uniforms: random numbers in [0, 1), `[16, n]`.
        ended: whose place they take; None for those that are over.
        interpret: run it without a GPU, slowly, as a test does?
    """
    count = rows.shape[1]
    state = rows_of(Source(rows), kinds())
    numbers = rows_of(Source(uniforms), (jnp.float32,) * 16)
    block = min(count, 4 * GPU_BLOCK)
    every = Kernels(count, block, max(1, block // 32), interpret)
    only = state.over
    if ended is not None:
        only = rows_of(Source(ended.astype(jnp.float32)[None]), (jnp.bool_,))[0]
    new = every.call(_start, [numbers], state, only)
    array: Array = new.hull.place.angle.source.array
    return array


def _start(*uniforms: Array) -> State:
    return start(uniforms)


def _nowhere(tree: Any) -> Any:
    """None for each row: it is not written."""
    return jax.tree.map(lambda _: None, tree)
