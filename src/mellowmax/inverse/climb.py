"""The climb of a likelihood: one evaluation, one step, and how it ends.

The gradient and the curvature come from those of the demonstrator's plan (`planning.fixed_point`),
solved for at every step: the nested fixed point algorithm (Rust, 1987). A step of Newton's method
goes along the inverse of the curvature, or, where that is not that of a maximum, along the inverse
of the Fisher information, the natural gradient (Neu and Szepesvari, 2007). It is halved until the
likelihood rises. Directions in which no decision becomes more or less probable are left alone.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Floats
from ..mdp import MDP
from ..planning import solve
from .estimate import FitProgress, FitStatus, complement
from .likelihood import Environment, Question, seen_from
from .rewards import rewards_of

__all__ = [
    "BOLDEST",
    "HALVINGS",
    "LEAP",
    "NOISE",
    "Climb",
    "Ended",
    "Evaluation",
    "Rule",
    "of_parameters",
]

HALVINGS = 40
NO_INFORMATION = 1e-7
"""Directions whose effect is below this part of the largest one are not identified."""
LEAP = 0.05
"""A step that promises nothing, and yet moves a log-probability by this, goes to infinity."""
BOLDEST = 10.0
"""A step moves no log-probability by more than this, if it were linear in the parameters."""
NOISE = 1e-11
"""Gains below this part of the log-likelihood are rounding."""
ASIDE = 1e-3
"""How far from where a climb ends a rise is looked for, where the first derivatives see none."""


class Rule(NamedTuple):
    """How to climb, and when to stop."""

    method: str
    tolerance: float
    max_iterations: int
    callback: Callable[[FitProgress], object] | None


class Evaluation(NamedTuple):
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


# One evaluation.


def of_parameters(
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


_program = jax.jit(of_parameters)


class Ended(NamedTuple):
    """Where a climb stands."""

    parameters: Floats
    at: Evaluation
    status: FitStatus
    reason: str
    decrement: float
    iterations: int


class _Step(NamedTuple):
    direction: Floats
    decrement: float
    concave: bool  # is the curvature that of a maximum?


@dataclasses.dataclass
class Climb:
    """The climb of one likelihood."""

    environments: list[Environment]
    question: Question
    penalty: Floats  # [k]
    mdps: list[MDP]
    rule: Rule
    evaluations: int = 0
    began: float = dataclasses.field(default_factory=time.perf_counter)

    def evaluate(self, theta: Floats) -> Evaluation:
        """All that is known at some parameters."""
        self.evaluations += 1
        with jax.enable_x64(True):
            result = _program(jnp.asarray(theta), self.environments, self.question)
        hessian, (gradient, scores, policies, ends) = jax.tree.map(np.asarray, result)
        seen = [np.asarray(each.counts) for each in self.environments]
        each = [np.sum(n * np.where(n > 0, p, 0.0)) for n, p in zip(seen, policies, strict=True)]
        total = float(np.sum(each))
        return Evaluation(
            value=total - float(self.penalty @ theta**2) / 2,
            log_likelihood=total,
            gradient=gradient - self.penalty * theta,
            hessian=(hessian + hessian.T) / 2 - np.diag(self.penalty),
            scores=scores,
            policies=policies,
            converged=all(bool(converged) for converged, _ in ends),
            regular=all(bool(regular) for _, regular in ends),
        )

    def information(self, at: Evaluation, penalty: Floats | None = None) -> Floats:
        """`[N, k]`, a matrix whose square is the Fisher information, and the penalty's."""
        rows = []
        for environment, score, policy in zip(
            self.environments, at.scores, at.policies, strict=True
        ):
            visits = np.sum(environment.counts, 1)[:, None]
            weight = np.sqrt(visits * np.exp(policy) * np.asarray(environment.available))
            rows.append((weight[..., None] * score).reshape(-1, score.shape[-1]))
        return np.concatenate([*rows, *([] if penalty is None else [np.diag(np.sqrt(penalty))])])

    def null_space(self, at: Evaluation) -> Floats:
        """`[k, m]`, an orthonormal basis of the directions that the policy does not depend on."""
        return _null_space(self.information(at))

    def step(self, at: Evaluation) -> _Step:
        """Where to go from here."""
        root = self.information(at, self.penalty)
        basis = complement(_null_space(root), len(at.gradient))
        if not basis.shape[1]:
            return _Step(np.zeros_like(at.gradient), 0.0, True)
        root = root @ basis
        fisher, curvature = root.T @ root, -basis.T @ at.hessian @ basis
        size = np.sqrt(np.diag(fisher))
        values = np.linalg.eigvalsh(curvature / size / size[:, None])
        concave = bool(values[0] > 1e-10 * abs(values[-1]))
        metric = curvature if concave and self.rule.method != "fisher" else fisher
        slope = basis.T @ at.gradient
        direction = np.linalg.solve(metric / size / size[:, None], slope / size) / size
        return _Step(basis @ direction, float(slope @ direction) / 2, concave)

    def run(self, theta: Floats, at: Evaluation) -> Ended:
        """Climb until another step promises nothing."""
        if not at.usable:
            return self._stuck(theta, at, 0)
        rule, iterations = self.rule, 0
        if rule.method == "bfgs":
            theta, at, iterations = self._bfgs(theta, at)
        refined = False
        while True:
            step = self.step(at)
            stopped = self._report(at, step.decrement, iterations)
            enough = max(rule.tolerance, NOISE * abs(at.value))
            if step.decrement <= enough:
                if refined or step.decrement <= NOISE**2:
                    return self._ended(theta, at, step, iterations)
                refined = True  # one more step makes the estimates exact
            if stopped:
                return Ended(theta, at, FitStatus.STOPPED, "", step.decrement, iterations)
            if iterations >= rule.max_iterations and not refined:
                status, why = FitStatus.OUT_OF_ITERATIONS, "more steps are needed"
                return Ended(theta, at, status, why, step.decrement, iterations)
            new, there = self._along(theta, at, step.direction)
            iterations += 1
            if there is None:
                if refined:
                    return self._ended(theta, at, step, iterations)
                last = self.evaluate(new)
                if not last.usable:
                    return self._stuck(new, last, iterations)._replace(decrement=step.decrement)
                why = "the likelihood does not rise along the step, however short it is"
                return Ended(theta, at, FitStatus.NO_ASCENT, why, step.decrement, iterations)
            theta, at = new, there

    def _report(self, at: Evaluation, decrement: float, iterations: int) -> bool:
        """Tell the callback how far the climb has come; does it want to stop?"""
        if self.rule.callback is None:
            return False
        seconds = time.perf_counter() - self.began
        tolerance = self.rule.tolerance
        progress = FitProgress(iterations, at.log_likelihood, decrement, tolerance, seconds)
        return bool(self.rule.callback(progress))

    def _along(
        self, theta: Floats, at: Evaluation, direction: Floats
    ) -> tuple[Floats, Evaluation | None]:
        """The first of ever shorter steps after which the likelihood is no lower."""
        new = theta
        direction = direction * min(1.0, BOLDEST / max(_moved(at, direction), 1e-300))
        for halving in range(HALVINGS):
            new = theta + direction / 2**halving
            there = self.evaluate(new)
            if there.usable and there.value >= at.value - NOISE * abs(at.value):
                return new, there
        return new, None

    def _bfgs(self, theta: Floats, at: Evaluation) -> tuple[Floats, Evaluation, int]:
        from scipy.optimize import minimize

        best: list[Any] = [theta, at]
        steps = 0

        def objective(x: Floats) -> tuple[float, Floats]:
            at = self.evaluate(x)
            if not at.usable:
                return 1e300, np.zeros_like(x)
            if at.value >= best[1].value:
                best[:] = [x.copy(), at]
            return -at.value, -at.gradient

        def after_a_step(_: Floats) -> None:
            nonlocal steps
            steps += 1
            if self._report(best[1], self.step(best[1]).decrement, steps):
                raise StopIteration

        options = {"maxiter": self.rule.max_iterations}
        minimize(objective, theta, jac=True, method="BFGS", options=options, callback=after_a_step)
        return best[0], best[1], steps

    def _ended(self, theta: Floats, at: Evaluation, step: _Step, iterations: int) -> Ended:
        """A step promises nothing: is it a maximum?"""
        status, reason = FitStatus.CONVERGED, ""
        if _moved(at, step.direction) > LEAP:
            status = FitStatus.UNBOUNDED
            reason = "the likelihood rises for ever as the parameters grow; a `penalty` stops them"
        elif not step.concave or self._rises_aside(theta, at):
            status = FitStatus.SADDLE
            reason = (
                "the gradient vanishes where the likelihood is not at a maximum; start elsewhere"
            )
        return Ended(theta, at, status, reason, step.decrement, iterations)

    def _rises_aside(self, theta: Floats, at: Evaluation) -> bool:
        """Does the likelihood rise where the first derivatives of all policies vanish?"""
        basis = self.null_space(at)
        if not basis.shape[1]:
            return False
        values, directions = np.linalg.eigh(basis.T @ at.hessian @ basis)
        any_way = directions @ np.cos(1.0 + np.arange(len(values)))  # a kink has no curvature
        steepest = directions[:, -1] if values[-1] > 0 else any_way / np.linalg.norm(any_way)
        aside = ASIDE * max(1.0, float(np.abs(theta).max())) * basis @ steepest
        for way in (aside, -aside):
            there = self.evaluate(theta + way)
            if there.usable and there.value > at.value + 1e3 * NOISE * max(1.0, abs(at.value)):
                return True
        return False

    def _stuck(self, theta: Floats, at: Evaluation, iterations: int) -> Ended:
        """Where the demonstrator's plan has no derivative, and why."""
        place = np.array2string(theta, precision=6, threshold=8)
        if at.converged and not at.regular:
            reason = f"two fixed points of the plan meet at the parameters {place}"
            return Ended(theta, at, FitStatus.AT_A_FOLD, reason, np.nan, iterations)
        with jax.enable_x64(True):
            plans = self.question.demonstrator_at(jnp.asarray(theta)).plans
            plans = jax.tree.map(lambda x: np.asarray(x)[()], plans)
        rewards = self.rewards(theta)
        how = []
        for mdp, added in zip(self.mdps, rewards, strict=True):
            other = dataclasses.replace(mdp, rewards=mdp.expected_rewards + added)
            solution = solve(other, plans, tolerance=1e-10, throw=False, max_iterations=10_000)
            period = f" of period {solution.cycle_period}" if solution.cycle_period else ""
            if not solution.converged:
                how.append(f"{solution.status}{period}")
        how.append("the derivatives of the plan are not finite")
        reason = f"{how[0]} at the parameters {place}"
        return Ended(theta, at, FitStatus.INNER, reason, np.nan, iterations)

    def rewards(self, theta: Floats) -> list[Floats]:
        """`[S, A]` of each MDP."""
        with jax.enable_x64(True):
            parameters = jnp.asarray(theta)
            return [
                np.asarray(rewards_of(self.question.reward, parameters, each.counts.shape))
                for each in self.environments
            ]


def _moved(at: Evaluation, direction: Floats) -> float:
    """By how much a step moves a log-probability at most, if it is linear in the parameters."""
    return max(float(np.abs(score @ direction).max(initial=0.0)) for score in at.scores)


def _null_space(root: Floats) -> Floats:
    """The directions that a matrix takes to 0, whatever the scales of its columns."""
    scale = np.linalg.norm(root, axis=0)
    scale = np.where(scale > NO_INFORMATION * scale.max(initial=0.0), scale, 1.0)
    _, values, directions = np.linalg.svd(np.linalg.qr(root / scale, mode="r"))
    small = np.ones(len(directions), np.bool_)
    small[: len(values)] = values <= NO_INFORMATION * max(values.max(initial=0.0), 1e-300)
    basis, _ = np.linalg.qr((directions[small] / scale).T)
    return basis
