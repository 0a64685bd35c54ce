"""Which landers a kernel is for: their numbers in an order, computed by a kernel."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ..arrays.vectors import Array

__all__ = ["partition"]

BLOCK = 256
"""The number of landers that one program looks at."""


def partition(first: Array, last: Array, *, interpret: bool = False) -> tuple[Array, Array]:
    """The numbers of the landers of two masks, those of one mask first and of the other last.

    The order within a mask is unspecified; no result for a lander depends on it.

    Args:
        first: a mask, as numbers `[n]`.
        last: the other mask; no lander is in both.
        interpret: run without a GPU, slowly, as a test does?

    Returns:
        The numbers, at least `[n]`, and how many landers each mask has, `[2]`.
    """
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import triton

    n = first.shape[0]
    block = min(BLOCK, 1 << (n - 1).bit_length())

    def kernel(*references: jax.Ref) -> None:
        *masks, _, _, order, count = references
        within = jnp.arange(block, dtype=jnp.int32)
        number = pl.program_id(0) * block + within
        for i, mask in enumerate(masks):
            here = (mask[jnp.minimum(number, n - 1)] != 0.0) & (number < n)
            up_to = jnp.cumsum(here.astype(jnp.int32))
            begin = triton.atomic_add(count, (jnp.int32(i),), jnp.max(up_to))
            place = begin + up_to - 1
            place = place if i == 0 else n - 1 - place
            place = jnp.where(here, place, n + within)  # past the end, for those not in the mask
            triton.store(order.at[place], number, mask=here)

    shapes = [jax.ShapeDtypeStruct((size,), jnp.int32) for size in (n + block, 2)]
    order, count = pl.pallas_call(
        kernel,
        grid=(-(-n // block),),
        out_shape=shapes,
        input_output_aliases={2: 0, 3: 1},
        compiler_params=triton.CompilerParams(num_warps=max(1, block // 32), num_stages=1),
        interpret=interpret,
        name="lunar_lander_partition",
    )(first, last, *(jnp.zeros(shape.shape, shape.dtype) for shape in shapes))
    if interpret:  # masked stores then write back the old value, so every lane needs its own lander
        place = jnp.arange(n, dtype=jnp.int32)
        (others,) = jnp.nonzero((first == 0.0) & (last == 0.0), size=n)
        others = others.astype(jnp.int32)[jnp.maximum(place - count[0], 0)]
        order = jnp.where((place >= count[0]) & (place < n - count[1]), others, order[:n])
    return order, count
