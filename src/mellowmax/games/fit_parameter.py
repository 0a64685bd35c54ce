"""The most likely parameter of a model that has one, and the interval of the likely ones.

The parameter is searched over all of its range, in levels that are spaced like its logarithm where
it is large, since a likelihood can have several maxima. The interval has all parameters at which
the log-likelihood is less than 1.92 below the maximum: 95 % by the likelihood ratio. The standard
error is that of the curvature at the maximum.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from .._fixed_points.curve import Range
from .._fixed_points.maps import read_only
from .._typing import Floats
from .fitted import QUARTILE, Fit
from .models import Likelihood
from .observations import Observations

__all__ = ["fit_parameter"]

_FALL = QUARTILE**2 / 2  # of the log-likelihood, at the ends of an interval
_RANGES = (30.0, 1e3, 1e5)  # parameters times the largest payoff, up to which is searched
_NODES = 40


class _Table(NamedTuple):
    """Log-likelihoods at some levels of the parameter."""

    range: Range
    levels: Floats  # [K]
    values: Floats  # [K, G]

    def around(self, best: int) -> tuple[float, float]:
        """The levels next to one of them."""
        last = len(self.levels) - 1
        return float(self.levels[max(best - 1, 0)]), float(self.levels[min(best + 1, last)])


def fit_parameter(model: str, observed: Observations, up_to: Callable[[float], Likelihood]) -> Fit:
    """Fit a model of one parameter, from 0 on."""
    size = max(float(block.payoffs.size.max()) for block in observed.blocks) or 1.0
    for most in _RANGES:
        ends = Range(0.0, most / size, size)
        likelihood = up_to(ends.last)
        coarse = np.linspace(0.0, 1.0, _NODES + 1)
        values = np.array([likelihood(ends.parameter(x)) for x in coarse])
        total = values.sum(1)
        if np.ptp(total) <= 1e-9 * max(1.0, abs(total).max()):
            return _flat(model, observed, values[0])
        if total[-1] < total.max() - 2 * _FALL:
            break
    best = int(total.argmax())
    near = np.flatnonzero(total > total.max() - 10 * _FALL)
    low, high = coarse[max(near[0] - 1, 0)], coarse[min(near[-1] + 1, _NODES)]
    fine = np.setdiff1d(np.linspace(low, high, _NODES + 1), coarse)
    more = np.array([likelihood(ends.parameter(x)) for x in fine]).reshape(-1, len(observed))
    order = np.argsort(np.concatenate([coarse, fine]))
    levels = np.concatenate([coarse, fine])[order]
    table = _Table(ends, levels, np.concatenate([values, more])[order])

    def objective(x: float) -> float:
        return float(likelihood(ends.parameter(x)).sum())

    total = table.values.sum(1)
    best = int(total.argmax())
    at, top = _maximum(objective, *table.around(best), 1e-10)
    if total[best] >= top:  # at an end
        at, top = float(levels[best]), float(total[best])
    notes = observed.notes
    endless = total[-1] >= top - 1e-9 * max(1.0, abs(top))
    if endless:
        notes += ("The likelihood rises with the parameter without end.",)
    if at <= 1e-6:
        notes += ("No parameter above 0 is more likely than 0, where all choose at random.",)
    parameter = np.inf if endless else 0.0 if at <= 1e-6 else ends.parameter(at)
    low, high = _where_it_falls(objective, table, at, top - _FALL)
    interval = ends.parameter(low), ends.parameter(high) if high <= 1 else np.inf
    error = np.nan
    if 0 < parameter < np.inf:
        width = min(parameter, min(interval[1], 2 * parameter) - interval[0]) / 20
        shifted = [likelihood(parameter + s * width).sum() for s in (-1, 0, 1)]
        bend = (2 * shifted[1] - shifted[0] - shifted[2]) / width**2
        error = float(bend**-0.5) if bend > 0 else np.nan
    name = "parameter"
    return Fit(
        model,
        MappingProxyType({name: float(parameter)}),
        MappingProxyType({name: error}),
        MappingProxyType({name: interval}),
        read_only(likelihood(ends.parameter(at))),
        read_only(observed.uniform),
        notes,
        functools.partial(_left_out_of_one, likelihood, table),
    )


def _flat(model: str, observed: Observations, values: Floats) -> Fit:
    """The fit where every parameter is as likely as every other one."""
    note = "Every parameter is as likely as every other one, so that there is no interval."
    return Fit(
        model,
        MappingProxyType({"parameter": np.nan}),
        MappingProxyType({"parameter": np.nan}),
        MappingProxyType({"parameter": (np.nan, np.nan)}),
        read_only(values),
        read_only(observed.uniform),
        (*observed.notes, note),
        lambda: values,
    )


def _maximum(
    objective: Callable[[float], float], low: float, high: float, within: float
) -> tuple[float, float]:
    """Where a function is largest between two numbers, and its value there."""
    from scipy.optimize import minimize_scalar

    found = minimize_scalar(
        lambda x: -objective(x), bounds=(low, high), method="bounded", options={"xatol": within}
    )
    # Near its top a function is flat to rounding: its slope, from farther away, is not.
    h, x = (high - low) / 80, float(found.x)
    if not low + 2 * h <= x <= high - 2 * h:
        return x, -float(found.fun)
    a, b, c, d, e = (objective(x + k * h) for k in (-2, -1, 0, 1, 2))
    slope, bend = (a - 8 * b + 8 * d - e) * h, 16 * b + 16 * d - 30 * c - a - e
    better = x - slope / bend if bend < 0 else x
    return (better if low < better < high else x), -float(found.fun)


def _where_it_falls(
    objective: Callable[[float], float], table: _Table, at: float, floor: float
) -> tuple[float, float]:
    """Where a function falls below a floor, on both sides of a maximum; 0 or 2 if it never does."""
    from scipy.optimize import brentq

    total, ends = table.values.sum(1), []
    for side in (-1, 1):
        beyond = table.levels[(side * (table.levels - at) > 0) & (total < floor)]
        if len(beyond):
            nearest = beyond[-1] if side < 0 else beyond[0]
            ends.append(float(brentq(lambda x: objective(x) - floor, nearest, at, xtol=1e-10)))
        else:
            ends.append(0.0 if side < 0 else 2.0)
    return ends[0], ends[1]


def _left_out_of_one(likelihood: Likelihood, table: _Table) -> Floats:
    """Each game's log-likelihood where that of the others is largest."""
    result = []
    for game in range(table.values.shape[1]):

        def objective(x: float, game: int = game) -> float:
            values = likelihood(table.range.parameter(x))
            return float(values.sum() - values[game])

        others = table.values.sum(1) - table.values[:, game]
        best = int(others.argmax())
        at, top = _maximum(objective, *table.around(best), 1e-6)
        if others[best] > top:
            at = float(table.levels[best])
        result.append(likelihood(table.range.parameter(at))[game])
    return np.array(result)
