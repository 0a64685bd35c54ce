"""Maximum likelihood: the parameters that make what was seen most probable.

The log-likelihood is a sum over decisions of the log-probability of the action that was taken.
`climb` has the steps that raise it: those of Newton's method, of the natural gradient, or of BFGS.
Directions in which no decision becomes more or less probable are left alone: `Estimate.null_space`
has them, and `identification` the reason. `decrement` is what another step promises to gain; unlike
the gradient, it does not depend on how the parameters are scaled.

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

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from .._common import checks
from .._common.shown import shown
from .._typing import ArrayLike, Floats
from ..mdp import MDP
from ..mdp.labels import named
from ..softmax import EpsilonGreedy, Max
from .climb import Climb, Ended, Evaluation, Rule
from .demonstrations import Demonstrations
from .demonstrator import AnyDemonstrator
from .estimate import Estimate, FitProgress, FitStatus, NotFittedError, joined_episodes
from .identification import why_not_identified
from .likelihood import Discount, Question, environments_of
from .rewards import Reward, names_of

__all__ = ["fit"]

METHODS = ("auto", "newton", "fisher", "bfgs")


def fit(
    mdp: MDP | Sequence[MDP],
    demonstrations: Demonstrations | Sequence[Demonstrations],
    reward: Reward,
    demonstrator: AnyDemonstrator,
    *,
    discount: Discount = None,
    initial: ArrayLike = 0.0,
    penalty: ArrayLike = 0.0,
    method: str = "auto",
    tolerance: float = 1e-8,
    max_iterations: int = 200,
    throw: bool = True,
    callback: Callable[[FitProgress], object] | None = None,
) -> Estimate:
    """The parameters under which demonstrations are most probable.

    Args:
        mdp: the MDP, or several that share the parameters; the reward is added to its own.
        demonstrations: what was seen, or a list with that of each MDP.
        reward: `Linear`, `Table`, or a function from the parameters to `[S, A]`.
        demonstrator: a `Softmax` that plans and acts, a `Demonstrator`, or a function from the
            parameters to one of these, to fit the parameter of the softmax too.
        discount: a number, or a function from the parameters to one; None for the MDP's own.
        initial: where to start, a number or `[k]`. With functions for `demonstrator` or
            `discount` there may be more parameters than `Linear` or `Table` have; these come after
            theirs.
        penalty: half of it times the sum of the squares of the parameters is subtracted from the
            log-likelihood; a number, or `[k]` for one of each parameter.
        method: `"newton"`, `"fisher"` (the natural gradient), or `"bfgs"`; `"auto"` is Newton's.
        tolerance: the fit ends when another step promises to gain no more than this.
        max_iterations: the most steps.
        throw: raise where it does not converge? Otherwise the status says so.
        callback: called before each step with the progress so far; a true result stops there.

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
    max_iterations = checks.whole("max_iterations", max_iterations, 1)
    mdps, listed, environments = environments_of(mdp, demonstrations)
    question = Question.of(reward, demonstrator, discount)
    start = checks.numbers("initial", initial)
    checks.finite("initial", start, ["parameter"])
    names = names_of("initial", start.shape, reward, mdps, more=question.more)
    question.check(mdps, len(names))
    weight = checks.numbers("penalty", penalty)
    if weight.shape not in ((), (len(names),)) or not ((weight >= 0) & (weight < np.inf)).all():
        rule = f"a finite number of at least 0, or {len(names)} of them"
        raise ValueError(f"`penalty` must be {rule}, got {shown(penalty)}")
    weight = np.broadcast_to(weight, len(names))
    if callback is not None:
        checks.function("callback", callback)
    to_do = Rule(method, tolerance, max_iterations, callback)
    climb = Climb(environments, question, weight, mdps, to_do)
    theta = np.broadcast_to(start, len(names)).astype(np.float64)
    first = climb.evaluate(theta)
    _check_probable(first, climb, theta)
    _check_moves(climb, theta)
    estimate = _estimate(climb, climb.run(theta, first), names, listed)
    if throw and not estimate.converged:
        raise NotFittedError(estimate)
    return estimate


def _check_probable(first: Evaluation, climb: Climb, theta: Floats) -> None:
    """Raise where the demonstrator never does what was seen."""
    for environment, policy, mdp in zip(
        climb.environments, first.policies, climb.mdps, strict=True
    ):
        never = (np.asarray(environment.counts) > 0) & np.isneginf(policy)
        if never.any():
            state, action = np.argwhere(never)[0]
            with jax.enable_x64(True):
                acts = climb.question.demonstrator_at(jnp.asarray(theta)).acts
            kind = type(acts).__name__
            raise ValueError(
                "`demonstrator` must give every decision that was seen a probability, as Boltzmann "
                f"and Mellowmax do, got {kind}, which gives "
                f"{named('action', int(action), mdp.action_labels)} in "
                f"{named('state', int(state), mdp.state_labels)} none"
            )


def _check_moves(climb: Climb, theta: Floats) -> None:
    """Raise where the policy has no slope, so that no step can be found."""
    with jax.enable_x64(True):
        acts = climb.question.demonstrator_at(jnp.asarray(theta)).acts
    if isinstance(acts, Max | EpsilonGreedy):
        raise ValueError(
            "`demonstrator` must act by a softmax whose policy moves with the action values, as "
            f"that of Boltzmann and Mellowmax, got {type(acts).__name__}"
        )


# The result.


def _estimate(
    climb: Climb, found: Ended, names: tuple[str, ...], listed: list[Demonstrations]
) -> Estimate:
    at = found.at
    usable = at.usable
    k = len(names)
    null = climb.null_space(at) if usable else np.zeros((k, 0))
    reason = found.reason
    if null.shape[1] and found.status is FitStatus.CONVERGED:
        reason = why_not_identified(
            climb.question, climb.mdps, climb.environments, found.parameters, null
        )
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
        evaluations=climb.evaluations,
        rank=k - null.shape[1] if usable else 0,
        null_space=null,
        policies=tuple(
            np.where(np.asarray(e.available), np.exp(p), 0.0)
            for e, p in zip(climb.environments, at.policies, strict=True)
        ),
        rewards=tuple(climb.rewards(found.parameters)),
        _hessian=at.hessian,
        _scores=np.concatenate([score[seen.states, seen.actions] for score, seen in pairs]),
        _weights=np.concatenate([seen.weights for seen in listed]),
        _episodes=joined_episodes(listed),
    )
