"""A map of vectors with its Jacobian, and what the Jacobian says of a fixed point.

A fixed point is stable where the spectral radius of the Jacobian `J` is below 1: repeating the map
from nearby leads to it. Its index is the sign of `det(I - J)`. Where the map takes a box into
itself, the indices of all fixed points sum to +1 unless one of them is degenerate (the degree of
`v - F(v)`).
"""

from __future__ import annotations

import importlib
from typing import Protocol

import numpy as np
import numpy.typing as npt

from .._typing import Floats, Integers

__all__ = [
    "ROUNDING",
    "SAME_POINT",
    "Map",
    "index_of",
    "newton_step",
    "read_only",
    "spectral_radius",
]

ROUNDING = 64 * float(np.finfo(np.float64).eps)
"""How much rounding may change the result of a map, relative to its largest value."""
SAME_POINT = 1e-7
"""The distance, relative to the largest value, up to which two fixed points are taken for one."""
_ARNOLDI_FROM = 300  # unknowns from which all eigenvalues take much longer than the largest one


class Map(Protocol):
    """A map `F` of vectors to vectors of the same length, at any number of them: `[..., D]`."""

    @property
    def regular(self) -> bool:
        """Is it proved that `det(I - J)` is positive everywhere?"""

    def residual(self, v: Floats) -> Floats:
        """`F(v) - v`, `[..., D]`: 0 at a fixed point."""

    def linearised(self, v: Floats) -> tuple[Floats, Floats]:
        """The residual, and the Jacobian `J` of `F`, `[..., D, D]`."""


def newton_step(jacobian: Floats, residual: Floats) -> Floats:
    """Solve `(I - J) step = residual`, for each of many."""
    matrix = np.eye(jacobian.shape[-1]) - jacobian
    try:
        return np.asarray(np.linalg.solve(matrix, residual[..., None])[..., 0], np.float64)
    except np.linalg.LinAlgError:  # one is singular to the last bit: any long step will do there
        shifted = matrix + ROUNDING * np.eye(jacobian.shape[-1])
        return np.asarray(np.linalg.solve(shifted, residual[..., None])[..., 0], np.float64)


def index_of(jacobian: Floats) -> Integers:
    """The sign of `det(I - J)`, one for each Jacobian."""
    return np.asarray(np.linalg.slogdet(np.eye(jacobian.shape[-1]) - jacobian)[0], np.int32)


def spectral_radius(jacobian: Floats) -> Floats:
    """The largest absolute eigenvalue, one for each Jacobian."""
    if jacobian.ndim == 2 and len(jacobian) >= _ARNOLDI_FROM:
        linalg = importlib.import_module("scipy.sparse.linalg")
        start = np.ones(len(jacobian))  # not a random one, so that results repeat
        try:
            largest = linalg.eigs(jacobian, 4, v0=start, return_eigenvectors=False)
            return np.asarray(abs(largest).max(), np.float64)
        except linalg.ArpackError:  # it did not converge: the slow way does
            pass
    return np.asarray(abs(np.linalg.eigvals(jacobian)).max(-1), np.float64)


def read_only(array: npt.ArrayLike) -> Floats:
    """A read-only copy."""
    copy = np.array(array, np.float64)
    copy.flags.writeable = False
    return copy
