"""Maximum likelihood: the parameters that make what was seen most probable.

The log-likelihood is a sum over decisions of the log-probability of the action that was taken. Its
gradient and curvature come from those of the demonstrator's plan (`planning.fixed_point`), solved
for at every step: the nested fixed point algorithm (Rust, 1987).

A step of Newton's method goes along the inverse of the curvature, or, where that is not that of a
maximum, along the inverse of the Fisher information, the natural gradient (Neu and Szepesvari,
2007). It is halved until the likelihood rises. Directions in which no decision becomes more or less
probable are left alone: `Estimate.null_space` has them. `decrement` is what another step promises
to gain; unlike the gradient, it does not depend on how the parameters are scaled.

References:
    Rust (1987), Optimal replacement of GMC bus engines: an empirical model of Harold Zurcher.
    Neu and Szepesvari (2007), Apprenticeship learning using inverse reinforcement learning and
        gradient methods.
    Babes, Marivate, Subramanian and Littman (2011), Apprenticeship learning about multiple
        intentions.
    Ziebart (2010), Modeling purposeful adaptive behavior with the principle of maximum causal
        entropy.
    Cao, Cohen and Szpruch (2021), Identifiability in inverse reinforcement learning.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._common import checks
from .._typing import ArrayLike, Floats
from ..mdp import MDP
from ..mdp.labels import named
from ..planning import solve
from .demonstrations import Demonstrations
from .estimate import Estimate, FitStatus, NotFittedError, complement, joined_episodes
from .likelihood import Environment, Question, environments_of, seen_from
from .rewards import Linear, Table, names_of, rewards_of

__all__ = ["fit"]

METHODS = ("auto", "newton", "fisher", "bfgs")
HALVINGS = 40
NO_INFORMATION = 1e-7
"""Directions whose effect is below this part of the largest one are not identified."""
LEAP = 0.05
"""A step that promises nothing, and yet moves a log-probability by this, goes to infinity."""
BOLDEST = 10.0
"""A step moves no log-probability by more than this, if it were linear in the parameters."""
NOISE = 1e-11
"""Gains below this part of the log-likelihood are rounding."""


class _Evaluation(NamedTuple):
    """What is known at some parameters, in NumPy's arrays."""

    value: float  # of the log-likelihood minus the penalty
    log_likelihood: float
    gradient: Floats  # [k]
    hessian: Floats  # [k, k]
    scores: list[Floats]  # [S, A, k] of each MDP
    policies: list[Floats]  # [S, A]
    converged: bool
    regular: bool

    @property
    def usable(self) -> bool:
        """Can a step start here?"""
        finite = np.isfinite(self.value) and np.isfinite(self.hessian).all()
        return bool(self.converged and self.regular and finite)


def fit(
    mdp: MDP | Sequence[MDP],
    demonstrations: Demonstrations | Sequence[Demonstrations],
    reward: Linear | Table | Callable[[jax.Array], jax.Array],
    model: Any,
    *,
    discount: Any = None,
    initial: ArrayLike = 0.0,
    penalty: float = 0.0,
    method: str = "auto",
    tolerance: float = 1e-8,
    max_iterations: int = 200,
    throw: bool = True,
) -> Estimate:
    """The parameters under which demonstrations are most probable.

    Args:
        mdp: the MDP, or several that share the parameters; the reward is added to its own.
        demonstrations: what was seen, or a list with that of each MDP.
        reward: `Linear`, `Table`, or a function from the parameters to `[S, A]`.
        model: a `Softmax` that plans and acts, a `Demonstrator`, or a function from the parameters
            to one of these, to fit the parameter of the softmax too.
        discount: a number, or a function from the parameters to one; None for the MDP's own.
        initial: where to start, a number or `[k]`.
        penalty: half of it times the sum of the squares of the parameters is subtracted from the
            log-likelihood.
        method: `"newton"`, `"fisher"` (the natural gradient), or `"bfgs"`; `"auto"` is Newton's.
        tolerance: the fit ends when another step promises to gain no more than this.
        max_iterations: the most steps.
        throw: raise where it does not converge? Otherwise the status says so.

    Raises:
        NotFittedError: where it did not converge, and `throw` is True.
        TypeError: for an argument of the wrong kind.
        ValueError: for one that is not as above, and for demonstrations that the demonstrator gives
            no probability.

    Examples:
        Rust's estimates for the buses of his group 4:

        >>> from mellowmax import LogSumExp
        >>> from mellowmax.inverse import zurcher
        >>> buses = zurcher([4])
        >>> found = fit(buses.mdp, buses.demonstrations, buses.reward, LogSumExp(1.0))
        >>> print(found.parameters.round(3), found.standard_errors.round(2), found.rank)
        [10.075  2.293] [1.35 0.55] 2
    """
    checks.one_of("method", method, METHODS)
    tolerance = checks.real("tolerance", tolerance, 0.0)
    penalty = checks.real("penalty", penalty, 0.0)
    max_iterations = checks.whole("max_iterations", max_iterations, 1)
    mdps, listed, environments = environments_of(mdp, demonstrations)
    question = Question.of(reward, model, discount)
    start = checks.numbers("initial", initial)
    checks.finite("initial", start)
    names = names_of(reward, mdps[0], start.size if start.ndim else None)
    if start.shape not in ((), (len(names),)):
        raise ValueError(f"`initial` must be a number or {len(names)} numbers, got {start.shape}")
    search = _Search(environments, question, penalty, mdps)
    theta = np.broadcast_to(start, len(names)).astype(np.float64)
    first = search.evaluate(theta)
    _check_probable(first, search, theta)
    found = search.run(theta, first, method, tolerance, max_iterations)
    estimate = _estimate(search, found, names, listed)
    if throw and not estimate.converged:
        raise NotFittedError(estimate)
    return estimate


# One evaluation.


def _of_parameters(
    parameters: jax.Array, environments: list[Environment], question: Question
) -> Any:
    """The curvature, and on the way to it the gradients and the policies."""

    def log_policies(parameters: jax.Array) -> Any:
        seen = [seen_from(parameters, each, question) for each in environments]
        policies = [each.log_policy for each in seen]
        ends = [(each.point.converged, each.point.regular) for each in seen]
        return policies, (policies, ends)

    def gradient(parameters: jax.Array) -> Any:
        scores, (policies, ends) = jax.jacfwd(log_policies, has_aux=True)(parameters)
        pairs = zip(environments, scores, strict=True)
        each = [jnp.einsum("sa,sak->k", e.counts, score) for e, score in pairs]
        total = jnp.sum(jnp.stack(each), 0)
        return total, (total, scores, policies, ends)

    return jax.jacfwd(gradient, has_aux=True)(parameters)


_program = jax.jit(_of_parameters)


class _Found(NamedTuple):
    """Where a search stands."""

    parameters: Floats
    at: _Evaluation
    status: FitStatus
    reason: str
    decrement: float
    iterations: int


class _Step(NamedTuple):
    direction: Floats
    decrement: float
    concave: bool  # is the curvature that of a maximum?


@dataclasses.dataclass
class _Search:
    """The climb of one likelihood."""

    environments: list[Environment]
    question: Question
    penalty: float
    mdps: list[MDP]
    evaluations: int = 0

    def evaluate(self, theta: Floats) -> _Evaluation:
        """All that is known at some parameters."""
        self.evaluations += 1
        with jax.enable_x64(True):
            result = _program(jnp.asarray(theta), self.environments, self.question)
        hessian, (gradient, scores, policies, ends) = jax.tree.map(np.asarray, result)
        seen = [np.asarray(each.counts) for each in self.environments]
        each = [np.sum(n * np.where(n > 0, p, 0.0)) for n, p in zip(seen, policies, strict=True)]
        total = float(np.sum(each))
        return _Evaluation(
            value=total - self.penalty / 2 * float(theta @ theta),
            log_likelihood=total,
            gradient=gradient - self.penalty * theta,
            hessian=(hessian + hessian.T) / 2 - self.penalty * np.eye(len(theta)),
            scores=scores,
            policies=policies,
            converged=all(bool(converged) for converged, _ in ends),
            regular=all(bool(regular) for _, regular in ends),
        )

    def information(self, at: _Evaluation) -> Floats:
        """`[N, k]`, a matrix whose square is the Fisher information, penalty included."""
        rows = []
        for environment, score, policy in zip(
            self.environments, at.scores, at.policies, strict=True
        ):
            visits = np.sum(environment.counts, 1)[:, None]
            weight = np.sqrt(visits * np.exp(policy) * np.asarray(environment.available))
            rows.append((weight[..., None] * score).reshape(-1, score.shape[-1]))
        k = rows[0].shape[1]
        return np.concatenate([*rows, np.sqrt(self.penalty) * np.eye(k)])

    def null_space(self, at: _Evaluation) -> Floats:
        """`[k, m]`, an orthonormal basis of the directions that the policy does not depend on."""
        root = self.information(at)
        scale = np.linalg.norm(root, axis=0)
        scale = np.where(scale > NO_INFORMATION * scale.max(initial=0.0), scale, 1.0)
        _, values, directions = np.linalg.svd(root / scale)
        small = np.ones(len(directions), np.bool_)
        small[: len(values)] = values <= NO_INFORMATION * max(values.max(initial=0.0), 1e-300)
        basis, _ = np.linalg.qr((directions[small] / scale).T)
        return basis

    def step(self, at: _Evaluation, method: str) -> _Step:
        """Where to go from here."""
        basis = complement(self.null_space(at), len(at.gradient))
        if not basis.shape[1]:
            return _Step(np.zeros_like(at.gradient), 0.0, True)
        root = self.information(at) @ basis
        fisher, curvature = root.T @ root, -basis.T @ at.hessian @ basis
        size = np.sqrt(np.diag(fisher))
        values = np.linalg.eigvalsh(curvature / size / size[:, None])
        concave = bool(values[0] > 1e-10 * abs(values[-1]))
        metric = curvature if concave and method != "fisher" else fisher
        slope = basis.T @ at.gradient
        direction = np.linalg.solve(metric / size / size[:, None], slope / size) / size
        return _Step(basis @ direction, float(slope @ direction) / 2, concave)

    def run(
        self, theta: Floats, at: _Evaluation, method: str, tolerance: float, limit: int
    ) -> _Found:
        """Climb until another step promises nothing."""
        if not at.usable:
            return self._stuck(theta, at, 0)
        iterations = 0
        if method == "bfgs":
            theta, at, iterations = self._bfgs(theta, limit)
        refined = False
        while True:
            step = self.step(at, method)
            enough = max(tolerance, NOISE * abs(at.value))
            if step.decrement <= enough:
                if refined or step.decrement <= NOISE**2:
                    return self._ended(theta, at, step, iterations)
                refined = True  # one more step makes the estimates exact
            if iterations >= limit and not refined:
                why = "more steps are needed"
                return _Found(
                    theta, at, FitStatus.OUT_OF_ITERATIONS, why, step.decrement, iterations
                )
            new, there = self._along(theta, at, step.direction)
            iterations += 1
            if there is None:
                if refined:
                    return self._ended(theta, at, step, iterations)
                last = self.evaluate(new)
                if not last.usable:
                    return self._stuck(new, last, iterations)._replace(decrement=step.decrement)
                why = "the likelihood does not rise along the step, however short it is"
                return _Found(theta, at, FitStatus.NO_ASCENT, why, step.decrement, iterations)
            theta, at = new, there

    def _along(
        self, theta: Floats, at: _Evaluation, direction: Floats
    ) -> tuple[Floats, _Evaluation | None]:
        """The first of ever shorter steps after which the likelihood is no lower."""
        new = theta
        direction = direction * min(1.0, BOLDEST / max(_moved(at, direction), 1e-300))
        for halving in range(HALVINGS):
            new = theta + direction / 2**halving
            there = self.evaluate(new)
            if there.usable and there.value >= at.value - NOISE * abs(at.value):
                return new, there
        return new, None

    def _bfgs(self, theta: Floats, limit: int) -> tuple[Floats, _Evaluation, int]:
        from scipy.optimize import minimize

        best: list[Any] = [theta, self.evaluate(theta)]

        def objective(x: Floats) -> tuple[float, Floats]:
            at = self.evaluate(x)
            if not at.usable:
                return 1e300, np.zeros_like(x)
            if at.value >= best[1].value:
                best[:] = [x.copy(), at]
            return -at.value, -at.gradient

        result = minimize(objective, theta, jac=True, method="BFGS", options={"maxiter": limit})
        return best[0], best[1], int(result.nit)

    def _ended(self, theta: Floats, at: _Evaluation, step: _Step, iterations: int) -> _Found:
        """A step promises nothing: is it a maximum?"""
        status, reason = FitStatus.CONVERGED, ""
        if _moved(at, step.direction) > LEAP:
            status = FitStatus.UNBOUNDED
            reason = "the likelihood rises for ever as the parameters grow; a `penalty` stops them"
        elif not step.concave:
            status = FitStatus.SADDLE
            reason = "the gradient vanishes where the likelihood is not at a maximum"
        return _Found(theta, at, status, reason, step.decrement, iterations)

    def _stuck(self, theta: Floats, at: _Evaluation, iterations: int) -> _Found:
        """Where the demonstrator's plan has no derivative, and why."""
        place = np.array2string(theta, precision=6, threshold=8)
        if at.converged and not at.regular:
            reason = f"two fixed points of the plan meet at the parameters {place}"
            return _Found(theta, at, FitStatus.AT_A_FOLD, reason, np.nan, iterations)
        with jax.enable_x64(True):
            plans = self.question.demonstrator(jnp.asarray(theta)).plans
            plans = jax.tree.map(lambda x: np.asarray(x)[()], plans)
        rewards = self.rewards(theta)
        how = []
        for mdp, added in zip(self.mdps, rewards, strict=True):
            other = dataclasses.replace(mdp, rewards=mdp.expected_rewards + added)
            solution = solve(other, plans, tolerance=1e-10, throw=False, max_iterations=10_000)
            period = f" of period {solution.cycle_period}" if solution.cycle_period else ""
            how.append(f"{solution.status}{period}")
        reason = f"{how[0]} at the parameters {place}"
        return _Found(theta, at, FitStatus.INNER, reason, np.nan, iterations)

    def rewards(self, theta: Floats) -> list[Floats]:
        """`[S, A]` of each MDP."""
        with jax.enable_x64(True):
            parameters = jnp.asarray(theta)
            return [
                np.asarray(rewards_of(self.question.reward, parameters, each.counts.shape))
                for each in self.environments
            ]


def _moved(at: _Evaluation, direction: Floats) -> float:
    """By how much a step moves a log-probability at most, if it is linear in the parameters."""
    return max(float(np.abs(score @ direction).max(initial=0.0)) for score in at.scores)


def _check_probable(first: _Evaluation, search: _Search, theta: Floats) -> None:
    """Raise where the demonstrator never does what was seen."""
    for environment, policy, mdp in zip(
        search.environments, first.policies, search.mdps, strict=True
    ):
        never = (np.asarray(environment.counts) > 0) & np.isneginf(policy)
        if never.any():
            state, action = np.argwhere(never)[0]
            with jax.enable_x64(True):
                acts = search.question.demonstrator(jnp.asarray(theta)).acts
            kind = type(acts).__name__
            raise ValueError(
                "`model` must give every decision that was seen a probability, as Boltzmann and "
                f"Mellowmax do, got {kind}, which gives "
                f"{named('action', int(action), mdp.action_labels)} in "
                f"{named('state', int(state), mdp.state_labels)} none"
            )


# The result.


def _estimate(
    search: _Search, found: _Found, names: tuple[str, ...], listed: list[Demonstrations]
) -> Estimate:
    at = found.at
    usable = at.usable
    k = len(names)
    null = search.null_space(at) if usable else np.zeros((k, 0))
    reason = found.reason
    if null.shape[1] and found.status is FitStatus.CONVERGED:
        reason = _why_not_identified(search, null)
    pairs = zip(at.scores, listed, strict=True)
    return Estimate(
        parameters=found.parameters,
        names=names,
        log_likelihood=at.log_likelihood if usable else np.nan,
        converged=found.status is FitStatus.CONVERGED,
        status=found.status,
        reason=reason,
        decrement=found.decrement,
        iterations=found.iterations,
        evaluations=search.evaluations,
        rank=k - null.shape[1] if usable else 0,
        null_space=null,
        policies=tuple(
            np.where(np.asarray(e.available), np.exp(p), 0.0)
            for e, p in zip(search.environments, at.policies, strict=True)
        ),
        rewards=tuple(search.rewards(found.parameters)),
        _hessian=at.hessian,
        _scores=np.concatenate([score[seen.states, seen.actions] for score, seen in pairs]),
        _weights=np.concatenate([seen.weights for seen in listed]),
        _episodes=joined_episodes(listed),
    )


def _why_not_identified(search: _Search, null: Floats) -> str:
    """What is known about the directions that change no policy."""
    if not isinstance(search.question.reward, Linear | Table) or len(search.mdps) > 1:
        return f"no decision depends on {null.shape[1]} directions of the parameters"
    mdp = search.mdps[0]
    unknown = np.stack([search.rewards(direction)[0] for direction in null.T], -1)
    unknown = unknown[mdp.available]  # [pairs, m]
    causes = []
    if _contains(unknown, np.ones((len(unknown), 1))):
        causes.append("a constant that is added to all rewards")
    if mdp.n_states <= 500:
        transitions, _ = mdp.to_numpy()
        shaping = mdp.discount * transitions - np.eye(mdp.n_states)[:, None]
        shaping = shaping[mdp.available][:, ~mdp.terminal]
        if null.shape[1] >= shaping.shape[1] and _contains(unknown, shaping):
            causes.append("shaping (a potential that every state gains or loses)")
    if not causes:
        causes = [f"{null.shape[1]} directions of the parameters"]
    return f"no decision depends on {', nor on '.join(causes)}"


def _contains(space: Floats, vectors: Floats) -> bool:
    """Are vectors in the space of some others?"""
    found, *_ = np.linalg.lstsq(space, vectors, rcond=None)
    return bool(np.abs(space @ found - vectors).max() < 1e-6)
