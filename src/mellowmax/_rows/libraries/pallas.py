"""Functions of rows within a kernel for a GPU, which JAX's Pallas makes of a traced program.

There a function of rows is its bare formula: the kernel itself has cut the rows into blocks. Its
loops end when the rows of a block are done, whatever other blocks do.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias, cast

from ..._typing import Array, Namespace
from .knowledge import knowing

if TYPE_CHECKING:
    import jax

__all__ = [
    "IN_KERNEL",
    "State",
    "frozen_step",
    "in_kernel",
    "iterate",
    "namespace",
    "traces_kernel",
]

State: TypeAlias = tuple[Array, ...]
"""What a loop carries from step to step."""
Carry: TypeAlias = "tuple[jax.Array, State, jax.Array, jax.Array]"
"""The number of steps, the state, where it is done (as numbers), and whether that is everywhere."""

IN_KERNEL = "in_kernel"
"""What the functions within a kernel know: see `knowledge`."""

_traces_kernel = contextvars.ContextVar("_traces_kernel", default=False)


@contextlib.contextmanager
def in_kernel() -> Iterator[None]:
    """What is traced within this is part of a kernel.

    Only `RowFunction` asks for it, where a call begins: an operator or a policy is called with
    arrays alone. From there on it is an argument, `namespace()`.
    """
    token = _traces_kernel.set(True)
    try:
        yield
    finally:
        _traces_kernel.reset(token)


def traces_kernel() -> bool:
    """Is what is being traced part of a kernel?"""
    return _traces_kernel.get()


def namespace() -> Namespace:
    """`jax.numpy`, with `any` and `all` by what kernels know: a maximum and a minimum."""
    import jax.numpy as jnp

    def some(x: jax.Array, axis: int | None = None, keepdims: bool = False) -> jax.Array:
        return jnp.max(x.astype(jnp.int32), axis=axis, keepdims=keepdims) > 0

    def every(x: jax.Array, axis: int | None = None, keepdims: bool = False) -> jax.Array:
        return jnp.min(x.astype(jnp.int32), axis=axis, keepdims=keepdims) > 0

    return knowing(cast(Namespace, jnp), any=some, all=every, **{IN_KERNEL: True})


def iterate(
    xp: Namespace, step: Callable[[State], tuple[State, Array]], state: State, limit: int
) -> State:
    """`array_api.iterate` within a kernel.

    Whether all is done is a number of the block: the condition of a loop can hold no more.
    """
    import jax
    import jax.numpy as jnp

    def advance(carry: Carry) -> Carry:
        i, inner, done, _ = carry
        inner, frozen = frozen_step(xp, step, inner, done > 0)
        ended = jnp.astype(cast(jax.Array, frozen), jnp.int32)
        return i + 1, inner, ended, jnp.min(ended)

    def unfinished(carry: Carry) -> jax.Array:
        i, _, _, all_ended = carry
        return (i < limit) & (all_ended == 0)

    none = jnp.zeros_like(state[0], dtype=jnp.int32)
    return jax.lax.while_loop(unfinished, advance, (jnp.int32(0), state, none, none.min()))[1]


def frozen_step(
    xp: Namespace, step: Callable[[State], tuple[State, Array]], state: State, done: Array
) -> tuple[State, Array]:
    """A step of the rows that are not done; where it is done by now.

    What is looked for is the first of the state. It stays as it is, and the rest helps to find it.
    """
    (found, *rest), ends = step(state)
    return (xp.where(done, state[0], found), *rest), done | ends
