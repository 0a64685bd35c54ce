"""Mellowmax and its policy on ordinary rows, in as few operations as they can be written.

Where a batch is small its time is that of the calls of array functions, and in a compiled program
the compiler's. Kernels that are right for every input need hundreds of them. Here are the same
formulas for rows without extremes: moderate numbers, in double precision. What they find proves
itself: a value is right if it is finite, and a root is if the last step towards it was small. A
batch with a row where that is not so is left to the kernels that are right for every input.

With the gaps `g = |omega| (max(q) - q)` mellowmax is `max(q) - d / |omega|`, where `d` is
`-log(mean(exp(-g)))`. Its policy is `exp(-s g)`, normalised, with the ratio `s = b / omega` at
which the average gap under it is `d`. `_search` finds it by Halley's method on the logarithm, as
`root` does, but without a bracket. A row so narrow that rounding would decide has the limit, 1/2.

Arrays are `[actions, rows]` here, or `[rows]` for one number a row, of NumPy or of PyTorch; `xp` is
the library itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from .._typing import Bools, Floats
from .libraries import add_up

__all__ = [
    "Answer",
    "Kernel",
    "boltzmann_log_policy",
    "boltzmann_policy",
    "log_policy",
    "mellowmax",
    "policy",
    "ratio",
]

Columns: TypeAlias = Any
"""An array of NumPy's or a tensor of PyTorch's: what is asked of them here has the same names."""
WEAKEST, STRONGEST = 2.0**-16, 2.0**16
"""The parameters for which gaps neither underflow nor overflow, whatever the finite values are."""
NARROW = 2.0**-20
"""The largest gap below which the ratio is nearer to its limit than rounding lets it be found."""
SMALL = 2.0**-18
"""What an exponent moves by in the last step but one: the cube of it is rounding."""
WIDEST = 2.0**20
"""The largest gap: beside a larger one the others are lost to rounding."""
STEPS = 8
"""Of the search, at most: rows that need more have gaps of very different sizes."""
STEPS_UNROLLED = 6
"""The same where a compiler unrolls it, and compiles each for half a second."""


Gradients: TypeAlias = tuple[Floats, Floats | None]
"""By `q`, and by the parameter, one a row; None where only careful kernels know the latter."""


class Answer(NamedTuple):
    """What a kernel found, and how it is differentiated."""

    result: Floats  # [rows] or [actions, rows]
    pulled_back: Callable[[Floats], Gradients]
    """From derivatives by the result to those by `q` and by the parameter."""


Kernel: TypeAlias = Callable[[Floats, float, Bools | None], Answer | None]
"""A formula: `q [actions, rows]`, the parameter and a mask in; None where it is not known."""


class _Rows(NamedTuple):
    best: Columns  # [rows] the best value, after turning the row around
    gap: Columns  # [actions, rows] `|omega|` times the distance below it; 0 where masked
    present: Columns  # [actions, rows] 1 for an action that counts, 0 for others; 1 if all count
    n: Columns  # [rows] how many count; a number if all do


def _rows(
    xp: ModuleType, turned: Columns, strength: Columns | float, mask: Columns | None
) -> _Rows:
    if mask is None:
        best = xp.amax(turned, axis=0)
        return _Rows(best, strength * (best - turned), 1.0, turned.shape[0])
    best = xp.amax(xp.where(mask, turned, -math.inf), axis=0)
    gap = xp.where(mask, strength * (best - turned), 0.0)
    present = mask * xp.ones_like(gap)
    return _Rows(best, gap, present, _sum(xp, present))


def _sum(xp: ModuleType, x: Columns) -> Columns:
    """The sum over the actions, to full accuracy for any number of them."""
    return add_up(xp, x)[0]


def _mellow_exponent(xp: ModuleType, rows: _Rows, weight: Columns) -> Columns:
    """`d`, to full relative accuracy."""
    below = _sum(xp, xp.expm1(-rows.gap)) / rows.n
    return -xp.where(below > -0.25, xp.log1p(below), xp.log(_sum(xp, weight) / rows.n))


def _search(
    xp: ModuleType, rows: _Rows, target: Columns, steps: int, is_known: bool = True
) -> tuple[Columns, Columns]:
    """The ratio of each row at which the average gap is the target; where the last step was small.

    If the numbers are known, it ends when all steps are small.
    """
    gap, width = rows.gap, xp.amax(rows.gap, axis=0)
    narrow = width < NARROW
    some_narrow = not is_known or narrow.any()
    low = xp.log(_sum(xp, gap) / rows.n / target) / width
    if some_narrow:
        low = xp.where(narrow, 0.0, low)
    ratio = xp.maximum(0.5 / (1 + width / 30), low)
    square = gap * gap
    powers = [rows.present * xp.ones_like(gap), gap, square, square * gap]
    if is_known:  # all in one call; what is compiled has numbers of rows only, and is one kernel
        powers = xp.stack(powers, axis=1)
    error = per_step = 1 + width
    half, double = 0.5 * xp.ones_like(width), 2 * xp.ones_like(width)
    for _ in range(steps):
        weight = xp.exp(-ratio * gap)
        if is_known:
            total, first, second, third = _sum(xp, powers * weight[:, None])
        else:
            total, first, second, third = (_sum(xp, power * weight) for power in powers)
        mean, second, third = first / total, second / first, third / first
        excess = xp.log(mean / target)
        slope = second - mean  # of -log D
        bend = third - second * second - mean * slope
        curl = 0.5 * excess * bend / (slope * slope)
        step = excess / (slope * xp.minimum(xp.maximum(1 - curl, half), double))
        if some_narrow:
            step = xp.where(narrow, 0.0, step)
        ratio = xp.maximum(ratio + step, low)
        error = abs(step) * per_step  # of the exponents, before this step
        if is_known and error.max() <= SMALL:
            break
    return ratio, (error <= SMALL) & (width <= WIDEST)


def ratio(
    xp: ModuleType, q: Columns, omega: Columns, mask: Columns | None
) -> tuple[Columns, Columns]:
    """The ratio of each row in a traced program, for any omega; is it right everywhere?"""
    strength = xp.abs(omega)
    rows = _rows(xp, q * xp.sign(omega), strength, mask)
    target = _mellow_exponent(xp, rows, rows.present * xp.exp(-rows.gap))
    ratio, close = _search(xp, rows, target, STEPS_UNROLLED, is_known=False)
    return ratio, (close & (strength >= WEAKEST) & (strength <= STRONGEST)).all()


# What follows is for numbers that are known: NumPy's.


def _start(q: Floats, parameter: float, mask: Bools | None) -> tuple[_Rows, Floats] | None:
    """The rows, and their weights `exp(-g)`; None for a parameter that is not ordinary."""
    if not WEAKEST <= abs(parameter) <= STRONGEST:
        return None
    rows = _rows(np, q if parameter > 0 else -q, abs(parameter), mask)
    return rows, rows.present * np.exp(-rows.gap)


def _proved(result: Floats, pulled_back: Callable[..., Any], of: Floats) -> Answer | None:
    """The answer, if the numbers that it was found from are finite, and so their sum."""
    return Answer(result, pulled_back) if math.isfinite(of.sum()) else None


def mellowmax(q: Floats, omega: float, mask: Bools | None) -> Answer | None:
    """Mellowmax of each row."""
    start = _start(q, omega, mask)
    if start is None:
        return None
    rows, weight = start
    d = _mellow_exponent(np, rows, weight)
    result = math.copysign(1.0, omega) * (rows.best - d / abs(omega))

    def pulled_back(cotangent: Floats) -> Gradients:
        policy = weight / _sum(np, weight)
        width = rows.gap.max(axis=0)
        # The slope is the difference of two numbers, which must not be all rounding.
        if not ((width == 0) | ((width >= 2.0**-16) & (width <= WIDEST))).all():
            return cotangent * policy, None
        slope = (d - _sum(np, policy * rows.gap)) / omega**2
        return cotangent * policy, cotangent * slope

    return _proved(result, pulled_back, result)


def boltzmann_policy(q: Floats, beta: float, mask: Bools | None) -> Answer | None:
    """Boltzmann's policy."""
    start = _start(q, beta, mask)
    if start is None:
        return None
    rows, weight = start
    policy = weight / _sum(np, weight)

    def pulled_back(cotangent: Floats) -> Gradients:
        return _through_exponents(rows, beta, policy, policy * cotangent)

    return _proved(policy, pulled_back, rows.gap)


def boltzmann_log_policy(q: Floats, beta: float, mask: Bools | None) -> Answer | None:
    """Its logarithm."""
    start = _start(q, beta, mask)
    if start is None:
        return None
    rows, weight = start
    total = _sum(np, weight)

    def pulled_back(cotangent: Floats) -> Gradients:
        return _through_exponents(rows, beta, weight / total, _of_present(cotangent, mask))

    result = 0.0 - (rows.gap + np.log(total))
    return _proved(_or_never(result, mask), pulled_back, result)


def policy(q: Floats, omega: float, mask: Bools | None) -> Answer | None:
    """Mellowmax's policy."""
    found = _policy(q, omega, mask)
    if found is None:
        return None
    policy, _, through = found
    return Answer(policy, lambda cotangent: through(policy * cotangent))


def log_policy(q: Floats, omega: float, mask: Bools | None) -> Answer | None:
    """Its logarithm."""
    found = _policy(q, omega, mask)
    if found is None:
        return None
    _, logarithm, through = found
    return Answer(
        _or_never(logarithm(), mask), lambda cotangent: through(_of_present(cotangent, mask))
    )


def _policy(
    q: Floats, omega: float, mask: Bools | None
) -> tuple[Floats, Callable[[], Floats], Callable[[Floats], Gradients]] | None:
    """Mellowmax's policy, its logarithm, and the way from the derivatives by the logarithm."""
    start = _start(q, omega, mask)
    if start is None:
        return None
    rows, weight_at_omega = start
    d = _mellow_exponent(np, rows, weight_at_omega)
    ratio, close = _search(np, rows, d, STEPS)
    if not close.all():
        return None
    exponent = ratio * rows.gap
    weight = rows.present * np.exp(-exponent)
    total = _sum(np, weight)
    policy = weight / total

    def through(by_log: Floats) -> Gradients:
        deviation = rows.gap - d
        by_ratio = -_sum(np, by_log * deviation)
        variance = _sum(np, policy * deviation * deviation)
        at_omega = weight_at_omega / _sum(np, weight_at_omega)
        moves = (at_omega - policy * (1 - ratio * deviation)) / variance
        moves = np.where(rows.gap.max(axis=0) < NARROW, 0.0, moves)
        return _through_exponents(rows, omega, policy, by_log, ratio, by_ratio * moves)

    return policy, lambda: 0.0 - (exponent + np.log(total)), through


def _through_exponents(
    rows: _Rows,
    parameter: float,
    policy: Floats,
    by_log: Floats,
    ratio: Floats | float = 1.0,
    beside: Floats | float = 0.0,
) -> Gradients:
    """The derivatives by `q` and the parameter, from those by the logarithm of a policy.

    Its exponents are `-ratio * gap`; what comes through the ratio is given as `beside`.
    """
    by_exponent = ratio * (by_log - policy * _sum(np, by_log)) + beside
    by_parameter = -_sum(np, by_exponent * rows.gap) / parameter
    return parameter * by_exponent, by_parameter


def _of_present(cotangent: Floats, mask: Bools | None) -> Floats:
    return cotangent if mask is None else np.where(mask, cotangent, 0.0)


def _or_never(logarithm: Floats, mask: Bools | None) -> Floats:
    return logarithm if mask is None else np.where(mask, logarithm, -math.inf)
