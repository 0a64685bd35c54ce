"""Branches of fixed points, and the folds where two of them meet."""

from __future__ import annotations

import functools
import math

import mpmath
import numpy as np
import pytest

from helpers.fixed_point_reference import (
    FITTED,
    PRINTED,
    assert_fixed,
    copies,
    scalar_equation,
    sweep,
)
from mellowmax import Boltzmann, EpsilonGreedy, Mean, Mellowmax
from mellowmax.experiments.data import paper
from mellowmax.mdp import MDP, random_mdp, two_state
from mellowmax.planning import fixed_points, trace_fixed_points

FIGURE_1, RANDOM, CLOSED = two_state(), random_mdp(205), random_mdp(194)


@functools.cache
def traced(mdp, *parameters):
    """The trace of an MDP, which several tests look at."""
    return trace_fixed_points(mdp, Boltzmann, parameters)


def exact_folds(labels, *starts):
    """Where the scalar equation and its derivative are both 0, to 30 digits."""
    with mpmath.workdps(30):
        for v, beta in starts:
            root = mpmath.findroot(
                lambda v, beta: scalar_equation(beta, labels, mpmath.exp)(v), (v, beta)
            )
            yield float(root[0]), float(root[1])


@pytest.mark.parametrize(
    ("printed", "window", "within"), [(False, (16.50, 16.78), 0.02), (True, (16.88, 17.04), 0.01)]
)
@pytest.mark.parametrize("ends", [(16.0, 18.0), (0.0, 50.0), (-100.0, 1000.0)])
def test_folds_of_the_two_state_mdp(printed, window, within, ends):
    trace = trace_fixed_points(two_state(printed=printed), Boltzmann, ends)
    assert len(trace.branches) == 1
    assert [fold.parameter for fold in trace.folds] == pytest.approx(window, abs=within)
    exact = exact_folds(PRINTED if printed else FITTED, (0.826, window[0]), (0.636, window[1]))
    for fold, (v, beta) in zip(trace.folds, exact, strict=True):
        assert fold.parameter == pytest.approx(beta, abs=1e-10)
        assert fold.value[0] == pytest.approx(v, abs=1e-5)


def figure_4():
    for row in paper("fig4_fixed_points").itertuples():
        yield row.beta, "ab".index(row.action), row.q


def test_a_sweep_leaves_the_points_of_figure_4_as_they_are():
    """To 4e-4 in the state's value, which is finer than the width of a line of the figure."""
    rewards, stay = np.transpose(FITTED)
    for beta, action, q in figure_4():
        v = (q - rewards[action]) / (0.98 * stay[action])
        swept = Boltzmann(beta).value(rewards + 0.98 * stay * v)
        assert swept == pytest.approx(v, abs=4e-4)


def test_figure_4_is_near_the_branches():
    """Sweeps move points so little here that 4e-4 is as much as 0.014 in where they end.

    The limits are what was measured: most points are within 0.006 of a branch, and those that are
    not lie next to the fold at 16.50 or on b's upper branch.
    """
    trace = trace_fixed_points(two_state(), Boltzmann, [15, 19])
    at = functools.cache(trace.at)  # the figure has two curves and more at a beta
    distances = []
    for beta, action, q in figure_4():
        ours = [point.q[0, action] for point in at(beta) if point.stable]
        distances.append(min(abs(x - q) for x in ours))
    assert len(distances) == 157
    assert max(distances) < 0.014
    assert np.median(distances) < 0.005
    assert sum(distance > 0.006 for distance in distances) <= 44


@pytest.mark.parametrize(
    ("mdp", "parameters"),
    [
        (FIGURE_1, np.linspace(16, 17, 11)),
        (RANDOM, [0.0, 10.0]),
        (CLOSED, [0.0, 3.0, 50.0]),
        (copies(2, 1e-3), [16.6, 16.7]),
    ],
)
def test_branches_are_of_fixed_points_and_miss_none(mdp, parameters):
    trace = traced(mdp, *parameters)
    for branch in trace.branches:
        for k in range(0, len(branch.parameters), 11):
            softmax = Boltzmann(branch.parameters[k])
            change = sweep(mdp, softmax, branch.q[k]) - branch.q[k]
            assert abs(change).max() < 1e-11 * abs(branch.q[k]).max()
            np.testing.assert_allclose(softmax.value(branch.q[k]), branch.value[k], atol=1e-9)
        np.testing.assert_array_equal(branch.stable, branch.spectral_radius < 1)
        assert branch.parameters.min() >= parameters[0]
        assert branch.parameters.max() <= parameters[-1]
    for beta in np.linspace(parameters[0], parameters[-1], 6):
        expected = fixed_points(mdp, Boltzmann(beta))
        found = trace.at(beta)
        assert_fixed(mdp, Boltzmann(beta), found)
        np.testing.assert_allclose([p.q for p in found], [p.q for p in expected], atol=1e-8)
        assert [p.index for p in found] == [p.index for p in expected]


def test_a_branch_that_reaches_neither_end_needs_a_parameter_within():
    ends, within = traced(CLOSED, 0.0, 50.0), traced(CLOSED, 0.0, 3.0, 50.0)
    assert len(ends.at(3.0)) == 1
    assert len(within.at(3.0)) == 3
    assert [branch.closed for branch in within.branches] == [False, True]
    closed = within.branches[1]
    np.testing.assert_allclose(closed.value[0], closed.value[-1], atol=1e-12)
    assert [fold.parameter for fold in within.folds] == pytest.approx(
        [2.8120010, 5.0633263], abs=1e-6
    )
    turns = closed.parameters.min(), closed.parameters.max()
    assert turns == pytest.approx([fold.parameter for fold in within.folds], abs=1e-12)


def test_at_a_fold_one_eigenvalue_is_1():
    for mdp, ends in ((FIGURE_1, (16.0, 17.0)), (RANDOM, (0.0, 10.0))):
        trace = traced(mdp, *ends)
        assert len(trace.folds) in (2, 6)
        for fold in trace.folds:
            softmax = Boltzmann(fold.parameter)
            transitions, _ = mdp.to_numpy()
            weights = softmax.gradient(fold.q)
            jacobian = mdp.discount * np.einsum("sa,sat->st", weights, transitions)
            assert abs(np.linalg.eigvals(jacobian) - 1).min() < 1e-7


@pytest.mark.parametrize(("stay", "step"), [(0.98757106, 0.02), (0.9877, 0.2)])
def test_two_folds_within_one_step(stay, step):
    mdp = MDP.from_arrays(
        [[[0.65867, 1 - 0.65867], [stay, 1 - stay]], [[0.0, 1.0]] * 2],
        [[0.12211, 0.03284], [0.0, 0.0]],
        0.98,
    )
    one, other = trace_fixed_points(mdp, Boltzmann, [5.0, 60.0], step=step).folds
    assert 0 < other.parameter - one.parameter < 0.01


@pytest.mark.parametrize(
    ("ends", "branches", "folds"),
    [((16.6, 17), 2, 1), ((16, 16.6), 2, 1), ((16.6, 16.65), 3, 0), ((17, 18), 1, 0)],
)
def test_a_range_may_end_within_the_window(ends, branches, folds):
    trace = trace_fixed_points(two_state(), Boltzmann, ends)
    assert len(trace.branches) == branches
    assert len(trace.folds) == folds
    for branch in trace.branches:
        assert {branch.parameters[0], branch.parameters[-1]} <= set(ends)


@pytest.mark.parametrize(
    ("family", "ends"),
    [(Mellowmax, (-20, 20)), (EpsilonGreedy, (0, 1)), (lambda _: Mean(), (0, 1))],
)
def test_a_non_expansion_has_one_branch_without_folds(family, ends):
    mdp = RANDOM
    trace = trace_fixed_points(mdp, family, ends)
    (branch,) = trace.branches
    assert trace.folds == ()
    assert branch.stable.all()
    assert (np.diff(branch.parameters) > 0).all()
    middle = trace.at(sum(ends) / 2)
    assert_fixed(mdp, family(sum(ends) / 2), middle)
    assert len(middle) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda m: trace_fixed_points(m, Boltzmann, [1.0]),
            "`parameters` must be two or more increasing numbers, got [1.0]",
        ),
        (
            lambda m: trace_fixed_points(m, Boltzmann, [2.0, 1.0]),
            "`parameters` must be two or more increasing numbers, got [2.0, 1.0]",
        ),
        (
            lambda m: trace_fixed_points(m, Boltzmann, [1.0, math.inf]),
            "`parameters` must be two or more increasing numbers, got [1.0, inf]",
        ),
        (
            lambda m: trace_fixed_points(m, Boltzmann, [1, 2], step=0.0),
            "`step` must be in (0, 0.5], got 0.0",
        ),
        (
            lambda m: trace_fixed_points(m, Boltzmann, [1, 2]).at(3),
            "`parameter` must be in [1, 2], got 3",
        ),
    ],
)
def test_errors_name_the_argument_the_rule_and_the_value(call, message):
    with pytest.raises(ValueError, match=r"^`") as error:
        call(two_state())
    assert str(error.value) == message
