"""A branch of a curve of fixed points, followed step by step.

A step goes along the tangent (predictor), and Newton's method then finds the point of the curve on
the plane through its end at a right angle to the tangent (corrector). The determinant of the
curve's matrix keeps its sign along a curve: a step that changes the sign has strayed to another
curve, or, however short it is, has passed a place where another curve crosses. A step that ends
farther from the curve than the tangent's turn accounts for has strayed too. In both cases a shorter
one is tried.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .curve import Curve, Point, distance, tangent

__all__ = ["SLACK", "Path", "follow"]

SLACK = (0.65, 0.002)
"""The corrector may end off a step by the first times the tangent's turn, plus the second."""
_SHORTEST = 1e-10  # a step that must be shorter than this is an error
_KINK = 1e-6  # a step shorter than this may pass a corner, or a crossing of branches
_MOST_POINTS = 20_000


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
    ahead = origin
    path, tangents, length = [start], [ahead], longest / 2
    crossed: list[tuple[Point, Point]] = []
    while len(path) < _MOST_POINTS:
        point = path[-1]
        end = 1.0 if ahead[-1] > 0 else 0.0
        leaves = (point[-1] + length * ahead[-1] - end) * ahead[-1] > 0
        taken = (end - point[-1]) / ahead[-1] if leaves else length
        guess = point + taken * ahead
        if leaves:
            guess[-1] = end
        found = curve.corrected(guess, upwards if leaves else ahead)
        if found is not None:
            following, matrix = found
            turned, new_sign = tangent(matrix, ahead)
            apart, alike = distance(following, guess), float(turned @ ahead)
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
                ahead, sign = turned, new_sign
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


def _passes(start: Point, origin: Point, a: Point, b: Point) -> bool:
    """Does the step from `a` to `b` pass the start of the branch?"""
    if (a - start) @ origin < 0 <= (b - start) @ origin:
        return distance(start, (a + b) / 2) <= 0.51 * distance(a, b)
    return False
