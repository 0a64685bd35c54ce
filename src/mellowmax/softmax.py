"""Softmaxes: a softmax is an operator and the policy that attains its value.

`sum(softmax.policy(q) * q) == softmax.value(q)` for every softmax here. Planning uses the value and
its gradient, tabular learning samples the policy, policy gradient uses its log-probabilities: an
algorithm that takes a `Softmax` works with any of them, and with yours: a subclass with the four
methods, and nothing to be registered.

They are frozen and hashable, and JAX sees through them: their parameter is data, so one
compiled function serves a sweep over it.

This is a module, not a function. What machine learning calls the softmax function, `exp(q)` divided
by its sum, is `mellowmax.boltzmann_policy(q, 1.0)`; its logarithm is `boltzmann_log_policy`. The
operators as functions are `mellowmax.boltzmann`, `mellowmax.mellowmax` and the others of
`mellowmax.operators`, and the policies those of `mellowmax.policies`.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from . import operators, policies
from ._common import checks
from ._common.pytrees import register
from ._rows.arguments import check_parameter
from ._typing import Actions, ArrayLike, ArrayT, Key, Mask, Numbers, Parameter

__all__ = ["SOFTMAXES", "Boltzmann", "EpsilonGreedy", "Max", "Mean", "Mellowmax", "Softmax"]


class Softmax(ABC):
    """An operator on action values and the policy that attains its value.

    Every method takes `q` with the actions along `axis`, in any array library, and a `where` of the
    actions that count.

    For one of your own, make a frozen dataclass whose fields are its parameters. They are data to
    JAX (but for those with `metadata={"static": True}`), so they may be arrays, one entry for each
    state, or for each setting of a learner.

    Examples:
        The mean of mellowmax and the maximum, and the mixture of their policies:

        >>> @dataclasses.dataclass(frozen=True)
        ... class HalfGreedy(Softmax):
        ...     omega: float
        ...     non_expansion = True
        ...     def value(self, q, *, axis=-1, where=None):
        ...         return self._mixture("value", q, axis, where)
        ...     def policy(self, q, *, axis=-1, where=None):
        ...         return self._mixture("policy", q, axis, where)
        ...     def log_policy(self, q, *, axis=-1, where=None):
        ...         policy = self.policy(q, axis=axis, where=where)
        ...         return array_namespace(policy).log(policy)
        ...     def gradient(self, q, *, axis=-1, where=None):
        ...         return self._mixture("gradient", q, axis, where)
        ...     def _mixture(self, method, q, axis, where):
        ...         pairs = Mellowmax(self.omega), Max()
        ...         soft, hard = (getattr(p, method)(q, axis=axis, where=where) for p in pairs)
        ...         return (soft + hard) / 2
        >>> from array_api_compat import array_namespace
        >>> from mellowmax.mdp import two_state
        >>> from mellowmax.planning import solve
        >>> solve(two_state(), HalfGreedy(16.55)).value.round(4)
        array([0.5867, 0.    ])
    """

    if not TYPE_CHECKING:  # which would take any arguments for those of every subclass

        def __new__(cls, *args: object, **kwargs: object) -> Self:
            """An object, and its class made known to JAX: by now it has all its fields."""
            pair = super().__new__(cls)
            register(cls)
            return pair

    non_expansion: ClassVar[bool] = False
    """Is the value proved to be a non-expansion, not to fall when an action gets better, and to
    move with a shift of all actions? Then planning has one fixed point, with an error bound."""

    def gap(self, n_actions: int) -> float:
        """A bound on how far the value of `n_actions` actions can be below their maximum."""
        checks.whole("n_actions", n_actions, 1)
        return math.inf

    def curvature(self, width: float) -> float:
        """A bound on the second derivative of the value along a line.

        It holds where the values of a row differ by at most `width`, for a direction whose entries
        differ by at most 1. Infinity where there is none.
        """
        checks.real("width", width, 0.0)
        return math.inf

    @abstractmethod
    def value(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """One value for each row."""

    @abstractmethod
    def policy(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """Probabilities of the actions, with `sum(policy * q) == value`."""

    @abstractmethod
    def log_policy(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """Their logarithms, finite wherever a probability is not 0 but underflows."""

    @abstractmethod
    def gradient(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """The gradient of the value with respect to `q`: weights that sum to 1."""

    def bonus(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """What the value has beyond what the policy earns: `value == sum(policy * q) + bonus`.

        0, since the policy of most softmaxes attains their value. A regularised one pays a bonus
        for a policy that spreads, or charges for one that does not.
        """
        return self.value(q, axis=axis, where=where) * 0

    def sample(self, key: Key, q: ArrayLike, *, axis: int = -1, where: Mask = None) -> Actions:
        """An action for each row, drawn from the policy with the library's own random `key`."""
        return policies.sample(key, self.policy(q, axis=axis, where=where), axis=axis)


@dataclasses.dataclass(frozen=True)
class Max(Softmax):
    """The maximum and the greedy policy (section 1).

    Examples:
        >>> softmax = Max()
        >>> print(softmax, softmax.value([0.0, 1.0]), softmax.policy([0.0, 1.0]))
        Max() 1.0 [0. 1.]
    """

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

    non_expansion: ClassVar[bool] = True

    epsilon: Any
    """The probability of a uniformly random action, in [0, 1]: a number, or an array of them."""

    def __post_init__(self) -> None:
        _check_field(self, "epsilon", 0.0, 1.0)

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

    beta: Any
    """The inverse temperature: any number, or an array of them."""

    def __post_init__(self) -> None:
        _check_field(self, "beta")

    def gap(self, n_actions: int) -> float:
        """`log(n_actions) / beta`, as `beta` times the value is log(sum e^(beta q)) - entropy."""
        return _log_over(n_actions, self.beta)

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


@dataclasses.dataclass(frozen=True)
class Mellowmax(Softmax):
    """Mellowmax and its maximum-entropy policy (sections 5 and 6).

    Examples:
        >>> softmax = Mellowmax(2.0)
        >>> print(softmax, softmax.value([0.0, 1.0]).round(4), softmax.policy([0.0, 1.0]).round(4))
        Mellowmax(omega=2.0) 0.7169 [0.2831 0.7169]
    """

    non_expansion: ClassVar[bool] = True

    omega: Any
    """How near to the maximum: any number, or an array of them."""

    def __post_init__(self) -> None:
        _check_field(self, "omega")

    def gap(self, n_actions: int) -> float:
        """`log(n_actions) / omega`: a mean is no less than its largest term over n (section 5)."""
        return _log_over(n_actions, self.omega)

    def value(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """`mellowmax(q, omega)`."""
        return operators.mellowmax(q, self.omega, axis=axis, where=where)

    def policy(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """`mellowmax_policy(q, omega)`."""
        return policies.mellowmax_policy(q, self.omega, axis=axis, where=where)

    def log_policy(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """`mellowmax_log_policy(q, omega)`."""
        return policies.mellowmax_log_policy(q, self.omega, axis=axis, where=where)

    def gradient(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """`mellowmax_gradient(q, omega)`."""
        return operators.mellowmax_gradient(q, self.omega, axis=axis, where=where)


SOFTMAXES: dict[str, type[Softmax]] = {
    "max": Max,
    "mean": Mean,
    "epsilon-greedy": EpsilonGreedy,
    "boltzmann": Boltzmann,
    "mellowmax": Mellowmax,
}
"""The softmaxes by the names that the command line and the experiments use."""


def _check_field(pair: Softmax, name: str, *bounds: float) -> None:
    value = getattr(pair, name)
    check_parameter(name, value, *bounds)
    if isinstance(value, int | np.generic):  # a plain float prints well, and JAX can trace it
        object.__setattr__(pair, name, float(value))
    elif isinstance(value, list | tuple):
        object.__setattr__(pair, name, np.asarray(value, np.float64))


def _log_over(n_actions: int, parameter: Parameter) -> float:
    least = float(np.min(np.asarray(parameter)))
    return math.log(checks.whole("n_actions", n_actions, 1)) / least if least > 0 else math.inf
