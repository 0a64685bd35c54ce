"""A curve of fixed points, in a vector and a parameter, and how it is followed.

The curve solves `F_p(v) - v = 0`: one equation fewer than unknowns, which are `v` and `p`. A step
goes along the tangent (predictor), and Newton's method then finds the point of the curve on the
plane through its end at a right angle to the tangent (corrector). Its matrix, the derivative of the
equations with the tangent as one more row, is regular at folds too. The determinant of that matrix
keeps its sign along a curve: a step that changes the sign has strayed to another curve, or, however
short it is, has passed a place where another curve crosses.

The unknowns are scaled: the range of the values, and that of the parameter, have the length 1.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from .._typing import Floats
from .maps import Map
from .newton import damped_newton

__all__ = ["Curve", "Path", "Point", "Range", "crossings", "fold_points", "follow"]

Point: TypeAlias = Floats
"""`[D + 1]`, scaled: the vector, then the level of the parameter, from 0 to 1 over its range."""

_SHORTEST = 1e-10  # a step that must be shorter than this is an error
_KINK = 1e-6  # a step shorter than this may pass a corner, or a crossing of branches
_MOST_POINTS = 20_000


@dataclasses.dataclass(frozen=True)
class Range:
    """The range of a parameter, and its levels, from 0 to 1."""

    first: float
    last: float

    def level(self, parameters: Floats | float) -> Floats:
        """The levels of parameters."""
        return (np.asarray(parameters) - self.first) / (self.last - self.first)

    def parameter(self, level: float) -> float:
        """The parameter of a level."""
        return float((1 - level) * self.first + level * self.last)


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

    @classmethod
    def of(
        cls, family: Callable[[float], Map], parameters: Range, low: Floats, high: Floats
    ) -> Curve:
        """The curve of a family of maps in a box."""
        unit = float(np.linalg.norm(high - low)) or float(abs(high).max()) or 1.0
        return cls(family, parameters, low, high, unit)

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

    def residual(self, point: Point) -> Floats:
        """`F_p(v) - v`, scaled: 0 on the curve."""
        return self.map_at(point[-1]).residual(point[:-1] * self.unit) / self.unit

    def matrix(self, point: Point) -> Floats:
        """The derivative of the residual, `[D, D + 1]`."""
        v, width = point[:-1] * self.unit, 1e-5
        jacobian = self.map_at(point[-1]).jacobian(v)
        ends = max(point[-1] - width, 0.0), min(point[-1] + width, 1.0)  # there may be none beyond
        below, above = (self.map_at(end).residual(v) for end in ends)
        slope = (above - below) / ((ends[1] - ends[0]) * self.unit)
        return np.column_stack([jacobian - np.eye(len(v)), slope])

    def tangent(self, point: Point, along: Point) -> tuple[Point, float]:
        """The unit tangent in the direction `along`, and the sign of the bordered determinant."""
        matrix = np.vstack([self.matrix(point), along])
        right = np.zeros(len(point))
        right[-1] = 1.0
        tangent = _solve(matrix, right)
        tangent /= np.linalg.norm(tangent)
        matrix[-1] = tangent
        return tangent, float(np.linalg.slogdet(matrix)[0])

    def corrected(self, guess: Point, normal: Point) -> Point | None:
        """The fixed point on the plane through `guess` with a normal; None if none is near."""
        point = guess
        for _ in range(10):
            residual = np.append(self.residual(point), (point - guess) @ normal)
            change = _solve(np.vstack([self.matrix(point), normal]), -residual)
            point = point + change
            if not (np.isfinite(point).all() and -1e-9 <= point[-1] <= 1 + 1e-9):
                return None
            point[-1] = min(max(point[-1], 0.0), 1.0)
            size = np.linalg.norm(change)
            if size < 1e-10:
                return point
            if size > 1:
                return None
        return None

    def polished(self, point: Point, parameter: float) -> Floats:
        """The vector of a point near, at a parameter, as exact as rounding allows."""
        start = point[None, :-1] * self.unit
        values, _ = damped_newton(self.family(parameter), start, self.low, self.high)
        return np.asarray(values[0])


def _solve(matrix: Floats, right: Floats) -> Floats:
    try:
        return np.asarray(np.linalg.solve(matrix, right), np.float64)
    except np.linalg.LinAlgError:  # where branches cross; a step later it is regular
        return np.asarray(np.linalg.lstsq(matrix, right)[0], np.float64)


class Path(NamedTuple):
    """The points of a branch until it leaves the range or closes."""

    points: list[Point]
    closed: bool
    """Does it end where it began?"""
    crossed: list[int]
    """The numbers of the points after which, and before the next, another branch crosses it."""


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
    origin = tangent = curve.tangent(start, way * upwards)[0]
    sign = curve.tangent(start, tangent)[1]
    path, length = [start], longest / 8
    crossed: list[int] = []
    while len(path) < _MOST_POINTS:
        point = path[-1]
        end = 1.0 if tangent[-1] > 0 else 0.0
        leaves = (point[-1] + length * tangent[-1] - end) * tangent[-1] > 0
        taken = (end - point[-1]) / tangent[-1] if leaves else length
        guess = point + taken * tangent
        if leaves:
            guess[-1] = end
        following = curve.corrected(guess, upwards if leaves else tangent)
        if following is not None and np.linalg.norm(following - guess) <= taken / 2:
            turned, new_sign = curve.tangent(following, tangent)
            if taken < _KINK or (turned @ tangent > 0.95 and new_sign == sign):
                if new_sign != sign and not leaves:
                    crossed.append(len(path) - 1)
                path.append(following)
                if leaves:
                    return Path(path, False, crossed)
                if _passes(start, origin, point, following) and turned @ origin > 0:
                    return Path([*path[:-1], start], True, crossed)
                length = min(longest, length * (2 if turned @ tangent > 0.99 else 1))
                tangent, sign = turned, new_sign
                continue
        length = taken / 2
        if length < _SHORTEST:
            break
    raise RuntimeError(
        f"a branch of fixed points could not be followed beyond {curve.parameter(path[-1]):.9g}, "
        f"after {len(path)} points"
    )


def _passes(start: Point, origin: Point, a: Point, b: Point) -> bool:
    """Does the step from `a` to `b` pass the start of the branch?"""
    before, after = (a - start) @ origin, (b - start) @ origin
    step = np.linalg.norm(b - a)
    near = np.linalg.norm(start - (a + b) / 2) <= 0.51 * step
    return bool(before < 0 <= after and near)


def fold_points(curve: Curve, path: list[Point]) -> tuple[list[Point], list[Point]]:
    """The folds, and the path with them in it, so that it is monotone between its points."""
    folds, result = [], path[:1]
    for a, b in itertools.pairwise(path):
        for fold in _folds_between(curve, a, b):
            folds.append(fold)
            result.append(fold)
        result.append(b)
    return folds, result


def _folds_between(curve: Curve, a: Point, b: Point, split: bool = True) -> list[Point]:
    length = float(np.linalg.norm(b - a))
    chord = (b - a) / length

    def slope(point: Point) -> float:
        """The slope of the parameter along the chord; 0 at a fold."""
        tangent = curve.tangent(point, chord)[0]
        return float(tangent[-1] / (tangent @ chord))

    before, after, mean = slope(a), slope(b), float(chord[-1])
    if before * after < 0:
        return [_between(curve, a, b, slope, before, after)]
    # Two folds can hide in one step: the cubic through both ends then has a slope that turns.
    bend = 3 * (before + after) - 6 * mean
    lowest = (2 * before + after - 3 * mean) / bend if bend else -1.0
    if not (split and 0 < lowest < 1 and before * (before - bend * lowest**2) < before**2 / 4):
        return []
    middle = curve.corrected(a + lowest * length * chord, chord)
    if middle is None:
        return []
    halves = ((a, middle), (middle, b))
    return [fold for half in halves for fold in _folds_between(curve, *half, split=False)]


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
        point = curve.corrected(a + x * length * chord, chord)
        if point is None:
            raise RuntimeError(
                f"a branch of fixed points is lost between the parameters {curve.parameter(a):.9g} "
                f"and {curve.parameter(b):.9g}"
            )
        found, value = point, function(point)
        if abs(value) < 1e-13 or right - left < 1e-13:
            break
        if value * at_b < 0:
            left, at_a, at_b, side = x, value, at_b / (2 if side == -1 else 1), -1
        else:
            right, at_b, at_a, side = x, value, at_a / (2 if side == 1 else 1), 1
    return found
