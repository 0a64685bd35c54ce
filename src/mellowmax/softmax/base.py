"""What a softmax is: four methods that an algorithm can rely on."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj

from .. import policies
from .._common import checks
from .._common.pytrees import register
from .._common.shown import shown
from .._rows.arguments import array_if_lists, check_parameter
from .._rows.libraries.tracing import truth
from .._rows.rows import move_axis
from .._typing import Actions, Array, ArrayLike, ArrayT, Key, Mask, Numbers, Parameter, Prior

__all__ = ["Softmax", "WithPrior", "check_field", "from_the_end", "over"]


class Softmax(ABC):
    """An operator on action values, and a policy whose actions earn its value.

    The policy of an *attained* softmax earns all of it: `sum(policy * q) == value`. The value of a
    *regularised* one has a bonus besides, `sum(policy * q) + bonus == value`, and its policy is the
    gradient of the value.

    Every method takes `q` with the actions along `axis`, in any array library, and a `where` of the
    actions that count.

    For one of your own, make a frozen dataclass whose fields are its parameters. They are data to
    JAX (but for those with `metadata={"static": True}`), so they may be arrays, one entry for each
    state, or for each setting of a learner.

    Examples:
        The mean of mellowmax and the maximum, and the mixture of their policies:

        >>> import dataclasses
        >>> from mellowmax import Max, Mellowmax
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

    if not TYPE_CHECKING:  # for a type checker, every subclass would take any arguments

        def __new__(cls, *args: object, **kwargs: object) -> Self:
            """Register the class with JAX, if its author has not done so by now."""
            pair = super().__new__(cls)
            register(cls)
            return pair

    non_expansion: ClassVar[bool] = False
    """Is the value proved to be a non-expansion, not to fall when an action gets better, and to
    move with a shift of all actions? Then planning has one fixed point, with an error bound."""

    attained: ClassVar[bool] = False
    """Does the policy earn the value, `sum(policy * q) == value`? Then there is no bonus. Without
    this promise the bonus is computed, which is right for every softmax."""

    smooth_policy: ClassVar[bool] = False
    """Is the policy a differentiable function of the action values, which a shift of all of them
    does not move? Then games can follow its equilibria."""

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
        """Probabilities of the actions, with `sum(policy * q) + bonus == value`."""

    @abstractmethod
    def log_policy(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """The logarithms of the probabilities, finite even where a positive one underflows."""

    @abstractmethod
    def gradient(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """The gradient of the value with respect to `q`: weights that sum to 1."""

    def bonus(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """What the value is worth beyond what the policy earns, `value - sum(policy * q)`.

        0 for an attained softmax. A regularised one pays a bonus for a policy that spreads, or
        takes one from a policy that is far from its prior.
        """
        value = self.value(q, axis=axis, where=where)
        xp = array_namespace(value) if is_array_api_obj(value) else np
        if self.attained:
            nothing = xp.zeros_like(value)
            return cast(ArrayT, nothing if nothing.ndim else nothing[()])
        policy = self.policy(q, axis=axis, where=where)
        taken = xp.where(policy > 0, array_if_lists(q), 0.0)  # 0 times -inf is 0 here
        return cast(ArrayT, value - xp.sum(policy * taken, axis=from_the_end(axis, q)))

    def action_bonus(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """A bonus for each action, whose mean under the policy is `bonus(q)`.

        What a sampled action is worth is its value and this: SARSA learns from it. A softmax that
        does not split its bonus gives all of it to every action.
        """
        whole = self.bonus(q, axis=axis, where=where)
        policy = self.policy(q, axis=axis, where=where)
        xp = array_namespace(policy)
        each = xp.expand_dims(xp.asarray(whole), axis=from_the_end(axis, q))
        return cast(ArrayT, each + 0 * policy)

    def largest_bonus(self, n_actions: int) -> float:
        """A bound on the bonus of `n_actions` actions."""
        checks.whole("n_actions", n_actions, 1)
        return 0.0 if self.attained else math.inf

    def sample(self, key: Key, q: ArrayLike, *, axis: int = -1, where: Mask = None) -> Actions:
        """An action for each row, drawn from the policy with the library's own random `key`."""
        return policies.sample(key, self.policy(q, axis=axis, where=where), axis=axis)


class WithPrior:
    """What a softmax with a prior does with it: a weight for each action, on its last axis."""

    prior: Any = None

    def __repr__(self) -> str:
        """The fields, without a prior that is none."""
        fields = dataclasses.fields(cast(Any, self))
        given = {field.name: getattr(self, field.name) for field in fields}
        shown_fields = (f"{k}={v!r}" for k, v in given.items() if k != "prior" or v is not None)
        return f"{type(self).__name__}({', '.join(shown_fields)})"

    def _check_prior(self) -> None:
        """Check the weights, and keep lists as arrays."""
        if self.prior is None:
            return
        prior = array_if_lists(self.prior, "prior")
        checks.unmasked("prior", prior)
        if not is_array_api_obj(prior) or cast(Array, prior).ndim == 0:
            raise TypeError(f"`prior` must be an array of weights, got {shown(self.prior)}")
        weights = cast(Array, prior)
        xp = array_namespace(weights)
        if not xp.isdtype(weights.dtype, ("bool", "integral", "real floating")):
            raise TypeError(f"`prior` must be real numbers, got an array of {weights.dtype}")
        if truth(xp.all((weights >= 0) & (weights < xp.inf))) is False:
            raise ValueError(f"`prior` must be finite and at least 0, got {shown(self.prior)}")
        if truth(xp.all(xp.any(weights > 0, axis=-1))) is False:
            raise ValueError(
                f"`prior` must have a weight above 0 in every row, got {shown(self.prior)}"
            )
        object.__setattr__(self, "prior", weights)

    def _prior_along(self, axis: int, q: object) -> Prior:
        """The prior with its actions where those of `q` are."""
        if self.prior is None or self.prior.ndim == 1:
            return cast(Prior, self.prior)
        return move_axis(array_namespace(self.prior), self.prior, -1, from_the_end(axis, q))

    def _largest_divergence(self, n_actions: int) -> float:
        """A bound on how far a policy can be from the prior: `-log` of its least weight."""
        checks.whole("n_actions", n_actions, 1)
        if self.prior is None:
            return math.log(n_actions)
        prior = np.asarray(self.prior, np.float64)
        least = float(np.min(prior / prior.sum(-1, keepdims=True)))
        return -math.log(least) if least > 0 else math.inf


def from_the_end(axis: int, q: object) -> int:
    """An axis of `q`, counted from the end: a parameter may add axes in front of a result."""
    ndim = np.ndim(cast(Any, q))
    return axis % ndim - ndim


def check_field(pair: Softmax, name: str, *bounds: float) -> None:
    """Check a parameter, and keep numbers as floats and lists as arrays."""
    value = getattr(pair, name)
    check_parameter(name, value, *bounds)
    if isinstance(value, int | np.generic):  # a plain float prints well, and JAX can trace it
        object.__setattr__(pair, name, float(value))
    elif isinstance(value, list | tuple):
        object.__setattr__(pair, name, np.asarray(value, np.float64))


def over(bound: float, parameter: Parameter) -> float:
    """A bound that falls as a parameter rises, at the least one of an array; infinity from 0 on."""
    least = float(np.min(np.asarray(parameter)))
    return bound / least if least > 0 else math.inf
