"""The search for the inverse temperature: the `t` at which an average gap has a given size.

With the gaps `u` of a row, in units in which what is looked for is of the order of 1,

    D(t) = sum(u exp(-t u)) / sum(exp(-t u)) = d.

Two bounds bracket the root. `log D` falls no faster than with minus the largest gap as its slope.
If `k` actions are best, `m` are not, and `s` is the smallest gap of those, then `D(t)` is at most
`(m / k) s exp(-t s)` for `t s >= 1`. `log D` is so nearly straight that Halley's method on it needs
few steps. Its correction is kept between 1/2 and 2: far from the root it would mislead. The slope
and the curvature are those of `log D` over `log t`, which has no unit, and `exp(-t s)` is factored
out of every sum: nothing leaves the range of numbers however near the policy is to the greedy one.
"""

from __future__ import annotations

from ..._typing import Array, Namespace
from ..libraries.array_api import State, add_up, iterate
from ..libraries.tracing import truth
from .gaps import Gaps, count, infinitely_wide, weighted

__all__ = ["find_root", "number", "weighted_actions"]

LIMIT = 60
"""Steps at most: several times what any row is known to need."""


def find_root(xp: Namespace, g: Gaps, unit: Array, strength: Array, log_target: Array) -> Array:
    """`t` below the strength with `log D(t) = log_target`, by Halley's method inside a bracket.

    Gaps that are negligible next to the average gap, which is of the order of 1, are ties.
    """
    info = xp.finfo(unit.dtype)
    positive = unit >= info.eps**2
    unit = xp.where(positive, unit, 0.0)
    smallest = xp.min(xp.where(positive, unit, info.max), axis=0, keepdims=True)
    beyond = xp.where(positive, unit - smallest, 0.0)
    larger = number(xp, positive, g)
    finite = weighted_actions(xp, g)
    if g.prior is None:
        ties = finite - larger
        others = unit.shape[0] - larger
    else:
        tied = ~positive if g.weightless is None else ~positive & ~g.weightless
        ties = number(xp, tied, g)
    log_mean = xp.log(add_up(xp, weighted(xp, g, unit)) / finite)
    steepest = xp.max(unit, axis=0, keepdims=True)
    low = xp.maximum((log_mean - log_target) / steepest, info.smallest_normal)
    high = xp.maximum(xp.log(larger * smallest / ties) - log_target, 1.0) / smallest
    high = xp.maximum(xp.minimum(strength, high), low)
    start = xp.minimum(xp.maximum(strength / 2, low), high)
    digits = 1 + xp.abs(log_target)

    def halley(state: State) -> tuple[State, Array]:
        t, low, high = state
        weight = xp.exp(-t * beyond)
        if g.prior is None:
            total = add_up(xp, weight) - others
        else:
            weight = xp.where(positive, g.prior * weight, 0.0)
            total = add_up(xp, weight)
        x = t * unit
        share = x * weight
        first = add_up(xp, share)
        share = x * share
        second = add_up(xp, share) / first
        third = add_up(xp, x * share) / first
        depth = t * smallest
        factor = xp.exp(-depth)
        ratio = first / (ties + factor * total)
        mean = factor * ratio
        excess = xp.log(ratio / t) - depth - log_target
        slope = xp.maximum(second - mean, 2 * info.smallest_normal**0.5)  # of -log D over log t
        curvature = third - second * second - mean * slope
        correction = 0.5 * excess * (curvature / slope / slope)
        size = xp.abs(excess)
        close = info.eps ** (1 / 3) / 8  # the step after this ends at rounding
        small = (size <= close) & (xp.abs(correction) <= close)
        done = ~(size > 4 * info.eps * (digits + depth)) | small
        low = xp.where(excess > 0, t, low)
        high = xp.where(excess < 0, t, high)
        divisor = slope * xp.minimum(xp.maximum(1 - correction, 0.5), 2.0)
        step = t + t * (excess / divisor)
        outside = (step < low * (1 - 8 * info.eps)) | (step > high * (1 + 8 * info.eps))
        if truth(xp.any(outside)) is not False:
            step = xp.where(outside, xp.sqrt(low) * xp.sqrt(high), step)
        step = xp.minimum(xp.maximum(step, low), high)
        return (step, low, high), done

    root = iterate(xp, halley, (start, low, high), LIMIT)[0]
    rows = infinitely_wide(xp, g)
    if rows is None:
        return root
    out_of_reach = rows & ~(log_target < log_mean)  # as low as mellowmax: the limit is b = 0
    return xp.where(out_of_reach, 0.0, root)


def weighted_actions(xp: Namespace, g: Gaps) -> Array | int:
    """How many actions of each row count and are not at -infinity, or the sum of their weights."""
    return count(xp, g) if g.weightless is None else number(xp, ~g.weightless, g)


def number(xp: Namespace, actions: Array, g: Gaps) -> Array:
    """How many of some actions each row has, or the sum of their weights."""
    if g.prior is not None:
        return add_up(xp, xp.where(actions, g.prior, 0.0))
    return add_up(xp, xp.astype(actions, g.gap.dtype))
