"""What a form of the matrix `I - J` of an MDP is; it is made once for an MDP."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import ClassVar, Protocol, Self

from ..._typing import Floats
from .entries import Weights

__all__ = ["LEFT", "Factors", "Form"]

LEFT = 1e-2
"""What a solution may leave of the right side, unless asked otherwise: Newton's next step corrects
it."""


class Factors(Protocol):
    """A matrix `I - J`, ready to solve with."""

    def solve(self, b: Floats, transposed: bool = False, left: float = LEFT) -> Floats:
        """`x` with `(I - J) x = b`, or with `(I - J)^T x = b`.

        A form that is not exact may leave that part of `b`.
        """
        ...


class Form(ABC):
    """A way to store `I - J` and to solve with it."""

    exact: ClassVar[bool] = True
    """Are its solutions exact, to rounding?"""
    discount: float

    @property
    @abstractmethod
    def words(self) -> str:
        """What it is called in the reason of a solution."""

    def undiscounted(self) -> Self:
        """The same for a discount of 1."""
        result = copy.copy(self)
        object.__setattr__(result, "discount", 1.0)
        return result

    @abstractmethod
    def factors(self, weights: Weights) -> Factors:
        """The matrix for weights of the actions."""
