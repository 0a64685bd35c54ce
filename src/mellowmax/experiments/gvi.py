"""Generalised value iteration (Algorithm 2) and all fixed points, for thousands of small MDPs.

`iterate` runs the paper's in-place sweeps for many lanes at once: a lane is an MDP, a softmax with
its parameter, a discount and initial values. One run records for each of several `deltas` the sweep
whose largest change first fell below it. What a lane gives does not depend on the lanes beside it,
nor on how much its MDP is padded, bit for bit.

The lanes are the last axis, and a block of `WIDTH` is one compiled program; in a sweep only the
value of the state that changed is computed again. Lanes of equal sizes share blocks, so that a
block's loops are as short as its MDPs allow. Every `STAGE` sweeps the lanes that are done leave,
and the others close ranks.
"""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from ..mdp import MDP, random_mdp
from ..softmax import Max, Mellowmax, Softmax

__all__ = ["Batch", "Roots", "Run", "cores", "iterate", "search"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int32]

WIDTH = 128
"""How many lanes a block has."""
STAGE = 64
"""Sweeps after which the lanes that are done leave."""


@dataclasses.dataclass(frozen=True, eq=False)
class Batch:
    """Small dense MDPs of different sizes in arrays of one size; what is padded is 0 and False."""

    transitions: Floats  # [N, S, A, S]
    rewards: Floats  # [N, S, A]
    allowed: npt.NDArray[np.bool_]  # [N, S, A]: is it an action of a state that is there?
    sizes: Integers  # [N, 2], states and actions
    live: npt.NDArray[np.bool_]  # [N, S]: is it a state, and not terminal?

    @classmethod
    def of(cls, mdps: Sequence[MDP], n_states: int = 10, n_actions: int = 5) -> Self:
        """Pad MDPs that allow every action; section 7.1 has up to 10 states and 5 actions."""
        shape = (len(mdps), n_states, n_actions)
        transitions, rewards = np.zeros((*shape, n_states)), np.zeros(shape)
        allowed, live = np.zeros(shape, np.bool_), np.zeros(shape[:2], np.bool_)
        sizes = np.empty((len(mdps), 2), np.int32)
        for i, mdp in enumerate(mdps):
            s, a = sizes[i] = mdp.n_states, mdp.n_actions
            transitions[i, :s, :a, :s], rewards[i, :s, :a] = mdp.to_numpy()
            allowed[i, :s, :a], live[i, :s] = True, ~mdp.terminal
        return cls(transitions, rewards, allowed, sizes, live)

    @classmethod
    def random(cls, seed: int, numbers: Sequence[int]) -> Self:
        """The random MDPs of section 7.1: number i is `random_mdp([seed, i])`."""
        return cls.of([random_mdp([seed, number]) for number in numbers])

    def __len__(self) -> int:
        return len(self.sizes)


class Run(NamedTuple):
    """What sweeps came to."""

    iterations: Integers  # [deltas, lanes], sweeps until the change is below; 0 where it never is
    q: Floats  # [lanes, S, A], after the last sweep that counts


def iterate(
    batch: Batch,
    softmax: Softmax,
    *,
    discount: Any,
    deltas: Sequence[float],
    lanes: Any = None,
    initial: Any = 0.0,
    limit: int = 1000,
) -> Run:
    """Sweeps in place until no value changes by `delta` or more, for each of several deltas.

    Args:
        batch: the MDPs; their own discounts do not count.
        softmax: any pair, with one parameter or one for each lane.
        discount: one number, or one for each lane.
        deltas: where to stop, in descending order; sweeps go on to the last.
        lanes: the MDP of each lane, as its place in `batch`; None for each once.
        initial: the values to begin with: a number, or one for each lane, or `[lanes, S, A]`. A
            terminal state has 0.
        limit: the most sweeps.

    Returns:
        The counts, where the sweep whose change is below `delta` counts too, and the values.
    """
    if list(deltas) != sorted(deltas, reverse=True):
        raise ValueError(f"`deltas` must be in descending order, got {list(deltas)}")
    where = np.arange(len(batch)) if lanes is None else np.asarray(lanes)
    total = len(where)
    discounts = np.broadcast_to(np.asarray(discount, np.float64), total)
    pair = jax.tree.map(lambda x: np.broadcast_to(np.asarray(x, np.float64), total), softmax)
    start = np.asarray(initial, np.float64)
    start = start.reshape(*start.shape, *([1] * (3 - start.ndim)))
    begins = batch.allowed[where] & batch.live[where, :, None]
    q = np.where(begins, start, 0.0)
    iterations = np.zeros((len(deltas), total), np.int32)
    sizes = batch.sizes[where]
    left = np.lexsort((sizes[:, 1], sizes[:, 0]))
    limits = np.asarray(deltas, np.float64)
    cpu = jax.local_devices(backend="cpu")[0]  # an accelerator gains nothing with so few lanes

    def advance(chosen: Any, done: int) -> None:
        """Take the lanes of a block further, at most to the end of a stage."""
        full = np.resize(chosen, WIDTH) if len(chosen) < WIDTH else chosen
        mdps = where[full]
        model = (
            np.moveaxis(batch.rewards[mdps], 0, -1),
            np.moveaxis(batch.transitions[mdps] * discounts[full, None, None, None], 0, -1),
            np.moveaxis(batch.allowed[mdps], 0, -1),
        )
        own = jax.tree.map(lambda x: x[full], pair)
        ends = np.int32(done), np.int32(min(done + STAGE, limit))
        loops = sizes[full].max(0)
        with jax.enable_x64(True), jax.default_device(cpu):
            result = _program(model, own, np.moveaxis(q[full], 0, -1), limits, loops, ends)
        now, counts = (np.moveaxis(np.asarray(x), -1, 0)[: len(chosen)] for x in result)
        q[chosen] = now
        iterations[:, chosen] = np.where(
            iterations[:, chosen] == 0, counts.T, iterations[:, chosen]
        )

    # XLA runs the small operations of a block on one core: blocks side by side use the others.
    with ThreadPoolExecutor(cores()) as pool:
        for done in range(0, limit, STAGE):
            blocks = [left[i : i + WIDTH] for i in range(0, len(left), WIDTH)]
            list(pool.map(functools.partial(advance, done=done), blocks))
            left = left[iterations[-1, left] == 0]
    return Run(iterations, q)


def _sweeps(model: Any, softmax: Softmax, q: Any, deltas: Any, loops: Any, ends: Any) -> Any:
    """Sweeps `ends[0]` to `ends[1]` of a block: `q [S, A, B]` and counts `[deltas, B]`."""
    rewards, flow, allowed = model
    n_states, _, width = q.shape
    first, last = ends
    there = allowed.at[:, 0].set(True)  # a state that is only padding has the value 0

    def one_state(s: Any, carry: Any) -> Any:
        q, v, change = carry

        def update(a: Any, carry: Any) -> Any:
            row, v, change = carry
            expected = functools.reduce(jnp.add, [flow[s, a, k] * v[k] for k in range(n_states)])
            new = rewards[s, a] + expected
            change = jnp.maximum(change, jnp.abs(new - row[a]))
            row = row.at[a].set(new)
            return row, v.at[s].set(softmax.value(row, axis=0, where=there[s])), change

        row, v, change = jax.lax.fori_loop(0, loops[1], update, (q[s], v, change))
        return q.at[s].set(row), v, change

    def sweep(carry: Any) -> Any:
        done, q, v, counts = carry
        begin = (q, v, jnp.zeros(width))
        new_q, new_v, change = jax.lax.fori_loop(0, loops[0], one_state, begin)
        going = counts[-1] == 0
        below = (change[None] < deltas[:, None]) & (counts == 0)
        return (
            done + 1,
            jnp.where(going[None, None], new_q, q),
            jnp.where(going[None], new_v, v),
            jnp.where(below, done + 1, counts),
        )

    def unfinished(carry: Any) -> Any:
        done, _, _, counts = carry
        return (done < last) & jnp.any(counts[-1] == 0)

    v = softmax.value(q, axis=1, where=there)
    counts = jnp.zeros((len(deltas), width), jnp.int32)
    _, q, _, counts = jax.lax.while_loop(unfinished, sweep, (first, q, v, counts))
    return q, counts


_program = jax.jit(_sweeps)


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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
    is a lower bound. In 16,000 searches 5 times as many starts found no more. The starts are the
    same for every batch.

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

    with ThreadPoolExecutor(cores()) as pool:
        found = list(pool.map(run, parts))
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
ROUNDS = 6
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
