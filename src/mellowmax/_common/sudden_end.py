"""What must still be done when the process ends at once, without Python's own shutdown."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import NoReturn, TypeVar

__all__ = ["before_sudden_end", "forget", "sudden_end"]

Act = TypeVar("Act", bound=Callable[[], object])

_acts: list[Callable[[], object]] = []


def before_sudden_end(act: Act) -> Act:
    """Let a function be called before a sudden end. It must not wait for another thread."""
    _acts.append(act)
    return act


def forget(act: Callable[[], object]) -> None:
    """There is no need for that function any more."""
    with contextlib.suppress(ValueError):
        _acts.remove(act)


def sudden_end(code: int) -> NoReturn:
    """End the process here and now, whatever its threads are doing, with an exit code.

    Python's own shutdown would wait for threads that compute, and take away what they need from
    those that do not end.
    """
    for act in reversed(_acts.copy()):
        with contextlib.suppress(Exception):
            act()
    os._exit(code)
