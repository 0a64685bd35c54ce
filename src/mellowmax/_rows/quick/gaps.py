"""The gaps of rows without extreme numbers, in double precision.

Arrays are `[actions, rows]` here, or `[rows]` for one number a row, of NumPy or of PyTorch; `xp` is
the library itself.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..._typing import Bools, Floats
from ..libraries.array_api import FEW_ACTIONS, add_up

__all__ = [
    "MODERATE",
    "STRONGEST",
    "WEAKEST",
    "WIDEST",
    "Columns",
    "Counted",
    "Gaps",
    "at_least",
    "column_max",
    "column_sum",
    "gaps",
    "mellow_exponent",
    "moderate_gaps",
    "normalised",
    "weighted",
    "weights",
]

Columns: TypeAlias = Any
"""A NumPy array or a PyTorch tensor: what is asked of them here has the same names."""
Counted: TypeAlias = Bools | Floats | None
"""The actions that count: a mask `[actions, rows]`, weights `[actions, rows or 1]`, or all."""
WEAKEST, STRONGEST = 2.0**-16, 2.0**16
"""The parameters for which gaps neither underflow nor overflow, whatever the finite values are."""
WIDEST = 2.0**20
"""The largest gap: next to a larger one the others are lost to rounding."""
MODERATE, HUGE = 2.0**900, 2.0**1000
"""The best value of a row with a mask, at most; and minus the value of an action that is masked."""
MANY_ACTIONS = 1 << 16
"""Up to here, plain sums in double precision are right to rounding in single precision."""


class Gaps(NamedTuple):
    """The gaps of each row to its best action, in units of `1 / |omega|`."""

    best: Columns  # [rows] the best value, after turning the row around
    gap: Columns  # [actions, rows] `|omega|` times the distance below it; 0 where it does not count
    counted: Columns  # [actions, rows] 1 for an action that counts, 0 for others; None if all count
    prior: Columns  # [actions, rows or 1] the weights of the actions; None if they are equal
    n: Columns  # [rows] how many count, or the sum of their weights; a number if all count alike
    single: bool  # is the result in single precision, so that double has digits to spare?


def gaps(
    xp: ModuleType,
    turned: Columns,
    strength: Columns | float,
    counted: Columns | None,
    single: bool = False,
) -> Gaps:
    """The gaps of rows that are turned around already where the parameter is negative.

    Args:
        xp: the library.
        turned: the action values.
        strength: the absolute parameter.
        counted: the actions that count, a mask or weights; None for all.
        single: is the result in single precision?
    """
    prior = None
    if counted is not None and not str(counted.dtype).endswith("bool"):
        prior = xp.asarray(counted, dtype=turned.dtype)
        counted = counted > 0
        counted = None if xp is np and counted.all() else counted
    if counted is None:
        best = column_max(xp, turned)
        gap = best - turned
        gap *= strength
        n = turned.shape[0] if prior is None else column_sum(xp, prior)
        return Gaps(best, gap, None, prior, n, single)
    # By arithmetic: `where` takes longer, since a processor cannot foresee a mask.
    counted = xp.asarray(counted, dtype=turned.dtype)
    most = counted * (2 * HUGE)
    most -= HUGE
    turned = np.fmin(turned, most) if xp is np else xp.fmin(turned, most)
    best = column_max(xp, turned)
    gap = best - turned
    gap *= strength
    gap *= counted
    n = column_sum(xp, counted, one_by_one=True) if prior is None else column_sum(xp, prior)
    return Gaps(best, gap, counted, prior, n, single)


def weighted(g: Gaps, x: Columns) -> Columns:
    """A number for each action, times its weight: 0 for one that does not count."""
    if g.prior is not None:
        return x * g.prior
    return x if g.counted is None else x * g.counted


def column_sum(xp: ModuleType, x: Columns, one_by_one: bool = False) -> Columns:
    """The sum over the actions, to full accuracy unless it is enough to add them one by one."""
    if xp is np and (one_by_one or len(x) <= FEW_ACTIONS):
        return np.add.reduce(x)
    return add_up(xp, x)[0]


def column_max(xp: ModuleType, x: Columns) -> Columns:
    """The largest over the actions."""
    return np.maximum.reduce(x) if xp is np else xp.amax(x, axis=0)


def at_least(xp: ModuleType, x: Columns, least: float) -> Columns:
    """Each number, or the bound where that is larger."""
    return np.maximum(x, least) if xp is np else x.clip(least)


def weights(xp: ModuleType, g: Gaps, ratio: Columns | float = 1.0) -> Columns:
    """`exp(-ratio * gap)` of the actions that count."""
    return weighted(g, xp.exp(-ratio * g.gap))


def mellow_exponent(xp: ModuleType, g: Gaps) -> Columns:
    """`d = -log(mean(exp(-gap)))`, to full relative accuracy."""
    below = xp.expm1(-g.gap)  # 0 where it does not count
    below = column_sum(xp, below if g.prior is None else below * g.prior, g.single) / g.n
    if g.single:
        return -xp.log1p(below)
    mean = column_sum(xp, weights(xp, g)) / g.n
    return -xp.where(below > -0.25, xp.log1p(below), xp.log(mean))


def normalised(g: Gaps, weight: Floats) -> Floats:
    """Weights scaled to sum to 1."""
    return weight / column_sum(np, weight, g.single)


def moderate_gaps(q: Floats, parameter: float, counted: Counted) -> Gaps | None:
    """The gaps for a parameter of either sign; None if it or a masked row is extreme."""
    if not WEAKEST <= abs(parameter) <= STRONGEST:
        return None
    single = q.dtype == np.float32 and len(q) <= MANY_ACTIONS
    q = np.ascontiguousarray(q, dtype=np.float64)
    columns = None if counted is None else np.ascontiguousarray(counted)
    g = gaps(np, q if parameter > 0 else -q, abs(parameter), columns, single)
    if g.counted is not None and not column_max(np, abs(g.best)) < MODERATE:  # or no action counts
        return None
    return g
