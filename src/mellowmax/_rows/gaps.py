"""Every softmax is the best value less an average of the gaps to it.

With `top = max(q)` and `gap = top - q >= 0`, each operator is `top - average(gap)`, and each policy
is a function of the gaps alone. Working on gaps is what makes both right for every input: no
exponential overflows, nothing cancels, ties are exactly 0. A negative parameter turns the row
around (`-q`, `-parameter`), so one form serves both signs.

Gaps are kept at half their size, because the distance between two finite numbers need not be a
finite number; `strength` is doubled to match, so `strength * gap` is `|parameter| * (top - q)`.

Arrays are `[actions, rows]` here, or `[1, rows]` for one number a row.
"""

from __future__ import annotations

from typing import NamedTuple

from .._typing import Array, Namespace
from .libraries import truth

__all__ = [
    "Gaps",
    "UnitRow",
    "boltzmann_weights",
    "count",
    "cumulants",
    "exponents",
    "gaps",
    "gaps_to_best",
    "infinitely_wide",
    "mean_gap",
    "mellow_gap",
    "normalised",
    "omega_slope",
    "unit_row",
    "value_at",
]


class Gaps(NamedTuple):
    """The gaps of each row to its best action, with what formulas need beside them."""

    top: Array  # [1, rows] half the best value, after turning the row around
    gap: Array  # [actions, rows] half the distance below it; 0 where `weightless`
    weightless: Array | None  # [actions, rows] masked, or infinitely far below; None if none is
    mask: Array | None  # [actions, rows] actions that count, or None for all
    sign: Array  # [1, rows] -1 where the row is turned around, else 1
    strength: Array  # [1, rows] twice the absolute parameter, infinity cut to a finite number
    infinite: Array | None  # [1, rows] where the parameter is infinite; None where none is


def gaps(xp: Namespace, q: Array, parameter: Array, mask: Array | None) -> Gaps:
    """The gaps of each row to its best action, or for a negative parameter to its worst."""
    sign = xp.where(parameter < 0, -xp.ones_like(parameter), xp.ones_like(parameter))
    half = q * (0.5 * sign)
    if mask is not None:
        half = xp.where(mask, half, -xp.inf)
    top = xp.max(half, axis=0, keepdims=True)
    gap = top - half
    weightless = None
    if not truth(xp.all(xp.isfinite(gap))):
        gap = xp.where(half == top, 0.0, gap)
        weightless = gap == xp.inf  # XLA makes slow code of `isinf`
        weightless = weightless if mask is None else weightless | ~mask
        gap = xp.where(weightless, 0.0, gap)
    strength = parameter * sign
    is_infinite = strength == xp.inf
    infinite = None if truth(xp.any(is_infinite)) is False else is_infinite
    largest = xp.finfo(strength.dtype).max / 2
    return Gaps(top, gap, weightless, mask, sign, 2 * xp.minimum(strength, largest), infinite)


def gaps_to_best(xp: Namespace, q: Array, parameter: Array, mask: Array | None) -> Gaps:
    """The gaps for an operator that never turns a row around, whatever its parameter is."""
    return gaps(xp, q, xp.zeros_like(parameter), mask)


def value_at(g: Gaps, average_gap: Array) -> Array:
    """The value at an average gap below the best: the row turned back and at its full size."""
    return g.sign * 2 * (g.top - average_gap)


def count(xp: Namespace, g: Gaps) -> Array | int:
    """How many actions of each row count."""
    if g.mask is None:
        return g.gap.shape[0]
    return xp.sum(xp.astype(g.mask, g.gap.dtype), axis=0, keepdims=True)


def infinitely_wide(xp: Namespace, g: Gaps) -> Array | None:
    """Rows in which an action that counts is infinitely far below the best; None if none is."""
    if g.weightless is None:
        return None
    counted = g.weightless if g.mask is None else g.weightless & g.mask
    return xp.any(counted, axis=0, keepdims=True)


def exponents(xp: Namespace, g: Gaps) -> Array:
    """`-|parameter| * (top - q)`, kept finite; minus infinity where the parameter is infinite."""
    lowest = xp.finfo(g.gap.dtype).min
    finite = xp.maximum(0.0 - g.strength * g.gap, lowest)
    return finite if g.infinite is None else xp.where(g.infinite & (g.gap > 0), -xp.inf, finite)


def boltzmann_weights(xp: Namespace, g: Gaps) -> Array:
    """`exp(parameter * q)`, normalised."""
    return normalised(xp, g, xp.exp(exponents(xp, g)))


def normalised(xp: Namespace, g: Gaps, weight: Array) -> Array:
    """Weights scaled to sum to 1, with 0 for an action that has none."""
    if g.weightless is None:
        return weight / xp.sum(weight, axis=0, keepdims=True)
    weight = xp.where(g.weightless, 0.0, weight)
    share = weight / xp.sum(weight, axis=0, keepdims=True)
    return share if g.mask is None else xp.where(g.mask, share, 0.0)


def mean_gap(xp: Namespace, g: Gaps) -> Array:
    """The plain average of the gaps."""
    mean = xp.sum(g.gap / count(xp, g), axis=0, keepdims=True)
    rows = infinitely_wide(xp, g)
    return mean if rows is None else xp.where(rows, xp.inf, mean)


def mellow_gap(xp: Namespace, g: Gaps) -> Array:
    """The average gap of mellowmax, `-log(mean(exp(-k * gap))) / k`, to full relative accuracy.

    `log1p` of the mean of `exp - 1` keeps what `log` of the mean of `exp` loses near 1, and the
    latter keeps what the former loses near 0 (XLA's `log1p` loses two digits beyond 0.29). Both
    come from one `tanh`, of a quarter of the exponent so that small weights keep their digits: XLA
    makes slow code of two different transcendental functions here. Below a width of eps the mean
    gap is the same to rounding.
    """
    n = count(xp, g)
    quarter = -0.25 * g.strength * g.gap
    if g.weightless is not None:
        quarter = xp.where(g.weightless, -xp.inf, quarter)
    tanh = xp.tanh(quarter)
    root = (1 + tanh) / (1 - tanh)  # exp of half the exponent
    weight = root * root
    below_one = 2 * tanh / (1 - tanh) * (1 + root)
    if g.mask is not None:
        below_one = xp.where(g.mask, below_one, 0.0)
    mean = xp.sum(weight, axis=0, keepdims=True) / n
    mean_below_one = xp.sum(below_one, axis=0, keepdims=True) / n
    log_mean = xp.where(mean_below_one > -0.25, xp.log1p(mean_below_one), xp.log(mean))

    width, rows = g.strength * xp.max(g.gap, axis=0, keepdims=True), infinitely_wide(xp, g)
    flat = width < xp.finfo(width.dtype).eps
    flat = flat if rows is None else (flat & ~rows) | (g.strength == 0)
    if truth(xp.any(flat)) is False:
        gap = -log_mean / g.strength
    else:
        gap = xp.where(flat, mean_gap(xp, g), -log_mean / xp.where(flat, 1.0, g.strength))
    return gap if g.infinite is None else xp.where(g.infinite, 0.0, gap)


class UnitRow(NamedTuple):
    """A row in units of its largest gap: what is left is free of scale."""

    scale: Array  # [1, rows] the largest gap, or 1 where all are 0
    unit: Array  # [actions, rows] the gaps in units of it: numbers in [0, 1]
    width: Array  # [1, rows] |parameter| times the range of q
    narrow: Array  # [1, rows] where the width is so small that the start of a series is enough


def unit_row(xp: Namespace, g: Gaps) -> UnitRow:
    """The scale-free form of a row.

    A row is narrow below four times the fourth root of eps: there the first terms of a series in
    the width are as accurate as formulas that lose `eps / width` or its square to cancellation.
    """
    largest = xp.max(g.gap, axis=0, keepdims=True)
    scale = xp.where(largest == 0, 1.0, largest)
    width = g.strength * largest
    narrow = width < 4 * xp.finfo(width.dtype).eps ** 0.25
    rows = infinitely_wide(xp, g)
    return UnitRow(scale, g.gap / scale, width, narrow if rows is None else narrow & ~rows)


def cumulants(xp: Namespace, g: Gaps, unit: Array) -> tuple[Array, Array, Array, Array]:
    """Deviations from the mean of `unit` gaps, and their cumulants 2 to 4 under equal weights."""
    n = count(xp, g)
    c = unit - xp.sum(unit, axis=0, keepdims=True) / n
    if g.mask is not None:
        c = xp.where(g.mask, c, 0.0)
    square = c * c
    second, third, fourth = (
        xp.sum(power, axis=0, keepdims=True) / n for power in (square, square * c, square * square)
    )
    return c, second, third, fourth - 3 * second * second


def omega_slope(xp: Namespace, g: Gaps, row: UnitRow, policy: Array) -> Array:
    """(boltz - mm) / omega in units of the squared range, given the Boltzmann policy at omega.

    A narrow row takes its series, `k2 / 2 - W k3 / 3 + W^2 k4 / 8` with the cumulants of the gaps.
    """
    boltzmann_gap = xp.sum(policy * row.unit, axis=0, keepdims=True)
    width = xp.where(row.width == 0, 1.0, row.width)
    direct = (mellow_gap(xp, g) / row.scale - boltzmann_gap) / width
    _, second, third, fourth = cumulants(xp, g, row.unit)
    series = second / 2 - row.width * (third / 3 - row.width * fourth / 8)
    return xp.where(row.narrow, series, direct)
