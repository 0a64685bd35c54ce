"""The derivatives of the relative temperature, by the implicit function theorem.

A row whose temperature is found by the equation takes the derivatives of the equation, a narrow row
those of its series, and a tied row those of its own equation: `relative_temperature` has all three.
"""

from __future__ import annotations

from ..._typing import Array, Namespace
from ..libraries.array_api import add_up
from ..libraries.tracing import truth
from .gaps import (
    Gaps,
    beyond_first,
    boltzmann_weights,
    count,
    exponents,
    gaps,
    log_of_mean,
    weighted,
    without_weight,
)
from .relative_temperature import (
    Far,
    average_gap,
    far_actions,
    mean_of_others,
    narrow_shape,
    others,
    parts_of_omega,
    policy_exponents,
    policy_weights,
)
from .unit_row import UnitRow, deviations, heaviest, in_units, omega_slope, unit_row

__all__ = ["at_a_limit", "d_omega", "grad_prior", "grad_q"]


def grad_q(xp: Namespace, q: Array, omega: Array, counted: Array | None, relative: Array) -> Array:
    """`(softmax_omega(q) - pi (1 + b (q - mm))) / Var_pi(q) / omega`.

    Where the policy does not move with `b` (all values equal, or an infinite omega) it is 0.
    """
    g = gaps(xp, q, omega, counted)
    row = unit_row(xp, g)
    policy, deviation, variance, frozen = _moments(xp, g, row, relative)
    k = xp.where(row.narrow, 1.0, row.strength)
    apart = _apart(xp, g, relative, policy)
    parts = parts_of_omega(xp, g)
    change = policy * (apart + relative / parts * k * deviation)
    d_gap = change / (variance * k) * parts * row.per_unit
    d_gap = xp.where(frozen, 0.0, d_gap)
    if truth(xp.any(row.narrow)) is not False:
        series = g.strength * parts * _d_narrow_d_gap(xp, g, row)
        d_gap = xp.where(row.narrow, series, d_gap)
    if not g.ordinary and truth(xp.any(relative < 0)) is not False:
        far, share, inverse, spread = _tied_moments(xp, g, row, relative)
        d_far = xp.where(far.actions, share * (-relative - inverse) / far.length, 0.0)
        shared = add_up(xp, d_far) / others(xp, g, far)  # all sum to 0
        shared = weighted(xp, g, shared)
        d_near = policy * apart / spread * row.per_unit - shared
        d_gap = xp.where(relative < 0, -xp.where(far.actions, d_far, d_near), d_gap)
    if g.mask is not None:
        d_gap = xp.where(g.mask, d_gap, 0.0)
    return g.sign * d_gap / g.scale


def d_omega(xp: Namespace, q: Array, omega: Array, counted: Array | None, relative: Array) -> Array:
    """`(mm' / Var_pi(q) - b / omega) / omega`, where `mm'` is the derivative of mellowmax."""
    g = gaps(xp, q, omega, counted)
    row = unit_row(xp, g)
    slope = omega_slope(xp, g, row, boltzmann_weights(xp, g))
    _, _, variance, frozen = _moments(xp, g, row, relative)
    k = xp.where(row.narrow, 1.0, row.strength)
    parts = parts_of_omega(xp, g)
    d_strength = xp.where(frozen, 0.0, (slope / variance * parts - relative) / k)
    if truth(xp.any(row.narrow)) is not False:
        k, _, _, skew, kurtosis = narrow_shape(xp, g, row)
        series = k * (kurtosis - skew * skew) / 24 - skew / 24
        d_strength = xp.where(row.narrow, series * parts, d_strength)
    if not g.ordinary and truth(xp.any(relative < 0)) is not False:
        spread = _tied_moments(xp, g, row, relative)[3]
        d_strength = xp.where(relative < 0, -slope / spread, d_strength)
    return g.sign * d_strength * row.length * g.scale


def grad_prior(
    xp: Namespace, q: Array, omega: Array, prior: Array | None, relative: Array
) -> Array:
    """`(e^x - 1 - x pi / prior) / (omega^2 Var_pi(q))` with `x = omega (q - mm)`.

    It is 0 where the policy does not move with `b`, and for a weight of 0: an action left out.
    """
    g = gaps(xp, q, omega, prior)
    assert g.prior is not None
    row = unit_row(xp, g)
    policy, deviation, variance, frozen = _moments(xp, g, row, relative)
    k = xp.where(row.narrow, 1.0, row.strength)
    below = xp.where(policy > 0, deviation, row.unit - average_gap(xp, g, row))
    x = -k * xp.where(frozen, 0.0, below)
    d_weight = beyond_first(xp, x) - x * xp.expm1(_log_over_prior(xp, g, relative, policy))
    if g.weightless is not None:
        d_weight = xp.where(g.weightless, -1.0, d_weight)
    d_weight = d_weight / (variance * k * k) * parts_of_omega(xp, g)
    d_weight = xp.where(frozen, 0.0, d_weight)
    if truth(xp.any(row.narrow)) is not False:
        series = row.strength * parts_of_omega(xp, g) * _d_narrow_d_weight(xp, g, row)
        d_weight = xp.where(row.narrow, series, d_weight)
    if not g.ordinary and truth(xp.any(relative < 0)) is not False:
        far, share, _, spread = _tied_moments(xp, g, row, relative)
        above = average_gap(xp, g, row) - row.unit
        above = xp.where(far.actions, 0.0, above)
        d_near = (xp.expm1(k * above) / k - above / others(xp, g, far)) / spread
        d_far = share / xp.where(share > 0, g.prior, 1.0) - 1 / k / spread
        d_weight = xp.where(relative < 0, -xp.where(far.actions, d_far, d_near), d_weight)
    return d_weight if g.mask is None else xp.where(g.mask, d_weight, 0.0)


def _log_over_prior(xp: Namespace, g: Gaps, relative: Array, policy: Array) -> Array:
    """The logarithm of `policy / prior`, to full accuracy where the two are nearly the same."""
    exponent = policy_exponents(xp, g, relative)
    if g.infinite is not None:
        exponent = xp.where(g.infinite, 0.0, exponent)
    exponent = exponent - heaviest(xp, policy, exponent)
    weight, below_one = xp.exp(exponent), xp.expm1(exponent)
    if g.weightless is not None:
        weight = xp.where(g.weightless, 0.0, weight)
        below_one = xp.where(g.weightless, -1.0, below_one)
    total, below_one = (add_up(xp, weighted(xp, g, part)) for part in (weight, below_one))
    return exponent - log_of_mean(xp, total, below_one)


def _apart(xp: Namespace, g: Gaps, relative: Array, policy: Array) -> Array:
    """`softmax_omega(q) / pi - 1`, to full accuracy where the two are nearly the same.

    They are nearly the same for the best actions where the policy is nearly greedy. The whole
    derivative is then in the little weight of the other actions.
    """
    of_policy, of_omega = policy_exponents(xp, g, relative), exponents(xp, g)
    if g.infinite is not None:
        of_policy = xp.where(g.infinite, 0.0, of_policy)
        of_omega = xp.where(g.infinite, 0.0, of_omega)
    lost = without_weight(xp, of_omega)
    apart = xp.where(lost, -xp.inf, of_omega - of_policy)
    weight = weighted(xp, g, xp.exp(xp.where(without_weight(xp, of_policy), -xp.inf, of_policy)))
    if not g.ordinary:  # in a tied row far actions have terms of their own
        weight = xp.where((relative < 0) & far_actions(xp, g).actions, 0.0, weight)
    before = weighted(xp, g, xp.exp(xp.where(lost, -xp.inf, of_omega)))
    if g.weightless is not None:
        weight = xp.where(g.weightless, 0.0, weight)
        before = xp.where(g.weightless, 0.0, before)
    moved = add_up(xp, weight * -xp.expm1(apart))
    result = xp.expm1(apart + xp.log1p(moved / add_up(xp, before)))
    if not g.faint:
        return result
    largest = policy == xp.max(policy, axis=0, keepdims=True)  # nearly all may be its share
    apart = apart - xp.min(xp.where(largest, apart, xp.inf), axis=0, keepdims=True)
    moved = add_up(xp, xp.where(policy > 0, policy * xp.expm1(apart), 0.0))
    near = (xp.abs(moved) < 0.5) & (relative >= 0)
    return xp.where(near, xp.expm1(apart - xp.log1p(xp.where(near, moved, 0.0))), result)


def _d_narrow_d_gap(xp: Namespace, g: Gaps, row: UnitRow) -> Array:
    """The derivative of the series with respect to the gaps, over the strength, term by term."""
    k, c, second, skew, kurtosis = narrow_shape(xp, g, row)
    d_skew = 3 * (c * c / second - 1) - 2 * skew * c / second
    d_fourth = 4 * (c * c * c / second - skew) - 12 * c - 2 * kurtosis * c / second
    series = d_skew / 24 - k * (d_fourth - 2 * skew * d_skew) / 48
    flat = ~xp.any(row.unit > 0, axis=0, keepdims=True)
    return xp.where(flat, 0.0, weighted(xp, g, series / count(xp, g)))


def _d_narrow_d_weight(xp: Namespace, g: Gaps, row: UnitRow) -> Array:
    """`_d_narrow_d_gap` with respect to the weights instead of the gaps."""
    k, c, second, skew, kurtosis = narrow_shape(xp, g, row)
    d_second = c * c / second - 1  # over the second cumulant, as the others are
    d_skew = c * d_second - 2 * c - skew - skew * d_second
    d_fourth = c * c * d_second + c * c - 4 * c * skew - kurtosis - 3 * second
    d_fourth = d_fourth - 6 * second * d_second - kurtosis * d_second
    series = k * (d_fourth - 2 * skew * d_skew) / 48 - d_skew / 24
    flat = ~xp.any(row.unit > 0, axis=0, keepdims=True)
    return xp.where(flat, 0.0, series)


def _moments(
    xp: Namespace, g: Gaps, row: UnitRow, relative: Array
) -> tuple[Array, Array, Array, Array]:
    """The policy; deviations and variance of the unit gaps under it; where it does not move.

    A variance of 0 is given as 1, as in a tied row, where it is 0 to rounding.
    """
    policy = policy_weights(xp, g, relative)
    unit = xp.where((policy > 0) & (relative >= 0), row.unit, 0.0)
    deviation = xp.where(policy > 0, deviations(xp, g, unit, policy), 0.0)
    variance = add_up(xp, (policy * deviation) * deviation)
    none = variance == 0
    return policy, deviation, xp.where(none, 1.0, variance), none | at_a_limit(xp, g, relative)


def at_a_limit(xp: Namespace, g: Gaps, relative: Array) -> Array:
    """Rows in which `b` is infinite or 0, the limits: there it does not move."""
    return relative == 0 if g.infinite is None else g.infinite | (relative == 0)


def _tied_moments(
    xp: Namespace, g: Gaps, row: UnitRow, relative: Array
) -> tuple[Far, Array, Array, Array]:
    """In tied rows: the far actions, their shares, their `1 / gap`, and the variance of the gaps.

    An action's share is its part of what the far actions add to the average gap, over their
    average gap under these shares. Gaps are in units of the nearest far one, the variance in these
    units times those of the row.
    """
    far = far_actions(xp, g)
    tied = (relative < 0) & far.actions
    unit = xp.where(tied, in_units(xp, g, 1 / far.length), 0.0)
    smallest = xp.min(xp.where(tied, unit, 2.0), axis=0, keepdims=True)
    exponent = relative * (unit - smallest)
    nothing = without_weight(xp, exponent) | ~tied
    part = xp.where(nothing, 0.0, unit * xp.exp(xp.where(nothing, 0.0, exponent)))
    part = weighted(xp, g, part)
    total = add_up(xp, part)
    share = part / xp.where(total == 0, 1.0, total)
    mean = add_up(xp, share * xp.where(nothing, 0.0, unit))
    mean = xp.where(mean == 0, 1.0, mean)
    rest = average_gap(xp, g, row) - mean_of_others(xp, g, row, far)
    rest = xp.where(relative < 0, xp.maximum(rest, xp.finfo(rest.dtype).smallest_normal), 1.0)
    return far, share / mean, 1 / xp.where(tied, unit, 1.0), rest * mean
