"""Every softmax is the best value minus an average of the gaps to it.

With `top = max(q)` and `gap = top - q >= 0`, each operator is `top - average(gap)`, and each policy
is a function of the gaps alone. Working on gaps is what makes both right for every input: no
exponential overflows, nothing cancels, ties are exactly 0. A negative parameter turns the row
around (`-q`, `-parameter`), so one form serves both signs.

Gaps are differences, and two kinds of them are no normal number: the distance of two huge values
overflows, that of two tiny ones is subnormal, which XLA takes for 0. So gaps are in units of a
`scale` and the parameter is multiplied by it: `strength * gap` is `|parameter| * (top - q)`. The
scale is a power of two: 2, or less in a row whose parameter is so large that tiny gaps count.

Where squares and quotients of gaps are needed, even that is not enough: beside an action that was
filled with -1e30, the gaps that matter are 1e-30 of the range, and their squares underflow. A
`UnitRow` has the row in units of its mellowmax: of `1 / |parameter|`, or of the range where that is
less. In these units the average gap of mellowmax lies between `1 / (4 n)` and `2 log n`, and so all
that is computed from it is of the order of 1.

The actions that count are given as a mask, or as weights: the prior of an average that is not a
plain one. A weight of k is k equal actions, a weight of 0 none, and a mask is a prior of 0 and 1.

Arrays are `[actions, rows]` here, or `[1, rows]` for one number a row.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ..._typing import Array, Namespace
from ..libraries.array_api import add_up, decay, power_of_two
from ..libraries.knowledge import knows
from ..libraries.tracing import truth

__all__ = [
    "FAINT",
    "ORDINARY",
    "Gaps",
    "UnitRow",
    "are_ordinary",
    "average_beyond",
    "beyond_first",
    "boltzmann_weights",
    "count",
    "cumulants",
    "deviations",
    "exponents",
    "gaps",
    "gaps_to_best",
    "heaviest",
    "in_units",
    "infinitely_wide",
    "log_of_mean",
    "log_prior",
    "mean_gap",
    "mellow_exponent",
    "mellow_gap",
    "normalised",
    "omega_slope",
    "weighted",
    "weights",
    "without_weight",
    "unit_row",
    "units",
    "value_at",
]


class Gaps(NamedTuple):
    """The gaps of each row to its best action, with what formulas need beside them."""

    top: Array  # [1, rows] the best value, after turning the row around
    gap: Array  # [actions, rows] the distance below it; 0 where `weightless`
    range: Array  # [1, rows] the largest gap
    scale: Array  # [1, rows] what a gap of 1 is worth in the caller's numbers: a power of two
    weightless: Array | None  # [actions, rows] masked, or infinitely far below; None if none is
    mask: Array | None  # [actions, rows] actions that count, or None for all
    prior: (
        Array | None
    )  # [actions, rows or 1] their weights, which add up to 1; None for equal ones
    faint: bool  # may the prior have weights so small that products with them underflow?
    sign: Array  # [1, rows] -1 where the row is turned around, else 1
    strength: Array  # [1, rows] the absolute parameter over 1 / `scale`, infinity cut to be finite
    infinite: Array | None  # [1, rows] where the parameter is infinite; None where none is
    ordinary: bool  # is it known that no row needs what is made for the extremes?


STRONG = 1024
"""The parameter above which gaps that are subnormal when they are halved may have an effect."""
ORDINARY = "ordinary"
"""What functions know by which every row is `ordinary`, though it is only traced."""


FAINT = 2.0**-10
"""A weight of a prior below which sums lose digits, or products with it underflow."""


def are_ordinary(xp: Namespace, q: Array, parameter: Array, prior: Array | None = None) -> Array:
    """Are all rows as nearly all rows are, finite and without extreme numbers?

    Then no action is far, no gap that counts is subnormal, and no weight is faint.
    """
    largest = xp.max(xp.abs(q), axis=0, keepdims=True)  # before `all`: XLA reduces to rows quickly
    ordinary = xp.all((largest <= 2**16) & (xp.abs(parameter) <= STRONG))
    return ordinary if prior is None else ordinary & xp.all(prior >= FAINT)


def gaps(xp: Namespace, q: Array, parameter: Array, counted: Array | None) -> Gaps:
    """The gaps of each row to its best action, or for a negative parameter to its worst."""
    mask, prior, faint = _mask_and_prior(xp, counted)
    sign = xp.where(parameter < 0, -xp.ones_like(parameter), xp.ones_like(parameter))
    strength = parameter * sign
    ordinary = knows(xp, ORDINARY)
    is_infinite = strength == xp.inf
    infinite = None if ordinary or truth(xp.any(is_infinite)) is False else is_infinite

    scale = 2 * xp.ones_like(strength) if ordinary else _scale(xp, q, strength, mask)
    value = q * (sign / scale)
    if mask is not None:
        value = xp.where(mask, value, -xp.inf)
    top = xp.max(value, axis=0, keepdims=True)
    gap = top - value
    largest = xp.max(gap, axis=0, keepdims=True)
    weightless = None
    if not ordinary and truth(xp.all(xp.isfinite(largest))) is not True:
        gap = xp.where((value == top) & (xp.abs(top) == xp.inf), 0.0, gap)
        weightless = gap == xp.inf  # XLA makes slow code of `isinf`
        weightless = weightless if mask is None else weightless | ~mask
        gap = xp.where(weightless, 0.0, gap)
        largest = xp.max(gap, axis=0, keepdims=True)
    strength = xp.minimum(strength * scale, xp.finfo(q.dtype).max)
    return Gaps(
        top,
        gap,
        largest,
        scale,
        weightless,
        mask,
        prior,
        faint,
        sign,
        strength,
        infinite,
        ordinary,
    )


def _mask_and_prior(
    xp: Namespace, counted: Array | None
) -> tuple[Array | None, Array | None, bool]:
    """What counts, as a mask and as weights; and whether a weight may be faint."""
    if counted is None or xp.isdtype(counted.dtype, "bool"):
        return counted, None, False
    if knows(xp, ORDINARY):
        return None, counted, False
    mask = counted > 0
    faint = truth(xp.any(mask & (counted < FAINT))) is not False
    return (None if truth(xp.all(mask)) is True else mask), counted, faint


def _scale(xp: Namespace, q: Array, strength: Array, mask: Array | None) -> Array:
    """2, so that no gap overflows; less where the parameter is so large that tiny gaps count."""
    info, one = xp.finfo(q.dtype), xp.ones_like(strength)
    strong = strength > STRONG
    if truth(xp.any(strong)) is False:
        return 2 * one
    size = xp.abs(q) if mask is None else xp.where(mask, xp.abs(q), 0.0)
    size = xp.where(size < xp.inf, size, 0.0)
    tiny, huge = size < info.smallest_normal**0.5, size > info.max / 4
    each = xp.where(strong & ~huge, xp.where(tiny, 0.5 * info.eps * one, one), 2 * one)
    # The scale of the largest number is the largest. It is written as a reduction, which PyTorch's
    # compiler computes once a row; it would repeat anything else for every action.
    return xp.max(each, axis=0, keepdims=True)


def gaps_to_best(xp: Namespace, q: Array, parameter: Array, mask: Array | None) -> Gaps:
    """The gaps for an operator that never turns a row around, whatever its parameter is."""
    return gaps(xp, q, xp.zeros_like(parameter), mask)


def value_at(g: Gaps, average_gap: Array) -> Array:
    """The value at an average gap below the best: the row turned back, in the caller's numbers."""
    return g.sign * g.scale * (g.top - average_gap)


def count(xp: Namespace, g: Gaps) -> Array | int:
    """How many actions of each row count, or the sum of their weights."""
    if g.prior is not None:
        return add_up(xp, g.prior)
    if g.mask is None:
        return g.gap.shape[0]
    return add_up(xp, xp.astype(g.mask, g.gap.dtype))


def weighted(xp: Namespace, g: Gaps, x: Array) -> Array:
    """A number for each action, times its weight."""
    return x if g.prior is None else g.prior * x


def log_prior(xp: Namespace, g: Gaps) -> Array:
    """The logarithm of the prior; minus infinity where it is 0."""
    assert g.prior is not None
    none = g.prior == 0
    return xp.where(none, -xp.inf, xp.log(xp.where(none, 1.0, g.prior)))


def infinitely_wide(xp: Namespace, g: Gaps) -> Array | None:
    """Rows in which an action that counts is infinitely far below the best; None if none is."""
    if g.weightless is None:
        return None
    counted = g.weightless if g.mask is None else g.weightless & g.mask
    return xp.any(counted, axis=0, keepdims=True)


def exponents(xp: Namespace, g: Gaps) -> Array:
    """`-|parameter| * (top - q)`, kept finite; minus infinity where the parameter is infinite."""
    lowest = xp.finfo(g.gap.dtype).min
    exponent = 0.0 - g.strength * g.gap
    finite = xp.where(exponent < lowest, lowest, exponent)
    return finite if g.infinite is None else xp.where(g.infinite & (g.gap > 0), -xp.inf, finite)


def boltzmann_weights(xp: Namespace, g: Gaps) -> Array:
    """`exp(parameter * q)` times the weight of the prior, normalised."""
    return normalised(xp, g, weights(xp, g, exponents(xp, g)))


def weights(xp: Namespace, g: Gaps, exponent: Array) -> Array:
    """`exp(exponent)` times the weight of the prior, up to a factor that a row may have.

    Where a weight is faint, the factor keeps the largest product from underflowing.
    """
    if not g.faint:
        return weighted(xp, g, xp.exp(exponent))
    exponent = exponent + log_prior(xp, g)
    if g.weightless is not None:
        exponent = xp.where(g.weightless, -xp.inf, exponent)
    largest = xp.max(exponent, axis=0, keepdims=True)
    return xp.exp(exponent - xp.where(largest > -xp.inf, largest, 0.0))


def normalised(xp: Namespace, g: Gaps, weight: Array) -> Array:
    """Weights scaled to sum to 1, with 0 for an action that has none."""
    if g.weightless is None:
        return weight / add_up(xp, weight)
    weight = xp.where(g.weightless, 0.0, weight)
    share = weight / add_up(xp, weight)
    return share if g.mask is None else xp.where(g.mask, share, 0.0)


def mean_gap(xp: Namespace, g: Gaps) -> Array:
    """The plain average of the gaps."""
    n = count(xp, g)
    gap = weighted(xp, g, g.gap)
    mean = add_up(xp, gap) / n  # which loses no tiny gap, but may overflow
    if truth(xp.all(mean < xp.inf)) is not True:
        mean = xp.where(mean == xp.inf, add_up(xp, gap / n), mean)
    rows = infinitely_wide(xp, g)
    return mean if rows is None else xp.where(rows, xp.inf, mean)


def mellow_gap(xp: Namespace, g: Gaps) -> Array:
    """The average gap of mellowmax, `-log(mean(exp(-k * gap))) / k`, to full relative accuracy.

    Below a width of eps the mean gap is the same to rounding.
    """
    exponent = mellow_exponent(xp, g)
    width, rows = g.strength * g.range, infinitely_wide(xp, g)
    flat = width < xp.finfo(width.dtype).eps
    flat = flat if rows is None else (flat & ~rows) | (g.strength == 0)
    if truth(xp.any(flat)) is False:
        gap = exponent / g.strength
    else:
        gap = xp.where(flat, mean_gap(xp, g), exponent / xp.where(flat, 1.0, g.strength))
    return gap if g.infinite is None else xp.where(g.infinite, 0.0, gap)


def mellow_exponent(xp: Namespace, g: Gaps) -> Array:
    """`-log(mean(exp(-k * gap)))`: the average gap of mellowmax times k.

    It is at most log n, or with a prior minus the logarithm of the best action's weight.

    The logarithm of a mean near 1 is taken from the mean of `exp - 1`, which keeps its digits.
    """
    n = count(xp, g)
    exponent = g.strength * g.gap
    if g.weightless is not None:
        exponent = xp.where(g.weightless, xp.inf, exponent)
    weight, below_one = decay(xp, exponent)
    if g.mask is not None:
        below_one = xp.where(g.mask, below_one, 0.0)
    weight, below_one = weighted(xp, g, weight), weighted(xp, g, below_one)
    mean = add_up(xp, weight) / n
    result = -log_of_mean(xp, mean, add_up(xp, below_one) / n)
    if not g.faint:
        return result
    underflows = mean < xp.finfo(mean.dtype).smallest_normal ** 0.5
    if truth(xp.any(underflows)) is False:
        return result
    exponent = log_prior(xp, g) - exponent
    largest = xp.max(exponent, axis=0, keepdims=True)
    largest = xp.where(largest > -xp.inf, largest, 0.0)
    log_mean = largest + xp.log(add_up(xp, xp.exp(exponent - largest)) / n)
    return xp.where(underflows, -log_mean, result)


def log_of_mean(xp: Namespace, mean: Array, below_one: Array) -> Array:
    """The logarithm of a mean that is given twice: as it is, and minus 1.

    An error of the mean is at most 1.44 times as large in its logarithm, if each number is used on
    its own side of 1/2. Adding 1 to the second rounds; dividing what was lost by the sum gives the
    first term of what the logarithm lost. `log1p` of XLA is worse, by two digits beyond 0.29.
    """
    near_one = below_one > -0.5
    rounded = xp.where(near_one, 1 + below_one, mean)
    lost = xp.where(near_one, (rounded - 1) - below_one, 0.0)
    return xp.log(rounded) - lost / rounded


def beyond_first(xp: Namespace, x: Array) -> Array:
    """`exp(x) - 1 - x`, to full relative accuracy."""
    small = xp.abs(x) < 0.5
    near, series = xp.where(small, x, 0.0), xp.zeros_like(x)
    for i in range(14, 2, -1):
        series = (1 + series) * near / i
    return xp.where(small, near * near / 2 * (1 + series), xp.expm1(x) - x)


class UnitRow(NamedTuple):
    """A row in units of its own: what is left is free of scale."""

    length: Array  # [1, rows] of a unit: a power of two
    per_unit: Array  # [1, rows] its inverse, which is a normal number too
    unit: Array  # [actions, rows] the gaps in units, cut to leave room for a factor
    strength: Array  # [1, rows] |parameter| in units: below 1 in a narrow row, else from 1 to 4
    narrow: Array  # [1, rows] where the width is so small that the start of a series is enough


def unit_row(xp: Namespace, g: Gaps) -> UnitRow:
    """The scale-free form of a row.

    A row is narrow if its width, |parameter| times the range, is below four times the fourth root
    of eps: there the first terms of a series in the width are as accurate as formulas that lose
    `eps / width` or its square to cancellation.
    """
    narrow = g.strength * g.range < 4 * xp.finfo(g.gap.dtype).eps ** 0.25
    rows = infinitely_wide(xp, g)
    narrow = narrow if rows is None else (narrow & ~rows) | (g.strength == 0)
    by_strength = units(xp, g.strength)
    by_range = units(xp, xp.where(g.range == 0, 1.0, g.range))
    length = xp.minimum(1 / by_strength, by_range)
    per_unit = xp.maximum(by_strength, 1 / by_range)
    unit = in_units(xp, g, per_unit)
    return UnitRow(length, per_unit, unit, g.strength * length, narrow)


def in_units(xp: Namespace, g: Gaps, per_unit: Array) -> Array:
    """The gaps in units, cut so that they leave room for a factor or a sum of up to a million."""
    most = xp.finfo(g.gap.dtype).max / 2**20
    if g.ordinary or truth(xp.all(g.range * per_unit < most)):
        return g.gap * per_unit
    return xp.minimum(g.gap * per_unit, most)


def units(xp: Namespace, x: Array) -> Array:
    """The power of two next below each number, as far as its inverse is a normal number too."""
    smallest = xp.finfo(x.dtype).smallest_normal
    return power_of_two(xp, xp.clip(x, smallest, 1 / smallest))


def cumulants(xp: Namespace, g: Gaps, unit: Array) -> tuple[Array, Array, Array, Array]:
    """Deviations from the mean of `unit` gaps, and their cumulants 2 to 4 under the prior."""
    n = count(xp, g)
    c = deviations(xp, g, unit, None if g.prior is None else g.prior / n)
    if g.mask is not None:
        c = xp.where(g.mask, c, 0.0)
    square = c * c
    second, third, fourth = (
        add_up(xp, weighted(xp, g, power)) / n for power in (square, square * c, square * square)
    )
    return c, second, third, fourth - 3 * second * second


def deviations(xp: Namespace, g: Gaps, unit: Array, share: Array | None) -> Array:
    """How far each gap is from their mean under some shares, or under equal ones.

    Under a faint prior nearly all may be the share of one action, whose own deviation then is a
    difference of nearly equal numbers. Measured from that action all deviations keep their digits.
    """
    if share is None:
        return unit - add_up(xp, unit) / count(xp, g)
    if g.faint:
        unit = unit - heaviest(xp, share, unit)
    return unit - add_up(xp, share * unit)


def heaviest(xp: Namespace, share: Array, unit: Array) -> Array:
    """The gap of the action that has the largest share."""
    largest = share == xp.max(share, axis=0, keepdims=True)
    return xp.max(xp.where(largest, unit, 0.0), axis=0, keepdims=True)


def average_beyond(
    xp: Namespace, g: Gaps, unit: Array, k: Array, average: Array, centre: Array
) -> Array:
    """The average gap of mellowmax minus one of the gaps, in units in which omega is `k`.

    Where the two are nearly equal it is the average of the gaps measured from that one.
    """
    near = xp.abs(average - centre) * k < 0.5
    below_one = weighted(xp, g, xp.expm1(xp.where(near, k * (centre - unit), 0.0)))
    if g.weightless is not None:  # what is infinitely far has no weight, but is counted
        below_one = xp.where(g.weightless & near, -weighted(xp, g, xp.ones_like(unit)), below_one)
        below_one = below_one if g.mask is None else xp.where(g.mask, below_one, 0.0)
    mean = add_up(xp, below_one) / count(xp, g)
    return xp.where(near, -xp.log1p(mean) / k, average - centre)


def without_weight(xp: Namespace, exponent: Array) -> Array:
    """Where `exp(exponent)` is 0, by far."""
    return exponent < 2 * math.log(xp.finfo(exponent.dtype).smallest_normal)


def omega_slope(xp: Namespace, g: Gaps, row: UnitRow, policy: Array) -> Array:
    """(boltz - mm) / omega in squared units of the row, given the Boltzmann policy at omega.

    A narrow row takes its series, `k2 / 2 - k k3 / 3 + k^2 k4 / 8` with the cumulants of the gaps.
    """
    k = xp.where(row.narrow, 1.0, row.strength)
    unit, average = row.unit, mellow_exponent(xp, g) / k
    if g.faint:
        centre = heaviest(xp, policy, unit)
        average = average_beyond(xp, g, unit, k, average, centre)
        unit = unit - centre
    direct = (average - add_up(xp, policy * unit)) / k
    if truth(xp.any(row.narrow)) is False:
        return direct
    k = xp.where(row.narrow, row.strength, 0.0)
    _, second, third, fourth = cumulants(xp, g, xp.where(row.narrow, row.unit, 0.0))
    series = second / 2 - k * (third / 3 - k * fourth / 8)
    return xp.where(row.narrow, series, direct)
