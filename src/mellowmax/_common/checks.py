"""Checks of arguments: an error says the argument, the rule, and the value with its place.

What is of the wrong kind (text for a number, a class for its instance) raises TypeError; what is of
the right kind and has the wrong value or shape raises ValueError.
"""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Collection, Iterable, Sequence, Sized
from numbers import Real
from pathlib import Path
from types import UnionType
from typing import Any, SupportsIndex, cast

import numpy as np
import numpy.typing as npt

from .._typing import Bools, Floats, Shape
from .shown import shown

__all__ = [
    "array",
    "file_path",
    "finite",
    "function",
    "generator",
    "instance",
    "instances",
    "integers",
    "mask",
    "numbers",
    "one_of",
    "raise_where",
    "real",
    "text",
    "unmasked",
    "whole",
]

LARGEST = 2**63 - 1
"""A whole number that counts something, or is an index, is at most this."""


def instance(name: str, value: object, kind: type | UnionType, rule: str) -> None:
    """An object of a class, or of one of several, and not the class itself."""
    if not isinstance(value, kind):
        raise TypeError(f"`{name}` must be {rule}, got {shown(value)}")


def instances(name: str, values: object, kind: type | UnionType, rule: str) -> list[Any]:
    """A list of objects of a class, from whatever can be iterated over."""
    try:
        result = list(cast(Iterable[object], values))
    except TypeError:
        result = [values]
    if isinstance(values, str) or not all(isinstance(one, kind) for one in result):
        raise TypeError(f"`{name}` must be {rule}, got {shown(values)}")
    return result


def function(name: str, value: object, rule: str = "a function") -> None:
    """Something that can be called."""
    if not callable(value):
        raise TypeError(f"`{name}` must be {rule}, got {shown(value)}")


def text(name: str, value: object) -> str:
    """A text."""
    if not isinstance(value, str):
        raise TypeError(f"`{name}` must be a text, got {shown(value)}")
    return value


def one_of(name: str, value: object, names: Collection[str]) -> str:
    """A text that is one of some names."""
    if isinstance(value, str) and value in names:
        return value
    error = ValueError if isinstance(value, str) else TypeError
    raise error(f"`{name}` must be one of {', '.join(names)}, got {shown(value)}")


def file_path(name: str, value: object) -> Path:
    """The path of a file or a directory."""
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"`{name}` must be a path, got {shown(value)}")
    return Path(value)


def array(name: str, values: object) -> npt.NDArray[Any]:
    """Anything array-like but a masked array, as a NumPy array."""
    unmasked(name, values)
    try:
        return np.asarray(values)
    except ValueError as error:  # rows of different lengths
        raise ValueError(f"`{name}` must be an array, got a ragged list") from error


def unmasked(name: str, *values: object) -> None:
    """Raise for a masked NumPy array, or a list with one: its mask would be lost."""
    for value in values:
        if isinstance(value, np.ma.MaskedArray):
            instead = ": say by `where` which actions count" if name == "q" else ""
            rule = "must be an array without a mask of its own"
            raise TypeError(f"`{name}` {rule}, got a numpy.ma.MaskedArray{instead}")
        if isinstance(value, list | tuple):
            unmasked(name, *value)


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


AXES = ("state", "action", "branch")
"""What the axes of an array count, in most arrays."""


def finite(name: str, values: Floats, axes: Sequence[str] = AXES) -> None:
    """No infinity and no NaN."""
    bad: Bools = np.logical_not(np.isfinite(values))
    raise_where(bad, f"`{name}` must be finite", values, axes)


def raise_where(
    bad: Bools, rule: str, values: npt.NDArray[Any], axes: Sequence[str] = AXES
) -> None:
    """Raise for the first bad entry: the rule, the value got, and where."""
    if bad.any():
        at = np.unravel_index(int(bad.argmax()), bad.shape)
        place = ", ".join(f"{axis} {int(i)}" for axis, i in zip(axes, at, strict=False))
        where = f" in {place}" if place else ""
        raise ValueError(f"{rule}, got {values[at]:.10g}{where}")


def whole(name: str, value: object, least: int, most: int | None = None) -> int:
    """A whole number in a range."""
    try:
        result = operator.index(cast(SupportsIndex, value))
    except TypeError:
        result = least - 1
    if not least <= result <= (LARGEST if most is None else most):
        rule = f"of at least {least}" if most is None else f"in [{least}, {most}]"
        rule += f" and at most {LARGEST}" if most is None and result > LARGEST else ""
        error = ValueError if isinstance(value, Real) else TypeError
        raise error(f"`{name}` must be a whole number {rule}, got {shown(value)}")
    return result


def real(
    name: str,
    value: object,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    infinite: bool = False,
) -> float:
    """A number in a range, and not infinity unless that may be."""
    number = _as_float(value)
    if not (low <= number <= high and (infinite or math.isfinite(number))):
        rule = f"in [{low:g}, {high:g}]"
        if math.isinf(high):
            rule = "a number" if infinite else "a finite number"
            rule += "" if math.isinf(low) else f" of at least {low:g}"
        error = ValueError if isinstance(value, Real) else TypeError
        raise error(f"`{name}` must be {rule}, got {shown(value)}")
    return number


def generator(name: str, seed: object) -> np.random.Generator:
    """The random numbers of a seed: of whatever `np.random.default_rng` takes, but None."""
    rule = f"`{name}` must be a whole number of at least 0"
    if seed is None or (np.iterable(seed) and not len(cast(Sized, seed))):
        raise TypeError(f"{rule}, got {shown(seed)}")
    try:
        return np.random.default_rng(cast(Any, seed))
    except (TypeError, ValueError) as error:
        raise type(error)(f"{rule}, got {shown(seed)}") from error


def _as_float(value: object) -> float:
    """A real number; NaN for anything else, and for an integer that is too large."""
    try:
        return float(value) if isinstance(value, Real) else math.nan
    except OverflowError:
        return math.nan
