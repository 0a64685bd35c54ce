"""Formulas in few array operations, for rows without extreme numbers.

Nearly all rows are like that. These formulas are in double precision, and what they find proves
itself: a value is right if it is finite, and a root is if the last step towards it was small. If
that fails in one row, the answer is None, and the caller takes the general path, which is right for
every input.

With the gaps `g = |omega| (max(q) - q)` mellowmax is `max(q) - d / |omega|`, where `d` is
`-log(mean(exp(-g)))`. Its policy is `exp(-s g)`, normalised, with the ratio `s = b / omega` at
which the average gap under it is `d` (`ratio`).

Arrays are NumPy's, `[actions, rows]`, or `[rows]` for one number a row.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from ..._typing import Floats
from .gaps import (
    WIDEST,
    Counted,
    Gaps,
    column_max,
    column_sum,
    mellow_exponent,
    moderate_gaps,
    normalised,
    weights,
)
from .ratio import NARROW, known_ratio

__all__ = [
    "Answer",
    "Gradients",
    "QuickFormula",
    "boltzmann_log_policy",
    "boltzmann_policy",
    "log_policy",
    "mellowmax",
    "policy",
]

Gradients: TypeAlias = tuple[Floats, Floats | None]
"""Derivatives with respect to `q`, and to the parameter for each row; None for the latter if only
the general path gets them right."""


class Answer(NamedTuple):
    """What a formula gives, and how it is differentiated."""

    result: Floats  # [rows] or [actions, rows]
    pullback: Callable[[Floats], Gradients]
    """From derivatives with respect to the result to those in `Gradients`."""


QuickFormula: TypeAlias = Callable[[Floats, float, Counted], Answer | None]
"""A formula of `q [actions, rows]`, the parameter and what counts; None if a row is extreme."""


def mellowmax(q: Floats, omega: float, counted: Counted) -> Answer | None:
    """Mellowmax of each row."""
    g = moderate_gaps(q, omega, counted)
    if g is None:
        return None
    d = mellow_exponent(np, g)
    value = g.best - d / abs(omega)
    result = value if omega > 0 else -value

    def pullback(cotangent: Floats) -> Gradients:
        policy = normalised(g, weights(np, g))
        width = column_max(np, g.gap)
        # The slope is the difference of two numbers, which must not be all rounding.
        if not ((width == 0) | ((width >= 2.0**-16) & (width <= WIDEST))).all():
            return cotangent * policy, None
        slope = (d - column_sum(np, policy * g.gap, g.single)) / omega**2
        return cotangent * policy, cotangent * slope

    return Answer(result, pullback) if _are_finite(result) else None


def boltzmann_policy(q: Floats, beta: float, counted: Counted) -> Answer | None:
    """Boltzmann's policy."""
    g = moderate_gaps(q, beta, counted)
    if g is None or not _are_finite(g.gap):
        return None
    policy = normalised(g, weights(np, g))

    def pullback(cotangent: Floats) -> Gradients:
        return _through_exponents(g, beta, policy, policy * cotangent)

    return Answer(policy, pullback)


def boltzmann_log_policy(q: Floats, beta: float, counted: Counted) -> Answer | None:
    """The logarithm of Boltzmann's policy."""
    g = moderate_gaps(q, beta, counted)
    if g is None or not _are_finite(g.gap):
        return None
    weight = weights(np, g)
    total = column_sum(np, weight, g.single)

    def pullback(cotangent: Floats) -> Gradients:
        return _through_exponents(g, beta, weight / total, _of_counted(g, cotangent))

    return Answer(_with_log_weights(g, 0.0 - (g.gap + np.log(total))), pullback)


def policy(q: Floats, omega: float, counted: Counted) -> Answer | None:
    """Mellowmax's policy."""
    found = _policy(q, omega, counted)
    if found is None:
        return None
    policy, _, through = found
    return Answer(policy, lambda cotangent: through(policy * cotangent))


def log_policy(q: Floats, omega: float, counted: Counted) -> Answer | None:
    """The logarithm of mellowmax's policy."""
    found = _policy(q, omega, counted)
    if found is None:
        return None
    _, logarithm, through = found
    return Answer(logarithm(), through)


def _policy(
    q: Floats, omega: float, counted: Counted
) -> tuple[Floats, Callable[[], Floats], Callable[[Floats], Gradients]] | None:
    """Mellowmax's policy, its logarithm, and the pullback from derivatives with respect to that."""
    g = moderate_gaps(q, omega, counted)
    if g is None:
        return None
    d = mellow_exponent(np, g)
    ratio = known_ratio(g, d)
    if ratio is None:
        return None
    weight = weights(np, g, ratio)
    total = column_sum(np, weight, g.single)
    policy = weight / total

    def logarithm() -> Floats:
        return _with_log_weights(g, 0.0 - (ratio * g.gap + np.log(total)))

    def through(d_log: Floats) -> Gradients:
        d_log = _of_counted(g, d_log)
        deviation = g.gap - d
        d_ratio = -column_sum(np, d_log * deviation, g.single)
        variance = column_sum(np, policy * deviation * deviation, g.single)
        at_omega = normalised(g, weights(np, g))
        moves = (at_omega - policy * (1 - ratio * deviation)) / variance
        moves = np.where(column_max(np, g.gap) < NARROW, 0.0, moves)
        return _through_exponents(g, omega, policy, d_log, ratio, d_ratio * moves)

    return policy, logarithm, through


def _are_finite(x: Floats) -> bool:
    return math.isfinite(np.add.reduce(x, axis=None))


def _through_exponents(
    g: Gaps,
    parameter: float,
    policy: Floats,
    d_log: Floats,
    ratio: Floats | float = 1.0,
    through_ratio: Floats | float = 0.0,
) -> Gradients:
    """From derivatives with respect to the logarithm of a policy to those in `Gradients`.

    Its exponents are `-ratio * gap`; `through_ratio` is what comes through the ratio.
    """
    d_exponent = ratio * (d_log - policy * column_sum(np, d_log, g.single)) + through_ratio
    d_parameter = -column_sum(np, d_exponent * g.gap, g.single) / parameter
    return parameter * d_exponent, d_parameter


def _of_counted(g: Gaps, cotangent: Floats) -> Floats:
    """The cotangents of the actions that count; those of the others may be anything."""
    return cotangent if g.counted is None else np.where(g.counted, cotangent, 0.0)


def _with_log_weights(g: Gaps, logarithm: Floats) -> Floats:
    """Logarithms with those of the weights added, minus infinity where no action counts."""
    if g.prior is not None:
        return logarithm + np.log(g.prior)
    if g.counted is None:
        return logarithm
    return np.minimum(logarithm, (g.counted - 0.5) * math.inf)
