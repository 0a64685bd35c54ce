"""What the Array API standard does not have, and each library does in its own way.

- `iterate`: a loop that leaves as soon as every row has converged;
- `add_up`: a sum over actions;
- `constant`: numbers that are not differentiated;
- `power_of_two`: the bits of a number without its digits;
- `is_zero_or_least`: which actions of a row are the best, and that one is;
- `uniform`: random numbers.

With `row_function`, which knows how each library compiles and differentiates, this is where a
formula meets a library; formulas themselves are written once.

JAX and PyTorch are only ever imported for a caller who passed one of their arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

import numpy as np
from array_api_compat import (
    is_cupy_namespace,
    is_jax_namespace,
    is_numpy_namespace,
    is_torch_namespace,
)

from ..._typing import Array, Key, Namespace, Shape
from . import pallas
from .knowledge import knows
from .pallas import IN_KERNEL, State, frozen_step
from .tracing import is_traced

__all__ = [
    "Carry",
    "State",
    "add_up",
    "constant",
    "decay",
    "in_fixed_steps",
    "is_zero_or_least",
    "iterate",
    "power_of_two",
    "uniform",
]

Carry: TypeAlias = tuple[Array, State, Array]
"""What a loop of JAX carries: the number of steps, the state, and which rows are done."""
STEPS_AT_ONCE = 8
"""Steps between two tests of whether a loop on an accelerator is done: each test takes longer than
a step, and nearly all rows are done by then."""
FEW_ACTIONS = 8
"""This many are added one by one."""
FEW_ACTIONS_TORCH = 64
"""`add_up` in PyTorch, whose own sums are cascades."""


def iterate(
    xp: Namespace, step: Callable[[State], tuple[State, Array]], state: State, limit: int
) -> State:
    """Apply `step: state -> (state, done)` until `done` everywhere, about `limit` times at most.

    A state that is done must bear further steps: rows end at different times. Under JAX a row stays
    as it is once it is done, so that its last digit does not depend on other rows.
    """
    if knows(xp, IN_KERNEL):
        return pallas.iterate(xp, step, state, limit)
    if is_jax_namespace(xp):
        import jax

        def unfinished(carry: Carry) -> Array:
            i, _, done = carry
            return (i < limit) & ~xp.all(done)

        steps_a_test = 1 if jax.default_backend() == "cpu" else STEPS_AT_ONCE

        def advance(carry: Carry) -> Carry:
            i, inner, done = carry
            for _ in range(steps_a_test):
                inner, done = frozen_step(xp, step, inner, done)
            return i + steps_a_test, inner, done

        none = state[0] != state[0]  # no row but one that is not a number, which is done
        first = advance((xp.asarray(0), state, none))
        return jax.lax.while_loop(unfinished, advance, first)[1]
    for _ in range(limit):
        state, done = step(state)
        if xp.all(done):
            break
    return state


def in_fixed_steps(xp: Namespace, x: Array) -> bool:
    """Is a loop that ends when the numbers say so to be avoided?

    PyTorch's compiler would have to know the numbers, and a GPU would be waited for at each step.
    """
    return is_torch_namespace(xp) and (is_traced(x) or not cast(Any, x).is_cpu)


def add_up(xp: Namespace, x: Array) -> Array:
    """The sum over actions, which are the first axis; it is kept.

    One half is added to the other until few are left, so that rounding grows with the logarithm of
    their number, and equal numbers add up exactly. Libraries add along the first axis one by one,
    which loses a digit for ten actions.
    """
    if knows(xp, IN_KERNEL) or not isinstance(
        x.shape[0], int
    ):  # few; or a size that is only a symbol
        return xp.sum(x, axis=0, keepdims=True)
    few = FEW_ACTIONS_TORCH if is_torch_namespace(xp) else FEW_ACTIONS
    without_partner = []
    while (actions := x.shape[0]) > few:
        half = actions // 2
        if actions % 2:
            without_partner.append(x[-1:, ...])
        x = x[:half, ...] + x[half : 2 * half, ...]
    total = _add_few(xp, x)
    for one in reversed(without_partner):
        total = total + one
    return total


def _add_few(xp: Namespace, x: Array) -> Array:
    """On an accelerator XLA makes one kernel of single additions with what is before and after."""
    if is_jax_namespace(xp):
        import jax

        if jax.default_backend() != "cpu":
            total = x[:1]
            for i in range(1, x.shape[0]):
                total = total + x[i : i + 1]
            return total
    return xp.sum(x, axis=0, keepdims=True)


def decay(xp: Namespace, x: Array) -> tuple[Array, Array]:
    """`exp(-x)` and `exp(-x) - 1` of numbers from 0, each to full relative accuracy.

    Both come from one `tanh`, of a quarter of `-x` so that small results keep their digits: XLA
    makes slow code of two different transcendental functions. PyTorch does not, and its compiler
    makes one kernel for a GPU of what is done to a row only if that is few operations.
    """
    if is_torch_namespace(xp):
        return xp.exp(-x), xp.expm1(-x)
    tanh = xp.tanh(-0.25 * x)
    root = (1 + tanh) / (1 - tanh)  # exp of half of it
    return root * root, 2 * tanh / (1 - tanh) * (1 + root)


def constant(xp: Namespace, x: Array) -> Array:
    """The same numbers, which are constants to differentiation."""
    if is_jax_namespace(xp):
        import jax

        stopped: Array = jax.lax.stop_gradient(x)
        return stopped
    return cast(Any, x).detach() if is_torch_namespace(xp) else x


def power_of_two(xp: Namespace, x: Array) -> Array:
    """The power of two next below each normal number: a constant to differentiation."""
    exponent = 0x7F80_0000 if xp.finfo(x.dtype).bits == 32 else 0x7FF0_0000_0000_0000
    if is_jax_namespace(xp):
        import jax

        whole = xp.int32 if xp.finfo(x.dtype).bits == 32 else xp.int64
        as_bits = jax.lax.bitcast_convert_type(cast(Any, constant(xp, x)), whole)
        return jax.lax.bitcast_convert_type(as_bits & exponent, x.dtype)
    if is_torch_namespace(xp):
        x = constant(xp, x)
    elif not (is_numpy_namespace(xp) or is_cupy_namespace(xp)):
        return xp.pow(xp.asarray(2.0, dtype=x.dtype), xp.floor(xp.log2(x)))
    whole = xp.int32 if xp.finfo(x.dtype).bits == 32 else xp.int64
    return cast(Array, (cast(Any, x).view(whole) & exponent).view(x.dtype))


def is_zero_or_least(xp: Namespace, gap: Array) -> Array:
    """Which gaps of each row to its own maximum are 0: one of them at least, unless there is NaN.

    XLA may compute a row twice in a program, once for its maximum and once for the gaps, and round
    in two ways. Then no gap may be 0, and the least of them stands for it.
    """
    zero = gap == 0
    if not is_jax_namespace(xp) or knows(xp, IN_KERNEL):
        return zero
    jnp = cast(Any, xp)
    least = jnp.argmin(gap, axis=0, keepdims=True)
    actions = jnp.arange(gap.shape[0], dtype=least.dtype)[:, None]
    result: Array = zero | ((actions == least) & (gap == gap))
    return result


def uniform(xp: Namespace, key: Key, shape: Shape, like: Array) -> Array:
    """Uniform numbers from 0 to 1 (by rounding, 1 itself) from the library's own random `key`.

    They have the dtype of `like`, and its device.
    """
    if is_jax_namespace(xp):
        import jax

        draws: Array = jax.random.uniform(key, shape, like.dtype)
    elif is_torch_namespace(xp):
        import torch
        from array_api_compat import device

        place = device(like)
        if isinstance(key, int):
            key = torch.Generator(device=place).manual_seed(key)
        draws = torch.rand(shape, generator=key, dtype=like.dtype, device=place)
    else:
        draws = xp.asarray(np.random.default_rng(key).random(shape), dtype=like.dtype)
    return draws
