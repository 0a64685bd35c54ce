"""Threads that work side by side: XLA and NumPy release Python's lock while they compute."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TypeVar

__all__ = ["cores", "on_all_cores", "side_by_side"]

T = TypeVar("T")
S = TypeVar("S")


def on_all_cores(function: Callable[[T], S], items: Iterable[T]) -> list[S]:
    """`[function(item) for item in items]`, with a thread for each core of the process.

    When one call fails, or Ctrl-C is pressed, calls that have not begun are never made.
    """
    return side_by_side(function, items, cores())


def side_by_side(
    function: Callable[[T], S],
    items: Iterable[T],
    count: int,
    give_up: Callable[[], None] = lambda: None,
) -> list[S]:
    """`on_all_cores` with `count` threads.

    Args:
        function: what to call.
        items: what to call it with.
        count: how many threads.
        give_up: is called when one call has failed, to make those that have begun end early.
    """
    pool = ThreadPoolExecutor(count)
    try:
        futures = [pool.submit(function, item) for item in items]
        wait(futures, return_when=FIRST_EXCEPTION)
        for future in futures:
            if future.done():
                future.result()
        return [future.result() for future in futures]
    except BaseException:
        give_up()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def cores() -> int:
    """How many cores the process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
