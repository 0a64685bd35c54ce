"""Threads side by side: results in order, and one failure ends the rest."""

from __future__ import annotations

import threading

import pytest

from mellowmax._common.threads import on_all_cores, side_by_side


def test_results_are_in_the_order_of_the_items():
    barrier = threading.Barrier(3, timeout=10)

    def together(item):
        barrier.wait()  # all three are under way at once
        return 2 * item

    assert side_by_side(together, [3, 1, 2], 3) == [6, 2, 4]
    assert on_all_cores(str, range(50)) == [str(i) for i in range(50)]


def test_after_a_failure_nothing_more_begins():
    begun, given_up = [], threading.Event()

    def fail(item):
        begun.append(item)
        if item == 0:
            raise KeyError("no")
        given_up.wait(10)

    with pytest.raises(KeyError, match="no"):
        side_by_side(fail, range(100), 2, given_up.set)
    assert given_up.is_set()
    assert len(begun) < 10
