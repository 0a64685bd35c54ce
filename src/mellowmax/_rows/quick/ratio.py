"""The inverse temperature over omega, for rows without extreme numbers.

The ratio is the `s` at which the average gap under `exp(-s g)` is `d` (see `formulas`). Halley's
method on the logarithm of the average gap finds it, as `root` does for the general path, but
without a bracket. A ratio is right if the last step towards it was small. A row so narrow that
rounding would decide has the limit, 1/2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, TypeAlias, cast

import numpy as np

from ..._typing import Floats
from .gaps import (
    MODERATE,
    STRONGEST,
    WEAKEST,
    WIDEST,
    Columns,
    Gaps,
    at_least,
    column_max,
    column_sum,
    gaps,
    mellow_exponent,
    weighted,
    weights,
)

__all__ = ["NARROW", "known_ratio", "traced_ratio"]

RowNumbers: TypeAlias = Any
"""A number of one row, in Python, or an array of all."""
NARROW = 2.0**-20
"""The largest gap below which the ratio is nearer to its limit than rounding lets it be found."""
SMALL, SMALL_IN_SINGLE = 2.0**-16, 2.0**-6
"""What an exponent moves by in the last step, at most: the error that is left is a tenth of the
cube of it, which is rounding in the dtype of the result."""
STEPS = 8
"""The most steps of the search: rows that need more have gaps of very different sizes."""
STEPS_UNROLLED = 6
"""The most steps where a compiler unrolls the search, and compiles each for half a second."""
FEW_ROWS = 16
"""For this few rows a step of the search is faster in Python's numbers, row by row."""
FEW_ELEMENTS = 1 << 11
"""A batch in which calls take longer than numbers: one call makes all sums of a step."""
FEW_ACTIONS_OF_VECDOT = 64
"""Up to here, that call's sums are right to rounding in double precision too."""


def known_ratio(g: Gaps, d: Floats) -> Floats | None:
    """The ratio of each row of known numbers, which are NumPy's; None if one is not found."""
    if g.gap.shape[1] <= FEW_ROWS and _one_call_adds_up(g):
        ratio = _find_ratio_of_few(g, d)
        if ratio is not None:
            return ratio
    ratio, close = _find_ratio(np, g, d, STEPS)
    return ratio if close.all() else None


def traced_ratio(
    xp: ModuleType, q: Columns, omega: Columns, counted: Columns | None
) -> tuple[Columns, Columns]:
    """The ratio of each row in a traced program, for any omega; is it right everywhere?"""
    strength = xp.abs(omega)
    g = gaps(xp, q * xp.sign(omega), strength, counted)
    ratio, close = _find_ratio(xp, g, mellow_exponent(xp, g), STEPS_UNROLLED)
    close = close & (abs(g.best) < MODERATE)
    return ratio, (close & (strength >= WEAKEST) & (strength <= STRONGEST)).all()


def _powers(gap: Columns, weight: Columns) -> Iterator[Columns]:
    """The weights times the powers 0 to 3 of the gaps, one after another to save memory."""
    yield weight
    for _ in range(3):
        weight = weight * gap
        yield weight


def _halley(
    mean: RowNumbers,
    second: RowNumbers,
    third: RowNumbers,
    target: RowNumbers,
    log: Callable[[Any], Any],
) -> tuple[Any, Any]:
    """Newton's step on the logarithm of the average gap, and what Halley's method divides it by.

    Numbers of one row, or arrays of all. Of `g`, `g^2` and `g^3`, each mean is given over the one
    before.
    """
    slope = second - mean
    newton = log(mean / target) / slope
    curvature = second * (third - second) / slope - mean
    return newton, 1 - 0.5 * newton * curvature


def _guess(mean: Columns, d: Columns) -> Columns:
    """About the inverse of the ratio, for rows as they are in practice, with this mean gap.

    It fits rows of 3 to 64 normal, uniform and exponential values under omegas of 1 to 8: two steps
    are enough for nearly all of them.
    """
    return 2.8 + 0.145 * mean - 0.51 * d


def _find_ratio(xp: ModuleType, g: Gaps, d: Columns, steps: int) -> tuple[Columns, Columns]:
    """The ratio of each row at which the average gap is `d`; where it is right.

    If the numbers are known, which are NumPy's, the search ends when all steps are small; those of
    a narrow row may never be.
    """
    known, small = xp is np, SMALL_IN_SINGLE if g.single else SMALL
    gap, width = g.gap, column_max(xp, g.gap)
    mean = column_sum(xp, gap if g.prior is None else gap * g.prior, g.single) / g.n
    least = xp.log(mean / d) / width  # a lower bound
    ratio = xp.maximum(1 / at_least(xp, _guess(mean, d), 1.0), least)
    at_once = known and gap.size <= FEW_ELEMENTS and _one_call_adds_up(g)
    powers = _stacked_powers(g) if at_once else None
    per_step = 1 + width
    for _ in range(steps):
        if powers is not None:
            moments = _moments(powers, np.exp(-ratio * gap))
            mean, second, third = moments[1:] / moments[:-1]
        else:
            weight = weights(xp, g, ratio)
            total, first, second, third = (
                column_sum(xp, power, g.single) for power in _powers(gap, weight)
            )
            mean, second, third = first / total, second / first, third / second
        newton, divisor = _halley(mean, second, third, d, xp.log)
        ratio = xp.maximum(ratio + newton / at_least(xp, divisor, 0.5), least)
        size = abs(newton) * per_step  # of the exponents' step
        if known and not np.fmax.reduce(size) > small:
            break
    close, narrow = (size <= small) & (width <= WIDEST), width < NARROW
    if not known or narrow.any():
        ratio, close = xp.where(narrow, 0.5, ratio), close | narrow
    return ratio, close


def _one_call_adds_up(g: Gaps) -> bool:
    """Is the plain sum of NumPy's `vecdot` right to rounding?"""
    return g.single or len(g.gap) <= FEW_ACTIONS_OF_VECDOT


def _stacked_powers(g: Gaps) -> Floats:
    """The powers 0 to 3 of the gaps of actions that count, `[4, actions, rows]`."""
    powers = np.empty((4, *g.gap.shape))
    powers[0] = weighted(g, 1.0)
    for i in range(1, 4):
        np.multiply(powers[i - 1], g.gap, powers[i])
    return powers


def _moments(powers: Floats, weight: Floats) -> Floats:
    """The sums over actions of the weights times each power, `[4, rows]`."""
    return cast(Floats, cast(Any, np.vecdot)(powers, weight, axis=-2))


def _find_ratio_of_few(g: Gaps, d: Floats) -> Floats | None:
    """`_find_ratio` for so few rows that a call for all of them takes longer than a loop.

    None if a row is narrow or wide, or goes astray without a bound.
    """
    powers, small = _stacked_powers(g), SMALL_IN_SINGLE if g.single else SMALL
    targets, widths = d.tolist(), column_max(np, g.gap).tolist()
    if min(widths) < NARROW or max(widths) > WIDEST:
        return None
    ratios = [15 / (30 + width) for width in widths]  # a guess that takes less time
    for _ in range(STEPS):
        moments = _moments(powers, np.exp(-np.array(ratios) * g.gap)).T.tolist()
        close = True
        for i, (total, first, second, third) in enumerate(moments):
            try:
                newton, divisor = _halley(
                    first / total, second / first, third / second, targets[i], math.log
                )
            except (ArithmeticError, ValueError):  # a slope of 0, or the logarithm of no number
                return None
            ratios[i] += newton / max(divisor, 0.5)
            close = close and abs(newton) * (1 + widths[i]) <= small
        if close:
            return np.array(ratios)
    return None
