"""Thousands of fits at once: the same model, with other demonstrations in each.

For bootstraps, and to simulate how estimates spread. The steps are those of `climb`, written so
that JAX maps them: each evaluation of the likelihood either is a rise, and the next step starts
there, or the step is halved. All fits share one compiled program, which takes blocks of them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._common import checks
from .._common.compiled_programs import keep_compiled_programs
from .._typing import ArrayLike, Bools, Floats, Integers
from ..mdp import MDP, Model
from .climb import BOLDEST, HALVINGS, LEAP, NOISE, of_parameters
from .demonstrations import Demonstrations
from .demonstrator import AnyDemonstrator
from .estimate import KINDS
from .likelihood import Discount, Environment, Question
from .rewards import Reward, names_of

__all__ = ["Estimates", "fit_each"]

SINGULAR = 1e-10
"""A curvature whose least eigenvalue is below this part of the largest tells too little."""

BLOCK, BLOCK_ON_A_CARD = 128, 8192
"""Fits of one call of the compiled program; more take no less time each."""


@dataclasses.dataclass(frozen=True, eq=False)
class Estimates:
    """The parameters of N fits."""

    parameters: Floats
    """`[N, k]`."""
    names: tuple[str, ...]
    """What the parameters are called."""
    log_likelihood: Floats
    """`[N]`."""
    converged: Bools
    """`[N]`: is it a maximum, at which all parameters are identified? `fit` says why not."""
    decrement: Floats
    """`[N]`, by how much one more step promises to raise the log-likelihood."""
    evaluations: Integers
    """`[N]`, how often the demonstrator's plan was solved for."""
    _curvature: Floats = dataclasses.field(repr=False)  # [N, k, k]
    _outer: Floats = dataclasses.field(repr=False)  # [N, k, k]

    def covariance(self, kind: str = "hessian") -> Floats:
        """`[N, k, k]`, the covariances of the estimates; NaN where a fit has not converged.

        Args:
            kind: `"hessian"`, `"outer"` or `"sandwich"`, as of an `Estimate`, by decisions.
        """
        checks.one_of("kind", kind, KINDS)
        one = np.eye(self.parameters.shape[1])
        good = self.converged[:, None, None]
        result = np.linalg.inv(
            np.where(good, self._outer if kind == "outer" else self._curvature, one)
        )
        if kind == "sandwich":
            result = result @ self._outer @ result
        return np.where(good, result, np.nan)

    @property
    def standard_errors(self) -> Floats:
        """`[N, k]`, by the curvature of the log-likelihood."""
        return np.sqrt(np.diagonal(self.covariance(), axis1=1, axis2=2))


class _Rule(NamedTuple):
    tolerance: float
    max_evaluations: int


class _At(NamedTuple):
    """Where a climb stands, and the step that is tried from there."""

    theta: jax.Array
    value: jax.Array
    curvature: jax.Array  # [k, k]
    outer: jax.Array  # [k, k]
    step: jax.Array
    decrement: jax.Array
    concave: jax.Array
    bounded: jax.Array
    halvings: jax.Array
    evaluations: jax.Array

    def unfinished(self, rule: _Rule) -> jax.Array:
        """Is there a step to try?"""
        done = (self.decrement <= rule.tolerance) | (self.halvings >= HALVINGS)
        return ~done & (self.evaluations < rule.max_evaluations)


def fit_each(
    mdp: MDP,
    counts: ArrayLike,
    reward: Reward,
    demonstrator: AnyDemonstrator,
    *,
    discount: Discount = None,
    initial: ArrayLike = 0.0,
    tolerance: float = 1e-8,
    max_evaluations: int = 200,
    block: int | None = None,
    callback: Callable[[int, int], object] | None = None,
) -> Estimates:
    """Fit the same model to each of many demonstrations, in one MDP.

    Args:
        mdp: the MDP; the reward is added to its own.
        counts: `[N, S, A]`, how often each action was taken in each state, as
            `Demonstrations.counts` has it.
        reward: as in `fit`.
        demonstrator: as in `fit`.
        discount: as in `fit`.
        initial: where to start, a number or `[k]`.
        tolerance: a fit ends when another step promises to gain no more than this.
        max_evaluations: the most evaluations of a likelihood.
        block: how many are fitted together; None for 128 on a CPU, and 8192 on a GPU.
        callback: called with the number of fits so far and in all.

    Raises:
        TypeError: for an argument of the wrong kind.
        ValueError: for one that is not as above.

    Examples:
        How the estimates of a reward spread, over what 300 demonstrators did:

        >>> from mellowmax import LogSumExp
        >>> from mellowmax.inverse import Linear
        >>> from mellowmax.mdp import MDP
        >>> coin = MDP.from_arrays([[[1.0], [1.0]]], [[0.0, 0.0]], 0.5, terminal=[False])
        >>> heads = np.random.default_rng(0).binomial(100, 0.7, size=300)
        >>> counts = np.stack([100 - heads, heads], 1)[:, None]
        >>> found = fit_each(coin, counts, Linear([[[0.0], [1.0]]]), LogSumExp(1.0))
        >>> print(found.parameters.mean().round(2), found.standard_errors.mean().round(2))
        0.86 0.22
    """
    checks.instance("mdp", mdp, MDP, "an MDP")
    tolerance = checks.real("tolerance", tolerance, 0.0)
    if block is None:
        block = BLOCK if jax.default_backend() == "cpu" else BLOCK_ON_A_CARD
    block = checks.whole("block", block, 1)
    rule = _Rule(tolerance, checks.whole("max_evaluations", max_evaluations, 1))
    if callback is not None:
        checks.function("callback", callback)
    seen = _checked(counts, mdp)
    question = Question.of(reward, demonstrator, discount)
    start = checks.numbers("initial", initial)
    checks.finite("initial", start, ["parameter"])
    names = names_of("initial", start.shape, reward, [mdp], more=question.more)
    question.check([mdp], len(names))
    keep_compiled_programs()
    n, block = len(seen), min(block, len(seen))
    parts: list[_At] = []
    with jax.enable_x64(True):
        theta = jnp.broadcast_to(jnp.asarray(start), len(names))
        arrays = jax.block_until_ready(jax.tree.map(jnp.asarray, mdp.model()))
        for first in range(0, n, block):
            some = np.resize(seen[first : first + block], (block, *seen.shape[1:]))
            ready = jax.block_until_ready(jnp.asarray(some))
            found = _program(theta, ready, arrays, question, rule)
            parts.append(jax.tree.map(np.asarray, found))
            if callback is not None:
                callback(min(first + block, n), n)
    whole: _At = jax.tree.map(lambda *each: np.concatenate(each)[:n], *parts)
    ended = whole.decrement <= np.maximum(tolerance, NOISE * np.abs(whole.value))
    return Estimates(
        parameters=np.asarray(whole.theta),
        names=names,
        log_likelihood=np.asarray(whole.value),
        converged=np.asarray(ended & whole.concave & whole.bounded),
        decrement=np.asarray(whole.decrement),
        evaluations=np.asarray(whole.evaluations),
        _curvature=np.asarray(whole.curvature),
        _outer=np.asarray(whole.outer),
    )


def _checked(counts: ArrayLike, mdp: MDP) -> Floats:
    """The counts, each of them of decisions that the MDP has."""
    given = checks.numbers("counts", counts)
    shape = mdp.available.shape
    if given.ndim != 3 or given.shape[1:] != shape or not len(given):
        rule = f"`counts` must have the shape (N, {shape[0]}, {shape[1]}) with N of at least 1"
        raise ValueError(f"{rule}, got {given.shape}")
    if not (np.isfinite(given) & (given >= 0)).all():
        bad = given[~(np.isfinite(given) & (given >= 0))][0]
        raise ValueError(f"`counts` must be finite and at least 0, got {bad:g}")
    Demonstrations.from_counts(given.sum(0)).counts(mdp)
    return given


def _one(
    theta: jax.Array, counts: jax.Array, arrays: Model, question: Question, rule: _Rule
) -> _At:
    """The climb of one likelihood."""
    environment = Environment(arrays, counts)
    visits = jnp.sum(counts, 1, keepdims=True)
    k = theta.size

    def body(at: _At) -> _At:
        there = at.theta + at.step * 0.5**at.halvings
        hessian, (gradient, scores, policies, ends) = of_parameters(there, [environment], question)
        (score,), (policy,), ((converged, regular),) = scores, policies, ends
        value = jnp.sum(jnp.where(counts > 0, counts * policy, 0.0))
        usable = converged & regular & jnp.isfinite(value) & jnp.all(jnp.isfinite(hessian))
        rises = usable & (value >= at.value - NOISE * jnp.abs(value))
        weight = jnp.where(environment.available, visits * jnp.exp(policy), 0.0)
        fisher = jnp.einsum("sa,sai,saj->ij", weight, score, score)
        outer = jnp.einsum("sa,sai,saj->ij", counts, score, score)
        curvature = -(hessian + hessian.T) / 2
        size = jnp.sqrt(jnp.maximum(jnp.diagonal(fisher), 1e-300))
        scaled = curvature / size[:, None] / size[None]
        values = jnp.linalg.eigvalsh(jnp.where(jnp.isfinite(scaled), scaled, 0.0))
        concave = values[0] > SINGULAR * jnp.abs(values[-1])
        metric = jnp.where(concave, scaled, fisher / size[:, None] / size[None])
        step = jnp.linalg.solve(metric, gradient / size) / size
        moved = jnp.max(jnp.abs(jnp.where(environment.available, score @ step, 0.0)))
        step = step * jnp.minimum(1.0, BOLDEST / jnp.maximum(moved, 1e-300))
        decrement = jnp.sum(gradient * step) / 2
        decrement = jnp.where(jnp.isfinite(decrement), decrement, jnp.inf)
        step = jnp.where(jnp.isfinite(step), step, 0.0)
        new = _At(
            there, value, curvature, outer, step, decrement, concave, moved <= LEAP,
            jnp.zeros_like(at.halvings), at.evaluations + 1,
        )  # fmt: skip
        halved = at._replace(halvings=at.halvings + 1, evaluations=at.evaluations + 1)
        return jax.tree.map(lambda x, y: jnp.where(rises, x, y), new, halved)

    none, no = jnp.zeros((k, k)), jnp.asarray(False)
    zero = jnp.asarray(0)
    start = _At(
        theta, jnp.asarray(-jnp.inf), none, none, jnp.zeros(k), jnp.asarray(jnp.inf), no, no,
        zero, zero,
    )  # fmt: skip
    return jax.lax.while_loop(lambda at: at.unfinished(rule), body, start)


@jax.jit
def _program(
    theta: jax.Array, counts: jax.Array, arrays: Model, question: Question, rule: _Rule
) -> _At:
    return jax.vmap(lambda one: _one(theta, one, arrays, question, rule))(counts)
