"""All fixed points of thousands of small MDPs, as far as a search finds them."""

from __future__ import annotations

import dataclasses
from typing import Any, Self

import jax
import numpy as np
import numpy.typing as npt

from ..._common.threads import on_all_cores
from ...softmax import Max, Mellowmax, Softmax
from .mdps import Batch

__all__ = ["Roots", "search"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int32]


@dataclasses.dataclass(frozen=True, eq=False)
class Roots:
    """Fixed points of state values, those of a lane side by side, by the sum of their values."""

    lane: Integers  # [R], whose it is
    value: Floats  # [R, S], 0 where there is no state
    residual: Floats  # [R], the largest change of a sweep
    radius: Floats  # [R], the spectral radius of a synchronous sweep there; below 1 it is stable
    index: Integers  # [R], the sign of det(I - J)
    rounds: Integers  # [lanes], how long was searched

    def counts(self) -> Integers:
        """How many each lane has: those found, which can be too few."""
        return np.bincount(self.lane, minlength=len(self.rounds)).astype(np.int32)

    def degrees(self) -> Integers:
        """The sum of the indices of each lane: 1 for all its fixed points together."""
        sums = np.bincount(self.lane, self.index, minlength=len(self.rounds))
        return sums.round().astype(np.int32)


def search(batch: Batch, softmax: Softmax, *, discount: float, lanes: Any = None) -> Roots:
    """The fixed points of `v = f(r + discount * P v)`, by Newton's method from many places.

    Every fixed point lies between the values of the worst and of the best policy. Newton's method
    starts in that box: on its diagonal, where sweeps from its two ends come by, and at random
    places. Where the sum of the indices is not 1, as degree theory has it for all of them, or where
    there are several, there are more rounds, with starts between those found.

    That proves nothing: a pair of fixed points whose indices cancel can be missed, so that a count
    is a lower bound. The starts are the same for every batch.

    Args:
        batch: MDPs without terminal states; their own discounts do not count.
        softmax: any pair, with one parameter or one for each lane.
        discount: for all.
        lanes: the MDP of each lane, as its place in `batch`; None for each once.
    """
    where = np.arange(len(batch)) if lanes is None else np.asarray(lanes)
    sizes, total = batch.sizes[where], len(where)
    pair = jax.tree.map(lambda x: np.broadcast_to(np.asarray(x, np.float64), total), softmax)
    groups = [np.flatnonzero((sizes == size).all(1)) for size in np.unique(sizes, axis=0)]
    parts = [group[i : i + CHUNK] for group in groups for i in range(0, len(group), CHUNK)]

    def run(part: Any) -> tuple[Any, ...]:
        own = jax.tree.map(lambda x: x[part], pair)
        return _Search.of(batch, where[part], own, discount).run()

    found = on_all_cores(run, parts)
    width = batch.rewards.shape[1]
    rounds = np.zeros(total, np.int32)
    columns: list[list[Any]] = [[], [], [], [], []]
    for part, (owner, v, *rest, taken) in zip(parts, found, strict=True):
        rounds[part] = taken
        padded = np.pad(v, [(0, 0), (0, width - v.shape[1])])
        for column, x in zip(columns, (part[owner], padded, *rest), strict=True):
            column.append(x)
    joined = [np.concatenate(column) for column in columns]
    order = np.argsort(joined[0], kind="stable")
    lane, value, residual, radius, index = (column[order] for column in joined)
    return Roots(lane.astype(np.int32), value, residual, radius, index, rounds)


CHUNK = 256
"""Lanes with MDPs of one size that are searched together."""
ROUNDS = 16
"""Of the search, at most."""
_SAME = 1e-7  # distance, relative to the largest value, below which two are one
_EXACT = 1e-12  # residual of a fixed point, relative to the largest value


@dataclasses.dataclass(frozen=True, eq=False)
class _Search:
    """Lanes with MDPs of one size: the box and the softmax of each."""

    rewards: Floats  # [N, S, A]
    flow: Floats  # [N, S, A, S]
    softmax: Softmax  # with parameters [N], or without
    low: Floats  # [N, S]
    high: Floats
    size: Floats  # [N], the largest value there can be

    @classmethod
    def of(cls, batch: Batch, chosen: Any, softmax: Softmax, discount: float) -> Self:
        s, a = batch.sizes[chosen[0]]
        rewards = np.ascontiguousarray(batch.rewards[chosen, :s, :a])
        flow = discount * batch.transitions[chosen, :s, :a, :s]
        zero, most = np.zeros(rewards.shape[:2]), abs(rewards).max((1, 2)) / (1 - discount)
        ends = []
        for extreme in (Mellowmax(-np.inf), Max()):  # Newton's method is policy iteration here
            plain = cls(rewards, flow, extreme, zero - np.inf, zero + np.inf, most)
            ends.append(plain.newton(np.arange(len(zero)), zero)[0])
        low, high = ends
        size = np.maximum(abs(low), abs(high)).max(-1)
        margin = 1e-13 * size[:, None]
        return cls(rewards, flow, softmax, low - margin, high + margin, size)

    def q(self, owner: Any, v: Floats) -> Floats:
        """Action values `[B, S, A]` from state values `[B, S]` of the lanes `owner`."""
        flat = self.flow[owner].reshape(len(v), -1, v.shape[1]) @ v[..., None]
        return np.asarray(self.rewards[owner] + flat.reshape(len(v), *self.rewards.shape[1:]))

    def of_each(self, owner: Any) -> Softmax:
        """The softmax with the parameters of the lanes `owner`."""
        own: Softmax = jax.tree.map(lambda x: x[owner, None] if np.ndim(x) else x, self.softmax)
        return own

    def change(self, owner: Any, v: Floats, q: Floats) -> Floats:
        """What a sweep adds to `v`, given `q` of it."""
        return np.asarray(self.of_each(owner).value(q)) - v

    def jacobian(self, owner: Any, q: Floats) -> Floats:
        """`[B, S, S]`."""
        weights = np.asarray(self.of_each(owner).gradient(q))
        return np.asarray(np.einsum("bsa,bsat->bst", weights, self.flow[owner]))

    def newton(self, owner: Any, v: Floats, steps: int = 20) -> tuple[Floats, Floats]:
        """Newton's method in the box, and the residual of each at its end."""
        v, least = np.clip(v, self.low[owner], self.high[owner]), np.full(len(v), np.inf)
        best, active = v.copy(), np.arange(len(v))
        for _ in range(steps):
            mine = owner[active]
            q = self.q(mine, v[active])
            change = self.change(mine, v[active], q)
            size = abs(change).max(-1)
            better = size < least[active]
            rows = active[better]
            best[rows], least[rows] = v[rows], size[better]
            # Once it is exact, one more step that gains nothing is the end.
            going = better | (least[active] > _EXACT * self.size[mine])
            active, mine, q, change = active[going], mine[going], q[going], change[going]
            if not len(active):
                break
            matrix = np.eye(v.shape[1]) - self.jacobian(mine, q)
            step = np.linalg.solve(matrix, change[..., None])[..., 0]
            v[active] = np.clip(v[active] + step, self.low[mine], self.high[mine])
        return best, least

    def run(self) -> tuple[Any, ...]:
        """Fixed points `(owner, v, residual, radius, index)`, and the rounds of each lane."""
        n, n_states = self.low.shape
        taken = np.zeros(n, np.int32)
        owner, v = np.zeros(0, np.int32), np.zeros((0, n_states))
        left = np.arange(n, dtype=np.int32)
        rng = np.random.default_rng(n_states)  # the same for all of a size
        for number in range(ROUNDS):
            starts = self.starts(left, number, rng)
            if number:
                starts = np.concatenate([starts, self.between(left, owner, v, rng)], axis=1)
            whose = np.repeat(left, starts.shape[1])
            ends, residual = self.newton(whose, starts.reshape(-1, n_states))
            exact = residual <= _EXACT * self.size[whose]
            before = np.bincount(owner, minlength=n)
            owner, v = self.distinct(
                np.concatenate([owner, whose[exact]]), np.concatenate([v, ends[exact]])
            )
            taken[left] += 1
            after = np.bincount(owner, minlength=n)
            degree = np.bincount(owner, self.index(owner, v), minlength=n).round()
            more = (degree != 1) | ((after > 1) & (after > before))
            left = left[more[left]]
            if not len(left):
                break
        q = self.q(owner, v)
        residual = abs(self.change(owner, v, q)).max(-1)
        jacobian = self.jacobian(owner, q)
        radius = abs(np.linalg.eigvals(jacobian)).max(-1)
        return owner, v, residual, radius, self.index(owner, v), taken

    def starts(self, left: Any, number: int, rng: np.random.Generator) -> Floats:
        """Where a round begins, `[left, starts, S]`."""
        low, spread = self.low[left, None], (self.high - self.low)[left, None]
        count = 8 if number == 0 else 32
        line = np.linspace(0, 1, count)[:, None] * np.ones(low.shape[-1])
        if number:
            line = np.clip(line + 0.1 * rng.normal(size=line.shape), 0, 1)
        inside = rng.random((count, low.shape[-1]))
        return np.asarray(low + spread * np.concatenate([line, inside]))

    def between(self, left: Any, owner: Any, v: Floats, rng: np.random.Generator) -> Floats:
        """Places on and near the lines between fixed points, `[left, starts, S]`."""
        first, last = np.searchsorted(owner, left), np.searchsorted(owner, left, side="right") - 1
        one, other = v[first][:, None], v[np.maximum(last, first)][:, None]
        along = rng.uniform(-0.5, 1.5, (16, 1))
        noise = 0.02 * rng.normal(size=(16, v.shape[1])) * (self.high - self.low)[left, None]
        return np.asarray(one + along * (other - one) + noise)

    def index(self, owner: Any, v: Floats) -> Integers:
        """The sign of `det(I - J)`."""
        matrix = np.eye(v.shape[1]) - self.jacobian(owner, self.q(owner, v))
        return np.asarray(np.linalg.slogdet(matrix)[0], np.int32)

    def distinct(self, owner: Any, v: Floats) -> tuple[Any, Floats]:
        """Each fixed point once, by lane and by the sum of the values."""
        order = np.lexsort((v.sum(-1), owner))
        owner, v = owner[order], v[order]
        apart = abs(np.diff(v, axis=0)).max(-1) > _SAME * self.size[owner[1:]]
        first = np.append(True, (np.diff(owner) != 0) | apart)[: len(owner)]
        return owner[first], v[first]
