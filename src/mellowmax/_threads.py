"""Work side by side on the cores: XLA and NumPy let go of Python while they compute."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["on_all_cores"]

T = TypeVar("T")
S = TypeVar("S")


def on_all_cores(function: Callable[[T], S], items: Iterable[T]) -> list[S]:
    """`[function(item) for item in items]`, with a thread for each core of the process.

    When one fails, or Ctrl-C is pressed, those that have not begun are left undone.
    """
    pool = ThreadPoolExecutor(_cores())
    try:
        return list(pool.map(function, items))
    finally:
        pool.shutdown(cancel_futures=True)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
