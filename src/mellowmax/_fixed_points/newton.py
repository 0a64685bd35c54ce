"""Newton's method, from one start nearby or from many at once in a box.

A step for `v = F(v)` solves `(I - J) step = F(v) - v`.
"""

from __future__ import annotations

import numpy as np

from .._typing import Floats
from .maps import ROUNDING, Map, newton_step

__all__ = ["damped_newton", "undamped_newton"]


def undamped_newton(of: Map, v: Floats) -> tuple[Floats, bool]:
    """The best of Newton's iterates from one start `[D]`.

    Returns:
        The vector, and whether rounding is all that its residual has left.
    """
    best, least, since = v, np.inf, 0
    for _ in range(60):
        residual, jacobian = of.linearised(v)
        size = abs(residual).max()
        best, least, since = (v, size, 0) if size < least else (best, least, since + 1)
        scale = abs(best).max()
        if size <= ROUNDING * scale or (since > 5 and least <= 1e-12 * scale):
            return best, True
        v = v + newton_step(jacobian, residual)
    return best, False


def damped_newton(of: Map, v: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Newton's method from each of many starts `[B, D]`, kept in the box.

    A step is halved until the residual falls, so that it never rises; it ends where no step makes
    it fall: at a fixed point as exact as rounding allows, or at a local minimum of the residual.

    Returns:
        The vectors `[B, D]` and the residual of each, `[B]`, its largest entry.
    """
    v = np.clip(v, low, high)
    residual = of.residual(v)
    size = abs(residual).max(-1)
    active = np.flatnonzero(size > 0)
    for _ in range(60):
        if not len(active):
            break
        step = newton_step(of.linearised(v[active])[1], residual[active])
        moved = np.zeros(len(v), np.bool_)
        waiting, length = np.arange(len(active)), 1.0
        while len(waiting) and length > 1e-4:
            rows = active[waiting]
            trial = np.clip(v[rows] + length * step[waiting], low, high)
            change = of.residual(trial)
            falls = abs(change).max(-1) < (1 - length / 100) * size[rows]
            better = rows[falls]
            v[better], residual[better] = trial[falls], change[falls]
            size[better], moved[better] = abs(change[falls]).max(-1), True
            waiting, length = waiting[~falls], length / 2
        active = np.flatnonzero(moved & (size > 0))
    return v, size
