"""The most likely quantal level-k: shares of the levels, and what each of them has.

The likelihood is climbed from several starts. Standard errors are those of the curvature at the
maximum, and intervals are the estimates with 1.96 of them on both sides.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import numpy as np

from .._fixed_points.maps import read_only
from .._typing import Floats
from .family import Family
from .fitted import QUARTILE, Fit
from .models import quantal_level_k
from .observations import Observations

__all__ = ["fit_levels"]

QLK = ("share_1", "share_2", "level_1", "level_2", "belief")
"""The parameters of quantal level-k: the shares of the levels 1 and 2, what each of them has, and
what level 2 believes that level 1 has."""


def fit_levels(observed: Observations, family: Family) -> Fit:
    """Fit quantal level-k: shares on a simplex, parameters above 0."""
    from scipy.optimize import minimize

    size = max(float(block.payoffs.size.max()) for block in observed.blocks) or 1.0
    likelihood = quantal_level_k(observed, family)
    bounds = [(-12.0, 12.0)] * 2 + [(np.log(1e-3), np.log(1e4))] * 3

    def natural(theta: Floats) -> tuple[Floats, Floats]:
        weights = np.exp(np.append(theta[:2], 0.0) - max(*theta[:2], 0.0))
        first, second, none = weights / weights.sum()
        return np.array([none, first, second]), np.exp(theta[2:]) / size

    def searched(start: Floats, omitted: int | None) -> Any:
        def objective(theta: Floats) -> float:
            values = likelihood(*natural(theta))
            return float((values[omitted] if omitted is not None else 0.0) - values.sum())

        return minimize(objective, start, method="L-BFGS-B", bounds=bounds)

    sizes = np.log([0.5, 3.0, 20.0])
    starts = [np.array([0.5, 0.0, a, b, c]) for a in sizes for b in sizes for c in sizes]
    starts.sort(key=lambda theta: -float(likelihood(*natural(theta)).sum()))
    best = min((searched(start, None) for start in starts[:6]), key=lambda found: found.fun)
    shares, parameters = natural(best.x)

    def objective_of(x: Floats) -> float:
        return float(likelihood(np.array([1 - x[0] - x[1], *x[:2]]), x[2:]).sum())

    values = dict(zip(QLK, [*shares[1:], *parameters], strict=True))
    estimates = np.array([*values.values()])
    inside = np.array(
        [low + 0.1 < x < high - 0.1 for x, (low, high) in zip(best.x, bounds, strict=True)]
    )
    errors = np.full(len(QLK), np.nan)
    errors[inside] = _errors(objective_of, estimates, np.eye(len(QLK))[inside])
    intervals = {
        name: (max(value - QUARTILE * error, 0.0), min(value + QUARTILE * error, most))
        for (name, value), error, most in zip(
            values.items(), errors, (1.0, 1.0, np.inf, np.inf, np.inf), strict=True
        )
    }

    def left_out() -> Floats:
        result = []
        for game in range(len(observed)):
            refitted = searched(best.x, game)
            result.append(likelihood(*natural(refitted.x))[game])
        return np.array(result)

    return Fit(
        "qlk",
        MappingProxyType({name: float(value) for name, value in values.items()}),
        MappingProxyType(dict(zip(QLK, errors.tolist(), strict=True))),
        MappingProxyType(intervals),
        read_only(likelihood(shares, parameters)),
        read_only(observed.uniform),
        observed.notes,
        left_out,
    )


def _errors(function: Callable[[Floats], float], at: Floats, axes: Floats) -> Floats:
    """Standard errors along some axes, from the curvature; NaN unless it is that of a maximum."""
    steps = 1e-3 * at * axes
    hessian = np.array(
        [
            [
                sum(a * b * function(at + a * u + b * v) for a in (-1, 1) for b in (-1, 1))
                / (4 * u.sum() * v.sum())
                for u in steps
            ]
            for v in steps
        ]
    )
    if not np.isfinite(hessian).all() or np.linalg.eigvalsh(-hessian).min(initial=1.0) <= 0:
        return np.full(len(axes), np.nan)
    return np.sqrt(np.diag(np.linalg.inv(-hessian)))
