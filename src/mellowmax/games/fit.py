"""Models of how people choose, fitted to their choices by maximum likelihood.

A model of one parameter is searched over all of its range, in levels that are spaced like its
logarithm where it is large, since a likelihood can have several maxima. Its interval has all
parameters at which the log-likelihood is less than 1.92 below the maximum: 95 % by the likelihood
ratio. Standard errors are those of the curvature at the maximum.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from .._common import checks
from .._common.extras import needed_by
from .._fixed_points.curve import Range
from .._fixed_points.maps import read_only
from .._typing import Floats
from ..softmax import Softmax
from .family import Family
from .game import Game
from .models import Likelihood, level, quantal_level_k, quantal_response
from .observations import Observations
from .policy_jacobian import check_smooth

__all__ = ["MODELS", "Fit", "fit"]

MODELS = ("qre", "level-1", "level-2", "qlk")
"""Quantal response, one level of thinking, two levels, and quantal level-k."""
QLK = ("share_1", "share_2", "level_1", "level_2", "belief")
"""The parameters of quantal level-k: the shares of the levels 1 and 2, what each of them has, and
what level 2 believes that level 1 has."""

_QUARTILE = 1.959963984540054  # of the normal distribution, two-sided 5 %
_FALL = _QUARTILE**2 / 2  # of the log-likelihood, at the ends of an interval
_RANGES = (30.0, 1e3, 1e5)  # parameters times the largest payoff, up to which is searched
_NODES = 40


@dataclasses.dataclass(frozen=True, eq=False)
class Fit:
    """The parameters under which what was observed is most likely; printing it shows them."""

    model: str
    parameters: Mapping[str, float]
    standard_errors: Mapping[str, float]
    """The standard error of each parameter; NaN at an end of its range, or if the likelihood does
    not curve."""
    intervals: Mapping[str, tuple[float, float]]
    """The interval of each parameter at 95 %; NaN where there is none."""
    log_likelihoods: Floats
    """`[G]`, the log-likelihood of each game."""
    uniform: Floats
    """`[G]`, the log-likelihood of each game if all choose at random."""
    notes: tuple[str, ...]
    """What is special about the counts or the fit."""
    _leave_out: Callable[[], Floats] = dataclasses.field(repr=False)

    @property
    def log_likelihood(self) -> float:
        """The log-likelihood of all games, without the number of orders of the choices."""
        return float(self.log_likelihoods.sum())

    @functools.cached_property
    def left_out(self) -> Floats:
        """`[G]`, the log-likelihood of each game under a fit to the others alone."""
        if len(self.log_likelihoods) < 2:
            raise ValueError("`left_out` needs two games or more, got one")
        return read_only(self._leave_out())

    @property
    def parameter(self) -> float:
        """The parameter of a model of one."""
        return self.parameters[self._only]

    @property
    def standard_error(self) -> float:
        """The standard error of the parameter of a model of one."""
        return self.standard_errors[self._only]

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of the parameter of a model of one."""
        return self.intervals[self._only]

    @property
    def _only(self) -> str:
        if len(self.parameters) > 1:
            names = ", ".join(self.parameters)
            raise ValueError(f"`{self.model}` has several parameters, by name: {names}")
        return next(iter(self.parameters))

    def __str__(self) -> str:
        lines = [f"{self.model}: log-likelihood {self.log_likelihood:.6g}"]
        lines[0] += f" ({self.uniform.sum():.6g} at random)"
        for name, value in self.parameters.items():
            low, high = self.intervals[name]
            lines.append(f"  {name:<9} {value:<10.6g} 95 % from {low:.4g} to {high:.4g}")
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])


def fit(
    games: Game | Sequence[Game],
    counts: Sequence[Any],
    family: Family,
    *,
    model: str = "qre",
) -> Fit:
    """Fit a model to how often people chose each action.

    Args:
        games: one game, or several that share the parameters.
        counts: for each game how often each action was chosen: a list for each player, or one list
            for both players of a symmetric game. They need not be whole.
        family: from a parameter to a softmax, such as the class `Mellowmax`.
        model: `"qre"` for quantal response, `"level-1"`, `"level-2"`, or `"qlk"` for quantal
            level-k.

    Returns:
        The `Fit`: parameters, intervals, likelihoods, and `left_out`.

    Raises:
        ValueError: for counts that are not those of the games, in a sentence that names player and
            action, and for the name of no model.

    Examples:
        >>> from mellowmax import Boltzmann, Mellowmax
        >>> game = Game.from_arrays([[1.1141, 0], [0, 0.2785]], [[0, 1.1141], [1.1141, 0]])
        >>> counts = [[67.456, 60.544], [46.848, 81.152]]
        >>> print(fit(game, counts, Boltzmann))
        qre: log-likelihood -174.765 (-177.446 at random)
          parameter 1.84561    95 % from 0.4106 to 4.056
          The counts of the game are not all whole, as where they come from percentages.
        >>> fit(game, counts, Mellowmax, model="level-1").log_likelihood > -177.446
        True

    References:
        Asadi and Littman (2017), section 8, names both models.
    """
    observed = Observations.of(games, counts)
    checks.function("family", family, "a function from a parameter to a Softmax")
    checks.one_of("model", model, MODELS)
    with needed_by("mellowmax.games.fit", "jax"):
        import scipy  # noqa: F401 - what the extra installs
    checks.instance("family", family(1.0), Softmax, "a function from a parameter to a Softmax")
    if model == "qlk":
        return _fit_levels(observed, family)
    if model == "qre":
        check_smooth(family(1.0))
        likelihood: Callable[[float], Likelihood] = functools.partial(
            quantal_response, observed, family
        )
    else:
        of_level = level(observed, family, int(model[-1]))

        def likelihood(last: float) -> Likelihood:
            return of_level

    return _fit_one(model, observed, likelihood)


class _Table(NamedTuple):
    """Log-likelihoods at some levels of the parameter."""

    range: Range
    levels: Floats  # [K]
    values: Floats  # [K, G]

    def around(self, best: int) -> tuple[float, float]:
        """The levels next to one of them."""
        last = len(self.levels) - 1
        return float(self.levels[max(best - 1, 0)]), float(self.levels[min(best + 1, last)])


def _fit_one(model: str, observed: Observations, up_to: Callable[[float], Likelihood]) -> Fit:
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


def _fit_levels(observed: Observations, family: Family) -> Fit:
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
        name: (max(value - _QUARTILE * error, 0.0), min(value + _QUARTILE * error, most))
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
