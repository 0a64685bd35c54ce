"""What is known about rows while they are traced, and their numbers are not there.

Every formula gets the functions of a library, `xp`, as its first argument. What a traced program
cannot ask of its numbers is told by an `xp` that knows it: that a formula is within a kernel for a
GPU, or that no row of a chunk needs what is made for the extremes.
"""

from __future__ import annotations

from typing import Any, cast

from ..._typing import Namespace

__all__ = ["knowing", "knows"]


class _Knowing:
    """The functions of a library, and further attributes."""

    def __init__(self, xp: Namespace, known: dict[str, object]) -> None:
        self._xp = xp
        self.__name__ = cast(Any, xp).__name__  # by which array-api-compat tells the library
        self.__dict__.update(known)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._xp, name)


def knowing(xp: Namespace, **known: object) -> Namespace:
    """The functions of a library with what is known, or with others in their place."""
    return cast(Namespace, _Knowing(xp, known))


def knows(xp: Namespace, fact: str) -> bool:
    """Is this known?"""
    return type(xp) is _Knowing and getattr(xp, fact, False) is True
