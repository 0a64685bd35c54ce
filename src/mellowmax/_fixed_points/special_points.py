"""Where a branch turns back, meets another branch, or crosses a level of the parameter."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from .._typing import Floats
from .curve import Curve, Point, distance, tangent
from .follow import Path

__all__ = ["branch_crossings", "crossings", "with_folds"]


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
    chord = (b - a) / distance(a, b)

    def slope(direction: Point) -> float:
        """The slope of the parameter along the chord; 0 at a fold."""
        return float(direction[-1] / (direction @ chord))

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
    turn = tangent(matrix, chord)[0]
    return [
        *_folds_between(curve, a, middle, at_a, turn, split=False),
        *_folds_between(curve, middle, b, turn, at_b, split=False),
    ]


def branch_crossings(curve: Curve, path: Path) -> list[Point]:
    """Where other branches cross the path: there the determinant of its matrix is 0."""
    found = []
    for a, b in path.crossed:
        chord = (b - a) / distance(a, b)

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
