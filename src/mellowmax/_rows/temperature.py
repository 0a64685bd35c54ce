"""The inverse temperature of mellowmax's maximum-entropy policy, one root a row.

Section 6 of the paper asks for the `b` at which the Boltzmann policy earns what mellowmax says,
`sum(exp(b (q - mm)) (q - mm)) = 0`. In units of the row's range, with gaps `u` in [0, 1], width
`W = |omega| * range` and mellowmax's average gap `d`, it is the `t` in (0, W) with

    D(t) = sum(u exp(-t u)) / sum(exp(-t u)) = d,        b = sign(omega) * t / range.

`log D` falls with a slope between -1 and -(the smallest gap `s`), which brackets the root in closed
form, and is so nearly straight that Halley's method on it needs few steps. Its correction is kept
between 1/2 and 2: far from the root it would mislead. Factoring `exp(-t s)` out of every sum keeps
all of it in range however near the policy is to the greedy one. Rows that are too narrow for `D(t)
- d` to keep its digits take the first terms of the root's series, `t / W = 1/2 - W k3 / (24 k2) +
W^2 (k4 / k2 - (k3 / k2)^2) / 48`, with the cumulants of the gaps.

The derivative is that of the implicit function, in closed form.
"""

from __future__ import annotations

from .._typing import Array, Namespace
from .gaps import (
    Gaps,
    UnitRow,
    boltzmann_weights,
    count,
    cumulants,
    gaps,
    infinitely_wide,
    mellow_gap,
    omega_slope,
    unit_row,
)
from .libraries import State, iterate, truth
from .row_function import RowFunction

__all__ = ["temperature", "temperature_by_omega", "temperature_by_q"]

LIMIT = 60
"""Steps at most: several times what any row is known to need."""


def _temperature(xp: Namespace, q: Array, omega: Array, mask: Array | None) -> Array:
    g = gaps(xp, q, omega, mask)
    row = unit_row(xp, g)
    log_target = xp.log(mellow_gap(xp, g)) - xp.log(row.scale)
    b = g.sign * (0.5 * _root(xp, g, row, log_target) / row.scale)
    if (
        g.weightless is not None
    ):  # a limit of 0 keeps its sign: what is infinitely far has no weight
        nearly_0 = g.sign * xp.finfo(b.dtype).smallest_normal
        b = xp.where(b == 0, nearly_0, b)
    if truth(xp.any(row.narrow)) is not False:
        b = xp.where(row.narrow, omega * _narrow_ratio(xp, g, row), b)
    return b if g.infinite is None else xp.where(g.infinite, omega, b)


def _narrow_ratio(xp: Namespace, g: Gaps, row: UnitRow) -> Array:
    """`b / omega` of a narrow row, by its series."""
    _, second, third, fourth = cumulants(xp, g, row.unit)
    second = xp.where(second == 0, 1.0, second)
    skew = third / second
    return 0.5 - row.width * (skew / 24 - row.width * (fourth / second - skew * skew) / 48)


def _root(xp: Namespace, g: Gaps, row: UnitRow, log_target: Array) -> Array:
    """`t` with `log D(t) = log_target`, by Halley's method inside a bracket."""
    info = xp.finfo(row.unit.dtype)
    positive = row.unit > 0
    smallest = xp.min(xp.where(positive, row.unit, 1.0), axis=0, keepdims=True)
    beyond = xp.where(positive, row.unit - smallest, 0.0)
    larger = xp.sum(xp.astype(positive, row.unit.dtype), axis=0, keepdims=True)
    finite = _weighted_actions(xp, g)
    ties = finite - larger
    others = row.unit.shape[0] - larger
    log_mean = xp.log(xp.sum(row.unit, axis=0, keepdims=True) / finite)
    low = xp.maximum(log_mean - log_target, info.smallest_normal)
    high = xp.maximum(xp.log(larger * smallest / ties) - log_target, 1.0) / smallest
    high = xp.maximum(xp.minimum(row.width, high), low)
    start = xp.minimum(xp.maximum(row.width / 2, low), high)

    def halley(state: State) -> tuple[State, Array]:
        t, low, high = state
        weight = xp.exp(-t * beyond)
        total = xp.sum(weight, axis=0, keepdims=True) - others
        share = row.unit * weight
        first = xp.sum(share, axis=0, keepdims=True)
        share = row.unit * (share / first)  # of the average gap: products of small gaps underflow
        second = xp.sum(share, axis=0, keepdims=True)
        third = xp.sum(row.unit * share, axis=0, keepdims=True)
        factor = xp.exp(-t * smallest)
        everything = ties + factor * total
        mean = factor * first / everything
        excess = xp.log(first / everything) - t * smallest - log_target
        slope = second - mean  # of -log D
        bend = third - second * second - mean * slope  # the second derivative of log D
        curl = 0.5 * excess * (bend / slope / slope)
        rounding = 4 * info.eps * (1 + t * smallest + xp.abs(log_target))
        close = info.eps ** (1 / 3) / 8  # the step after this ends at rounding
        small = (xp.abs(excess) <= close) & (xp.abs(curl) <= close)
        done = ~(xp.abs(excess) > rounding) | small
        low = xp.where(excess > 0, t, low)
        high = xp.where(excess < 0, t, high)
        step = t + excess / (slope * xp.minimum(xp.maximum(1 - curl, 0.5), 2.0))
        outside = (step < low * (1 - 8 * info.eps)) | (step > high * (1 + 8 * info.eps))
        step = xp.where(outside, xp.sqrt(low) * xp.sqrt(high), step)
        step = xp.minimum(xp.maximum(step, low), high)
        return (step, low, high), done

    root = iterate(xp, halley, (start, low, high), LIMIT)[0]
    rows = infinitely_wide(xp, g)
    if rows is None:
        return root
    out_of_reach = rows & ~(log_target < log_mean)  # as low as mellowmax: the limit is b = 0
    return xp.where(out_of_reach, 0.0, root)


def _weighted_actions(xp: Namespace, g: Gaps) -> Array | int:
    """How many actions of each row have weight: those that count and are not at -infinity."""
    if g.weightless is None:
        return count(xp, g)
    return xp.sum(xp.astype(~g.weightless, g.gap.dtype), axis=0, keepdims=True)


def _by_q(xp: Namespace, q: Array, omega: Array, mask: Array | None, b: Array) -> Array:
    """(softmax_omega(q) - pi (1 + b (q - mm))) / Var_pi(q); the derivative of the series if narrow.

    Where the policy does not move with `b` (all values equal, or an infinite omega) it is 0.
    """
    g = gaps(xp, q, omega, mask)
    row = unit_row(xp, g)
    policy, variance, deviation = _moments(xp, q, b, mask, row)
    t = 2 * g.sign * b * row.scale
    change = boltzmann_weights(xp, g) - policy * (1 - t * deviation)
    by_q = change / xp.where(variance == 0, 1.0, variance) / (2 * row.scale) / (2 * row.scale)
    frozen = (variance == 0) | _at_a_limit(xp, g, omega, b)
    by_q = xp.where(row.narrow, _narrow_by_q(xp, g, row), xp.where(frozen, 0.0, by_q))
    return by_q if mask is None else xp.where(mask, by_q, 0.0)


def _narrow_by_q(xp: Namespace, g: Gaps, row: UnitRow) -> Array:
    """The derivative of `omega * _narrow_ratio`, term by term."""
    c, second, third, fourth = cumulants(xp, g, row.unit)
    flat = second == 0
    second = xp.where(flat, 1.0, second)
    skew, kurtosis = third / second, fourth / second
    by_skew = 3 * (c * c / second - 1) - 2 * skew * c / second
    by_fourth = 4 * (c * c * c - third) / second - 12 * c - 2 * kurtosis * c / second
    k = 0.5 * g.strength
    series = by_skew / 24 - row.width * (by_fourth - 2 * skew * by_skew) / 48
    return xp.where(flat, 0.0, k * k * series / count(xp, g))


def _by_omega(xp: Namespace, q: Array, omega: Array, mask: Array | None, b: Array) -> Array:
    """The derivative of mellowmax over the variance under the policy: 1/2 where all are equal."""
    g = gaps(xp, q, omega, mask)
    row = unit_row(xp, g)
    _, variance, _ = _moments(xp, q, b, mask, row)
    slope = omega_slope(xp, g, row, boltzmann_weights(xp, g))
    by_omega = slope / xp.where(variance == 0, 1.0, variance)
    by_omega = xp.where(variance == 0, 0.5, by_omega)
    return xp.where(_at_a_limit(xp, g, omega, b), 0.0, by_omega)


def _at_a_limit(xp: Namespace, g: Gaps, omega: Array, b: Array) -> Array:
    """Rows whose `b` is infinite, or the limit 0: there it does not move."""
    rows, infinite = infinitely_wide(xp, g), xp.isinf(omega)
    if rows is None:
        return infinite
    return infinite | (rows & (xp.abs(b) <= xp.finfo(b.dtype).smallest_normal))


def _moments(
    xp: Namespace, q: Array, b: Array, mask: Array | None, row: UnitRow
) -> tuple[Array, Array, Array]:
    """The policy, and the variance and the deviations of the unit gaps under it."""
    policy = boltzmann_weights(xp, gaps(xp, q, b, mask))
    deviation = row.unit - xp.sum(policy * row.unit, axis=0, keepdims=True)
    return policy, xp.sum(policy * deviation * deviation, axis=0, keepdims=True), deviation


temperature_by_q = RowFunction(_by_q)
temperature_by_omega = RowFunction(_by_omega)
temperature = RowFunction(_temperature, (temperature_by_q, temperature_by_omega))
