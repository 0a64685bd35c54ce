"""The relative temperature of a row: where the search for the inverse temperature ends.

Section 6 of the paper asks for the `b` at which the Boltzmann policy earns what mellowmax says,
`sum(exp(b (q - mm)) (q - mm)) = 0`. With the gaps `u` in units of the row (`unit_row`), and the
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
omega is counted in, `parts_of_omega`), or if the row is tied `-b` in units of the nearest far gap:
its sign tells them apart. Every dtype can hold either number and its derivative, where `b` itself
may overflow. Policies are computed from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ..._typing import Array, Namespace
from ..libraries.array_api import State, add_up, iterate
from ..libraries.tracing import truth
from ..quick.ratio import traced_ratio
from .gaps import (
    Gaps,
    gaps,
    mellow_exponent,
    normalised,
    weighted,
    weights,
    without_weight,
)
from .root import find_root, number, weighted_actions
from .unit_row import (
    UnitRow,
    average_beyond,
    cumulants,
    heaviest,
    in_units,
    unit_row,
    units,
)

if TYPE_CHECKING:
    import torch

__all__ = [
    "Far",
    "average_gap",
    "far_actions",
    "mean_of_others",
    "narrow_shape",
    "none_is_far",
    "others",
    "parts_of_omega",
    "policy_exponents",
    "policy_weights",
    "search",
    "search_in_fixed_steps",
]


POLISHING_STEPS = 24
"""Steps of Newton's method at most; two are enough unless the search had lost all digits."""


class Far(NamedTuple):
    """Actions so far below the best that next to them gaps of a unit are lost to rounding."""

    actions: Array  # [actions, rows]
    length: Array  # [1, rows] a power of two next below the nearest of their gaps


def none_is_far(xp: Namespace, g: Gaps) -> bool:
    """Is it known that no row has a far action? Then what is made for them need not be computed."""
    widest = xp.finfo(g.gap.dtype).eps ** -1.5
    return g.ordinary or truth(xp.any(g.strength * g.range > widest)) is False


def far_actions(xp: Namespace, g: Gaps) -> Far:
    """The far actions of each row, and a unit for their gaps."""
    most = xp.finfo(g.gap.dtype).max
    far = g.strength * g.gap > xp.finfo(g.gap.dtype).eps ** -1.5
    return Far(far, units(xp, xp.min(xp.where(far, g.gap, most), axis=0, keepdims=True)))


def parts_of_omega(xp: Namespace, g: Gaps) -> Array:
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


def policy_exponents(xp: Namespace, g: Gaps, relative: Array) -> Array:
    """`-|b| * (top - q)` at a relative temperature, kept finite; -inf where omega is infinite."""
    if none_is_far(xp, g):
        return 0.0 - (relative / parts_of_omega(xp, g)) * (g.strength * g.gap)
    tied, lowest = relative < 0, xp.finfo(g.gap.dtype).min
    above, below = xp.maximum(g.strength, 1.0), xp.minimum(g.strength, 1.0)  # their product is it
    above, part = above / parts_of_omega(xp, g), below * g.gap
    width, untied = above * part, xp.where(tied, 0.0, relative)
    overflows = width > -lowest
    if truth(xp.any(overflows)) is False:
        exponent = 0.0 - untied * width
    else:  # the other order would lose what is small from derivatives
        moderate = untied * xp.where(overflows, 0.0, width)
        exponent = 0.0 - xp.where(overflows, (untied * above) * part, moderate)
    if truth(xp.any(tied)) is not False:
        beyond = xp.minimum(g.gap / far_actions(xp, g).length, -lowest)
        exponent = xp.where(tied, relative * beyond, exponent)
    exponent = xp.where(exponent < lowest, lowest, exponent)
    return exponent if g.infinite is None else xp.where(g.infinite & (g.gap > 0), -xp.inf, exponent)


def policy_weights(xp: Namespace, g: Gaps, relative: Array) -> Array:
    """The policy at a relative temperature."""
    exponent = policy_exponents(xp, g, relative)
    if not none_is_far(xp, g):
        exponent = xp.where(without_weight(xp, exponent), -xp.inf, exponent)
    return normalised(xp, g, weights(xp, g, exponent))


def search(xp: Namespace, q: Array, omega: Array, counted: Array | None) -> Array:
    """The relative temperature of each row."""
    g = gaps(xp, q, omega, counted)
    row = unit_row(xp, g)
    target = average_gap(xp, g, row)
    log_target = xp.where(row.narrow, xp.nan, xp.log(target))  # without one the search ends at once
    unit, strength = row.unit, row.strength
    some = not none_is_far(xp, g)
    if some:
        far = far_actions(xp, g)
        rest = target - mean_of_others(xp, g, row, far)
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
    result = ratio * parts_of_omega(xp, g)
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


def search_in_fixed_steps(
    xp: Namespace, q: torch.Tensor, omega: torch.Tensor, counted: torch.Tensor | None
) -> Array:
    """`search` in a program of PyTorch: the quick one, then a look whether that was enough."""
    import torch

    ratio, known = traced_ratio(torch, q.double(), omega[0].double(), counted)
    parts = cast(Any, parts_of_omega(xp, gaps(xp, q, omega, counted)))
    relative = torch.ops.mellowmax.temperature(known, ratio.to(q.dtype) * parts, q, omega, counted)
    return cast(Array, relative)


def average_gap(xp: Namespace, g: Gaps, row: UnitRow) -> Array:
    """The average gap of mellowmax, in units of a row that is not narrow."""
    return mellow_exponent(xp, g) / xp.where(row.narrow, 1.0, row.strength)


def mean_of_others(xp: Namespace, g: Gaps, row: UnitRow, far: Far) -> Array:
    """The mean gap of the actions that are not far, in units of the row."""
    near = xp.where(far.actions, 0.0, row.unit)
    return add_up(xp, weighted(xp, g, near) / others(xp, g, far))


def others(xp: Namespace, g: Gaps, far: Far) -> Array:
    """How many actions have weight and are not far, the best at least; or the sum of theirs."""
    if g.prior is None:
        return weighted_actions(xp, g) - number(xp, far.actions, g)
    others = ~far.actions if g.weightless is None else ~far.actions & ~g.weightless
    return number(xp, others, g)


def _narrow_ratio(xp: Namespace, g: Gaps, row: UnitRow) -> Array:
    """`b / omega` of a narrow row, by its series."""
    k, _, _, skew, kurtosis = narrow_shape(xp, g, row)
    return 0.5 - k * (skew / 24 - k * (kurtosis - skew * skew) / 48)


def narrow_shape(xp: Namespace, g: Gaps, row: UnitRow) -> tuple[Array, ...]:
    """Strength, deviations, and the second cumulant of a narrow row, and others over the second."""
    c, second, third, fourth = cumulants(xp, g, xp.where(row.narrow, row.unit, 0.0))
    second = xp.where(second == 0, 1.0, second)
    return xp.where(row.narrow, row.strength, 0.0), c, second, third / second, fourth / second
