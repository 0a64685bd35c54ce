"""The responses to a profile, by a softmax: the map whose fixed points are equilibria.

Each player has a value for each action, and plays the softmax's policy for them. The profile gives
every action of every player an expected payoff, its new value: `F(v) = U(policy(v))`. A fixed point
is a quantal response equilibrium (McKelvey and Palfrey, 1995; for mellowmax, section 8 of the
paper asks for it). The Jacobian is `U' policy'`.

Payoffs are centred: the mean over a player's own actions is subtracted for every choice of the
others. A policy moves with differences of values alone, so that this changes no equilibrium, and it
keeps the digits of nearly tied actions.

Players are padded to the same number of actions `A`, so that one call makes all their policies, and
vectors have `D = N * A` entries. One game at many vectors, and many games at one each, are the same
formulas: every array can have leading axes.
"""

from __future__ import annotations

import dataclasses
import functools
import string
from types import EllipsisType
from typing import Self

import numpy as np

from .._typing import Bools, Floats, Integers, Shape
from ..softmax import Softmax
from .game import Game
from .policy_jacobian import policy_and_jacobian

__all__ = ["Payoffs", "Response"]


@dataclasses.dataclass(frozen=True, eq=False)
class Payoffs:
    """The centred payoffs of a game, or of many games of one size."""

    array: Floats
    """`[..., N, A, ..., A]`: the players, and the actions of each."""
    shape: Shape
    """The number of actions of each player."""
    low: Floats
    """The least payoff of each action, `[..., D]`."""
    high: Floats
    """The largest payoff of each action, `[..., D]`."""

    @classmethod
    def of(cls, game: Game) -> Self:
        """The payoffs of one game."""
        return cls.padded(game.payoffs)

    @classmethod
    def padded(cls, payoffs: tuple[Floats, ...]) -> Self:
        """From an array `[..., n_1, ..., n_N]` for each player."""
        n = len(payoffs)
        shape, most = payoffs[0].shape[-n:], max(payoffs[0].shape[-n:])
        arrays, low, high = [], [], []
        for i, payoff in enumerate(payoffs):
            centred = payoff - payoff.mean(axis=i - n, keepdims=True)
            others = tuple(j - n for j in range(n) if j != i)
            arrays.append(_padded(centred, n, most))
            low.append(_padded(centred.min(axis=others), 1, most))
            high.append(_padded(centred.max(axis=others), 1, most))
        ends = (np.concatenate(end, axis=-1) for end in (low, high))
        return cls(np.stack(arrays, axis=-n - 1), shape, *ends)

    def __getitem__(self, which: Integers) -> Self:
        """Some of the games."""
        some = type(self)(self.array[which], self.shape, self.low[which], self.high[which])
        if len(self.shape) == 2:  # it is made once
            some.__dict__["_of_two"] = self._of_two[which]
        return some

    @functools.cached_property
    def size(self) -> Floats:
        """The largest payoff of each game, `[...]`."""
        return np.asarray(np.maximum(-self.low, self.high).max(-1))

    @functools.cached_property
    def allowed(self) -> Bools | None:
        """`[N, A]`: is there such an action? None if all players have as many."""
        if len(set(self.shape)) == 1:
            return None
        return np.asarray(np.arange(max(self.shape)) < np.array(self.shape)[:, None])

    def rows(self, v: Floats) -> Floats:
        """The entries of vectors player by player, `[..., N, A]`."""
        return v.reshape(*v.shape[:-1], len(self.shape), max(self.shape))

    def pairs(self, profile: Floats) -> Floats:
        """What player i's action a gets on average where j takes b, `[..., D, D]`.

        Every other player than these two plays the profile `[..., N, A]`.
        """
        return self._of_two if len(self.shape) == 2 else self._of_more(profile)

    def values(self, profile: Floats, pairs: Floats | None = None) -> Floats:
        """`U`: what each action pays on average, `[..., D]`, from a profile and its `pairs`."""
        pairs = self.pairs(profile) if pairs is None else pairs
        flat = profile.reshape(*profile.shape[:-2], -1)
        # Each of the other players alone says what an action pays: all say the same.
        return np.asarray((pairs @ flat[..., None])[..., 0] / (len(self.shape) - 1))

    @functools.cached_property
    def uniform(self) -> Floats:
        """The profile in which all play at random, `[N, A]`."""
        there = np.arange(max(self.shape)) < np.array(self.shape)[:, None]
        return np.asarray(there / np.array(self.shape)[:, None])

    @functools.cached_property
    def _of_two(self) -> Floats:
        row, column = self.array[..., 0, :, :], np.swapaxes(self.array[..., 1, :, :], -1, -2)
        zero = np.zeros_like(row)
        return np.block([[zero, row], [column, zero]])

    def _of_more(self, profile: Floats) -> Floats:
        n, most = len(self.shape), max(self.shape)
        letters = string.ascii_lowercase[:n]
        lead = np.broadcast_shapes(profile.shape[:-2], self.array.shape[: -n - 1])
        result = np.zeros((*lead, n, most, n, most))
        for i in range(n):
            own = np.take(self.array, i, axis=-n - 1)
            for j in range(n):
                if j != i:
                    rest = [k for k in range(n) if k not in (i, j)]
                    terms = "".join(f",...{letters[k]}" for k in rest)
                    form = f"...{letters}{terms}->...{letters[i]}{letters[j]}"
                    parts = (profile[..., k, :] for k in rest)
                    result[..., i, :, j, :] = np.einsum(form, own, *parts)
        return result.reshape(*lead, n * most, n * most)


def _padded(array: Floats, n: int, most: int) -> Floats:
    """An array with zeros in its last n axes up to a size."""
    lead, last = array.shape[:-n], array.shape[-n:]
    result = np.zeros((*lead, *[most] * n))
    place: tuple[EllipsisType | slice, ...] = (..., *map(slice, last))
    result[place] = array
    return result


@dataclasses.dataclass(frozen=True, eq=False)
class Response:
    """The response of softmax players to action values: a map of vectors, `[..., D]`."""

    payoffs: Payoffs
    softmax: Softmax
    regular: bool = False

    def policy(self, v: Floats) -> Floats:
        """The profile of action values, `[..., N, A]`."""
        rows = self.payoffs.rows(v)
        return np.asarray(self.softmax.policy(rows, where=self.payoffs.allowed))

    def log_policy(self, v: Floats) -> Floats:
        """The logarithms of its probabilities."""
        rows = self.payoffs.rows(v)
        return np.asarray(self.softmax.log_policy(rows, where=self.payoffs.allowed))

    def residual(self, v: Floats) -> Floats:
        """`U(policy(v)) - v`."""
        return self.payoffs.values(self.policy(v)) - v

    def linearised(self, v: Floats) -> tuple[Floats, Floats]:
        """The same, and the Jacobian of `U(policy(v))`."""
        payoffs = self.payoffs
        policy, slopes = policy_and_jacobian(self.softmax, payoffs.rows(v), payoffs.allowed)
        pairs = payoffs.pairs(policy)
        blocks = payoffs.rows(pairs).swapaxes(-3, -2)  # [..., N, D, A], of each player who plays
        jacobian = (blocks @ slopes).swapaxes(-3, -2)
        residual = payoffs.values(policy, pairs) - v
        return residual, jacobian.reshape(*jacobian.shape[:-2], -1)
