"""Newton's method for the fixed points of one MDP, and the box of values that holds them all.

A step of Newton's method for `v = f(q(v))` solves `(I - J) step = f(q(v)) - v`. Where `f` is the
maximum that is policy iteration: `I - J` belongs to the greedy policy, and the step goes to the
value of it.

A softmax is an average of action values, so that it lies between their minimum and their maximum.
Both of these give monotone sweeps with one fixed point each, and every fixed point of `f` lies
between the two: in a box that the sweep maps into itself.
"""

from __future__ import annotations

import numpy as np

from ..._fixed_points.maps import ROUNDING, newton_step
from ..._typing import Floats
from ...softmax import Max, Mellowmax, Softmax
from .sweep_map import SweepMap

__all__ = ["EXTREMES", "box", "only_fixed_point"]

EXTREMES: tuple[Softmax, Softmax] = (Mellowmax(-np.inf), Max())
"""The minimum and the maximum, whose fixed points are the ends of the box."""


def box(model: SweepMap) -> tuple[Floats, Floats]:
    """The lowest and the highest value that any policy gives each state, `[S]`."""
    lowest, highest = (only_fixed_point(model, extreme) for extreme in EXTREMES)
    return lowest, highest


def only_fixed_point(model: SweepMap, softmax: Softmax) -> Floats:
    """The state values of the one fixed point of a softmax that is a non-expansion, `[S]`.

    Newton's method converges from anywhere for every convex or concave softmax. For others it is
    tried again after more and more sweeps, which contract and so lead near to the fixed point.
    """
    v = np.zeros(len(model.rewards))
    for sweeps in (0, 100, 1_000, 10_000):
        for _ in range(sweeps):
            v = v + model.residual(softmax, v)
        v, done = _undamped_newton(model, softmax, v)
        if done:
            break
    return v


def _undamped_newton(model: SweepMap, softmax: Softmax, v: Floats) -> tuple[Floats, bool]:
    """The best of Newton's iterates, and whether rounding is all that its residual has left."""
    best, least, since = v, np.inf, 0
    for _ in range(60):
        q = model.q(v)
        residual = model.value(softmax, q) - v
        size = abs(residual).max()
        best, least, since = (v, size, 0) if size < least else (best, least, since + 1)
        scale = abs(best).max()
        if size <= ROUNDING * scale or (since > 5 and least <= 1e-12 * scale):
            return best, True
        v = v + newton_step(model.jacobian(softmax, q), residual)
    return best, False
