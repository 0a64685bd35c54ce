"""Fixed points followed through a softmax's parameter, and round the folds where two of them meet.

A fixed point `v = f_p(q(v))` moves along a curve as the parameter `p` changes. Where `det(I - J)`
is 0 the curve turns back, at a fold: two fixed points meet there, and beyond it both are gone. In
figure 4 they appear and disappear in this way. On a grid of parameters a fold shows only as fixed
points that are missing. Here the curve is followed by its arclength instead, which passes a fold
like any other point (pseudo-arclength continuation: Keller, 1977; see `curve`).
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from ..._common import checks
from ..._fixed_points.curve import Curve, Point, Range
from ..._fixed_points.follow import follow
from ..._fixed_points.maps import read_only, spectral_radius
from ..._fixed_points.newton import damped_newton
from ..._fixed_points.points import distinct
from ..._fixed_points.special_points import crossings, with_folds
from ..._typing import Bools, Floats
from ...mdp import MDP
from ...softmax import Softmax
from .find import fixed_points
from .newton import box
from .point import FixedPoints, fixed_points_of
from .sweep_map import SweepMap

__all__ = ["Branch", "Family", "Fold", "Trace", "trace_fixed_points"]

Family: TypeAlias = Callable[[float], Softmax]
"""From a parameter to a softmax, such as the class `Boltzmann`."""


@dataclasses.dataclass(frozen=True, eq=False)
class Branch:
    """A curve of fixed points; the parameter can go up and down along it."""

    parameters: Floats
    """`[N]`, in order along the curve; those asked for and those of its folds are among them."""
    q: Floats
    """Action values, `[N, S, A]`; -inf for an action that is not allowed."""
    value: Floats
    """State values, `[N, S]`."""
    spectral_radius: Floats
    """`[N]`, of the Jacobian of a synchronous sweep."""
    closed: bool
    """Does it end where it began?"""

    @property
    def stable(self) -> Bools:
        """`[N]`: do sweeps that start near each converge to it?"""
        return self.spectral_radius < 1


@dataclasses.dataclass(frozen=True, eq=False)
class Fold:
    """Where the parameter turns back along a branch."""

    parameter: float
    q: Floats
    """Action values, `[S, A]`; -inf for an action that is not allowed."""
    value: Floats
    """State values, `[S]`."""


@dataclasses.dataclass(frozen=True, eq=False)
class Trace:
    """The branches over a range of the parameter."""

    branches: tuple[Branch, ...]
    folds: tuple[Fold, ...]
    """In order of their parameters."""
    _model: SweepMap = dataclasses.field(repr=False)
    _family: Family = dataclasses.field(repr=False)
    _curve: Curve = dataclasses.field(repr=False)

    def at(self, parameter: float) -> FixedPoints:
        """The fixed points at any parameter of the range, from the branches."""
        curve, ends = self._curve, self._curve.range
        if not ends.first <= parameter <= ends.last:
            raise ValueError(
                f"`parameter` must be in [{ends.first:g}, {ends.last:g}], got {parameter}"
            )
        level = float(ends.level(parameter))
        sweep = self._model.under(self._family(parameter))
        found = [
            point
            for branch in self.branches
            for point in crossings(curve, curve.scaled(branch.value, branch.parameters), level)
        ]
        starts = np.array(found).reshape(-1, len(curve.low) + 1)[:, :-1] * curve.unit
        values, _ = damped_newton(sweep, starts, curve.low, curve.high)
        points = fixed_points_of(sweep, distinct(sweep, values))
        total = sum(point.index for point in points)
        reason = (
            f"Not proved: those on {len(self.branches)} branches, followed from the parameters "
            f"given; their indices sum to {total:+d}, those of all to +1 unless one is degenerate."
        )
        return FixedPoints(points, False, reason)


def trace_fixed_points(
    mdp: MDP, family: Family, parameters: Sequence[float] | Floats, *, step: float = 0.02
) -> Trace:
    """Follow the fixed points of a family of softmaxes through its parameter.

    Args:
        mdp: with at most 2^26 dense transitions.
        family: from a parameter to a softmax, such as the class `Boltzmann`.
        parameters: increasing; the first and the last are the range. At each of them fixed points
            are searched for, and branches have a point there. Two are enough for every branch that
            reaches an end of the range; a closed one needs a parameter within it.
        step: the longest step along a branch, as a share of the range of the parameter and of that
            of the values.

    Returns:
        A `Trace` with `branches`, `folds` and `at(parameter)`.

    Raises:
        ValueError: if the MDP is too large or an argument is out of range.
        RuntimeError: if a branch cannot be followed.

    Examples:
        >>> from mellowmax import Boltzmann
        >>> from mellowmax.mdp import two_state
        >>> trace = trace_fixed_points(two_state(), Boltzmann, [16.0, 17.0])
        >>> print([round(fold.parameter, 6) for fold in trace.folds])
        [16.495007, 16.77094]
        >>> [len(trace.at(beta)) for beta in (16.49, 16.55, 16.78)]
        [1, 3, 1]
    """
    rule = "a function from a parameter to a Softmax, such as Boltzmann"
    checks.function("family", family, rule)
    levels = checks.numbers("parameters", parameters)
    if (
        levels.ndim != 1
        or len(levels) < 2
        or not (np.isfinite(levels).all() and (np.diff(levels) > 0).all())
    ):
        raise ValueError(f"`parameters` must be two or more increasing numbers, got {parameters}")
    checks.instance("family", family(float(levels[0])), Softmax, rule)
    if not 0 < checks.real("step", step) <= 0.5:
        raise ValueError(f"`step` must be in (0, 0.5], got {step}")
    model = SweepMap.of(mdp)
    ends = Range(float(levels[0]), float(levels[-1]))
    low, high, _ = box(model, *(family(float(level)) for level in levels))
    curve = Curve.of(lambda parameter: model.under(family(parameter)), ends, low, high)
    scaled = ends.level(levels)
    paths: list[tuple[list[Point], bool]] = []
    folds: list[Point] = []
    # From both ends first: what starts there need be followed in one direction only.
    for k in [0, len(levels) - 1, *range(1, len(levels) - 1)]:
        for seed in fixed_points(mdp, family(float(levels[k]))):
            start = curve.scaled(seed.value, levels[k])
            if any(abs(start - point).max() < 1e-6 for path, _ in paths for point in path):
                continue
            path = follow(curve, start, 1 if k < len(levels) - 1 else -1, step)
            if 0 < k < len(levels) - 1 and not path.closed:
                path = path.after(follow(curve, start, -1, step))
            points, turns = with_folds(curve, path)
            folds += turns
            paths.append((_with_levels(curve, points, scaled), path.closed))
    return Trace(
        tuple(_branch(model, curve, path, closed) for path, closed in paths),
        tuple(_fold(model, curve, point) for point in sorted(folds, key=lambda point: point[-1])),
        model,
        family,
        curve,
    )


def _with_levels(curve: Curve, path: list[Point], levels: Floats) -> list[Point]:
    """The path with a point at each level of the parameter that it crosses."""
    result = path[:1]
    for a, b in itertools.pairwise(path):
        inside = [x for x in levels if (x - a[-1]) * (b[-1] - x) > 0]
        for level in inside if b[-1] > a[-1] else inside[::-1]:
            result += crossings(curve, np.stack([a, b]), level)
        result.append(b)
    return result


def _branch(model: SweepMap, curve: Curve, path: list[Point], closed: bool) -> Branch:
    points = np.array(path)
    values = points[:, :-1] * curve.unit
    parameters = np.array([curve.parameter(point) for point in path])
    radii = [
        float(spectral_radius(curve.family(float(p)).linearised(v)[1]))
        for p, v in zip(parameters, values, strict=True)
    ]
    q = model.shown(model.q(values))
    return Branch(read_only(parameters), read_only(q), read_only(values), read_only(radii), closed)


def _fold(model: SweepMap, curve: Curve, point: Point) -> Fold:
    v = point[:-1] * curve.unit
    return Fold(curve.parameter(point), read_only(model.shown(model.q(v))), read_only(v))
