"""What a softmax is: four methods that an algorithm can rely on."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Self, cast

import numpy as np

from .. import policies
from .._common import checks
from .._common.pytrees import register
from .._rows.arguments import check_parameter
from .._typing import Actions, ArrayLike, ArrayT, Key, Mask, Numbers

__all__ = ["Softmax", "check_field"]


class Softmax(ABC):
    """An operator on action values and the policy that attains its value.

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
        return cast(ArrayT, self.value(q, axis=axis, where=where) * 0)

    def sample(self, key: Key, q: ArrayLike, *, axis: int = -1, where: Mask = None) -> Actions:
        """An action for each row, drawn from the policy with the library's own random `key`."""
        return policies.sample(key, self.policy(q, axis=axis, where=where), axis=axis)


def check_field(pair: Softmax, name: str, *bounds: float) -> None:
    """Check a parameter, and keep numbers as floats and lists as arrays."""
    value = getattr(pair, name)
    check_parameter(name, value, *bounds)
    if isinstance(value, int | np.generic):  # a plain float prints well, and JAX can trace it
        object.__setattr__(pair, name, float(value))
    elif isinstance(value, list | tuple):
        object.__setattr__(pair, name, np.asarray(value, np.float64))
