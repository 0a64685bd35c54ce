"""Mellowmax of each row in one pass over it, for JAX on an accelerator.

There the time goes into reading memory, and one pass for the best value and others for the average
gap to it read the row again and again. Here some actions of a row, a `Part`, are known by four
numbers, and two parts merge into one: the gaps of the part with the lesser best value grow by the
distance between the two best values. XLA makes one loop of it, and of whatever computes the row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ..._typing import Array, Namespace
from ..formulas.gaps import log_of_mean

if TYPE_CHECKING:
    import jax

__all__ = ["Part", "mellowmax"]

LOOP = 31
"""XLA reduces up to this many numbers in one loop, if not a power of 2; its other way is slow."""


class Part(NamedTuple):
    """Some actions of a row, with `k = |omega|`. Gaps are halved and `k` doubled, as in `gaps`."""

    best: Array  # the best value, or for a negative omega the least
    weight: Array  # the sum of `one * exp(-k * gap)`; 0 for no action at all
    below: Array  # the sum of `one * (exp(-k * gap) - 1) / k`, which for `k = 0` is `-one * gap`
    omega: Array  # the parameter: a reduction sees nothing that is not in its parts


def mellowmax(xp: Namespace, q: Array, omega: Array, mask: Array | None) -> Array:
    """The formula of `values.mellowmax` for an accelerator."""
    import jax
    import jax.numpy as jnp

    one = 2.0 ** -math.frexp(q.shape[0])[1]  # so small that no sum overflows
    weight = xp.full_like(q, one)
    if mask is not None:
        q, weight = xp.where(mask, q, 0.0), xp.where(mask, weight, 0.0)
    part = Part(q, weight, xp.zeros_like(q), xp.broadcast_to(omega, q.shape))
    nothing = (xp.zeros((), q.dtype),) * len(part)

    def merge(x: Sequence[jax.Array], y: Sequence[jax.Array]) -> Any:
        return tuple(_merged(xp, Part(*x), Part(*y)))

    while (actions := part.best.shape[0]) > 1:
        groups = -(-actions // LOOP)
        size = -(-actions // groups)
        size += size & (size - 1) == 0
        padding = [(0, groups * size - actions), (0, 0)]
        grouped = (jnp.pad(cast(Any, x), padding).reshape(groups, size, -1) for x in part)
        part = Part(*jax.lax.reduce(tuple(grouped), nothing, merge, (1,)))
    return _value(xp, part._replace(omega=omega))


def _merged(xp: Namespace, x: Part, y: Part) -> Part:
    """Two parts of a row as one."""
    omega = xp.where(x.weight > 0, x.omega, y.omega)
    x_has_best = xp.where(omega < 0, x.best <= y.best, x.best >= y.best)
    x_has_best = (y.weight == 0) | ((x.weight > 0) & x_has_best)
    first, second = (
        Part(*(xp.where(choice, a, b) for a, b in zip(x, y, strict=True)))
        for choice in (x_has_best, ~x_has_best)
    )
    apart = (first.best != second.best) & (second.weight > 0)
    distance = xp.where(apart, xp.abs(0.5 * first.best - 0.5 * second.best), 0.0)
    exponent = 2 * (xp.abs(omega) * distance)
    exponent = xp.where(exponent == exponent, exponent, 0.0)  # 0 times infinity
    minus_one = xp.expm1(-exponent)
    flat = exponent < xp.finfo(distance.dtype).eps
    below = xp.where(flat, -distance, minus_one / (2 * xp.abs(omega)))
    return Part(
        first.best,
        first.weight + second.weight * (1 + minus_one),
        first.below + second.below * (1 + minus_one) + _count(xp, second) * below,
        omega,
    )


def _count(xp: Namespace, part: Part) -> Array:
    """How many actions there are, times `one`; it does not matter where `omega` is infinite."""
    below = 2 * xp.abs(part.omega) * part.below
    return part.weight - xp.where(below == below, below, 0.0)


def _value(xp: Namespace, row: Part) -> Array:
    """The best value minus the average gap."""
    k, count = 2 * xp.abs(row.omega), _count(xp, row)
    below = k * row.below / count
    log_mean = log_of_mean(xp, row.weight / count, below)
    curved = below < -xp.finfo(k.dtype).eps
    gap = xp.where(curved, -log_mean / k, -row.below / count)
    return 2 * (0.5 * row.best - xp.where(row.omega < 0, -gap, gap))
