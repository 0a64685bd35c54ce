"""Softmaxes whose policy attains their value: those of the paper, and resmax."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar

import numpy as np

from .. import operators, policies
from .._common import checks
from .._typing import ArrayT, Mask, Numbers
from .base import Softmax, WithPrior, check_field, over

__all__ = ["Boltzmann", "EpsilonGreedy", "Max", "Mean", "Mellowmax", "Resmax"]


@dataclasses.dataclass(frozen=True)
class Max(Softmax):
    """The maximum and the greedy policy (section 1).

    Examples:
        >>> softmax = Max()
        >>> print(softmax, softmax.value([0.0, 1.0]), softmax.policy([0.0, 1.0]))
        Max() 1.0 [0. 1.]
    """

    attained: ClassVar[bool] = True
    non_expansion: ClassVar[bool] = True

    def gap(self, n_actions: int) -> float:
        """There is none."""
        checks.whole("n_actions", n_actions, 1)
        return 0.0

    def value(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """`maximum(q)`."""
        return operators.maximum(q, axis=axis, where=where)

    def policy(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """`greedy_policy(q)`."""
        return policies.greedy_policy(q, axis=axis, where=where)

    def log_policy(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """`greedy_log_policy(q)`."""
        return policies.greedy_log_policy(q, axis=axis, where=where)

    def gradient(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """`maximum_gradient(q)`."""
        return operators.maximum_gradient(q, axis=axis, where=where)


@dataclasses.dataclass(frozen=True)
class Mean(Softmax):
    """The mean and the uniform policy (section 1).

    Examples:
        >>> softmax = Mean()
        >>> print(softmax, softmax.value([0.0, 1.0]), softmax.policy([0.0, 1.0]))
        Mean() 0.5 [0.5 0.5]
    """

    attained: ClassVar[bool] = True
    smooth_policy: ClassVar[bool] = True
    non_expansion: ClassVar[bool] = True

    def value(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """`mean(q)`."""
        return operators.mean(q, axis=axis, where=where)

    def policy(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """`uniform_policy(q)`."""
        return policies.uniform_policy(q, axis=axis, where=where)

    def log_policy(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """`uniform_log_policy(q)`."""
        return policies.uniform_log_policy(q, axis=axis, where=where)

    def gradient(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """`mean_gradient(q)`."""
        return operators.mean_gradient(q, axis=axis, where=where)


@dataclasses.dataclass(frozen=True)
class EpsilonGreedy(Softmax):
    """The mean and the maximum mixed, and the epsilon-greedy policy (section 1).

    Examples:
        >>> softmax = EpsilonGreedy(0.1)
        >>> print(softmax, softmax.value([0.0, 1.0]), softmax.policy([0.0, 1.0]))
        EpsilonGreedy(epsilon=0.1) 0.95 [0.05 0.95]
    """

    attained: ClassVar[bool] = True
    non_expansion: ClassVar[bool] = True

    epsilon: Any
    """The probability of a uniformly random action, in [0, 1]: a number, or an array of them."""

    def __post_init__(self) -> None:
        check_field(self, "epsilon", 0.0, 1.0)

    def value(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """`epsilon_greedy(q, epsilon)`."""
        return operators.epsilon_greedy(q, self.epsilon, axis=axis, where=where)

    def policy(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """`epsilon_greedy_policy(q, epsilon)`."""
        return policies.epsilon_greedy_policy(q, self.epsilon, axis=axis, where=where)

    def log_policy(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """`epsilon_greedy_log_policy(q, epsilon)`."""
        return policies.epsilon_greedy_log_policy(q, self.epsilon, axis=axis, where=where)

    def gradient(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """`epsilon_greedy_gradient(q, epsilon)`."""
        return operators.epsilon_greedy_gradient(q, self.epsilon, axis=axis, where=where)


@dataclasses.dataclass(frozen=True)
class Boltzmann(Softmax):
    """The Boltzmann softmax and its policy (sections 1 and 2).

    Examples:
        >>> softmax = Boltzmann(2.0)
        >>> print(softmax, softmax.value([0.0, 1.0]).round(4), softmax.policy([0.0, 1.0]).round(4))
        Boltzmann(beta=2.0) 0.8808 [0.1192 0.8808]
    """

    attained: ClassVar[bool] = True
    smooth_policy: ClassVar[bool] = True

    beta: Any
    """The inverse temperature: any number, or an array of them."""

    def __post_init__(self) -> None:
        check_field(self, "beta")

    def gap(self, n_actions: int) -> float:
        """`log(n_actions) / beta`, as `beta` times the value is log(sum e^(beta q)) - entropy."""
        return over(math.log(checks.whole("n_actions", n_actions, 1)), self.beta)

    def curvature(self, width: float) -> float:
        """`(2 |beta| + beta^2 width) / 4`, from the policy's second and third moments.

        Along `q + t c` the second derivative is `2 beta Var(c) + beta^2 E[(q - Eq)(c - Ec)^2]`, and
        a variable whose values differ by at most 1 has a variance of at most 1/4.
        """
        width = checks.real("width", width, 0.0)
        beta = float(np.max(np.abs(np.asarray(self.beta))))
        return (2 * beta + beta * beta * width) / 4

    def value(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """`boltzmann(q, beta)`."""
        return operators.boltzmann(q, self.beta, axis=axis, where=where)

    def policy(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """`boltzmann_policy(q, beta)`."""
        return policies.boltzmann_policy(q, self.beta, axis=axis, where=where)

    def log_policy(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """`boltzmann_log_policy(q, beta)`."""
        return policies.boltzmann_log_policy(q, self.beta, axis=axis, where=where)

    def gradient(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """`boltzmann_gradient(q, beta)`, which can be negative."""
        return operators.boltzmann_gradient(q, self.beta, axis=axis, where=where)


@dataclasses.dataclass(frozen=True, repr=False)
class Mellowmax(WithPrior, Softmax):
    """Mellowmax and its maximum-entropy policy (sections 5 and 6).

    With a prior, the policy is the one nearest to the prior that earns the mellowmax of that prior.

    Examples:
        >>> softmax = Mellowmax(2.0)
        >>> print(softmax, softmax.value([0.0, 1.0]).round(4), softmax.policy([0.0, 1.0]).round(4))
        Mellowmax(omega=2.0) 0.7169 [0.2831 0.7169]
        >>> softmax = Mellowmax(2.0, prior=[0.5, 0.3, 0.2])
        >>> print(softmax.value([1.0, 1.5, 3.0]).round(4), softmax.policy([1.0, 1.5, 3.0]).round(4))
        2.2522 [0.2172 0.2089 0.5738]
    """

    attained: ClassVar[bool] = True
    smooth_policy: ClassVar[bool] = True
    non_expansion: ClassVar[bool] = True

    omega: Any
    """How near to the maximum: any number, or an array of them."""
    prior: Any = dataclasses.field(default=None, kw_only=True)
    """A weight for each action, on the last axis of an array; None for equal ones."""

    def __post_init__(self) -> None:
        check_field(self, "omega")
        self._check_prior()

    def gap(self, n_actions: int) -> float:
        """`log(n_actions) / omega`: a mean is no less than its largest term over n (section 5).

        With a prior, minus the logarithm of its least weight over omega.
        """
        return over(self._largest_divergence(n_actions), self.omega)

    def value(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """`mellowmax(q, omega)`."""
        prior = self._prior_along(axis, q)
        return operators.mellowmax(q, self.omega, axis=axis, where=where, prior=prior)

    def policy(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """`mellowmax_policy(q, omega)`."""
        prior = self._prior_along(axis, q)
        return policies.mellowmax_policy(q, self.omega, axis=axis, where=where, prior=prior)

    def log_policy(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """`mellowmax_log_policy(q, omega)`."""
        prior = self._prior_along(axis, q)
        return policies.mellowmax_log_policy(q, self.omega, axis=axis, where=where, prior=prior)

    def gradient(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """`mellowmax_gradient(q, omega)`."""
        prior = self._prior_along(axis, q)
        return operators.mellowmax_gradient(q, self.omega, axis=axis, where=where, prior=prior)


@dataclasses.dataclass(frozen=True)
class Resmax(Softmax):
    """Inverse gap weighting (Abe and Long, 1999) and what it earns: no exponential, heavy tails.

    A non-expansion whose policy gives each action but the best `1 / (n + eta gap)`.

    Examples:
        >>> softmax = Resmax(2.0)
        >>> print(softmax, softmax.value([0.0, 1.0]), softmax.policy([0.0, 1.0]))
        Resmax(eta=2.0) 0.75 [0.25 0.75]
    """

    attained: ClassVar[bool] = True
    non_expansion: ClassVar[bool] = True

    eta: Any
    """How near to the maximum: any number, or an array of them."""

    def __post_init__(self) -> None:
        check_field(self, "eta")

    def gap(self, n_actions: int) -> float:
        """`(n_actions - 1) / eta`, as each action but the best takes less than `1 / eta`."""
        return over(checks.whole("n_actions", n_actions, 1) - 1.0, self.eta)

    def value(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """`resmax(q, eta)`."""
        return operators.resmax(q, self.eta, axis=axis, where=where)

    def policy(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """`resmax_policy(q, eta)`."""
        return policies.resmax_policy(q, self.eta, axis=axis, where=where)

    def log_policy(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """`resmax_log_policy(q, eta)`."""
        return policies.resmax_log_policy(q, self.eta, axis=axis, where=where)

    def gradient(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """`resmax_gradient(q, eta)`."""
        return operators.resmax_gradient(q, self.eta, axis=axis, where=where)
