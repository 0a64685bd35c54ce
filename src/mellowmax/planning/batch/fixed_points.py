"""All fixed points of thousands of small MDPs, as far as a search finds them.

Every fixed point lies between the values of the worst and of the best policy, with the bonuses of
the softmax where it has some (`fixed_points.newton`). Newton's method is started in that box: on
its diagonal and at random places. Where the indices of those found do not sum to +1, as those of
all fixed points do, or where there are several, further rounds follow, with starts between those
found. A round that finds nothing new ends the search.

That proves nothing: a pair of fixed points whose indices cancel can be missed, so that a count is
a lower bound. `planning.fixed_points` searches one MDP more thoroughly, and with proofs. The sweep,
its Jacobian, Newton's step, the indices and the spectral radius are the same code for both; three
things differ:

- Newton's method is not damped here. With thousands of starts it is quicker to drop those that do
  not converge than to make all of them converge.
- The box is found by the same Newton's method for all MDPs together, which for the extremes is
  policy iteration, not MDP by MDP.
- Equal points are merged by sorting, not pair by pair, so that two fixed points of opposite
  indices next to a fold become one here.
"""

from __future__ import annotations

import dataclasses
from typing import Self

import jax
import numpy as np

from ..._common.parameters import map_parameters
from ..._common.threads import on_all_cores
from ..._fixed_points.maps import SAME_POINT, index_of, newton_step, spectral_radius
from ..._typing import ArrayLike, Bools, Floats, Integers
from ...softmax import Max, Softmax
from ..fixed_points.newton import EXTREMES, bonus_range, counting_steps
from ..fixed_points.sweep_map import SweepMap
from .mdps import Batch, discount_of_each, softmax_of_each

__all__ = ["BatchFixedPoints", "find_fixed_points"]

_CHUNK = 256  # MDPs of one size that are searched together
_ROUNDS = 16  # of the search, at most
_EXACT = 1e-12  # residual of a fixed point, relative to the largest value


@dataclasses.dataclass(frozen=True, eq=False)
class BatchFixedPoints:
    """R fixed points of the N MDPs of a batch, by MDP and by the sum of their values."""

    mdp: Integers
    """`[R]`, the index of the MDP that it belongs to."""
    value: Floats
    """`[R, S]`, state values; 0 where there is no state."""
    residual: Floats
    """`[R]`, the largest change of a state value by a sweep."""
    spectral_radius: Floats
    """`[R]`, of the Jacobian of a synchronous sweep."""
    index: Integers
    """`[R]`, the sign of `det(I - J)`."""
    rounds: Integers
    """`[N]`, how many rounds of the search each MDP had."""

    @property
    def stable(self) -> Bools:
        """`[R]`: do sweeps that start near it converge to it?"""
        return self.spectral_radius < 1

    @property
    def counts(self) -> Integers:
        """`[N]`, how many fixed points each MDP has: those found, which can be too few."""
        return np.bincount(self.mdp, minlength=len(self.rounds)).astype(np.int32)

    @property
    def index_sums(self) -> Integers:
        """`[N]`, the sum of the indices of each MDP: 1, or a fixed point is missing."""
        sums = np.bincount(self.mdp, self.index, minlength=len(self.rounds))
        return sums.round().astype(np.int32)


def find_fixed_points(
    batch: Batch, softmax: Softmax, *, discount: ArrayLike | None = None
) -> BatchFixedPoints:
    """Search the fixed points of `v = f(r + discount * P v)` in each MDP of a batch.

    Args:
        batch: the MDPs, N of them.
        softmax: any pair, with one parameter or one for each MDP.
        discount: in [0, 1): one number, or one for each MDP; None for the MDPs' own.

    Returns:
        The fixed points found; the same for an MDP whatever the others in the batch.

    Raises:
        ValueError: if an argument is out of range.

    Examples:
        >>> from mellowmax import Boltzmann
        >>> from mellowmax.mdp import random_mdp, two_state
        >>> batch = Batch.of([two_state(), random_mdp(205), random_mdp(0)])
        >>> found = find_fixed_points(batch, Boltzmann([16.55, 7.0, 7.0]))
        >>> found.counts.tolist(), found.index_sums.tolist()
        ([3, 5, 1], [1, 1, 1])
        >>> print(found.mdp, found.stable.astype(int))
        [0 0 0 1 1 1 1 1 2] [1 0 1 1 1 0 0 1 1]

    References:
        Asadi and Littman (2017), section 7.1, counts them for 200 random MDPs.
    """
    discounts = discount_of_each(batch, discount, below_one=True)
    pair = softmax_of_each(batch, softmax)
    s, a = np.indices(batch.rewards.shape[1:])
    real = (s < batch.sizes[:, :1, None]) & (a < batch.sizes[:, 1:, None])
    masked = (real & ~batch.allowed).any((1, 2))
    kinds = np.column_stack([batch.sizes, masked])
    groups = [np.flatnonzero((kinds == kind).all(1)) for kind in np.unique(kinds, axis=0)]
    chunks = [
        group[i : i + _CHUNK].astype(np.int32)
        for group in groups
        for i in range(0, len(group), _CHUNK)
    ]

    def run(chunk: Integers) -> BatchFixedPoints:
        own = jax.tree.map(lambda x: x[chunk], pair)
        return _Search.of(batch, chunk, own, discounts[chunk]).run()

    rounds = np.zeros(len(batch), np.int32)
    columns = []
    for chunk, found in zip(chunks, on_all_cores(run, chunks), strict=True):
        rounds[chunk] = found.rounds
        value = np.pad(found.value, [(0, 0), (0, batch.rewards.shape[1] - found.value.shape[1])])
        numbers = (found.residual, found.spectral_radius, found.index)
        columns.append((chunk[found.mdp], value, *numbers))
    joined = [np.concatenate(column) for column in zip(*columns, strict=True)]
    order = np.argsort(joined[0], kind="stable")
    mdp, value, residual, radius, index = (column[order] for column in joined)
    return BatchFixedPoints(mdp, value, residual, radius, index, rounds)


@dataclasses.dataclass(frozen=True, eq=False)
class _Search:
    """N MDPs of one size, with the softmax and the box of each.

    Most methods take B state values `[B, S]` and `owner`, `[B]`: the MDP of each.
    """

    model: SweepMap
    softmax: Softmax  # with parameters [N], or without
    low: Floats  # [N, S]
    high: Floats  # [N, S]
    size: Floats  # [N], the largest value there can be

    @classmethod
    def of(cls, batch: Batch, chosen: Integers, softmax: Softmax, discounts: Floats) -> Self:
        """The search in some MDPs of a batch, all of one size."""
        s, a = batch.sizes[chosen[0]]
        rewards = np.ascontiguousarray(batch.rewards[chosen, :s, :a])
        flow = discounts[:, None, None, None] * batch.transitions[chosen, :s, :a, :s]
        allowed = batch.allowed[chosen, :s, :a]
        terminal = batch.terminal[chosen, :s]
        model = SweepMap(rewards, flow, None if allowed.all() else allowed, terminal)
        zero, horizon = np.zeros(rewards.shape[:2]), 1 / (1 - discounts)
        most = abs(rewards).max((1, 2)) / (1 - discounts)
        everyone = np.arange(len(zero), dtype=np.int32)

        def everywhere(model: SweepMap, softmax: Softmax, most: Floats) -> _Search:
            return _Search(model, softmax, zero - np.inf, zero + np.inf, most)

        ends = (everywhere(model, extreme, most) for extreme in EXTREMES)
        low, high = (end.newton(everyone, zero)[0] for end in ends)
        if not softmax.attained:
            counting = everywhere(counting_steps(model), Max(), horizon)
            steps = counting.newton(everyone, zero)[0]
            own = everywhere(model, softmax, most).softmax_of(everyone)
            each = [jax.tree.map(lambda x, i=i: x[i, 0], own) for i in everyone]
            paid = bonus_range(model, own, each, low, high)
            low, high = low + paid.least[:, None] * steps, high + paid.most[:, None] * steps
        size = np.maximum(abs(low), abs(high)).max(-1)
        margin = 1e-13 * size[:, None]
        return cls(model, softmax, low - margin, high + margin, size)

    def softmax_of(self, owner: Integers) -> Softmax:
        """The softmax with the parameters of its MDP for each of B."""
        n_actions = self.model.rewards.shape[-1]

        def of_each(x: Floats, inner: int) -> Floats:
            each = x[owner, None] if np.ndim(x) else x
            return each[..., :n_actions] if inner else each

        return map_parameters(of_each, self.softmax)

    def sweep(self, owner: Integers, v: Floats) -> tuple[Floats, Floats]:
        """The action values `[B, S, A]`, and how a sweep changes the state values, `[B, S]`."""
        model = self.model[owner]
        q = model.q(v)
        return q, model.value(self.softmax_of(owner), q) - v

    def jacobian(self, owner: Integers, q: Floats) -> Floats:
        """`[B, S, S]`, from the action values."""
        return self.model[owner].jacobian(self.softmax_of(owner), q)

    def newton(self, owner: Integers, v: Floats) -> tuple[Floats, Floats]:
        """Newton's method in the box, without damping, and the residual of each at its end."""
        v, least = np.clip(v, self.low[owner], self.high[owner]), np.full(len(v), np.inf)
        best, active = v.copy(), np.arange(len(v))
        for _ in range(20):
            mine = owner[active]
            q, change = self.sweep(mine, v[active])
            size = abs(change).max(-1)
            better = size < least[active]
            rows = active[better]
            best[rows], least[rows] = v[rows], size[better]
            # Once it is exact, one more step that gains nothing is the end.
            more = better | (least[active] > _EXACT * self.size[mine])
            active, mine = active[more], mine[more]
            if not len(active):
                break
            step = newton_step(self.jacobian(mine, q[more]), change[more])
            v[active] = np.clip(v[active] + step, self.low[mine], self.high[mine])
        return best, least

    def run(self) -> BatchFixedPoints:
        """Rounds of Newton's method from many starts, until no MDP needs more of them."""
        n, n_states = self.low.shape
        taken = np.zeros(n, np.int32)
        owner, v = np.zeros(0, np.int32), np.zeros((0, n_states))
        left = np.arange(n, dtype=np.int32)
        rng = np.random.default_rng(n_states)  # the same starts for all MDPs of a size
        for number in range(_ROUNDS):
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
            indices = index_of(self.jacobian(owner, self.model[owner].q(v)))
            sums = np.bincount(owner, indices, minlength=n).round()
            more = (sums != 1) | ((after > 1) & (after > before))
            left = left[more[left]]
            if not len(left):
                break
        q, change = self.sweep(owner, v)
        jacobian = self.jacobian(owner, q)
        residual, radius = abs(change).max(-1), spectral_radius(jacobian)
        return BatchFixedPoints(owner, v, residual, radius, index_of(jacobian), taken)

    def starts(self, left: Integers, number: int, rng: np.random.Generator) -> Floats:
        """Where a round begins, `[left, starts, S]`: on the diagonal of the box, and inside it."""
        low, width = self.low[left, None], (self.high - self.low)[left, None]
        count = 8 if number == 0 else 32
        line = np.linspace(0, 1, count)[:, None] * np.ones(low.shape[-1])
        if number:
            line = np.clip(line + 0.1 * rng.normal(size=line.shape), 0, 1)
        inside = rng.random((count, low.shape[-1]))
        return np.asarray(low + width * np.concatenate([line, inside]))

    def between(
        self, left: Integers, owner: Integers, v: Floats, rng: np.random.Generator
    ) -> Floats:
        """On and near the line between the lowest and the highest found, `[left, starts, S]`.

        It is the diagonal of the box for an MDP of which none has been found.
        """
        first, last = np.searchsorted(owner, left), np.searchsorted(owner, left, side="right") - 1
        found, ends = (last >= first)[:, None], np.append(v, np.zeros((1, v.shape[1])), axis=0)
        one = np.where(found, ends[first], self.low[left])[:, None]
        other = np.where(found, ends[np.maximum(last, first)], self.high[left])[:, None]
        along = rng.uniform(-0.5, 1.5, (16, 1))
        noise = 0.02 * rng.normal(size=(16, v.shape[1])) * (self.high - self.low)[left, None]
        return np.asarray(one + along * (other - one) + noise)

    def distinct(self, owner: Integers, v: Floats) -> tuple[Integers, Floats]:
        """Each fixed point once, by MDP and by the sum of the values."""
        order = np.lexsort((v.sum(-1), owner))
        owner, v = owner[order], v[order]
        apart = abs(np.diff(v, axis=0)).max(-1) > SAME_POINT * self.size[owner[1:]]
        first = np.append(True, (np.diff(owner) != 0) | apart)[: len(owner)]
        return owner[first], v[first]
