"""How an error message shows a value: in one line, and not all of a long one."""

from __future__ import annotations

import reprlib
from typing import Any

import numpy.typing as npt

__all__ = ["shown"]

LONGEST = 200
"""The most characters of a value that a message shows."""


class _Short(reprlib.Repr):
    repr_bytes = reprlib.Repr.repr_str  # which looks at no more of a long one than it shows

    def repr_ndarray(self, array: npt.NDArray[Any], level: int) -> str:
        text = str(array)
        return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


SHORT = _Short()
SHORT.maxstring = SHORT.maxother = LONGEST


def shown(value: object) -> str:
    """The value that an error message says it got.

    Examples:
        >>> print(shown(0.5), shown(["a", "b"]), shown(dict), shown(10**400))
        0.5 ['a', 'b'] the class dict 100000000000000000...0000000000000000000
    """
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, int) and value.bit_length() > 10_000:  # more digits than Python prints
        return f"an integer of {value.bit_length()} bits"
    return " ".join(SHORT.repr(value).split())
