"""Every root of a function of one variable whose second derivative has a known bound.

An interval with the centre `x` and the half-width `h`, on which `|g''| <= M`, has no root if
`|g(x)| > |g'(x)| h + M h^2 / 2`, and at most one if `|g'(x)| > M h`: then `g` is monotone there and
its signs at the ends decide. Any other interval is cut in half. What is left in the end is as
narrow as rounding allows, and lies at a double root or next to one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from .._typing import Floats

__all__ = ["all_roots", "sign_changes"]

Function: TypeAlias = Callable[[Floats], tuple[Floats, Floats]]
"""From points `[N]` to the values and the slopes there."""

_MOST = 2**20  # intervals at once: beyond that the bound is too weak to be of use


def all_roots(
    function: Function,
    low: float,
    high: float,
    bound: float,
    noise: tuple[float, float],
) -> tuple[Floats, Floats] | None:
    """The roots in an interval.

    Args:
        function: gives the function's value and slope at many points at once.
        low: the lower end.
        high: the upper end.
        bound: on the absolute second derivative.
        noise: how far rounding may put the function's value, and its slope, from the truth.

    Returns:
        The roots, each to about rounding, where one between two intervals can be listed twice, and
        the centres of the narrow intervals in which nothing is proved; None if the bound is too
        weak to be of use.

    Examples:
        >>> roots, doubtful = all_roots(
        ...     lambda x: (np.cos(x), -np.sin(x)), 0.0, 9.0, bound=1.0, noise=(1e-14, 1e-14)
        ... )
        >>> print(roots / np.pi, doubtful)
        [0.5 1.5 2.5] []
    """
    if not np.isfinite(bound):
        return None
    # Within sqrt(noise / bound) of a double root, rounding hides on which side of 0 the value is.
    narrowest = max(0.1 * np.sqrt(noise[0] / bound) if bound else 0.0, 1e-15 * (high - low))
    edges = np.linspace(low, high, 65)
    a, b = edges[:-1], edges[1:]
    brackets, doubtful = [], []
    while len(a):
        if len(a) > _MOST:
            return None
        x, h = (a + b) / 2, (b - a) / 2
        value, slope = function(x)
        possible = abs(value) <= abs(slope) * h + bound * h * h / 2 + noise[0] + noise[1] * h
        monotone = abs(slope) > bound * h + noise[1]
        narrow = h < narrowest
        brackets.append(np.stack([a, b])[:, possible & monotone])
        doubtful.append(x[possible & ~monotone & narrow])
        rest = possible & ~monotone & ~narrow
        a, b = np.concatenate([a[rest], x[rest]]), np.concatenate([x[rest], b[rest]])
    starts, ends = np.concatenate(brackets, axis=1)
    return _in_brackets(function, starts, ends, noise[0]), np.sort(np.concatenate(doubtful))


def sign_changes(function: Function, low: float, high: float, points: int = 2**14) -> Floats:
    """The roots that a grid shows: one where the function changes its sign.

    Examples:
        >>> print(sign_changes(lambda x: (x * x - 2, 2 * x), 0.0, 2.0))
        [1.41421356]
    """
    edges = np.linspace(low, high, points)
    return _in_brackets(function, edges[:-1], edges[1:], 0.0)


def _in_brackets(function: Function, a: Floats, b: Floats, noise: float) -> Floats:
    """The root in each interval where there is one, by Newton's method kept in its bracket."""
    at_a, at_b = function(a)[0], function(b)[0]
    near_a, near_b = abs(at_a) <= noise, abs(at_b) <= noise  # rounding may hide a change of sign
    there = (np.sign(at_a) * np.sign(at_b) <= 0) | near_a | near_b
    a, b, sign = a[there], b[there], np.sign(at_b - at_a)[there]
    x = (a + b) / 2
    for _ in range(100):
        value, slope = function(x)
        right = sign * value < 0  # of x, where the root is
        a, b = np.where(right, x, a), np.where(right, b, x)
        with np.errstate(divide="ignore", invalid="ignore"):
            newton = x - value / slope
        following = np.where((newton > a) & (newton < b), newton, (a + b) / 2)
        if (value == 0).all() or (abs(following - x) <= 1e-16 * abs(x)).all():
            break
        x = np.where(value == 0, x, following)
    return np.sort(x)
