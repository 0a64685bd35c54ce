"""BiCGSTAB with symmetric Gauss-Seidel sweeps, for sparse matrices that are large and not banded.

A sweep of Gauss-Seidel's method goes through the states in their order and takes the new values of
those before; the symmetric one then goes back. Values travel along the numbering of the states as
far as the model lets them, where a product with `J` carries them one step. So a sweep solves models
whose states lead upwards only, such as life cycles, and those that lead down from a few states,
such as replacement; for others it is a preconditioner of BiCGSTAB (van der Vorst 1992). The
branches of all actions that lead from a state to the same one are one entry of the matrix.

With the rows scaled to a diagonal of 1, the matrix is `I - L - U` with triangles `L` and `U`, and
the unknowns are `y = (I - U) x`. As `I - L - U = (I - L) + (I - U) - I`, the product that BiCGSTAB
needs is `x + (I - L)^-1 (y - x)` with `x = (I - U)^-1 y`: a sweep down and one up, and no product
with the matrix itself (Eisenstat 1981).

**The sweep itself.** The entries of a triangle have to be taken one after the other. SciPy has no
public function for that which is fast: `spsolve_triangular` and SuperLU's triangles take two to
three times as long to solve, and SuperLU ten times as long to set up. XLA takes a hundred times as
long with a loop over the states, and with levels of states that do not depend on each other it
gains nothing on a chain, which has as many levels as states. Numba and pyamg are fast, and would be
needed for this alone. SciPy's own product of a sparse matrix and a vector goes through the rows in
order, and adds to a vector that may be its own factor: then it is the sweep (`private_names`). If a
version of SciPy no longer does that, SuperLU's triangles are used, which are slower.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.sparse import csc_array, csr_array
from scipy.sparse.linalg import splu

from ..._common.private_names import rows_in_place
from ..._typing import Floats, Integers
from .entries import Entries, Weights, row_starts
from .form import LEFT, Form

__all__ = ["GaussSeidel", "Pattern", "SlowError", "Sweeps", "Triangle", "bicgstab"]

Indices: TypeAlias = npt.NDArray[np.integer[Any]]

MOST_STEPS = 300
"""The most steps of BiCGSTAB for a system."""
FEW_STEPS = 2
"""The most steps where a sweep itself is nearly the solution."""


class SlowError(Exception):
    """A system would take more steps than were allowed for."""


class Pattern(NamedTuple):
    """Where a sparse matrix has entries, row by row, and which of them are in which triangle."""

    starts: Integers  # [S + 1], where each row begins
    columns: Integers  # [N]
    rows: Integers  # [N]
    diagonal: Indices  # which of the N are on the diagonal
    lower: Triangle
    upper: Triangle

    @classmethod
    def of(cls, starts: Integers, columns: Integers) -> Self:
        """The pattern of rows whose columns ascend."""
        n = len(starts) - 1
        rows = np.repeat(np.arange(n, dtype=np.int32), np.diff(starts))
        below, above = (np.flatnonzero(side) for side in (columns < rows, columns > rows))
        above = above[::-1]  # the upper triangle backwards, as if it were a lower one
        lower = Triangle.of(below, rows[below], columns[below], n)
        upper = Triangle.of(above, n - 1 - rows[above], n - 1 - columns[above], n)
        return cls(starts, columns, rows, np.flatnonzero(columns == rows), lower, upper)


class Triangle(NamedTuple):
    """The entries of a matrix below the diagonal, row by row."""

    entries: Indices  # which of those of the whole matrix
    starts: Integers  # [S + 1], where each row begins
    columns: Integers

    @classmethod
    def of(cls, entries: Indices, rows: Integers, columns: Integers, n: int) -> Self:
        """The triangle of entries that are in the order of their rows."""
        return cls(entries, row_starts(rows, n), columns.astype(np.int32))


@dataclasses.dataclass(frozen=True, eq=False)
class GaussSeidel(Form):
    """A sparse matrix with one entry for all branches from one state to another."""

    exact = False

    entries: Entries
    discount: float
    most_steps: int = MOST_STEPS
    """The most steps of BiCGSTAB for a system; with fewer than usual, `SlowError` is raised."""

    @property
    def words(self) -> str:
        """What it is called in the reason of a solution."""
        return "its linear systems are solved by BiCGSTAB with Gauss-Seidel sweeps"

    def if_nearly_exact(self) -> Self:
        """The form that raises `SlowError` unless a sweep is nearly the solution."""
        return dataclasses.replace(self, most_steps=FEW_STEPS)

    def factors(self, weights: Weights) -> Sweeps:
        """The matrix, ready for sweeps."""
        few = self.entries.few(weights)
        if few is None:
            values = self.entries.merged.values(weights)
            return Sweeps(self._whole, self.discount * values, self.most_steps)
        n = len(weights)
        matrix = csr_array((few.values, few.columns, row_starts(few.rows, n)), (n, n))
        matrix.sum_duplicates()
        pattern = Pattern.of(matrix.indptr, matrix.indices)
        return Sweeps(pattern, self.discount * matrix.data, self.most_steps)

    @functools.cached_property
    def _whole(self) -> Pattern:
        merged = self.entries.merged
        return Pattern.of(merged.starts, merged.columns)


class Sweeps:
    """The matrix `I - J`, by the entries of `J`."""

    def __init__(self, pattern: Pattern, values: Floats, most_steps: int) -> None:
        n = len(pattern.starts) - 1
        self.matrix = csr_array((values, pattern.columns, pattern.starts), (n, n))
        self.most_steps = most_steps
        diagonal = np.ones(n)
        diagonal[pattern.rows[pattern.diagonal]] -= values[pattern.diagonal]
        self.inverse = 1 / diagonal
        scaled = values * self.inverse[pattern.rows]
        self._go_down = _sweep(pattern.lower, scaled)
        self._go_up = _sweep(pattern.upper, scaled)

    def solve(self, b: Floats, transposed: bool = False, left: float = LEFT) -> Floats:
        """`x` with `(I - J) x = b`, up to a residual that is a small part of `b`.

        Raises:
            SlowError: where that takes too many steps.
        """
        if transposed:
            return self._transposed.solve(b, left=left)
        y, done = bicgstab(self.between, self.down(b * self.inverse), left, self.most_steps)
        if not done and self.most_steps < MOST_STEPS:
            raise SlowError
        return self.up(y)

    def down(self, b: Floats) -> Floats:
        """`(I - L)^-1 b`, by a sweep through the states."""
        x = b.copy()
        self._go_down(x)
        return x

    def up(self, b: Floats) -> Floats:
        """`(I - U)^-1 b`, by a sweep back."""
        backwards = b[::-1].copy()
        self._go_up(backwards)
        return backwards[::-1]

    def between(self, y: Floats) -> Floats:
        """`(I - L)^-1 (I - L - U) (I - U)^-1 y`, the product between a sweep down and one up."""
        x = self.up(y)
        return x + self.down(y - x)

    @functools.cached_property
    def _transposed(self) -> Sweeps:
        matrix = self.matrix.T.tocsr()
        matrix.sort_indices()
        return Sweeps(Pattern.of(matrix.indptr, matrix.indices), matrix.data, self.most_steps)


def _sweep(triangle: Triangle, values: Floats) -> Callable[[Floats], object]:
    """A function that solves `(I - T) x = b` for a triangle, `b` and then `x` in one array."""
    entries = values[triangle.entries]
    n = len(triangle.starts) - 1
    in_place = rows_in_place()
    if in_place is not None:
        return functools.partial(in_place, triangle.starts, triangle.columns, entries)
    matrix = csr_array((-entries, triangle.columns, triangle.starts), (n, n)).tolil()
    matrix.setdiag(1.0)
    solve = splu(csc_array(matrix), permc_spec="NATURAL", diag_pivot_thresh=0.0).solve

    def sweep(x: Floats) -> None:
        x[:] = solve(x)

    return sweep


def bicgstab(
    product: Callable[[Floats], Floats], b: Floats, left: float, most_steps: int
) -> tuple[Floats, bool]:
    """BiCGSTAB's solution, and whether it leaves as little of `b` as asked.

    If it has gone astray, `b` itself is the solution that is returned.
    """
    x, r, p, v = np.zeros_like(b), b, np.zeros_like(b), np.zeros_like(b)
    rho = alpha = omega = 1.0
    size = _dot(b, b)
    target, rest = left**2 * size, size
    for _ in range(most_steps):
        if not rest > target:
            break
        rho, before = _dot(b, r), rho
        p = r + _ratio(rho, before) * _ratio(alpha, omega) * (p - omega * v)
        v = product(p)
        alpha = _ratio(rho, _dot(b, v))
        s = r - alpha * v
        t = product(s)
        omega = _ratio(_dot(t, s), _dot(t, t))
        x = x + alpha * p + omega * s
        r = s - omega * t
        rest = _dot(r, r)
    return (x if rest <= size else b), bool(rest <= target)


def _dot(x: Floats, y: Floats) -> float:
    """The inner product on one thread: BLAS's threads wait for each other on a busy machine."""
    return float(np.einsum("i,i->", x, y))


def _ratio(x: float, y: float) -> float:
    return x / y if y else 0.0
