"""The types that signatures are written in: arrays of any library, keys, numbers.

An `Array` is what the operators and policies take and give: an array of NumPy, PyTorch, JAX, CuPy
or any other library of the Array API standard. The protocol names the part of the standard that is
used here, so that a type checker sees when something else slips in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, Self, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = [
    "Array",
    "ArrayLike",
    "Bools",
    "Floats",
    "Integers",
    "Key",
    "Mask",
    "Namespace",
    "Number",
    "Parameter",
    "Shape",
]


class Array(Protocol):
    """An array of any library that follows the Array API standard."""

    @property
    def dtype(self) -> Any: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def T(self) -> Self: ...  # noqa: N802 - the standard's name

    def __getitem__(self, key: Any, /) -> Self: ...
    def __bool__(self) -> bool: ...
    def __float__(self) -> float: ...
    def __int__(self) -> int: ...
    def __neg__(self) -> Self: ...
    def __abs__(self) -> Self: ...
    def __invert__(self) -> Self: ...
    def __add__(self, other: Any, /) -> Self: ...
    def __radd__(self, other: Any, /) -> Self: ...
    def __sub__(self, other: Any, /) -> Self: ...
    def __rsub__(self, other: Any, /) -> Self: ...
    def __mul__(self, other: Any, /) -> Self: ...
    def __rmul__(self, other: Any, /) -> Self: ...
    def __truediv__(self, other: Any, /) -> Self: ...
    def __rtruediv__(self, other: Any, /) -> Self: ...
    def __pow__(self, other: Any, /) -> Self: ...
    def __and__(self, other: Any, /) -> Self: ...
    def __or__(self, other: Any, /) -> Self: ...
    def __eq__(self, other: Any, /) -> Self: ...  # type: ignore[override]
    def __ne__(self, other: Any, /) -> Self: ...  # type: ignore[override]
    def __lt__(self, other: Any, /) -> Self: ...
    def __le__(self, other: Any, /) -> Self: ...
    def __gt__(self, other: Any, /) -> Self: ...
    def __ge__(self, other: Any, /) -> Self: ...


Number: TypeAlias = float | int | np.floating[Any] | np.integer[Any]
"""A real number."""
ArrayLike: TypeAlias = Array | Number | Sequence[Any]
"""An array, a number, or nested lists of numbers, which become a NumPy array."""
Parameter: TypeAlias = ArrayLike
"""epsilon, beta or omega: one for all rows, or an array that broadcasts against them."""
Mask: TypeAlias = Array | Sequence[Any] | None
"""The actions that count, broadcast against the values; None for all."""
Shape: TypeAlias = tuple[int, ...]
Namespace: TypeAlias = Any
"""The functions of an array library, as `array_api_compat.array_namespace` gives them."""
Key: TypeAlias = Any
"""A library's own source of randomness: a NumPy or PyTorch generator or seed, or a JAX key."""
Floats: TypeAlias = npt.NDArray[np.float64]
"""A NumPy array in double precision, as planning has them."""
Integers: TypeAlias = npt.NDArray[np.int32]
"""A NumPy array of indices."""
Bools: TypeAlias = npt.NDArray[np.bool_]
"""A NumPy array of truth values."""
