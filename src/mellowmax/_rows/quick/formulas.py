"""Formulas in few array operations, for rows without extreme numbers.

Nearly all rows are like that. These formulas are in double precision, and what they find proves
itself: a value is right if it is finite, and a root is if the last step towards it was small. If
that fails in one row, the answer is None, and the caller takes the general path, which is right for
every input.

With the gaps `g = |omega| (max(q) - q)` mellowmax is `max(q) - d / |omega|`, where `d` is
`-log(mean(exp(-g)))`. Its policy is `exp(-s g)`, normalised, with the ratio `s = b / omega` at
which the average gap under it is `d`. Halley's method on the logarithm of the average gap finds it,
as in `root`, but without a bracket. A row so narrow that rounding would decide has the limit, 1/2.

Arrays are `[actions, rows]` here, or `[rows]` for one number a row, of NumPy or of PyTorch; `xp` is
the library itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from ..._typing import Bools, Floats
from ..libraries.array_api import FEW_ACTIONS, add_up

__all__ = [
    "Answer",
    "Counted",
    "Gradients",
    "QuickFormula",
    "boltzmann_log_policy",
    "boltzmann_policy",
    "log_policy",
    "mellowmax",
    "policy",
    "ratio",
]

Columns: TypeAlias = Any
"""A NumPy array or a PyTorch tensor: what is asked of them here has the same names."""
RowNumbers: TypeAlias = Any
"""A number of one row, in Python, or an array of all."""
WEAKEST, STRONGEST = 2.0**-16, 2.0**16
"""The parameters for which gaps neither underflow nor overflow, whatever the finite values are."""
NARROW = 2.0**-20
"""The largest gap below which the ratio is nearer to its limit than rounding lets it be found."""
SMALL, SMALL_IN_SINGLE = 2.0**-16, 2.0**-6
"""What an exponent moves by in the last step, at most: the error that is left is a tenth of the
cube of it, which is rounding in the dtype of the result."""
WIDEST = 2.0**20
"""The largest gap: beside a larger one the others are lost to rounding."""
MODERATE, HUGE = 2.0**900, 2.0**1000
"""The best value of a row with a mask, at most; and minus the value of an action that is masked."""
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
MANY_ACTIONS = 1 << 16
"""Up to here, plain sums in double precision are right to rounding in single precision."""

Gradients: TypeAlias = tuple[Floats, Floats | None]
"""Derivatives with respect to `q`, and to the parameter for each row; None for the latter if only
the general path gets them right."""


class Answer(NamedTuple):
    """What a formula gives, and how it is differentiated."""

    result: Floats  # [rows] or [actions, rows]
    pullback: Callable[[Floats], Gradients]
    """From derivatives with respect to the result to those in `Gradients`."""


Counted: TypeAlias = Bools | Floats | None
"""The actions that count: a mask `[actions, rows]`, weights `[actions, rows or 1]`, or all."""
QuickFormula: TypeAlias = Callable[[Floats, float, Counted], Answer | None]
"""A formula of `q [actions, rows]`, the parameter and what counts; None if a row is extreme."""


class _Rows(NamedTuple):
    best: Columns  # [rows] the best value, after turning the row around
    gap: Columns  # [actions, rows] `|omega|` times the distance below it; 0 where it does not count
    counted: Columns  # [actions, rows] 1 for an action that counts, 0 for others; None if all count
    prior: Columns  # [actions, rows or 1] the weights of the actions; None if they are equal
    n: Columns  # [rows] how many count, or the sum of their weights; a number if all count alike
    single: bool  # is the result in single precision, so that double has digits to spare?


def _rows(
    xp: ModuleType,
    turned: Columns,
    strength: Columns | float,
    counted: Columns | None,
    single: bool = False,
) -> _Rows:
    prior = None
    if counted is not None and not str(counted.dtype).endswith("bool"):
        prior = xp.asarray(counted, dtype=turned.dtype)
        counted = counted > 0
        counted = None if xp is np and counted.all() else counted
    if counted is None:
        best = _max(xp, turned)
        gap = best - turned
        gap *= strength
        n = turned.shape[0] if prior is None else _sum(xp, prior)
        return _Rows(best, gap, None, prior, n, single)
    # By arithmetic: `where` takes longer, since a processor cannot foresee a mask.
    counted = xp.asarray(counted, dtype=turned.dtype)
    most = counted * (2 * HUGE)
    most -= HUGE
    turned = np.fmin(turned, most) if xp is np else xp.fmin(turned, most)
    best = _max(xp, turned)
    gap = best - turned
    gap *= strength
    gap *= counted
    n = _sum(xp, counted, one_by_one=True) if prior is None else _sum(xp, prior)
    return _Rows(best, gap, counted, prior, n, single)


def _weighted(rows: _Rows, x: Columns) -> Columns:
    """A number for each action, times its weight: 0 for one that does not count."""
    if rows.prior is not None:
        return x * rows.prior
    return x if rows.counted is None else x * rows.counted


def _sum(xp: ModuleType, x: Columns, one_by_one: bool = False) -> Columns:
    """The sum over the actions, to full accuracy unless it is enough to add them one by one."""
    if xp is np and (one_by_one or len(x) <= FEW_ACTIONS):
        return np.add.reduce(x)
    return add_up(xp, x)[0]


def _max(xp: ModuleType, x: Columns) -> Columns:
    return np.maximum.reduce(x) if xp is np else xp.amax(x, axis=0)


def _at_least(xp: ModuleType, x: Columns, least: float) -> Columns:
    return np.maximum(x, least) if xp is np else x.clip(least)


def _weights(xp: ModuleType, rows: _Rows, ratio: Columns | float = 1.0) -> Columns:
    """`exp(-ratio * gap)` of the actions that count."""
    return _weighted(rows, xp.exp(-ratio * rows.gap))


def _mellow_exponent(xp: ModuleType, rows: _Rows) -> Columns:
    """`d`, to full relative accuracy."""
    below = xp.expm1(-rows.gap)  # 0 where it does not count
    below = _sum(xp, below if rows.prior is None else below * rows.prior, rows.single) / rows.n
    if rows.single:
        return -xp.log1p(below)
    mean = _sum(xp, _weights(xp, rows)) / rows.n
    return -xp.where(below > -0.25, xp.log1p(below), xp.log(mean))


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
    bend = second * (third - second) / slope - mean
    return newton, 1 - 0.5 * newton * bend


def _guess(mean: Columns, d: Columns) -> Columns:
    """The inverse of the ratio, about, for rows as they are in practice, with this mean gap.

    It fits rows of 3 to 64 normal, uniform and exponential values under omegas of 1 to 8: two steps
    are enough for nearly all of them.
    """
    return 2.8 + 0.145 * mean - 0.51 * d


def _find_ratio(xp: ModuleType, rows: _Rows, d: Columns, steps: int) -> tuple[Columns, Columns]:
    """The ratio of each row at which the average gap is `d`; where it is right.

    If the numbers are known, which are NumPy's, the search ends when all steps are small; those of
    a narrow row may never be.
    """
    known, small = xp is np, SMALL_IN_SINGLE if rows.single else SMALL
    gap, width = rows.gap, _max(xp, rows.gap)
    mean = _sum(xp, gap if rows.prior is None else gap * rows.prior, rows.single) / rows.n
    least = xp.log(mean / d) / width  # a lower bound
    ratio = xp.maximum(1 / _at_least(xp, _guess(mean, d), 1.0), least)
    at_once = known and gap.size <= FEW_ELEMENTS and _one_call_adds_up(rows)
    powers = _stacked_powers(rows) if at_once else None
    per_step = 1 + width
    for _ in range(steps):
        if powers is not None:
            moments = _moments(powers, np.exp(-ratio * gap))
            mean, second, third = moments[1:] / moments[:-1]
        else:
            weight = _weights(xp, rows, ratio)
            total, first, second, third = (
                _sum(xp, power, rows.single) for power in _powers(gap, weight)
            )
            mean, second, third = first / total, second / first, third / second
        newton, divisor = _halley(mean, second, third, d, xp.log)
        ratio = xp.maximum(ratio + newton / _at_least(xp, divisor, 0.5), least)
        size = abs(newton) * per_step  # of the exponents' step
        if known and not np.fmax.reduce(size) > small:
            break
    close, narrow = (size <= small) & (width <= WIDEST), width < NARROW
    if not known or narrow.any():
        ratio, close = xp.where(narrow, 0.5, ratio), close | narrow
    return ratio, close


def _one_call_adds_up(rows: _Rows) -> bool:
    """Is the plain sum of NumPy's `vecdot` right to rounding?"""
    return rows.single or len(rows.gap) <= FEW_ACTIONS_OF_VECDOT


def _stacked_powers(rows: _Rows) -> Floats:
    """The powers 0 to 3 of the gaps of actions that count, `[4, actions, rows]`."""
    powers = np.empty((4, *rows.gap.shape))
    powers[0] = _weighted(rows, 1.0)
    for i in range(1, 4):
        np.multiply(powers[i - 1], rows.gap, powers[i])
    return powers


def _moments(powers: Floats, weight: Floats) -> Floats:
    """The sums over actions of the weights times each power, `[4, rows]`."""
    moments: Floats = cast(Any, np.vecdot)(powers, weight, axis=-2)
    return moments


def _find_ratio_of_few(rows: _Rows, d: Floats) -> Floats | None:
    """The same for so few rows that a call for all of them takes longer than a loop over them.

    None if a row is narrow or wide, or goes astray without a bound.
    """
    powers, small = _stacked_powers(rows), SMALL_IN_SINGLE if rows.single else SMALL
    targets, widths = d.tolist(), _max(np, rows.gap).tolist()
    if min(widths) < NARROW or max(widths) > WIDEST:
        return None
    ratios = [15 / (30 + width) for width in widths]  # a guess that takes less time
    for _ in range(STEPS):
        moments = _moments(powers, np.exp(-np.array(ratios) * rows.gap)).T.tolist()
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


def ratio(
    xp: ModuleType, q: Columns, omega: Columns, counted: Columns | None
) -> tuple[Columns, Columns]:
    """The ratio of each row in a traced program, for any omega; is it right everywhere?"""
    strength = xp.abs(omega)
    rows = _rows(xp, q * xp.sign(omega), strength, counted)
    ratio, close = _find_ratio(xp, rows, _mellow_exponent(xp, rows), STEPS_UNROLLED)
    close = close & (abs(rows.best) < MODERATE)
    return ratio, (close & (strength >= WEAKEST) & (strength <= STRONGEST)).all()


# What follows is for numbers that are known: NumPy's.


def _moderate_rows(q: Floats, parameter: float, counted: Counted) -> _Rows | None:
    """The rows in double precision; None if the parameter or a masked row is extreme."""
    if not WEAKEST <= abs(parameter) <= STRONGEST:
        return None
    single = q.dtype == np.float32 and len(q) <= MANY_ACTIONS
    q = np.ascontiguousarray(q, dtype=np.float64)
    columns = None if counted is None else np.ascontiguousarray(counted)
    rows = _rows(np, q if parameter > 0 else -q, abs(parameter), columns, single)
    if rows.counted is not None and not _max(np, abs(rows.best)) < MODERATE:  # or no action counts
        return None
    return rows


def mellowmax(q: Floats, omega: float, counted: Counted) -> Answer | None:
    """Mellowmax of each row."""
    rows = _moderate_rows(q, omega, counted)
    if rows is None:
        return None
    d = _mellow_exponent(np, rows)
    value = rows.best - d / abs(omega)
    result = value if omega > 0 else -value

    def pullback(cotangent: Floats) -> Gradients:
        policy = _normalised(rows, _weights(np, rows))
        width = _max(np, rows.gap)
        # The slope is the difference of two numbers, which must not be all rounding.
        if not ((width == 0) | ((width >= 2.0**-16) & (width <= WIDEST))).all():
            return cotangent * policy, None
        slope = (d - _sum(np, policy * rows.gap, rows.single)) / omega**2
        return cotangent * policy, cotangent * slope

    return Answer(result, pullback) if _are_finite(result) else None


def boltzmann_policy(q: Floats, beta: float, counted: Counted) -> Answer | None:
    """Boltzmann's policy."""
    rows = _moderate_rows(q, beta, counted)
    if rows is None or not _are_finite(rows.gap):
        return None
    policy = _normalised(rows, _weights(np, rows))

    def pullback(cotangent: Floats) -> Gradients:
        return _through_exponents(rows, beta, policy, policy * cotangent)

    return Answer(policy, pullback)


def boltzmann_log_policy(q: Floats, beta: float, counted: Counted) -> Answer | None:
    """Its logarithm."""
    rows = _moderate_rows(q, beta, counted)
    if rows is None or not _are_finite(rows.gap):
        return None
    weight = _weights(np, rows)
    total = _sum(np, weight, rows.single)

    def pullback(cotangent: Floats) -> Gradients:
        return _through_exponents(rows, beta, weight / total, _of_counted(rows, cotangent))

    return Answer(_with_log_weights(rows, 0.0 - (rows.gap + np.log(total))), pullback)


def policy(q: Floats, omega: float, counted: Counted) -> Answer | None:
    """Mellowmax's policy."""
    found = _policy(q, omega, counted)
    if found is None:
        return None
    policy, _, through = found
    return Answer(policy, lambda cotangent: through(policy * cotangent))


def log_policy(q: Floats, omega: float, counted: Counted) -> Answer | None:
    """Its logarithm."""
    found = _policy(q, omega, counted)
    if found is None:
        return None
    _, logarithm, through = found
    return Answer(logarithm(), through)


def _policy(
    q: Floats, omega: float, counted: Counted
) -> tuple[Floats, Callable[[], Floats], Callable[[Floats], Gradients]] | None:
    """Mellowmax's policy, its logarithm, and the pullback from derivatives with respect to that."""
    rows = _moderate_rows(q, omega, counted)
    if rows is None:
        return None
    d = _mellow_exponent(np, rows)
    ratio = None
    if q.shape[1] <= FEW_ROWS and _one_call_adds_up(rows):
        ratio = _find_ratio_of_few(rows, d)
    if ratio is None:
        ratio, close = _find_ratio(np, rows, d, STEPS)
        if not close.all():
            return None
    weight = _weights(np, rows, ratio)
    total = _sum(np, weight, rows.single)
    policy = weight / total

    def logarithm() -> Floats:
        return _with_log_weights(rows, 0.0 - (ratio * rows.gap + np.log(total)))

    def through(by_log: Floats) -> Gradients:
        by_log = _of_counted(rows, by_log)
        deviation = rows.gap - d
        by_ratio = -_sum(np, by_log * deviation, rows.single)
        variance = _sum(np, policy * deviation * deviation, rows.single)
        at_omega = _normalised(rows, _weights(np, rows))
        moves = (at_omega - policy * (1 - ratio * deviation)) / variance
        moves = np.where(_max(np, rows.gap) < NARROW, 0.0, moves)
        return _through_exponents(rows, omega, policy, by_log, ratio, by_ratio * moves)

    return policy, logarithm, through


def _are_finite(x: Floats) -> bool:
    return math.isfinite(np.add.reduce(x, axis=None))


def _normalised(rows: _Rows, weight: Floats) -> Floats:
    policy: Floats = weight / _sum(np, weight, rows.single)
    return policy


def _through_exponents(
    rows: _Rows,
    parameter: float,
    policy: Floats,
    by_log: Floats,
    ratio: Floats | float = 1.0,
    beside: Floats | float = 0.0,
) -> Gradients:
    """From derivatives with respect to the logarithm of a policy to those in `Gradients`.

    Its exponents are `-ratio * gap`; what comes through the ratio is given as `beside`.
    """
    by_exponent = ratio * (by_log - policy * _sum(np, by_log, rows.single)) + beside
    by_parameter = -_sum(np, by_exponent * rows.gap, rows.single) / parameter
    return parameter * by_exponent, by_parameter


def _of_counted(rows: _Rows, cotangent: Floats) -> Floats:
    """The cotangents of the actions that count; those of the others may be anything."""
    return cotangent if rows.counted is None else np.where(rows.counted, cotangent, 0.0)


def _with_log_weights(rows: _Rows, logarithm: Floats) -> Floats:
    """Logarithms with those of the weights added, minus infinity where no action counts."""
    if rows.prior is not None:
        return logarithm + np.log(rows.prior)
    if rows.counted is None:
        return logarithm
    masked: Floats = np.minimum(logarithm, (rows.counted - 0.5) * math.inf)
    return masked
