"""A policy that is given: the softmax whose weights do not depend on the values."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np

from .._rows.pytrees import pytree
from ..softmax import Softmax

__all__ = ["FixedPolicy"]


@pytree
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class FixedPolicy(Softmax):
    """The expected value under a policy of probabilities `[S, A]`."""

    non_expansion: ClassVar[bool] = True

    weights: Any

    def value(self, q: Any, *, axis: int = -1, where: Any = None) -> Any:
        """`sum(weights * q)`."""
        return (self._along(axis) * q).sum(axis)

    def policy(self, q: Any, *, axis: int = -1, where: Any = None) -> Any:
        """The weights."""
        return self._along(axis)

    def log_policy(self, q: Any, *, axis: int = -1, where: Any = None) -> Any:
        """Their logarithms."""
        with np.errstate(divide="ignore"):
            return np.log(self._along(axis))

    def gradient(self, q: Any, *, axis: int = -1, where: Any = None) -> Any:
        """The weights."""
        return self._along(axis)

    def _along(self, axis: int) -> Any:
        return self.weights.T if axis == 0 and self.weights.ndim == 2 else self.weights

    def __repr__(self) -> str:
        return "FixedPolicy()"
