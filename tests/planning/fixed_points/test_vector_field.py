"""The updates of two action values on a plane."""

from __future__ import annotations

import math

import numpy as np
import pytest

from helpers.fixed_point_reference import CASES, sweep
from mellowmax import Boltzmann, Max
from mellowmax.mdp import MDP, random_mdp, two_state
from mellowmax.planning import fixed_points, vector_field


@pytest.mark.parametrize(("mdp", "beta"), CASES)
def test_the_field_is_zero_at_fixed_points(mdp, beta):
    for point in fixed_points(mdp, Boltzmann(beta)):
        (s, a), (t, b) = axes = ((0, 1), (0, 0))
        x, y = point.q[s, a], point.q[t, b]
        ranges = ((x - 1, x + 1), (y - 1, y + 1))
        plane = vector_field(
            mdp, Boltzmann(beta), axes=axes, ranges=ranges, resolution=3, at=point.q
        )
        size = abs(point.q).max()
        assert abs(plane.dx[1, 1]) < 1e-13 * size
        assert abs(plane.dy[1, 1]) < 1e-13 * size
        assert abs(plane.dx[0, 2]) + abs(plane.dy[0, 2]) > 1e-3


def test_the_field_is_a_sweep(rng):
    mdp, softmax = random_mdp(205), Boltzmann(3.0)
    held = 20 + rng.normal(size=(6, 5))
    axes = ((2, 4), (5, 0))
    plane = vector_field(mdp, softmax, axes=axes, resolution=5, at=held)
    assert plane.axes == axes
    for row, column in rng.integers(5, size=(6, 2)):
        q = held.copy()
        q[axes[0]], q[axes[1]] = plane.x[column], plane.y[row]
        change = sweep(mdp, softmax, q) - q
        assert plane.dx[row, column] == pytest.approx(change[axes[0]], abs=1e-12)
        assert plane.dy[row, column] == pytest.approx(change[axes[1]], abs=1e-12)


def test_what_the_field_takes_if_not_told():
    plane = vector_field(two_state(), Boltzmann(16.55))
    assert plane.axes == ((0, 1), (0, 0))  # figure 5: Q(s1, b) across, Q(s1, a) up
    assert plane.dx.shape == plane.dy.shape == (21, 21)
    for point in fixed_points(two_state(), Boltzmann(16.55)):
        assert plane.x[0] <= point.q[0, 1] <= plane.x[-1]
        assert plane.y[0] <= point.q[0, 0] <= plane.y[-1]
    mdp = random_mdp(205)
    lowest = fixed_points(mdp, Boltzmann(7.0))[0]
    ones = vector_field(mdp, Boltzmann(7.0), ranges=((20, 22), (20, 22)), resolution=2)
    same = vector_field(mdp, Boltzmann(7.0), ranges=((20, 22), (20, 22)), resolution=2, at=lowest.q)
    np.testing.assert_array_equal(ones.dx, same.dx)
    ended = MDP.from_arrays([[[0, 1.0]] * 2, [[0, 1.0]] * 2], [[1.0, 2.0], [0.0, 0.0]], 0.9)
    np.testing.assert_array_equal(vector_field(ended, Max()).x[[0, -1]], [1.5, 2.5])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda m: vector_field(m, Max(), axes=((0, 0), (1, 0))),
            "`axes` must be actions that are allowed in states that are not terminal, "
            "got action 0 in state 1",
        ),
        (
            lambda m: vector_field(m, Max(), axes=((0, 0), (0, 2))),
            "`axes` must be actions that are allowed in states that are not terminal, "
            "got action 2 in state 0",
        ),
        (
            lambda m: vector_field(m, Max(), axes=((0, 0), (0, 0))),
            "`axes` must be two different action values, got (0, 0) twice",
        ),
        (
            lambda m: vector_field(m, Max(), axes=(0, 1)),
            "`axes` must be two pairs (state, action), got (0, 1)",
        ),
        (
            lambda m: vector_field(m, Max(), ranges=((0, 1), (1, 1))),
            "`ranges` must be two pairs (low, high) of numbers, got ((0, 1), (1, 1))",
        ),
        (
            lambda m: vector_field(m, Max(), ranges=3),
            "`ranges` must be two pairs (low, high) of numbers, got 3",
        ),
        (
            lambda m: vector_field(m, Max(), resolution=1),
            "`resolution` must be a whole number of at least 2, got 1",
        ),
        (
            lambda m: vector_field(m, Max(), at=np.zeros(2)),
            "`at` must have the shape (2, 2), got (2,)",
        ),
        (
            lambda m: vector_field(m, Max(), at=[[0, math.nan], [0, 0]]),
            "`at` must be finite, got nan in state 0, action 1",
        ),
    ],
)
def test_errors_name_the_argument_the_rule_and_the_value(call, message):
    with pytest.raises(ValueError, match=r"^`") as error:
        call(two_state())
    assert str(error.value) == message
