"""How long episodes last: the factor from the residual of a sweep to the error of the values.

`kappa` is the discount times the largest probability that an episode goes on. Where it is below 1
no policy has an expected discounted number of steps above `1 / (1 - kappa)`. Where it is 1, every
policy ends all the same (`MDP` sees to that), and the largest expected number of steps is itself
the fixed point of planning: under the maximum, with a reward of 1 for each step. Any `h` with
`h >= 1 + P h` for all actions is an upper bound on it, which makes an approximate solution enough.
"""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

import jax
import numpy as np
from jax.sharding import PartitionSpec as P

from ..softmax import Max, Softmax
from .bellman import action_values, values
from .bounds import Margins
from .devices import largest, namespace
from .loop import StoppingRule, evidence_of, iterate
from .methods import newton_of
from .problem import Model, Problem

__all__ = ["Horizon", "horizon"]

TOLERANCE, MAX_ITERATIONS = 1e-3, 100_000
"""When the solve for the expected number of steps ends."""


class Horizon(NamedTuple):
    """How long episodes last under any policy."""

    kappa: float  # the discount times the largest probability that an episode goes on
    steps: float  # a bound on the expected discounted number of steps


def horizon(problem: Problem) -> Horizon:
    """The horizon of an MDP."""
    kappa = problem.mdp.discount * _continuation(problem)
    if kappa < 1:
        return Horizon(kappa, 1 / (1 - kappa))
    return Horizon(kappa, _most_steps(problem))


def _continuation(problem: Problem) -> float:
    """The largest probability that an episode goes on, allowing for rounding."""
    if problem.model.endless:
        return 1 + 1e-12
    return min(1.0, float(problem.call(_largest_continuation, P())) * (1 + 1e-12))


def _largest_continuation(model: Model, softmax: Softmax) -> jax.Array:
    """The largest probability of a step to a state that is not terminal."""
    xp = namespace(model.terminal)
    goes_on = xp.where(model.terminal, 0.0, 1.0)
    free = dataclasses.replace(model, rewards=xp.zeros_like(model.rewards), discount=1.0)
    return largest(values(free, Max(), action_values(free, goes_on)))


def _most_steps(problem: Problem) -> float:
    """A bound on the expected number of steps, where every policy ends."""
    mdp = problem.mdp
    rewards = np.broadcast_to(
        np.where(mdp.terminal, 0.0, 1.0)[:, None], mdp.probabilities.shape[:2]
    )
    counted = Problem.of(dataclasses.replace(mdp, rewards=rewards), Max(), problem.mesh)
    newton = newton_of(counted)
    state = iterate(newton, counted, StoppingRule(TOLERANCE, MAX_ITERATIONS), 0.0).state
    margins = Margins.of(evidence_of(newton, counted, state))
    most = max(float(counted.fetch(newton.action_values(state)).max()), 1.0)
    return most / (1 - margins.high) if margins.high < 1 else math.inf
