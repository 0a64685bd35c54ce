"""What the Array API standard does not have, and each library does in its own way.

- `truth`: is a condition known now, or only when a traced program runs?
- `iterate`: a loop that leaves as soon as every row has converged;
- `uniform`: random numbers.

With `dispatch`, which knows how each library compiles and differentiates, this is all that is
written for one library; everything else is written once.

JAX and PyTorch are only ever imported for a caller who passed one of their arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from array_api_compat import is_jax_namespace, is_torch_namespace

__all__ = ["iterate", "truth", "uniform"]


def truth(condition: Any) -> bool | None:
    """The value of a condition, or None while it is being traced and has none."""
    try:
        return bool(condition)
    except Exception as error:  # each library has its own class for this
        if "Tracer" in type(error).__name__ or "vmap" in str(error):
            return None
        raise


def iterate(xp: Any, step: Callable[[Any], tuple[Any, Any]], state: Any, limit: int) -> Any:
    """Apply `step: state -> (state, done)` until `done` everywhere, about `limit` times at most.

    A state that is done must bear further steps: rows end at different times.
    """
    if is_jax_namespace(xp):
        import jax

        def unfinished(carry: Any) -> Any:
            i, _, done = carry
            return (i < limit) & ~xp.all(done)

        # An accelerator waits at each test of the condition, longer than a step takes.
        at_once = 1 if jax.default_backend() == "cpu" else 2

        def advance(carry: Any) -> Any:
            i, inner, done = carry
            for _ in range(at_once):
                inner, done = step(inner)
            return i + at_once, inner, done

        first = (1, *step(state))
        return jax.lax.while_loop(unfinished, advance, first)[1]
    for _ in range(limit):
        state, done = step(state)
        if xp.all(done):
            break
    return state


def uniform(xp: Any, key: Any, shape: tuple[int, ...], like: Any) -> Any:
    """Uniform numbers from 0 to 1 (by rounding, 1 itself) from the library's own random `key`."""
    if is_jax_namespace(xp):
        import jax

        return jax.random.uniform(key, shape, like.dtype)
    if is_torch_namespace(xp):
        import torch

        if isinstance(key, int):
            key = torch.Generator(device=like.device).manual_seed(key)
        return torch.rand(shape, generator=key, dtype=like.dtype, device=like.device)
    draws = np.random.default_rng(key).random(shape)
    return xp.asarray(draws, dtype=like.dtype)
