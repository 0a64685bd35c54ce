"""What one sweep does to two action values, all over a plane: figures 5 and 6 of the paper."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from ..._common import checks
from ..._common.shown import shown
from ..._fixed_points.maps import read_only
from ..._typing import ArrayLike, Floats
from ...mdp import MDP
from ...softmax import Softmax
from .find import fixed_points
from .newton import box
from .sweep_map import SweepMap

__all__ = ["VectorField", "vector_field"]

Axes: TypeAlias = tuple[tuple[int, int], tuple[int, int]]


@dataclasses.dataclass(frozen=True, eq=False)
class VectorField:
    """The updates `T q - q` of two action values on a grid, as plotting libraries take them."""

    x: Floats
    """`[N]`, the action value along the first axis."""
    y: Floats
    """`[M]`, the one along the second."""
    dx: Floats
    """`[M, N]`, how a synchronous sweep changes the first."""
    dy: Floats
    """`[M, N]`, and the second."""
    axes: Axes
    """The `(state, action)` of each axis."""


def vector_field(
    mdp: MDP,
    softmax: Softmax,
    *,
    axes: Sequence[Sequence[int]] | None = None,
    ranges: Sequence[Sequence[float]] | None = None,
    resolution: int = 21,
    at: ArrayLike | None = None,
) -> VectorField:
    """The updates of a synchronous sweep on a plane of two action values.

    Args:
        mdp: with at most 2^26 dense transitions.
        softmax: any pair of an operator and its policy.
        axes: the `(state, action)` of the horizontal and of the vertical axis; None for the second
            and the first action of the first state that is not terminal, as in figures 5 and 6.
        ranges: `((x0, x1), (y0, y1))`; None for the values that policies can have.
        resolution: how many points each axis has.
        at: `[S, A]`, where all other action values are held, finite for every action that is
            allowed; None for the lowest fixed point, so that the plane goes through it.

    Returns:
        A `VectorField`.

    Raises:
        ValueError: if the MDP is too large or an argument is out of range.

    Examples:
        >>> from mellowmax import Mellowmax
        >>> from mellowmax.mdp import two_state
        >>> ranges = ((0.0, 1.0), (0.0, 1.0))
        >>> field = vector_field(two_state(), Mellowmax(16.55), ranges=ranges, resolution=3)
        >>> print(field.axes, field.x, field.y)
        ((0, 1), (0, 0)) [0.  0.5 1. ] [0.  0.5 1. ]
        >>> print(field.dx.round(3))
        [[ 0.033 -0.022 -0.037]
         [ 0.478  0.018 -0.037]
         [ 0.963  0.463  0.004]]
    """
    checks.instance("softmax", softmax, Softmax, "a Softmax such as Mellowmax(5.0)")
    resolution = checks.whole("resolution", resolution, 2)
    model = SweepMap.of(mdp)
    (s, a), (t, b) = checked = _axes(mdp, axes)
    (x0, x1), (y0, y1) = (
        _ranges(model, softmax, checked) if ranges is None else _checked_ranges(ranges)
    )
    x, y = np.linspace(x0, x1, resolution), np.linspace(y0, y1, resolution)
    q = np.empty((resolution, *model.rewards.shape))
    q[...] = _lowest(mdp, softmax) if at is None else _held(mdp, at)
    dx, dy = np.empty((2, resolution, resolution))
    q[:, s, a] = x
    for row, height in enumerate(y):
        q[:, t, b] = height
        update = model.q(model.value(softmax, q)) - q
        dx[row], dy[row] = update[:, s, a], update[:, t, b]
    return VectorField(read_only(x), read_only(y), read_only(dx), read_only(dy), checked)


def _axes(mdp: MDP, axes: Sequence[Sequence[int]] | None) -> Axes:
    there = mdp.available
    if axes is None:
        for state in np.flatnonzero(there.sum(1) >= 2):
            first, second = np.flatnonzero(there[state])[:2]
            return (int(state), int(second)), (int(state), int(first))
        raise ValueError("`axes` must be given where no state has two actions, got None")
    array = checks.array("axes", axes)
    if array.shape != (2, 2) or array.dtype.kind not in "iu":
        raise ValueError(f"`axes` must be two pairs (state, action), got {shown(axes)}")
    (s, a), (t, b) = ((int(state), int(action)) for state, action in array)
    for i, k in ((s, a), (t, b)):
        inside = 0 <= i < there.shape[0] and 0 <= k < there.shape[1]
        if not inside or not there[i, k]:
            raise ValueError(
                "`axes` must be actions that are allowed in states that are not terminal, "
                f"got action {k} in state {i}"
            )
    if (s, a) == (t, b):
        raise ValueError(f"`axes` must be two different action values, got ({s}, {a}) twice")
    return (s, a), (t, b)


def _ranges(model: SweepMap, softmax: Softmax, axes: Axes) -> list[tuple[float, float]]:
    """The action values that policies can have, or a unit about the only one."""
    low, high = (model.q(v) for v in box(model, softmax)[:2])
    ends = [(float(low[axis]), float(high[axis])) for axis in axes]
    return [(a, b) if b > a else (a - 0.5, a + 0.5) for a, b in ends]


def _checked_ranges(ranges: Sequence[Sequence[float]]) -> list[tuple[float, float]]:
    array = checks.numbers("ranges", ranges)
    if (
        array.shape != (2, 2)
        or not np.isfinite(array).all()
        or not (array[:, 0] < array[:, 1]).all()
    ):
        raise ValueError(f"`ranges` must be two pairs (low, high) of numbers, got {shown(ranges)}")
    return [(float(a), float(b)) for a, b in array]


def _lowest(mdp: MDP, softmax: Softmax) -> Floats:
    points = fixed_points(mdp, softmax)
    if not points:
        raise ValueError("`at` must be given where no fixed point is found, got None")
    return points[0].q


def _held(mdp: MDP, at: ArrayLike) -> Floats:
    held, shape = checks.numbers("at", at), mdp.probabilities.shape[:2]
    if held.shape != shape:
        raise ValueError(f"`at` must have the shape {shape}, got {held.shape}")
    counts = True if mdp.allowed is None else mdp.allowed
    checks.finite("at", np.where(counts, held, 0.0))
    return held
