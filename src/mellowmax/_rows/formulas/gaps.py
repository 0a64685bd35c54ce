"""Every softmax is the best value minus an average of the gaps to it.

With `top = max(q)` and `gap = top - q >= 0`, each operator is `top - average(gap)`, and each policy
is a function of the gaps alone. Working on gaps is what makes both right for every input: no
exponential overflows, nothing cancels, ties are exactly 0. A negative parameter turns the row
around (`-q`, `-parameter`), so one form serves both signs.

Gaps are differences, and two kinds of them are no normal number: the distance of two huge values
overflows, that of two tiny ones is subnormal, which XLA takes for 0. So gaps are in units of a
`scale` and the parameter is multiplied by it: `strength * gap` is `|parameter| * (top - q)`. The
scale is a power of two: 2, or less in a row whose parameter is so large that tiny gaps count.

The actions that count are given as a mask, or as weights: the prior of an average that is not a
plain one. A weight of k is k equal actions, a weight of 0 none, and a mask is a prior of 0 and 1.

Arrays are `[actions, rows]` here, or `[1, rows]` for one number a row.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ..._typing import Array, Namespace
from ..libraries.array_api import add_up, decay
from ..libraries.knowledge import knows
from ..libraries.tracing import truth

__all__ = [
    "FAINT",
    "ORDINARY",
    "Gaps",
    "are_ordinary",
    "beyond_first",
    "boltzmann_weights",
    "count",
    "exponents",
    "gaps",
    "gaps_to_best",
    "infinitely_wide",
    "log_of_mean",
    "log_prior",
    "mean_gap",
    "mellow_exponent",
    "mellow_gap",
    "normalised",
    "weighted",
    "weights",
    "without_weight",
    "value_at",
]


class Gaps(NamedTuple):
    """The gaps of each row to its best action, with what else formulas need."""

    top: Array  # [1, rows] the best value, after turning the row around
    gap: Array  # [actions, rows] the distance below it; 0 where `weightless`
    range: Array  # [1, rows] the largest gap
    scale: Array  # [1, rows] what a gap of 1 is worth in the caller's numbers: a power of two
    weightless: Array | None  # [actions, rows] masked, or infinitely far below; None if none is
    mask: Array | None  # [actions, rows] actions that count, or None for all
    prior: Array | None  # [actions, rows or 1] their weights, which sum to 1; None for equal ones
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


def without_weight(xp: Namespace, exponent: Array) -> Array:
    """Where `exp(exponent)` is 0, by far."""
    return exponent < 2 * math.log(xp.finfo(exponent.dtype).smallest_normal)
