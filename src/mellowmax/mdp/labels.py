"""What states and actions are called, in tables, plots and errors.

The labels of `n` states are an array `[n]` of numbers or texts, or `[n, d]` of tuples, such as the
rows and columns of a grid. Without labels a state is called by its number.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .._common import checks
from .._common.shown import shown
from .._common.text import visible

__all__ = ["Labels", "checked", "named", "text", "values"]

Labels: TypeAlias = npt.NDArray[Any] | None
"""`[n]` or `[n, d]`; None for the numbers from 0 on."""


def checked(name: str, labels: object, n: int) -> Labels:
    """The labels of `n` states or actions: different numbers, texts or tuples.

    Raises:
        TypeError: for what is neither.
        ValueError: for another number of labels, or two that are the same.
    """
    if labels is None:
        return None
    result = checks.array(name, list(labels) if isinstance(labels, range) else labels)
    if result.dtype.kind not in "fiubU":
        raise TypeError(f"`{name}` must be numbers, texts or tuples of them, got {shown(labels)}")
    if result.ndim not in (1, 2) or len(result) != n or 0 in result.shape:
        raise ValueError(f"`{name}` must be {n} labels, got the shape {result.shape}")
    rows = result.reshape(n, -1)
    rows = rows[np.lexsort(rows.T)]
    same = (rows[1:] == rows[:-1]).all(1)
    if same.any():
        twice = text(rows[int(same.argmax())])
        raise ValueError(f"`{name}` must be different labels, got {twice} twice")
    result = result.copy()
    result.setflags(write=False)
    return result


def values(labels: Labels, n: int) -> list[Any]:
    """The label of each of `n` states or actions: a number, a text or a tuple."""
    return list(range(n)) if labels is None else [_value(label) for label in labels]


def named(kind: str, number: int, labels: Labels) -> str:
    """A state or an action in words.

    Examples:
        >>> print(named("state", 1, None), named("state", 1, np.array(["new", "worn"])))
        state 1 state 1 (worn)
    """
    known = "" if labels is None else f" ({text(labels[number])})"
    return f"{kind} {number}{known}"


def text(label: object) -> str:
    """A label as people read it: a tuple without its brackets."""
    parts = np.atleast_1d(np.asarray(label)).tolist()
    return visible(", ".join(map(str, parts)))


def _value(label: Any) -> Any:
    return tuple(label.tolist()) if np.ndim(label) else label.item()
