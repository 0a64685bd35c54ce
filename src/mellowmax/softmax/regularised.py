"""Softmaxes whose value is the best that a policy can earn together with its bonus.

The value is the largest `sum(p * q) + bonus(p)` over all policies `p`. The policy at which it is
reached is the gradient of the value, so the value is a non-expansion: a mean of the moves of `q` is
no larger than the largest of them.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar, cast

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj

from .. import operators, policies
from .._common import checks
from .._rows.arguments import array_if_lists
from .._typing import ArrayT, Mask, Numbers, Parameter
from .base import Softmax, WithPrior, check_field, from_the_end, over

__all__ = ["FreeEnergy", "LogSumExp", "Sparsemax"]


class _Logit(WithPrior, Softmax):
    """What log-sum-exp and the free energy share: Boltzmann's policy, the gradient of the value."""

    non_expansion: ClassVar[bool] = True
    smooth_policy: ClassVar[bool] = True

    beta: Any

    def policy(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """`boltzmann_policy(q, beta)`."""
        prior = self._prior_along(axis, q)
        return policies.boltzmann_policy(q, self.beta, axis=axis, where=where, prior=prior)

    def log_policy(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """`boltzmann_log_policy(q, beta)`."""
        prior = self._prior_along(axis, q)
        return policies.boltzmann_log_policy(q, self.beta, axis=axis, where=where, prior=prior)

    def gradient(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """The policy."""
        return self.policy(q, axis=axis, where=where)

    def action_bonus(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """`value - q`, which is `-log(policy) / beta`, or `-log(policy / prior) / beta`."""
        value = self.value(q, axis=axis, where=where)
        xp = array_namespace(value) if is_array_api_obj(value) else np
        each = xp.expand_dims(xp.asarray(value), axis=from_the_end(axis, q))
        return cast(ArrayT, each - array_if_lists(q))


@dataclasses.dataclass(frozen=True)
class LogSumExp(_Logit):
    """`log(sum(exp(beta q))) / beta`, the value of soft Q-learning, and Boltzmann's policy.

    Discrete soft actor-critic and the logit models of econometrics (Rust, 1987) have it too. The
    bonus is the entropy of the policy over beta. `FreeEnergy(beta)` is the same without the
    `log(n) / beta` that n actions of one value are worth more than one of them.

    That constant counts. It is paid again in every step: an agent is paid to go on. In a state with
    four actions, each of which costs 1, and one of which ends the episode, log-sum-exp at 1
    (discount 0.99) leaves with a probability of 2e-5, the free energy with 0.72, and mellowmax with
    0.48. The values differ by a constant only where all states have equally many actions and no
    episode ends.

    Examples:
        >>> softmax = LogSumExp(2.0)
        >>> print(softmax, softmax.value([0.0, 1.0]).round(4), softmax.policy([0.0, 1.0]).round(4))
        LogSumExp(beta=2.0) 1.0635 [0.1192 0.8808]
        >>> print(softmax.bonus([0.0, 1.0]).round(4))
        0.1827
    """

    beta: Any
    """The inverse temperature: any number but 0, or an array of them."""

    def __post_init__(self) -> None:
        check_field(self, "beta")

    def gap(self, n_actions: int) -> float:
        """0: the value is above the maximum."""
        checks.whole("n_actions", n_actions, 1)
        return over(0.0, self.beta)

    def largest_bonus(self, n_actions: int) -> float:
        """`log(n_actions) / beta`, that of the uniform policy."""
        return _most(math.log(checks.whole("n_actions", n_actions, 1)), self.beta)

    def value(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """`log_sum_exp(q, beta)`."""
        return operators.log_sum_exp(q, self.beta, axis=axis, where=where)


@dataclasses.dataclass(frozen=True, repr=False)
class FreeEnergy(_Logit):
    """`log(sum(prior * exp(beta q))) / beta`, and Boltzmann's policy with that prior.

    The value is mellowmax. The policy is the gradient of mellowmax, not the policy that earns it.
    G-learning (Fox and others, 2016) and linearly solvable MDPs (Todorov, 2006), both cited in
    section 8, use this softmax: a policy pays `1 / beta` for every nat between it and its prior, so
    the bonus is `-kl(policy, prior) / beta`. Without a prior all actions have the same weight.

    Examples:
        >>> softmax = FreeEnergy(2.0)
        >>> print(softmax, softmax.value([0.0, 1.0]).round(4), softmax.policy([0.0, 1.0]).round(4))
        FreeEnergy(beta=2.0) 0.7169 [0.1192 0.8808]
        >>> print(softmax.bonus([0.0, 1.0]).round(4))
        -0.1639
        >>> print(FreeEnergy(2.0, prior=[0.5, 0.3, 0.2]).policy([1.0, 1.5, 3.0]).round(4))
        [0.0409 0.0667 0.8925]
    """

    beta: Any
    """The inverse temperature: any number, or an array of them."""
    prior: Any = dataclasses.field(default=None, kw_only=True)
    """A weight for each action, on the last axis of an array; None for equal ones."""

    def __post_init__(self) -> None:
        check_field(self, "beta")
        self._check_prior()

    def gap(self, n_actions: int) -> float:
        """`log(n_actions) / beta`; with a prior, minus the log of its least weight over beta."""
        return over(self._largest_divergence(n_actions), self.beta)

    def largest_bonus(self, n_actions: int) -> float:
        """0, as a policy pays for being far from its prior; more where beta is negative."""
        return _most(-self._largest_divergence(n_actions), self.beta)

    def value(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """`mellowmax(q, beta)`."""
        prior = self._prior_along(axis, q)
        return operators.mellowmax(q, self.beta, axis=axis, where=where, prior=prior)


@dataclasses.dataclass(frozen=True)
class Sparsemax(Softmax):
    """The point of the simplex nearest to `beta q`, and the value whose gradient it is.

    Actions far below the best get exactly 0. The bonus is `(1 - sum(policy^2)) / (2 beta)`, the
    Tsallis entropy of order 2 over beta (Lee and others, 2018).

    Examples:
        >>> softmax = Sparsemax(1.0)
        >>> print(softmax, softmax.value([0.0, 0.5, 1.0]), softmax.policy([0.0, 0.5, 1.0]))
        Sparsemax(beta=1.0) 1.0625 [0.   0.25 0.75]
    """

    non_expansion: ClassVar[bool] = True

    beta: Any
    """The inverse temperature: any number but 0, or an array of them."""

    def __post_init__(self) -> None:
        check_field(self, "beta")

    def gap(self, n_actions: int) -> float:
        """0: the value is above the maximum."""
        checks.whole("n_actions", n_actions, 1)
        return over(0.0, self.beta)

    def largest_bonus(self, n_actions: int) -> float:
        """`(1 - 1 / n_actions) / (2 beta)`, that of the uniform policy."""
        return _most((1 - 1 / checks.whole("n_actions", n_actions, 1)) / 2, self.beta)

    def value(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """`sparsemax(q, beta)`."""
        return operators.sparsemax(q, self.beta, axis=axis, where=where)

    def policy(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """`sparsemax_policy(q, beta)`."""
        return policies.sparsemax_policy(q, self.beta, axis=axis, where=where)

    def log_policy(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """`sparsemax_log_policy(q, beta)`."""
        return policies.sparsemax_log_policy(q, self.beta, axis=axis, where=where)

    def gradient(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """The policy."""
        return self.policy(q, axis=axis, where=where)


def _most(bound: float, parameter: Parameter) -> float:
    """The largest `bound / parameter` of an array, or 0."""
    each = np.asarray(parameter, np.float64) + 0.0  # so that -0.0 is 0.0
    with np.errstate(divide="ignore"):
        return max(float(np.max(bound / each)), 0.0) if bound else 0.0
