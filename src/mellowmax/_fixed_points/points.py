"""A fixed point with its surroundings, several told apart, and the list of those found."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar, overload

import numpy as np

from .._typing import Floats
from .maps import SAME_POINT, Map, index_of, spectral_radius

__all__ = ["Found", "Local", "distinct", "local"]

T = TypeVar("T")

_DEGENERATE = 1e-7  # relative determinant below which rounding hides its sign: the index is 0
_MEETING = 1e-6  # relative distance below which two of the index 0 are taken for one


@dataclasses.dataclass(frozen=True, eq=False)
class Local:
    """A fixed point, and how the map behaves near it."""

    value: Floats
    spectral_radius: float
    index: int
    """The sign of `det(I - J)`; 0 where it is 0 to rounding: two fixed points meet there."""


@dataclasses.dataclass(frozen=True, eq=False)
class Found(Sequence[T], Generic[T]):
    """Some fixed points, and whether they are all."""

    points: tuple[T, ...]
    complete: bool
    """Is it proved that there are no others?"""
    reason: str
    """Why they are all, or what speaks for and against it."""

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        return self.points[index]

    def __len__(self) -> int:
        return len(self.points)

    def __iter__(self) -> Iterator[T]:
        return iter(self.points)


def local(of: Map, v: Floats) -> Local:
    """The fixed point `v`, `[D]`."""
    jacobian = of.linearised(v)[1]
    index = int(index_of(jacobian))
    if index and not of.regular:
        inverse = np.linalg.inv(np.eye(len(v)) - jacobian)
        index *= bool(abs(inverse).sum(-1).max() < 1 / _DEGENERATE)
    return Local(v, float(spectral_radius(jacobian)), index)


def distinct(of: Map, values: Floats) -> tuple[Local, ...]:
    """Fixed points from their vectors `[N, D]`: by the sum of the entries, each once.

    Two near each other are one, except where their indices are opposite: next to a fold there are
    two, closer together than rounding puts two results for the same point.
    """
    points: list[Local] = []
    scale = abs(values).max(initial=0.0)
    for v in values:
        distances = [abs(v - point.value).max() for point in points]
        if min(distances, default=np.inf) <= 1e-10 * scale:
            continue
        new = local(of, v)
        near = scale * (SAME_POINT if new.index else _MEETING)
        if not any(
            other.index * new.index >= 0 and distance <= near
            for other, distance in zip(points, distances, strict=True)
        ):
            points.append(new)

    def order(point: Local) -> tuple[float, ...]:
        """The sum of the entries; where symmetry makes sums equal, the entries decide."""
        rounded = (np.append(point.value.sum(), point.value) / (scale or 1.0)).round(9)
        return tuple(rounded.tolist())

    return tuple(sorted(points, key=order))
