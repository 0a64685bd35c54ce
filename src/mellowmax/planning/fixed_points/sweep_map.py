"""The sweep as a map of state values, with its Jacobian, in dense NumPy arrays.

Planning under a softmax `f` repeats `T q = r + discount * P f(q)`. Its fixed points are those of a
smaller map, of state values: `v = f(q(v))` with `q(v) = r + discount * P v`. The Jacobian of that
map is `J(v) = discount * sum_a W(s, a) P(s, a, :)` with the gradient `W` of the softmax at `q(v)`,
and has, but for zeros, the eigenvalues of the Jacobian of `T` at `q(v)`.

A fixed point is stable where the spectral radius of `J` is below 1. Its index is the sign of
`det(I - J)`; the indices of all fixed points sum to +1 unless one of them is degenerate, since the
sweep maps a box of state values into itself (the degree of `v - f(q(v))`).

One MDP at many state values, and many MDPs at one value each, are the same formulas: the search
for the fixed points of one MDP and the search in a whole batch of MDPs both use this module.
"""

from __future__ import annotations

import dataclasses
import importlib
from typing import Self

import numpy as np
import numpy.typing as npt

from ..._common import checks
from ..._typing import Bools, Floats, Integers
from ...mdp import MDP
from ...softmax import Softmax

__all__ = [
    "SAME_POINT",
    "SWEEP_ROUNDING",
    "SweepMap",
    "index_of",
    "newton_step",
    "read_only",
    "spectral_radius",
]

SWEEP_ROUNDING = 64 * float(np.finfo(np.float64).eps)
"""How much rounding may change a sweep, relative to the largest value."""
SAME_POINT = 1e-7
"""The distance, relative to the largest value, up to which two fixed points are taken for one."""
_MOST_ENTRIES = 2**26  # of dense transitions: half a gigabyte
_ARNOLDI_FROM = 300  # states from which all eigenvalues take much longer than the largest one


@dataclasses.dataclass(frozen=True, eq=False)
class SweepMap:
    """The arrays of a sweep, of one MDP or of N MDPs of one size.

    Of one MDP, state values can have any leading axes: `[..., S]`. Of N MDPs, each has its own
    state values: `[N, S]`. Action values are `[..., S, A]` or `[N, S, A]`.
    """

    rewards: Floats  # [S, A] or [N, S, A]
    flow: Floats  # [S, A, S] or [N, S, A, S], transitions times the discount
    allowed: Bools | None  # [S, A] or [N, S, A]

    @classmethod
    def of(cls, mdp: MDP) -> Self:
        """The map of one MDP.

        Raises:
            ValueError: for an MDP that is too large for dense arrays.
        """
        checks.instance("mdp", mdp, MDP, "an MDP")
        entries = mdp.n_states * mdp.n_actions * mdp.n_states
        if entries > _MOST_ENTRIES:
            raise ValueError(
                f"`mdp` must have at most {_MOST_ENTRIES} dense transitions (states * actions * "
                f"states) here, got {entries}; `solve` takes larger ones"
            )
        transitions, rewards = mdp.to_numpy()
        return cls(rewards, mdp.discount * transitions, mdp.allowed)

    def __getitem__(self, chosen: Integers) -> Self:
        """Some of N MDPs."""
        allowed = None if self.allowed is None else self.allowed[chosen]
        return type(self)(self.rewards[chosen], self.flow[chosen], allowed)

    def q(self, v: Floats) -> Floats:
        """`q(v) = r + discount * P v`."""
        n_states, n_actions = self.rewards.shape[-2:]
        rows = self.flow.reshape(*self.flow.shape[:-3], -1, n_states)
        # One matrix product for all the values of one MDP, or a product for each of N MDPs.
        expected = v @ rows.T if rows.ndim == 2 else rows @ v[..., None]
        return self.rewards + expected.reshape(*v.shape[:-1], n_states, n_actions)

    def shown(self, q: Floats) -> Floats:
        """Action values as a caller gets them: -inf for an action that is not allowed."""
        return q if self.allowed is None else np.where(self.allowed, q, -np.inf)

    def value(self, softmax: Softmax, q: Floats) -> Floats:
        """`f(q)`, one value for each state."""
        return np.asarray(softmax.value(q, where=self.allowed), np.float64)

    def residual(self, softmax: Softmax, v: Floats) -> Floats:
        """`f(q(v)) - v`: how a sweep changes the state values."""
        return self.value(softmax, self.q(v)) - v

    def jacobian(self, softmax: Softmax, q: Floats) -> Floats:
        """`J(v)` from the action values `q = q(v)`, `[..., S, S]`."""
        weights = np.asarray(softmax.gradient(q, where=self.allowed), np.float64)
        return np.asarray(np.einsum("...sa,...sat->...st", weights, self.flow))


def newton_step(jacobian: Floats, residual: Floats) -> Floats:
    """Solve `(I - J) step = residual`, for each of many."""
    matrix = np.eye(jacobian.shape[-1]) - jacobian
    try:
        return np.asarray(np.linalg.solve(matrix, residual[..., None])[..., 0], np.float64)
    except np.linalg.LinAlgError:  # one is singular to the last bit: any long step will do there
        shifted = matrix + SWEEP_ROUNDING * np.eye(jacobian.shape[-1])
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
