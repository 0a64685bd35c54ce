"""Functions of rows within a kernel for a GPU, which JAX's Pallas makes of a traced program.

There a function of rows is its bare formula: the kernel itself has cut the rows into blocks. Its
loops end when the rows of a block are done, whatever other blocks do.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from ..._typing import Array, Namespace

if TYPE_CHECKING:
    import jax

__all__ = ["State", "frozen_step", "in_kernel", "is_in_kernel", "iterate", "namespace"]

State: TypeAlias = tuple[Array, ...]
"""What a loop carries from step to step."""
Carry: TypeAlias = "tuple[jax.Array, State, jax.Array, jax.Array]"
"""The number of steps, the state, where it is done (as numbers), and whether that is everywhere."""

_is_in_kernel = contextvars.ContextVar("_is_in_kernel", default=False)


@contextlib.contextmanager
def in_kernel() -> Iterator[None]:
    """What is traced within this is part of a kernel."""
    token = _is_in_kernel.set(True)
    try:
        yield
    finally:
        _is_in_kernel.reset(token)


def is_in_kernel() -> bool:
    """Is what is being traced part of a kernel?"""
    return _is_in_kernel.get()


def namespace() -> Namespace:
    """`jax.numpy`, with `any` and `all` by what kernels know: a maximum and a minimum."""
    import jax.numpy as jnp

    class InKernel:
        __name__ = jnp.__name__

        def __getattr__(self, name: str) -> Any:
            return getattr(jnp, name)

        @staticmethod
        def any(x: jax.Array, axis: int | None = None, keepdims: bool = False) -> jax.Array:
            return jnp.max(x.astype(jnp.int32), axis=axis, keepdims=keepdims) > 0

        @staticmethod
        def all(x: jax.Array, axis: int | None = None, keepdims: bool = False) -> jax.Array:
            return jnp.min(x.astype(jnp.int32), axis=axis, keepdims=keepdims) > 0

    return cast(Namespace, InKernel())


def iterate(step: Callable[[State], tuple[State, Array]], state: State, limit: int) -> State:
    """`array_api.iterate` within a kernel.

    Whether all is done is a number of the block: the condition of a loop can hold no more.
    """
    import jax
    import jax.numpy as jnp

    def advance(carry: Carry) -> Carry:
        i, inner, done, _ = carry
        inner, frozen = frozen_step(namespace(), step, inner, done > 0)
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
