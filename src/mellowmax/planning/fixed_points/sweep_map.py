"""The sweep as a map of state values, with its Jacobian, in dense NumPy arrays.

Planning under a softmax `f` repeats `T q = r + discount * P f(q)`. Its fixed points are those of a
smaller map, of state values: `v = f(q(v))` with `q(v) = r + discount * P v`. The Jacobian of that
map is `J(v) = discount * sum_a W(s, a) P(s, a, :)` with the gradient `W` of the softmax at `q(v)`,
and has, but for zeros, the eigenvalues of the Jacobian of `T` at `q(v)`.

The sweep maps a box of state values into itself, so that the indices of all fixed points sum to +1
unless one of them is degenerate.

One MDP at many state values, and many MDPs at one value each, are the same formulas: the search
for the fixed points of one MDP and the search in a whole batch of MDPs both use this module.
"""

from __future__ import annotations

import dataclasses
from typing import Self

import numpy as np

from ..._common import checks
from ..._typing import Bools, Floats, Integers
from ...mdp import MDP
from ...softmax import Softmax

__all__ = ["Sweep", "SweepMap"]

_MOST_ENTRIES = 2**26  # of dense transitions: half a gigabyte


@dataclasses.dataclass(frozen=True, eq=False)
class SweepMap:
    """The arrays of a sweep, of one MDP or of N MDPs of one size.

    Of one MDP, state values can have any leading axes: `[..., S]`. Of N MDPs, each has its own
    state values: `[N, S]`. Action values are `[..., S, A]` or `[N, S, A]`.
    """

    rewards: Floats  # [S, A] or [N, S, A]
    flow: Floats  # [S, A, S] or [N, S, A, S], transitions times the discount
    allowed: Bools | None  # [S, A] or [N, S, A]
    terminal: Bools  # [S] or [N, S]

    @classmethod
    def of(cls, mdp: MDP) -> Self:
        """The map of one MDP.

        Raises:
            ValueError: for an MDP that is too large for dense arrays.
        """
        checks.instance("mdp", mdp, MDP, "an MDP")
        mdp.check_ends()
        entries = mdp.n_states * mdp.n_actions * mdp.n_states
        if entries > _MOST_ENTRIES:
            raise ValueError(
                f"`mdp` must have at most {_MOST_ENTRIES} dense transitions (states * actions * "
                f"states) here, got {entries}; `solve` takes larger ones"
            )
        transitions, rewards = mdp.to_numpy()
        return cls(rewards, mdp.discount * transitions, mdp.allowed, mdp.terminal)

    def __getitem__(self, chosen: Integers) -> Self:
        """Some of N MDPs."""
        allowed = None if self.allowed is None else self.allowed[chosen]
        return type(self)(self.rewards[chosen], self.flow[chosen], allowed, self.terminal[chosen])

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
        """`f(q)`, one value for each state: 0 for a terminal one, as in `bellman`."""
        value = np.asarray(softmax.value(q, where=self.allowed), np.float64)
        return value if softmax.attained else np.where(self.terminal, 0.0, value)

    def residual(self, softmax: Softmax, v: Floats) -> Floats:
        """`f(q(v)) - v`: how a sweep changes the state values."""
        return self.value(softmax, self.q(v)) - v

    def jacobian(self, softmax: Softmax, q: Floats) -> Floats:
        """`J(v)` from the action values `q = q(v)`, `[..., S, S]`."""
        weights = np.asarray(softmax.gradient(q, where=self.allowed), np.float64)
        return np.asarray(np.einsum("...sa,...sat->...st", weights, self.flow))

    def under(self, softmax: Softmax) -> Sweep:
        """The sweep under a softmax."""
        return Sweep(self, softmax)


@dataclasses.dataclass(frozen=True, eq=False)
class Sweep:
    """The sweep of one MDP under one softmax: a map of state values."""

    model: SweepMap
    softmax: Softmax

    @property
    def regular(self) -> bool:
        """Is the softmax a non-expansion, so that the map is a contraction?"""
        return self.softmax.non_expansion

    def residual(self, v: Floats) -> Floats:
        """`f(q(v)) - v`."""
        return self.model.residual(self.softmax, v)

    def linearised(self, v: Floats) -> tuple[Floats, Floats]:
        """`f(q(v)) - v` and `J(v)`."""
        q = self.model.q(v)
        return self.model.value(self.softmax, q) - v, self.model.jacobian(self.softmax, q)
