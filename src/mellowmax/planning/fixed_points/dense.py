"""The sweep as a map of state values, with its Jacobian: dense NumPy, for whole batches.

Planning under a softmax `f` repeats `T q = r + discount * P f(q)`. Its fixed points are those of a
smaller map, of state values: `v = f(q(v))` with `q(v) = r + discount * P v`. The Jacobian of that
map is `J(v) = discount * sum_a W(s, a) P(s, a, :)` with the gradient `W` of the softmax at `q(v)`,
and has, but for zeros, the eigenvalues of the Jacobian of `T` at `q(v)`.

A softmax is an average of action values, so that it lies between their minimum and their maximum.
Both of these give monotone sweeps with one fixed point each, and every fixed point of `f` lies
between the two: in a box that the sweep maps into itself.
"""

from __future__ import annotations

import dataclasses
import importlib
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ...mdp import MDP
from ...softmax import Max, Mellowmax, Softmax

__all__ = [
    "Dense",
    "Floats",
    "frozen",
    "newton",
    "newton_step",
    "only_fixed_point",
    "spectral_radius",
]

Floats = npt.NDArray[np.float64]

ENTRIES = 2**26
"""The most entries that dense transitions may have: half a gigabyte."""
ROUNDING = 64 * float(np.finfo(np.float64).eps)
"""What rounding may do to a sweep, relative to the largest value."""
_ARNOLDI_FROM = 300  # states from which all eigenvalues take much longer than the largest one


@dataclasses.dataclass(frozen=True, eq=False)
class Dense:
    """An MDP as sweeps use it here; state values are `[..., S]`, action values `[..., S, A]`."""

    rewards: Floats  # [S, A]
    flow: Floats  # [S, A, S], transitions times the discount
    allowed: npt.NDArray[np.bool_] | None  # [S, A]
    terminal: npt.NDArray[np.bool_]  # [S]

    @classmethod
    def of(cls, mdp: MDP) -> Self:
        """The dense form of an MDP.

        Raises:
            ValueError: for an MDP that is too large for it.
        """
        entries = mdp.n_states * mdp.n_actions * mdp.n_states
        if entries > ENTRIES:
            raise ValueError(
                f"`mdp` must have at most {ENTRIES} dense transitions (states * actions * states) "
                f"here, got {entries}; `solve` takes larger ones"
            )
        transitions, rewards = mdp.to_numpy()
        return cls(rewards, mdp.discount * transitions, mdp.allowed, mdp.terminal)

    def q(self, v: Floats) -> Floats:
        """`r + discount * P v`."""
        n_states, n_actions = self.rewards.shape
        flat = v @ self.flow.reshape(-1, n_states).T
        return self.rewards + flat.reshape(*v.shape[:-1], n_states, n_actions)

    def value(self, softmax: Softmax, q: Floats) -> Floats:
        """`f(q)`, one value for each state."""
        return np.asarray(softmax.value(q, where=self.allowed), np.float64)

    def residual(self, softmax: Softmax, v: Floats) -> Floats:
        """`f(q(v)) - v`: what a sweep changes."""
        return self.value(softmax, self.q(v)) - v

    def jacobian(self, softmax: Softmax, v: Floats) -> Floats:
        """`J(v)`, `[..., S, S]`."""
        weights = np.asarray(softmax.gradient(self.q(v), where=self.allowed), np.float64)
        return np.asarray(np.einsum("...sa,sat->...st", weights, self.flow))

    def box(self) -> tuple[Floats, Floats]:
        """The lowest and the highest value that any policy gives each state."""
        return only_fixed_point(self, Mellowmax(-np.inf)), only_fixed_point(self, Max())


def newton_step(jacobian: Floats, residual: Floats) -> Floats:
    """Solve `(I - J) step = residual` for each of a batch."""
    matrix = np.eye(jacobian.shape[-1]) - jacobian
    try:
        return np.asarray(np.linalg.solve(matrix, residual[..., None])[..., 0], np.float64)
    except np.linalg.LinAlgError:  # one is singular to the last bit: any long step will do there
        shifted = matrix + ROUNDING * np.eye(jacobian.shape[-1])
        return np.asarray(np.linalg.solve(shifted, residual[..., None])[..., 0], np.float64)


def only_fixed_point(model: Dense, softmax: Softmax) -> Floats:
    """The state values of the one fixed point of a softmax that is a non-expansion, `[S]`.

    Newton's method, which for a maximum is policy iteration and converges from anywhere for every
    convex or concave softmax. For others, sweeps, which contract, bring what is left of the way.
    """
    v = np.zeros(len(model.rewards))
    for sweeps in (0, 100, 1_000, 10_000):
        for _ in range(sweeps):
            v = v + model.residual(softmax, v)
        v, done = _undamped_newton(model, softmax, v)
        if done:
            break
    return v


def _undamped_newton(model: Dense, softmax: Softmax, v: Floats) -> tuple[Floats, bool]:
    """The best of Newton's iterates, and whether rounding is all that its residual has left."""
    best, least, since = v, np.inf, 0
    for _ in range(60):
        residual = model.residual(softmax, v)
        size = abs(residual).max()
        best, least, since = (v, size, 0) if size < least else (best, least, since + 1)
        scale = abs(best).max()
        if size <= ROUNDING * scale or (since > 5 and least <= 1e-12 * scale):
            return best, True
        v = v + newton_step(model.jacobian(softmax, v), residual)
    return best, False


def newton(
    model: Dense, softmax: Softmax, v: Floats, low: Floats, high: Floats, *, iterations: int = 60
) -> tuple[Floats, Floats]:
    """Newton's method from each of a batch of starts `[B, S]`, kept in the box.

    A step is halved until the residual falls, so that it never rises; it ends where no step makes
    it fall: at a fixed point as exact as rounding allows, or at a local minimum of the residual.

    Returns:
        The values `[B, S]` and the residual of each, `[B]`, its largest entry.
    """
    v = np.clip(v, low, high)
    residual = model.residual(softmax, v)
    size = abs(residual).max(-1)
    active = np.flatnonzero(size > 0)
    for _ in range(iterations):
        if not len(active):
            break
        step = newton_step(model.jacobian(softmax, v[active]), residual[active])
        moved = np.zeros(len(v), np.bool_)
        waiting, length = np.arange(len(active)), 1.0
        while len(waiting) and length > 1e-4:
            rows = active[waiting]
            trial = np.clip(v[rows] + length * step[waiting], low, high)
            change = model.residual(softmax, trial)
            falls = abs(change).max(-1) < (1 - length / 100) * size[rows]
            better = rows[falls]
            v[better], residual[better] = trial[falls], change[falls]
            size[better], moved[better] = abs(change[falls]).max(-1), True
            waiting, length = waiting[~falls], length / 2
        active = np.flatnonzero(moved & (size > 0))
    return v, size


def spectral_radius(jacobian: Floats) -> float:
    """The largest absolute eigenvalue."""
    if len(jacobian) >= _ARNOLDI_FROM:
        linalg = importlib.import_module("scipy.sparse.linalg")
        start = np.ones(len(jacobian))  # not a random one, so that results repeat
        try:
            return float(abs(linalg.eigs(jacobian, 4, v0=start, return_eigenvectors=False)).max())
        except linalg.ArpackError:  # it did not converge: the slow way does
            pass
    return float(abs(np.linalg.eigvals(jacobian)).max())


def frozen(array: Any) -> Floats:
    """A read-only copy."""
    copy = np.array(array, np.float64)
    copy.flags.writeable = False
    return copy
