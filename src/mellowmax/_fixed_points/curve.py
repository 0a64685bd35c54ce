"""A curve of fixed points, in a vector and a parameter, and how it is followed.

The curve solves `F_p(v) - v = 0`: one equation fewer than unknowns, which are `v` and `p`. A step
goes along the tangent (predictor), and Newton's method then finds the point of the curve on the
plane through its end at a right angle to the tangent (corrector). Its matrix, the derivative of the
equations with the tangent as one more row, is regular at folds too. The determinant of that matrix
keeps its sign along a curve: a step that changes the sign has strayed to another curve, or, however
short it is, has passed a place where another curve crosses. A step that ends farther from the curve
than the tangent's turn accounts for has strayed too. In both cases a shorter one is tried.

The unknowns are scaled: the range of the values, and that of the parameter, have the length 1.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from .._typing import Floats
from .maps import Map

__all__ = [
    "Curve",
    "Path",
    "Point",
    "Range",
    "SLACK",
    "Slope",
    "branch_crossings",
    "crossings",
    "follow",
    "with_folds",
]

Point: TypeAlias = Floats
"""`[D + 1]`, scaled: the vector, then the level of the parameter, from 0 to 1 over its range."""

Slope: TypeAlias = Callable[[Floats, float, Floats], Floats]
"""The derivative of `F` with respect to the parameter, from a vector, a parameter and the Jacobian
there."""

SLACK = (0.65, 0.002)
"""The corrector may end off a step by the first times the tangent's turn, plus the second."""
_SHORTEST = 1e-10  # a step that must be shorter than this is an error
_KINK = 1e-6  # a step shorter than this may pass a corner, or a crossing of branches
_MOST_POINTS = 20_000
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
        return _tangent(self.linearised(point)[1], along)

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


def _tangent(matrix: Floats, along: Point) -> tuple[Point, float]:
    """The direction of `Curve.tangent`, from the matrix of `Curve.linearised`."""
    matrix[-1] = along
    right = np.zeros(len(along))
    right[-1] = 1.0
    tangent = _solve(matrix, right)
    tangent /= math.sqrt(tangent @ tangent)
    matrix[-1] = tangent
    return tangent, float(np.linalg.slogdet(matrix)[0])


def _solve(matrix: Floats, right: Floats) -> Floats:
    try:
        return np.asarray(np.linalg.solve(matrix, right), np.float64)
    except np.linalg.LinAlgError:  # where branches cross; a step later it is regular
        return np.asarray(np.linalg.lstsq(matrix, right)[0], np.float64)


class Path(NamedTuple):
    """The points of a branch until it leaves the range or closes."""

    points: list[Point]
    tangents: list[Point]
    """At each point, in either direction."""
    closed: bool
    """Does it end where it began?"""
    crossed: list[tuple[Point, Point]]
    """The ends of the steps within which another branch crosses it."""

    def after(self, other: Path) -> Path:
        """A path that follows the other one backwards, and then this one, from a common start."""
        points, tangents = other.points[:0:-1], other.tangents[:0:-1]
        crossed = [(b, a) for a, b in reversed(other.crossed)]
        return Path(points + self.points, tangents + self.tangents, False, crossed + self.crossed)


def follow(curve: Curve, start: Point, way: int, longest: float) -> Path:
    """Follow a branch.

    Args:
        curve: the equations.
        start: a point of the branch.
        way: 1 to start with a rising parameter, -1 with a falling one.
        longest: the longest step.

    Raises:
        RuntimeError: where no step is short enough.
    """
    upwards = np.zeros(len(start))
    upwards[-1] = 1.0
    origin, sign = curve.tangent(start, way * upwards)
    tangent = origin
    path, tangents, length = [start], [tangent], longest / 2
    crossed: list[tuple[Point, Point]] = []
    while len(path) < _MOST_POINTS:
        point = path[-1]
        end = 1.0 if tangent[-1] > 0 else 0.0
        leaves = (point[-1] + length * tangent[-1] - end) * tangent[-1] > 0
        taken = (end - point[-1]) / tangent[-1] if leaves else length
        guess = point + taken * tangent
        if leaves:
            guess[-1] = end
        found = curve.corrected(guess, upwards if leaves else tangent)
        if found is not None:
            following, matrix = found
            turned, new_sign = _tangent(matrix, tangent)
            apart, alike = _distance(following, guess), float(turned @ tangent)
            if apart <= taken / 2 and (
                taken < _KINK
                or (new_sign == sign and alike > 0.95 and apart <= taken * _farthest(alike))
            ):
                if new_sign != sign and not leaves:
                    crossed.append((point, following))
                if _passes(start, origin, point, following) and turned @ origin > 0:
                    return Path([*path, start], [*tangents, origin], True, crossed)
                path.append(following)
                tangents.append(turned)
                if leaves:
                    return Path(path, tangents, False, crossed)
                length = min(longest, length * (2 if alike > 0.99 else 1))
                tangent, sign = turned, new_sign
                continue
        length = taken / 2
        if length < _SHORTEST:
            break
    raise RuntimeError(
        f"a branch of fixed points could not be followed beyond {curve.parameter(path[-1]):.9g}, "
        f"after {len(path)} points"
    )


def _farthest(alike: float) -> float:
    """How far the corrector may end from the end of a step, as a share of the step.

    On a smooth curve it is half the angle between the tangents, whose cosine is given; a step onto
    another curve nearby is off by more.
    """
    return SLACK[0] * math.acos(min(alike, 1.0)) + SLACK[1]


def _distance(a: Point, b: Point) -> float:
    step = b - a
    return math.sqrt(step @ step)


def _passes(start: Point, origin: Point, a: Point, b: Point) -> bool:
    """Does the step from `a` to `b` pass the start of the branch?"""
    if (a - start) @ origin < 0 <= (b - start) @ origin:
        return _distance(start, (a + b) / 2) <= 0.51 * _distance(a, b)
    return False


def with_folds(curve: Curve, path: Path) -> tuple[list[Point], list[Point]]:
    """The points of a path with its folds among them, and the folds.

    Between the points the parameter is then monotone.
    """
    result, folds = path.points[:1], []
    steps = zip(itertools.pairwise(path.points), itertools.pairwise(path.tangents), strict=True)
    for (a, b), (before, after) in steps:
        found = _folds_between(curve, a, b, before, after)
        folds += found
        result += [*found, b]
    return result, folds


def _folds_between(
    curve: Curve, a: Point, b: Point, at_a: Point, at_b: Point, split: bool = True
) -> list[Point]:
    """The folds between two points with their tangents."""
    chord = (b - a) / _distance(a, b)

    def slope(tangent: Point) -> float:
        """The slope of the parameter along the chord; 0 at a fold."""
        return float(tangent[-1] / (tangent @ chord))

    before, after, mean = slope(at_a), slope(at_b), float(chord[-1])
    if before * after < 0:
        return [
            _between(
                curve, a, b, lambda point: slope(curve.tangent(point, chord)[0]), before, after
            )
        ]
    # Two folds can hide in one step: the cubic through both ends then has a slope that turns.
    bend = 3 * (before + after) - 6 * mean
    lowest = (2 * before + after - 3 * mean) / bend if bend else -1.0
    if not (split and 0 < lowest < 1 and before * (before - bend * lowest**2) < before**2 / 4):
        return []
    corrected = curve.corrected(a + lowest * (b - a), chord)
    if corrected is None:
        return []
    middle, matrix = corrected
    turn = _tangent(matrix, chord)[0]
    return [
        *_folds_between(curve, a, middle, at_a, turn, split=False),
        *_folds_between(curve, middle, b, turn, at_b, split=False),
    ]


def branch_crossings(curve: Curve, path: Path) -> list[Point]:
    """Where other branches cross the path: there the determinant of its matrix is 0."""
    found = []
    for a, b in path.crossed:
        chord = (b - a) / _distance(a, b)

        def determinant(point: Point, chord: Point = chord) -> float:
            matrix = curve.linearised(point)[1]
            matrix[-1] = chord
            return float(np.linalg.det(matrix))

        at_a, at_b = determinant(a), determinant(b)
        # So near to it rounding hides the path: the determinant, a straight line there, decides.
        found.append(a + (b - a) * (at_a / (at_a - at_b)) if at_a * at_b < 0 else b)
    return found


def crossings(curve: Curve, path: Floats, level: float) -> list[Point]:
    """Where the path crosses a level of the parameter."""
    heights = path[:, -1] - level
    found = [point for point, height in zip(path, heights, strict=True) if height == 0]
    for k in np.flatnonzero(heights[:-1] * heights[1:] < 0):
        ends = float(heights[k]), float(heights[k + 1])
        point = _between(curve, path[k], path[k + 1], lambda z: z[-1] - level, *ends)
        found.append(point)
    return found


def _between(
    curve: Curve,
    a: Point,
    b: Point,
    function: Callable[[Point], float],
    at_a: float,
    at_b: float,
) -> Point:
    """The point between two of a branch where a function of it is 0, by the Illinois rule."""
    length = float(np.linalg.norm(b - a))
    chord = (b - a) / length
    left, right, side, found = 0.0, 1.0, 0, a
    for _ in range(100):
        x = (left * at_b - right * at_a) / (at_b - at_a)
        corrected = curve.corrected(a + x * length * chord, chord)
        if corrected is None:
            raise RuntimeError(
                f"a branch of fixed points is lost between the parameters {curve.parameter(a):.9g} "
                f"and {curve.parameter(b):.9g}"
            )
        found = corrected[0]
        value = function(found)
        if abs(value) < 1e-13 or right - left < 1e-13:
            break
        if value * at_b < 0:
            left, at_a, at_b, side = x, value, at_b / (2 if side == -1 else 1), -1
        else:
            right, at_b, at_a, side = x, value, at_a / (2 if side == 1 else 1), 1
    return found
