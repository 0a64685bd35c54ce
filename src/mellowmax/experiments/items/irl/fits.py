"""Fits of rewards, thousands at once: the natural gradient around value iteration.

Every softmax is fitted by the same method. The inner one is value iteration from 0. The outer one
is Fisher scoring (the natural gradient of Neu and Szepesvari, 2007): a step goes along the inverse
of the Fisher information, and is halved until the penalised likelihood rises. It is the method
`"fisher"` of `mellowmax.inverse.fit`, mapped over many fits, with plain sweeps inside. All sums are
means over decisions, so that a unit is a nat for each decision.

In a round every fit that has not ended is evaluated once. They are evaluated in blocks of one
width, of which each is one call of a compiled program.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...._typing import Bools, Floats, Integers
from ....mdp import Model
from ....planning import Point, fixed_point
from ....softmax import Softmax

__all__ = ["Fits", "Task", "fit_all", "plan"]

WIDTH = 1600  # how many states the fits of a call have, together
RIDGE = 1e-4
"""The penalty: half of it times the sum of the squares of the rewards."""
INNER = 1e-10
"""A sweep that changes no value by more ends value iteration."""
SWEEPS = 4000
"""The most sweeps of an evaluation."""
DONE = 1e-6
"""A fit ends when another step promises to gain less than this."""
EVALUATIONS = 60
"""The most evaluations of a fit."""
HALVINGS = 20
BOLDEST = 10.0
"""A step moves no log-probability by more than this, if it were linear in the rewards."""
NOISE = 1e-12


class Task(NamedTuple):
    """N fits: in which world, from which demonstrations, by which softmax."""

    transitions: Floats
    """`[W, S, A, S]`, or `[1, S, A, S]` where all worlds have the same."""
    discount: float
    world: Integers
    """`[N]`."""
    counts: Floats
    """`[N, S, A]`."""
    softmax: Softmax
    """With a parameter for each of N."""


@dataclasses.dataclass
class Fits:
    """How N fits have ended, and the way there."""

    rewards: Floats
    """`[N, S]`, the fitted ones."""
    q: Floats
    """`[N, S, A]`, the action values there."""
    value: Floats
    """`[N]`, the penalised mean log-likelihood."""
    decrement: Floats
    """`[N]`, what another step promises to gain."""
    evaluations: Integers
    """`[N]`."""
    unconverged: Integers
    """`[N]`, the number of evaluations in which value iteration had not settled."""
    history: list[tuple[Floats, Floats]]
    """After each round: the sweeps of each fit so far, and the best value it has had."""

    def sweeps_to(self, value: Floats) -> Floats:
        """`[N]`, the sweeps after which each fit had first come to a value; NaN if it never had."""
        sweeps, best = (np.stack(part) for part in zip(*self.history, strict=True))
        there = best >= value
        first = np.take_along_axis(sweeps, there.argmax(0)[None], 0)[0]
        return np.where(there.any(0), first, np.nan)

    def likelihood(self, task: Task, counts: Floats) -> Floats:
        """`[N]`, the mean log-likelihood of other decisions, `[N, S, A]`."""
        softmax = jax.tree.map(lambda x: x[:, None], task.softmax)
        log_policy = np.asarray(softmax.log_policy(self.q))
        return np.asarray((counts * log_policy).sum((1, 2)) / counts.sum((1, 2)))


# One evaluation, of one fit.


def _planned(
    transitions: jax.Array, discount: jax.Array, rewards: jax.Array, softmax: Softmax
) -> Point:
    """The result of value iteration from 0, with a reward for each state."""
    n_states, n_actions, _ = transitions.shape
    of_pairs = jnp.broadcast_to(rewards[:, None], (n_states, n_actions))
    model = Model(of_pairs, transitions, None, discount, None, np.zeros(n_states, np.bool_))
    return fixed_point(model, softmax, tolerance=INNER, max_iterations=SWEEPS, method="synchronous")


class _Evaluation(NamedTuple):
    value: Any
    direction: Any  # [S]
    decrement: Any
    settled: Any
    regular: Any
    sweeps: Any
    q: Any  # [S, A]


def _evaluate(
    rewards: jax.Array,
    transitions: jax.Array,
    discount: jax.Array,
    softmax: Softmax,
    counts: jax.Array,
) -> _Evaluation:
    """The penalised likelihood at some rewards, and where to go from there."""

    def log_policy(rewards: jax.Array) -> Any:
        point = _planned(transitions, discount, rewards, softmax)
        result = softmax.log_policy(point.q)
        return result, (result, point)

    scores, (log_probability, point) = jax.jacfwd(log_policy, has_aux=True)(rewards)
    seen = counts / jnp.sum(counts)
    gradient = jnp.einsum("sa,sak->k", seen, scores) - RIDGE * rewards
    weights = jnp.sqrt(jnp.sum(seen, 1, keepdims=True) * jnp.exp(log_probability))
    root = (weights[..., None] * scores).reshape(-1, rewards.size)
    information = root.T @ root + RIDGE * jnp.eye(rewards.size)
    direction = jnp.linalg.solve(information, gradient)
    moved = jnp.max(jnp.abs(scores @ direction))
    return _Evaluation(
        jnp.sum(seen * log_probability) - RIDGE / 2 * jnp.sum(rewards**2),
        direction * jnp.minimum(1.0, BOLDEST / moved),
        jnp.sum(gradient * direction) / 2,
        point.converged,
        point.regular,
        point.iterations,
        point.q,
    )


# On one core, and one after another: programs that share XLA's few threads can wait for each other
# for ever (on two cores, with JAX 0.11).
_ONE_THREAD = {"xla_cpu_multi_thread_eigen": False}


@functools.partial(jax.jit, static_argnums=5, compiler_options=_ONE_THREAD)
def _evaluate_block(
    rewards: jax.Array,
    transitions: jax.Array,
    discount: jax.Array,
    softmax: Softmax,
    counts: jax.Array,
    shared: bool,
) -> _Evaluation:
    axes = (0, None if shared else 0, None, 0, 0)
    result: _Evaluation = jax.vmap(_evaluate, axes)(
        rewards, transitions[0] if shared else transitions, discount, softmax, counts
    )
    return result


# Many of them, step by step.


def fit_all(task: Task, start: Floats) -> Fits:
    """Fit from some rewards on, `[N, S]`; all fits end."""
    n = len(start)
    at = Fits(
        rewards=start.copy(),
        q=np.zeros(task.counts.shape),
        value=np.full(n, -np.inf),
        decrement=np.full(n, np.inf),
        evaluations=np.zeros(n, np.int32),
        unconverged=np.zeros(n, np.int32),
        history=[],
    )
    trial, direction = start.copy(), np.zeros_like(start)
    halvings, sweeps = np.zeros(n, np.int32), np.zeros(n)
    left = np.arange(n, dtype=np.int32)
    for _ in range(EVALUATIONS):
        found = _all_blocks(task, trial, left)
        at.evaluations[left] += 1
        at.unconverged[left] += ~found.settled
        sweeps[left] += found.sweeps
        first = at.evaluations[left] == 1
        usable = found.settled & found.regular & np.isfinite(found.value)
        usable &= np.isfinite(found.direction).all(-1)
        better = usable & (found.value >= at.value[left] - NOISE)
        here = left[better]
        at.rewards[here], at.q[here] = trial[here], found.q[better]
        at.value[here], at.decrement[here] = found.value[better], found.decrement[better]
        direction[here], halvings[here] = found.direction[better], 0
        if first.any():
            at.q[left[first]] = found.q[first]
        halvings[left[~better]] += 1
        at.history.append((sweeps.copy(), at.value.copy()))
        ended = np.where(better, found.decrement <= DONE, halvings[left] > HALVINGS)
        left = left[~(ended | (first & ~usable))]
        if not len(left):
            break
        trial[left] = at.rewards[left] + direction[left] / 2.0 ** halvings[left, None]
    return at


def _all_blocks(task: Task, rewards: Floats, chosen: Integers) -> _Evaluation:
    """Evaluate the fits `chosen`, in blocks."""
    shared = len(task.transitions) == 1
    width = max(WIDTH // rewards.shape[1], 1)

    def one(block: Integers) -> _Evaluation:
        full = np.resize(block, width)
        moves = task.transitions if shared else task.transitions[task.world[full]]
        own = jax.tree.map(lambda x: x[full], task.softmax)
        with jax.enable_x64(True):
            found = _evaluate_block(
                rewards[full], moves, task.discount, own, task.counts[full], shared
            )
            result: _Evaluation = jax.tree.map(lambda x: np.asarray(x)[: len(block)], found)
        return result

    blocks = [chosen[i : i + width] for i in range(0, len(chosen), width)]
    parts = [one(block) for block in blocks]
    return _Evaluation(*(np.concatenate(column) for column in zip(*parts, strict=True)))


# Planning alone.


@jax.jit
def _plan_all(
    transitions: jax.Array, discount: jax.Array, rewards: jax.Array, softmax: Softmax
) -> Any:
    def one(transitions: jax.Array, rewards: jax.Array, softmax: Softmax) -> Any:
        point = _planned(transitions, discount, rewards, softmax)
        return point.q, point.converged

    return jax.vmap(one)(transitions, rewards, softmax)


def plan(
    transitions: Floats, discount: float, rewards: Floats, softmax: Softmax
) -> tuple[Floats, Bools]:
    """The action values of N worlds under a softmax, `[N, S, A]`, and whether they have settled."""
    moves = np.broadcast_to(transitions, (len(rewards), *transitions.shape[1:]))
    with jax.enable_x64(True):
        q, settled = _plan_all(moves, discount, rewards, softmax)
    return np.asarray(q), np.asarray(settled)
