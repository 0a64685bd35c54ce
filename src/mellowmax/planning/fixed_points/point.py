"""A fixed point, and the list of those that a search has found."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from ..._fixed_points.maps import read_only
from ..._fixed_points.points import Found, Local
from ..._typing import Floats
from .sweep_map import Sweep

__all__ = ["FixedPoint", "FixedPoints", "fixed_point", "fixed_points_of"]


@dataclasses.dataclass(frozen=True, eq=False)
class FixedPoint:
    """Action values that a sweep leaves as they are."""

    q: Floats
    """Action values, `[S, A]`; -inf for an action that is not allowed."""
    value: Floats
    """State values, `[S]`."""
    residual: float
    """`max|T q - q|`."""
    spectral_radius: float
    """The largest absolute eigenvalue of the Jacobian of a synchronous sweep."""
    index: int
    """The sign of `det(I - J)`; 0 where it is 0 to rounding: two fixed points meet there."""

    @property
    def stable(self) -> bool:
        """Do sweeps that start near it converge to it?"""
        return self.spectral_radius < 1

    def __repr__(self) -> str:
        kind = "stable" if self.stable else "unstable"
        return f"FixedPoint(value={self.value.round(6)}, {kind}, index={self.index:+d})"


class FixedPoints(Found[FixedPoint]):
    """Fixed points, by the sum of their state values, and whether they are all."""


def fixed_point(sweep: Sweep, found: Local) -> FixedPoint:
    """The fixed point with the state values found."""
    model, v = sweep.model, found.value
    q = model.q(v)
    residual = float(abs(model.q(model.value(sweep.softmax, q)) - q).max())
    return FixedPoint(
        read_only(model.shown(q)), read_only(v), residual, found.spectral_radius, found.index
    )


def fixed_points_of(sweep: Sweep, found: Iterable[Local]) -> tuple[FixedPoint, ...]:
    """The same for several."""
    return tuple(fixed_point(sweep, one) for one in found)
