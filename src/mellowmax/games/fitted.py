"""What a fit of a model of choices has found."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping

from .._fixed_points.maps import read_only
from .._typing import Floats

__all__ = ["QUARTILE", "Fit"]

QUARTILE = 1.959963984540054
"""The quantile of the normal distribution that leaves out 5 %, on both sides together."""


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
