"""Checks of arguments: an error says the argument, the rule, and what came where.

What is of the wrong kind (text for a number, a class for its instance) raises TypeError; what is of
the right kind and has the wrong value or shape raises ValueError.
"""

from __future__ import annotations

import math
import operator
from numbers import Real
from types import UnionType
from typing import Any, SupportsIndex, cast

import numpy as np
import numpy.typing as npt

from .._rows.arguments import check_unmasked
from .._typing import Bools, Floats, Shape

__all__ = [
    "array",
    "finite",
    "instance",
    "integers",
    "mask",
    "numbers",
    "raise_where",
    "real",
    "whole",
]


def instance(name: str, value: object, kind: type | UnionType, rule: str) -> None:
    """An object of a class, or of one of several, and not the class itself."""
    if isinstance(value, kind):
        return
    got = f"the class {value.__name__}" if isinstance(value, type) else repr(value)
    raise TypeError(f"`{name}` must be {rule}, got {got}")


def array(name: str, values: object) -> npt.NDArray[Any]:
    """Anything array-like but a masked array, as NumPy has it."""
    check_unmasked(name, values)
    try:
        return np.asarray(values)
    except ValueError as error:  # rows of different lengths
        raise ValueError(f"`{name}` must be an array, got a ragged list") from error


def numbers(name: str, values: object) -> Floats:
    """An array of real numbers in float64."""
    result = array(name, values)
    if result.dtype.kind not in "fiub":
        raise TypeError(f"`{name}` must be an array of numbers, got one of {result.dtype}")
    return result.astype(np.float64, copy=False)


def integers(name: str, values: object, shape: Shape | None = None) -> npt.NDArray[Any]:
    """An array of integers; an empty list is one too."""
    result = array(name, values)
    wrong = result.dtype.kind not in "iu" and result.size > 0
    if wrong or (shape is not None and result.shape != shape):
        like = "" if shape is None else f" with the shape {shape}"
        got = f"{result.dtype} with {result.shape}"
        error = TypeError if wrong else ValueError
        raise error(f"`{name}` must be integers{like}, got {got}")
    return result


def mask(name: str, values: object, shape: Shape) -> Bools | None:
    """A boolean array of a shape, or None."""
    if values is None:
        return None
    result = array(name, values)
    if result.shape != shape or result.dtype != np.bool_:
        got = f"{result.dtype} with {result.shape}"
        error = ValueError if result.dtype == np.bool_ else TypeError
        raise error(f"`{name}` must be boolean with the shape {shape}, got {got}")
    return result


def finite(name: str, values: Floats) -> None:
    """No infinity and no NaN."""
    bad: Bools = np.logical_not(np.isfinite(values))
    raise_where(bad, f"`{name}` must be finite", values)


def raise_where(bad: Bools, rule: str, values: npt.NDArray[Any]) -> None:
    """Raise for the first bad entry: the rule, the value got, and where."""
    if bad.any():
        at = np.unravel_index(int(bad.argmax()), bad.shape)
        names = ("state", "action", "branch")
        place = ", ".join(f"{name} {int(i)}" for name, i in zip(names, at, strict=False))
        raise ValueError(f"{rule}, got {values[at]:.10g} in {place}")


def whole(name: str, value: object, least: int, most: int | None = None) -> int:
    """A whole number in a range."""
    try:
        result = operator.index(cast(SupportsIndex, value))
    except TypeError:
        result = least - 1
    if result < least or (most is not None and result > most):
        rule = f"of at least {least}" if most is None else f"in [{least}, {most}]"
        error = ValueError if isinstance(value, Real) else TypeError
        raise error(f"`{name}` must be a whole number {rule}, got {value!r}")
    return result


def real(name: str, value: object, low: float = -math.inf, high: float = math.inf) -> float:
    """A finite number in a range."""
    number = cast(float, value)  # mypy knows no order of `Real`
    if not (isinstance(value, Real) and low <= number <= high and math.isfinite(number)):
        rule = "a finite number" if math.isinf(low) else f"in [{low:g}, {high:g}]"
        error = ValueError if isinstance(value, Real) else TypeError
        raise error(f"`{name}` must be {rule}, got {value!r}")
    return float(number)
