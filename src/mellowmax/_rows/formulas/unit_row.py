"""A row in units of its own, in which all that is computed is of the order of 1.

Where squares and quotients of gaps are needed, the scale of `gaps` is not enough: next to an action
that was filled with -1e30, the gaps that matter are 1e-30 of the range, and their squares
underflow. A `UnitRow` has the row in units of its mellowmax: of `1 / |parameter|`, or of the range
where that is smaller. In these units the average gap of mellowmax lies between `1 / (4 n)` and
`2 log n`, and so all that is computed from it is of the order of 1.
"""

from __future__ import annotations

from typing import NamedTuple

from ..._typing import Array, Namespace
from ..libraries.array_api import add_up, power_of_two
from ..libraries.tracing import truth
from .gaps import Gaps, count, infinitely_wide, mellow_exponent, weighted

__all__ = [
    "UnitRow",
    "average_beyond",
    "cumulants",
    "deviations",
    "heaviest",
    "in_units",
    "omega_slope",
    "unit_row",
    "units",
]


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
