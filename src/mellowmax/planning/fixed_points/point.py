"""A fixed point, and the list of those that a search has found."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np

from ..._typing import Floats
from ...softmax import Softmax
from .sweep_map import SAME_POINT, SweepMap, index_of, read_only, spectral_radius

__all__ = ["FixedPoint", "FixedPoints", "distinct", "fixed_point"]

_DEGENERATE = 1e-7  # relative determinant below which rounding hides its sign: the index is 0
_MEETING = 1e-6  # relative distance below which two of the index 0 are taken for one


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


@dataclasses.dataclass(frozen=True, eq=False)
class FixedPoints(Sequence[FixedPoint]):
    """Fixed points, by the sum of their state values, and whether they are all."""

    points: tuple[FixedPoint, ...]
    complete: bool
    """Is it proved that there are no others?"""
    reason: str
    """Why they are all, or what speaks for and against it."""

    @overload
    def __getitem__(self, index: int) -> FixedPoint: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[FixedPoint, ...]: ...
    def __getitem__(self, index: int | slice) -> FixedPoint | tuple[FixedPoint, ...]:
        return self.points[index]

    def __len__(self) -> int:
        return len(self.points)

    def __iter__(self) -> Iterator[FixedPoint]:
        return iter(self.points)


def fixed_point(model: SweepMap, softmax: Softmax, v: Floats) -> FixedPoint:
    """The fixed point with the state values `v`, `[S]`."""
    q = model.q(v)
    residual = float(abs(model.q(model.value(softmax, q)) - q).max())
    jacobian = model.jacobian(softmax, q)
    index = int(index_of(jacobian))
    if index and not softmax.non_expansion:  # whose determinant is positive, however small
        inverse = np.linalg.inv(np.eye(len(v)) - jacobian)
        index *= bool(abs(inverse).sum(-1).max() < 1 / _DEGENERATE)
    radius = float(spectral_radius(jacobian))
    return FixedPoint(read_only(model.shown(q)), read_only(v), residual, radius, index)


def distinct(model: SweepMap, softmax: Softmax, values: Floats) -> tuple[FixedPoint, ...]:
    """Fixed points from their state values `[N, S]`: in order, each once.

    Two near each other are one, except where their indices are opposite: next to a fold there are
    two, closer together than rounding puts two results for the same point.
    """
    points: list[FixedPoint] = []
    scale = abs(values).max(initial=0.0)
    for v in values:
        distances = [abs(v - point.value).max() for point in points]
        if min(distances, default=np.inf) <= 1e-10 * scale:
            continue
        new = fixed_point(model, softmax, v)
        near = scale * (SAME_POINT if new.index else _MEETING)
        if not any(
            other.index * new.index >= 0 and distance <= near
            for other, distance in zip(points, distances, strict=True)
        ):
            points.append(new)

    def order(point: FixedPoint) -> tuple[float, ...]:
        """The sum of the values; where symmetry makes sums equal, the values decide."""
        rounded = (np.append(point.value.sum(), point.value) / (scale or 1.0)).round(9)
        return tuple(rounded.tolist())

    return tuple(sorted(points, key=order))
