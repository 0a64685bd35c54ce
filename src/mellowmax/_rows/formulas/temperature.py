"""The inverse temperature of mellowmax's maximum-entropy policy, one root a row.

Section 6 of the paper asks for the `b` at which the Boltzmann policy earns what mellowmax says,
`sum(exp(b (q - mm)) (q - mm)) = 0`. With the gaps `u` in units of the row (see `gaps`), and the
strength `k = |omega|` and mellowmax's average gap `d` in the same units, it is the `t` in (0, k)
with

    D(t) = sum(u exp(-t u)) / sum(exp(-t u)) = d.

`root` searches for it. Rows that are too narrow for `D(t) - d` to keep its digits take the first
terms of the root's series, `t / k = 1/2 - k k3 / (24 k2) + k^2 (k4 / k2 - (k3 / k2)^2) / 48`, with
the cumulants of the gaps.

An action that was filled with -1e30 may be 1e60 units below the best. Beyond `eps^-1.5` units an
action is called far, and there are three cases:

| far actions | mean gap of the others | what decides the root |
| --- | --- | --- |
| none | | all gaps |
| some | above `d` | the gaps of the others; a far action has no weight |
| some | at most `d` | the gaps of the far actions; such a row is called tied |

In a tied row the far actions make up the rest, `d` minus that mean, with the little weight that
they have. Then `b` is so small that all others are ties to rounding: their gaps become 0, the rest
becomes the `d`, and the same search finds the root in units of the nearest far gap.

So there are two measures of the inverse temperature. The *relative temperature* of a row, short for
its relative inverse temperature, is `b / omega`, a number from 0 to 1 (times the parts that a small
omega is counted in, `_parts_of_omega`), or if the row is tied `-b` in units of the nearest far gap:
its sign tells them apart. Either is a number that every dtype can hold, where `b` itself may not
be, and so is its derivative: that of the implicit function, in closed form. Policies are computed
from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ..._typing import Array, Namespace
from ..libraries.array_api import State, add_up, iterate
from ..libraries.torch_compiler import define_search
from ..libraries.tracing import truth
from ..quick import formulas as quick
from ..row_function import RowFunction
from .gaps import (
    Gaps,
    UnitRow,
    average_beyond,
    beyond_first,
    boltzmann_weights,
    count,
    cumulants,
    deviations,
    exponents,
    gaps,
    heaviest,
    in_units,
    log_of_mean,
    mellow_exponent,
    normalised,
    omega_slope,
    unit_row,
    units,
    weighted,
    weights,
    without_weight,
)
from .root import find_root, number, weighted_actions

if TYPE_CHECKING:
    import torch

__all__ = [
    "policy_exponents",
    "policy_weights",
    "relative_temperature",
    "temperature",
    "temperature_by_omega",
    "temperature_by_q",
]


POLISHING_STEPS = 24
"""Steps of Newton's method at most; two are enough unless the search had lost all digits."""


class _Far(NamedTuple):
    """Actions so far below the best that beside them gaps of a unit are lost to rounding."""

    actions: Array  # [actions, rows]
    length: Array  # [1, rows] a power of two next below the nearest of their gaps


def _none_is_far(xp: Namespace, g: Gaps) -> bool:
    """Is it known that no row has a far action? Then what is made for them need not be computed."""
    widest = xp.finfo(g.gap.dtype).eps ** -1.5
    return g.ordinary or truth(xp.any(g.strength * g.range > widest)) is False


def _far_actions(xp: Namespace, g: Gaps) -> _Far:
    most = xp.finfo(g.gap.dtype).max
    far = g.strength * g.gap > xp.finfo(g.gap.dtype).eps ** -1.5
    return _Far(far, units(xp, xp.min(xp.where(far, g.gap, most), axis=0, keepdims=True)))


def _parts_of_omega(xp: Namespace, g: Gaps) -> Array:
    """How many parts omega is divided into, to count the inverse temperature in: a power of two.

    The inverse temperature of a wide row is a small fraction of a small omega, and moves by a small
    fraction of that when a huge value does; and `|omega| * gap` may overflow where `b * gap` does
    not. Neither happens in parts.
    """
    k, info = g.strength, xp.finfo(g.gap.dtype)
    weak = k < 1
    parts = xp.ones_like(k)
    if truth(xp.any(weak)) is not False:
        parts = xp.clip(xp.where(weak, k, 0.0) * g.range, 1.0, info.eps**-1.5)
    many = xp.minimum(4096 * k, info.max**0.8 * g.scale / k)  # no more: it moves by parts times k
    return units(xp, xp.where(weak, parts, xp.maximum(many, 1.0)))


def policy_exponents(xp: Namespace, g: Gaps, temperature: Array) -> Array:
    """`-|b| * (top - q)` at a relative temperature, kept finite; -inf where omega is infinite."""
    if _none_is_far(xp, g):
        return 0.0 - (temperature / _parts_of_omega(xp, g)) * (g.strength * g.gap)
    tied, lowest = temperature < 0, xp.finfo(g.gap.dtype).min
    above, below = xp.maximum(g.strength, 1.0), xp.minimum(g.strength, 1.0)  # their product is it
    above, part = above / _parts_of_omega(xp, g), below * g.gap
    width, at = above * part, xp.where(tied, 0.0, temperature)
    overflows = width > -lowest
    if truth(xp.any(overflows)) is False:
        exponent = 0.0 - at * width
    else:  # the other order would lose what is small from derivatives
        moderate = at * xp.where(overflows, 0.0, width)
        exponent = 0.0 - xp.where(overflows, (at * above) * part, moderate)
    if truth(xp.any(tied)) is not False:
        beyond = xp.minimum(g.gap / _far_actions(xp, g).length, -lowest)
        exponent = xp.where(tied, temperature * beyond, exponent)
    exponent = xp.where(exponent < lowest, lowest, exponent)
    return exponent if g.infinite is None else xp.where(g.infinite & (g.gap > 0), -xp.inf, exponent)


def policy_weights(xp: Namespace, g: Gaps, temperature: Array) -> Array:
    """The policy at a relative temperature."""
    exponent = policy_exponents(xp, g, temperature)
    if not _none_is_far(xp, g):
        exponent = xp.where(without_weight(xp, exponent), -xp.inf, exponent)
    return normalised(xp, g, weights(xp, g, exponent))


def _relative_temperature(xp: Namespace, q: Array, omega: Array, counted: Array | None) -> Array:
    g = gaps(xp, q, omega, counted)
    row = unit_row(xp, g)
    target = _average_gap(xp, g, row)
    log_target = xp.where(row.narrow, xp.nan, xp.log(target))  # without one the search ends at once
    unit, strength = row.unit, row.strength
    some = not _none_is_far(xp, g)
    if some:
        far = _far_actions(xp, g)
        rest = target - _mean_of_others(xp, g, row, far)
        tied = xp.any(far.actions, axis=0, keepdims=True) & (rest >= 0)
        log_rest = xp.log(rest) + (xp.log(row.length) - xp.log(far.length))
        beyond = xp.where(far.actions, in_units(xp, g, 1 / far.length), 0.0)
        unit = xp.where(tied, beyond, unit)
        log_target = xp.where(tied, log_rest, log_target)
        strength = xp.where(tied, g.strength * far.length, strength)
    root = find_root(xp, g, unit, strength, log_target)
    if g.faint:
        polished = _polished(xp, g, row, root, target)
        root = xp.where(tied, root, polished) if some else polished
    ratio = xp.minimum(root / row.strength, 1.0)
    if truth(xp.any(row.narrow)) is not False:
        ratio = xp.where(row.narrow, _narrow_ratio(xp, g, row), ratio)
    if g.infinite is not None:
        ratio = xp.where(g.infinite, 1.0, ratio)
    result = ratio * _parts_of_omega(xp, g)
    if not some:
        return result
    tied = tied if g.infinite is None else tied & ~g.infinite
    return xp.where(tied, -root, result)


def _polished(xp: Namespace, g: Gaps, row: UnitRow, root: Array, target: Array) -> Array:
    """The root under a prior with a faint weight, by Newton's method from where the search ended.

    If nearly all weight is on one action, the average gap is nearly that of this action whatever
    the temperature is, and the equation loses its digits. Measured from the heaviest action of the
    policy, both sides keep them: they are the differences from its gap.
    """
    eps, strength = xp.finfo(root.dtype).eps, xp.where(row.narrow, 1.0, row.strength)
    start = xp.where(xp.isfinite(root), root, strength / 2)

    def newton(state: State) -> tuple[State, Array]:
        (t,) = state
        policy = normalised(xp, g, weights(xp, g, 0.0 - t * row.unit))
        centre = heaviest(xp, policy, row.unit)
        beyond = row.unit - centre
        wanted = average_beyond(xp, g, row.unit, strength, target, centre)
        mean = add_up(xp, policy * beyond)
        variance = add_up(xp, (policy * (beyond - mean)) * (beyond - mean))
        step = (mean - wanted) / xp.where(variance > 0, variance, 1.0)
        step = xp.where((variance > 0) & xp.isfinite(step), step, 0.0)
        following = xp.minimum(xp.maximum(t + step, t / 16), strength)
        return (following,), xp.abs(following - t) <= 4 * eps * t

    return iterate(xp, newton, (start,), POLISHING_STEPS)[0]


def _in_fixed_steps(
    xp: Namespace, q: torch.Tensor, omega: torch.Tensor, counted: torch.Tensor | None
) -> Array:
    """The temperature in a program that PyTorch compiles: that of ordinary rows, if all are."""
    import torch

    ratio, known = quick.ratio(torch, q.double(), omega[0].double(), counted)
    parts = cast(Any, _parts_of_omega(xp, gaps(xp, q, omega, counted)))
    at = torch.ops.mellowmax.temperature(known, ratio.to(q.dtype) * parts, q, omega, counted)
    return cast(Array, at)


def _average_gap(xp: Namespace, g: Gaps, row: UnitRow) -> Array:
    """The average gap of mellowmax, in units of a row that is not narrow."""
    return mellow_exponent(xp, g) / xp.where(row.narrow, 1.0, row.strength)


def _mean_of_others(xp: Namespace, g: Gaps, row: UnitRow, far: _Far) -> Array:
    """The mean gap of the actions that are not far, in units of the row."""
    near = xp.where(far.actions, 0.0, row.unit)
    return add_up(xp, weighted(xp, g, near) / _others(xp, g, far))


def _others(xp: Namespace, g: Gaps, far: _Far) -> Array:
    """How many actions have weight and are not far, the best at least; or the sum of theirs."""
    if g.prior is None:
        return weighted_actions(xp, g) - number(xp, far.actions, g)
    others = ~far.actions if g.weightless is None else ~far.actions & ~g.weightless
    return number(xp, others, g)


def _narrow_ratio(xp: Namespace, g: Gaps, row: UnitRow) -> Array:
    """`b / omega` of a narrow row, by its series."""
    k, _, _, skew, kurtosis = _narrow_shape(xp, g, row)
    return 0.5 - k * (skew / 24 - k * (kurtosis - skew * skew) / 48)


def _narrow_shape(xp: Namespace, g: Gaps, row: UnitRow) -> tuple[Array, ...]:
    """Strength, deviations, and the second cumulant of a narrow row, and others over the second."""
    c, second, third, fourth = cumulants(xp, g, xp.where(row.narrow, row.unit, 0.0))
    second = xp.where(second == 0, 1.0, second)
    return xp.where(row.narrow, row.strength, 0.0), c, second, third / second, fourth / second


# Derivatives of the relative temperature.


def _relative_by_q(
    xp: Namespace, q: Array, omega: Array, counted: Array | None, at: Array
) -> Array:
    """(softmax_omega(q) - pi (1 + b (q - mm))) / Var_pi(q) / omega; that of the series if narrow.

    Where the policy does not move with `b` (all values equal, or an infinite omega) it is 0.
    """
    g = gaps(xp, q, omega, counted)
    row = unit_row(xp, g)
    policy, deviation, variance, frozen = _moments(xp, g, row, at)
    k = xp.where(row.narrow, 1.0, row.strength)
    apart = _apart(xp, g, at, policy)
    parts = _parts_of_omega(xp, g)
    change = policy * (apart + at / parts * k * deviation)
    by_gap = change / (variance * k) * parts * row.per_unit
    by_gap = xp.where(frozen, 0.0, by_gap)
    if truth(xp.any(row.narrow)) is not False:
        series = g.strength * parts * _narrow_by_unit(xp, g, row)
        by_gap = xp.where(row.narrow, series, by_gap)
    if not g.ordinary and truth(xp.any(at < 0)) is not False:
        far, share, inverse, spread = _tied_moments(xp, g, row, at)
        by_far = xp.where(far.actions, share * (-at - inverse) / far.length, 0.0)
        shared = add_up(xp, by_far) / _others(xp, g, far)  # all sum to 0
        shared = weighted(xp, g, shared)
        by_near = policy * apart / spread * row.per_unit - shared
        by_gap = xp.where(at < 0, -xp.where(far.actions, by_far, by_near), by_gap)
    if g.mask is not None:
        by_gap = xp.where(g.mask, by_gap, 0.0)
    return g.sign * by_gap / g.scale


def _relative_by_omega(
    xp: Namespace, q: Array, omega: Array, counted: Array | None, at: Array
) -> Array:
    """(The derivative of mellowmax over the variance under the policy, minus b / omega) / omega."""
    g = gaps(xp, q, omega, counted)
    row = unit_row(xp, g)
    slope = omega_slope(xp, g, row, boltzmann_weights(xp, g))
    _, _, variance, frozen = _moments(xp, g, row, at)
    k = xp.where(row.narrow, 1.0, row.strength)
    parts = _parts_of_omega(xp, g)
    by_strength = xp.where(frozen, 0.0, (slope / variance * parts - at) / k)
    if truth(xp.any(row.narrow)) is not False:
        k, _, _, skew, kurtosis = _narrow_shape(xp, g, row)
        series = k * (kurtosis - skew * skew) / 24 - skew / 24
        by_strength = xp.where(row.narrow, series * parts, by_strength)
    if not g.ordinary and truth(xp.any(at < 0)) is not False:
        spread = _tied_moments(xp, g, row, at)[3]
        by_strength = xp.where(at < 0, -slope / spread, by_strength)
    return g.sign * by_strength * row.length * g.scale


def _relative_by_prior(
    xp: Namespace, q: Array, omega: Array, prior: Array | None, at: Array
) -> Array:
    """`(e^x - 1 - x pi / prior) / (omega^2 Var_pi(q))` with `x = omega (q - mm)`.

    It is that of the series in a narrow row, and 0 where the policy does not move with `b`, and for
    a weight of 0: an action that was left out.
    """
    g = gaps(xp, q, omega, prior)
    assert g.prior is not None
    row = unit_row(xp, g)
    policy, deviation, variance, frozen = _moments(xp, g, row, at)
    k = xp.where(row.narrow, 1.0, row.strength)
    below = xp.where(policy > 0, deviation, row.unit - _average_gap(xp, g, row))
    x = -k * xp.where(frozen, 0.0, below)
    by_weight = beyond_first(xp, x) - x * xp.expm1(_log_over_prior(xp, g, at, policy))
    if g.weightless is not None:
        by_weight = xp.where(g.weightless, -1.0, by_weight)
    by_weight = by_weight / (variance * k * k) * _parts_of_omega(xp, g)
    by_weight = xp.where(frozen, 0.0, by_weight)
    if truth(xp.any(row.narrow)) is not False:
        series = row.strength * _parts_of_omega(xp, g) * _narrow_by_weight(xp, g, row)
        by_weight = xp.where(row.narrow, series, by_weight)
    if not g.ordinary and truth(xp.any(at < 0)) is not False:
        far, share, _, spread = _tied_moments(xp, g, row, at)
        above = _average_gap(xp, g, row) - row.unit
        above = xp.where(far.actions, 0.0, above)
        by_near = (xp.expm1(k * above) / k - above / _others(xp, g, far)) / spread
        by_far = share / xp.where(share > 0, g.prior, 1.0) - 1 / k / spread
        by_weight = xp.where(at < 0, -xp.where(far.actions, by_far, by_near), by_weight)
    return by_weight if g.mask is None else xp.where(g.mask, by_weight, 0.0)


def _log_over_prior(xp: Namespace, g: Gaps, at: Array, policy: Array) -> Array:
    """The logarithm of `policy / prior`, to full accuracy where the two are nearly the same."""
    exponent = policy_exponents(xp, g, at)
    if g.infinite is not None:
        exponent = xp.where(g.infinite, 0.0, exponent)
    exponent = exponent - heaviest(xp, policy, exponent)
    weight, below_one = xp.exp(exponent), xp.expm1(exponent)
    if g.weightless is not None:
        weight = xp.where(g.weightless, 0.0, weight)
        below_one = xp.where(g.weightless, -1.0, below_one)
    total, below_one = (add_up(xp, weighted(xp, g, part)) for part in (weight, below_one))
    return exponent - log_of_mean(xp, total, below_one)


def _apart(xp: Namespace, g: Gaps, at: Array, policy: Array) -> Array:
    """`softmax_omega(q) / pi - 1`, to full accuracy where the two are nearly the same.

    They are nearly the same for the best actions where the policy is nearly greedy. The whole
    derivative is then in the little weight of the other actions.
    """
    of_policy, of_omega = policy_exponents(xp, g, at), exponents(xp, g)
    if g.infinite is not None:
        of_policy = xp.where(g.infinite, 0.0, of_policy)
        of_omega = xp.where(g.infinite, 0.0, of_omega)
    lost = without_weight(xp, of_omega)
    apart = xp.where(lost, -xp.inf, of_omega - of_policy)
    weight = weighted(xp, g, xp.exp(xp.where(without_weight(xp, of_policy), -xp.inf, of_policy)))
    if not g.ordinary:  # in a tied row far actions have terms of their own
        weight = xp.where((at < 0) & _far_actions(xp, g).actions, 0.0, weight)
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
    near = (xp.abs(moved) < 0.5) & (at >= 0)
    return xp.where(near, xp.expm1(apart - xp.log1p(xp.where(near, moved, 0.0))), result)


def _narrow_by_unit(xp: Namespace, g: Gaps, row: UnitRow) -> Array:
    """The derivative of `_narrow_ratio` over the strength, term by term."""
    k, c, second, skew, kurtosis = _narrow_shape(xp, g, row)
    by_skew = 3 * (c * c / second - 1) - 2 * skew * c / second
    by_fourth = 4 * (c * c * c / second - skew) - 12 * c - 2 * kurtosis * c / second
    series = by_skew / 24 - k * (by_fourth - 2 * skew * by_skew) / 48
    flat = ~xp.any(row.unit > 0, axis=0, keepdims=True)
    return xp.where(flat, 0.0, weighted(xp, g, series / count(xp, g)))


def _narrow_by_weight(xp: Namespace, g: Gaps, row: UnitRow) -> Array:
    """`_narrow_by_unit` with respect to the weights instead of the gaps."""
    k, c, second, skew, kurtosis = _narrow_shape(xp, g, row)
    by_second = c * c / second - 1  # over the second cumulant, as the others are
    by_skew = c * by_second - 2 * c - skew - skew * by_second
    by_fourth = c * c * by_second + c * c - 4 * c * skew - kurtosis - 3 * second
    by_fourth = by_fourth - 6 * second * by_second - kurtosis * by_second
    series = k * (by_fourth - 2 * skew * by_skew) / 48 - by_skew / 24
    flat = ~xp.any(row.unit > 0, axis=0, keepdims=True)
    return xp.where(flat, 0.0, series)


def _moments(xp: Namespace, g: Gaps, row: UnitRow, at: Array) -> tuple[Array, Array, Array, Array]:
    """The policy, and deviations and variance of the unit gaps under it; where it does not move.

    A variance of 0, as that of a tied row is to rounding, is given as 1.
    """
    policy = policy_weights(xp, g, at)
    unit = xp.where((policy > 0) & (at >= 0), row.unit, 0.0)
    deviation = xp.where(policy > 0, deviations(xp, g, unit, policy), 0.0)
    variance = add_up(xp, (policy * deviation) * deviation)
    none = variance == 0
    return policy, deviation, xp.where(none, 1.0, variance), none | _at_a_limit(xp, g, at)


def _at_a_limit(xp: Namespace, g: Gaps, at: Array) -> Array:
    """Rows whose `b` is infinite, or the limit 0: there it does not move."""
    return at == 0 if g.infinite is None else g.infinite | (at == 0)


def _tied_moments(
    xp: Namespace, g: Gaps, row: UnitRow, at: Array
) -> tuple[_Far, Array, Array, Array]:
    """Far actions, and their shares in what they make up of the average gap.

    With them `1 / gap` in units of the nearest, and the variance under the policy in units of the
    row times units of the nearest; the shares are divided by the average gap that they weigh.
    """
    far = _far_actions(xp, g)
    tied = (at < 0) & far.actions
    unit = xp.where(tied, in_units(xp, g, 1 / far.length), 0.0)
    smallest = xp.min(xp.where(tied, unit, 2.0), axis=0, keepdims=True)
    exponent = at * (unit - smallest)
    nothing = without_weight(xp, exponent) | ~tied
    part = xp.where(nothing, 0.0, unit * xp.exp(xp.where(nothing, 0.0, exponent)))
    part = weighted(xp, g, part)
    total = add_up(xp, part)
    share = part / xp.where(total == 0, 1.0, total)
    mean = add_up(xp, share * xp.where(nothing, 0.0, unit))
    mean = xp.where(mean == 0, 1.0, mean)
    rest = _average_gap(xp, g, row) - _mean_of_others(xp, g, row, far)
    rest = xp.where(at < 0, xp.maximum(rest, xp.finfo(rest.dtype).smallest_normal), 1.0)
    return far, share / mean, 1 / xp.where(tied, unit, 1.0), rest * mean


relative_by_q = RowFunction(_relative_by_q, has_extremes=True)
relative_by_omega = RowFunction(_relative_by_omega, has_extremes=True)
relative_by_prior = RowFunction(_relative_by_prior, has_extremes=True)
relative_temperature = RowFunction(
    _relative_temperature,
    (relative_by_q, relative_by_omega, relative_by_prior),
    has_extremes=True,
    without_waiting=_in_fixed_steps,
)
define_search(_relative_temperature)


# The inverse temperature itself.


def _temperature(xp: Namespace, q: Array, omega: Array, counted: Array | None, at: Array) -> Array:
    g = gaps(xp, q, omega, counted)
    b = _in_callers_numbers(xp, g, omega, at, at)
    if g.weightless is not None:
        # A limit of 0 keeps its sign: what is infinitely far has no weight.
        b = xp.where((at == 0), g.sign * xp.finfo(b.dtype).smallest_normal, b)
    return b if g.infinite is None else xp.where(g.infinite, g.sign * xp.inf, b)


def _in_callers_numbers(xp: Namespace, g: Gaps, omega: Array, at: Array, x: Array) -> Array:
    """What an inverse temperature `x` relative to the row is worth; 0 where omega is infinite."""
    worth = omega if g.infinite is None else xp.where(g.infinite, 0.0, omega)
    untied = x / _parts_of_omega(xp, g) * worth
    if g.ordinary or truth(xp.any(at < 0)) is False:
        return untied
    length = _far_actions(xp, g).length
    return xp.where(at < 0, x * (-g.sign / length) * (1 / g.scale), untied)


def _by_q(xp: Namespace, q: Array, omega: Array, counted: Array | None, at: Array) -> Array:
    g = gaps(xp, q, omega, counted)
    return _in_callers_numbers(xp, g, omega, at, _relative_by_q(xp, q, omega, counted, at))


def _by_omega(xp: Namespace, q: Array, omega: Array, counted: Array | None, at: Array) -> Array:
    g = gaps(xp, q, omega, counted)
    relative = _relative_by_omega(xp, q, omega, counted, at)
    still = (at < 0) | _at_a_limit(xp, g, at)
    ratio = xp.where(still, 0.0, at / _parts_of_omega(xp, g))
    return _in_callers_numbers(xp, g, omega, at, relative) + ratio


temperature = RowFunction(_temperature, given=relative_temperature)
temperature_by_q = RowFunction(_by_q, given=relative_temperature)
temperature_by_omega = RowFunction(_by_omega, given=relative_temperature)
