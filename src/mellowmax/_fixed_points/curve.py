"""A curve of fixed points, in a vector and a parameter, and its points and tangents.

The curve solves `F_p(v) - v = 0`: one equation fewer than unknowns, which are `v` and `p`. Its
matrix, the derivative of the equations with the tangent as one more row, is regular at folds too.
The unknowns are scaled: the range of the values, and that of the parameter, have the length 1.
`follow` goes along a curve, and `special_points` finds its folds and crossings.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from .._typing import Floats
from .maps import Map

__all__ = ["Curve", "Point", "Range", "Slope", "distance", "tangent"]

Point: TypeAlias = Floats
"""`[D + 1]`, scaled: the vector, then the level of the parameter, from 0 to 1 over its range."""

Slope: TypeAlias = Callable[[Floats, float, Floats], Floats]
"""The derivative of `F` with respect to the parameter, from a vector, a parameter and the Jacobian
there."""

_WIDTH = 1e-6  # of the level, between the ends of a difference quotient


@dataclasses.dataclass(frozen=True)
class Range:
    """The range of a parameter `p`, and its levels, from 0 to 1."""

    first: float
    last: float
    size: float = 0.0
    """Levels are evenly spaced in `asinh(size * p)`, so that those of large parameters grow with
    them; 0 to space them evenly in `p`."""

    def level(self, parameters: Floats | float) -> Floats:
        """The levels of parameters."""
        return np.asarray((self._spaced(parameters) - self._begin) / self.span)

    def parameter(self, level: float) -> float:
        """The parameter of a level."""
        if level in (0, 1):
            return self.last if level else self.first
        spaced = self._begin + level * self.span
        return float(math.sinh(spaced) / self.size if self.size else spaced)

    @functools.cached_property
    def span(self) -> float:
        """The length of the range in what is evenly spaced."""
        return float(self._spaced(self.last)) - self._begin

    @functools.cached_property
    def _begin(self) -> float:
        return float(self._spaced(self.first))

    def _spaced(self, parameters: Floats | float) -> Floats:
        return np.asarray(np.arcsinh(self.size * parameters) if self.size else parameters)

    def rise(self, parameter: float) -> float:
        """The derivative of the parameter with respect to its level, at a parameter."""
        return self.span * math.hypot(1.0, self.size * parameter) / (self.size or 1.0)


@dataclasses.dataclass(frozen=True, eq=False)
class Curve:
    """The equations `F_p(v) - v = 0` in scaled unknowns."""

    family: Callable[[float], Map]
    """From a parameter to a map."""
    range: Range
    low: Floats
    high: Floats
    unit: float
    """What vectors are measured in: the length of the diagonal of their box."""
    slope: Slope | None
    """What is known of the derivative with respect to the parameter."""
    error: float
    """About how far a point may be from the curve."""

    @classmethod
    def of(
        cls,
        family: Callable[[float], Map],
        parameters: Range,
        low: Floats,
        high: Floats,
        slope: Slope | None = None,
        error: float = 1e-12,
    ) -> Curve:
        """The curve of a family of maps in a box."""
        unit = float(np.linalg.norm(high - low)) or float(abs(high).max()) or 1.0
        return cls(family, parameters, low, high, unit, slope, error)

    def scaled(self, values: Floats, parameters: Floats | float) -> Floats:
        """Points from vectors and parameters."""
        levels = self.range.level(parameters)
        return np.concatenate([values / self.unit, levels[..., None]], axis=-1)

    def parameter(self, point: Point) -> float:
        """The parameter of a point, unscaled."""
        return self.range.parameter(point[-1])

    def map_at(self, level: float) -> Map:
        """The map at a level of the parameter."""
        return self.family(self.range.parameter(level))

    def linearised(self, point: Point) -> tuple[Floats, Floats]:
        """`F_p(v) - v`, scaled, and its derivative, in a matrix with one more row, of zeros."""
        v, level, d = point[:-1] * self.unit, point[-1], len(point) - 1
        parameter = self.range.parameter(level)
        residual, jacobian = self.family(parameter).linearised(v)
        matrix = np.zeros((d + 1, d + 1))
        matrix[:d, :d] = jacobian
        matrix.ravel()[: d * (d + 2) : d + 2] -= 1.0  # on the diagonal
        if self.slope is not None:
            slope = self.slope(v, parameter, jacobian) * self.range.rise(parameter)
        else:
            width = _WIDTH if level <= 0.5 else -_WIDTH  # there may be nothing beyond the ends
            slope = (self.map_at(level + width).residual(v) - residual) / width
        matrix[:d, d] = slope / self.unit
        return residual / self.unit, matrix

    def tangent(self, point: Point, along: Point) -> tuple[Point, float]:
        """The unit tangent in the direction `along`, and the sign of the bordered determinant."""
        return tangent(self.linearised(point)[1], along)

    def corrected(self, guess: Point, normal: Point) -> tuple[Point, Floats] | None:
        """The fixed point on the plane through `guess` with a normal; None if none is near.

        Returns:
            The point, and the matrix of `linearised` there.
        """
        point, before, right = guess, 0.0, np.zeros(len(guess))
        for _ in range(10):
            residual, matrix = self.linearised(point)
            matrix[-1] = normal
            right[:-1], right[-1] = -residual, (guess - point) @ normal
            change = _solve(matrix, right)
            point = point + change
            if not -1e-9 <= point[-1] <= 1 + 1e-9:
                return None
            point[-1] = min(max(point[-1], 0.0), 1.0)
            size = math.sqrt(change @ change)
            # Changes fall as squares: the next one would be about `size**3 / before**2`.
            if size < 1e-10 or size**3 < self.error * before**2:
                return point, matrix
            if not size <= 1:
                return None
            before = size
        return None


def tangent(matrix: Floats, along: Point) -> tuple[Point, float]:
    """The direction of `Curve.tangent`, from the matrix of `Curve.linearised`."""
    matrix[-1] = along
    right = np.zeros(len(along))
    right[-1] = 1.0
    direction = _solve(matrix, right)
    direction /= math.sqrt(direction @ direction)
    matrix[-1] = direction
    return direction, float(np.linalg.slogdet(matrix)[0])


def _solve(matrix: Floats, right: Floats) -> Floats:
    try:
        return np.asarray(np.linalg.solve(matrix, right), np.float64)
    except np.linalg.LinAlgError:  # where branches cross; a step later it is regular
        return np.asarray(np.linalg.lstsq(matrix, right)[0], np.float64)


def distance(a: Point, b: Point) -> float:
    """The length of the straight line between two points."""
    step = b - a
    return math.sqrt(step @ step)
