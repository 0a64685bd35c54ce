"""All fixed points: complete searches, searches from many starts, and what is said of each."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.optimize
import scipy.special

from helpers.fixed_point_reference import (
    CASES,
    FITTED,
    assert_fixed,
    copies,
    restarts,
    scalar_equation,
    sweeps,
)
from mellowmax import Boltzmann, EpsilonGreedy, Max, Mean, Mellowmax
from mellowmax._fixed_points.maps import spectral_radius
from mellowmax._fixed_points.search import Search
from mellowmax.mdp import MDP, garnet, random_mdp, two_state
from mellowmax.planning import fixed_points, trace_fixed_points, vector_field

# One state that is not terminal: a complete search.


@pytest.mark.parametrize("beta", [-30, 0, 1, 16, 16.49, 16.78, 17, 30, 1e3, 1e5])
def test_outside_the_window_boltzmann_has_one_fixed_point(beta):
    found = fixed_points(two_state(), Boltzmann(beta))
    assert len(found) == 1
    assert found.complete
    assert found[0].stable
    assert found[0].index == 1
    assert_fixed(two_state(), Boltzmann(beta), found)


@pytest.mark.parametrize("beta", [16.4951, 16.5, 16.55, 16.6, 16.7, 16.77, 16.7709])
def test_inside_the_window_boltzmann_has_three(beta):
    found = fixed_points(two_state(), Boltzmann(beta))
    assert [point.stable for point in found] == [True, False, True]
    assert [point.index for point in found] == [1, -1, 1]
    assert found.complete
    assert "excludes every other" in found.reason
    assert_fixed(two_state(), Boltzmann(beta), found)


def test_figure_5_marks_the_stable_ones():
    low, _, high = fixed_points(two_state(), Boltzmann(16.55))
    assert low.q[0, ::-1] == pytest.approx((0.59, 0.49), abs=0.01)
    assert 0.83 < high.q[0, 1] < 0.89
    assert 0.65 < high.q[0, 0] < 0.70


@pytest.mark.parametrize("beta", [3.0, 16.49, 16.4951, 16.6, 16.7709, 16.78, 40.0])
def test_they_are_the_roots_of_the_scalar_equation(beta):
    equation = scalar_equation(beta, FITTED, np.exp)
    grid = np.linspace(0, 2, 20_001)
    signs = np.sign(equation(grid)[0])
    brackets = [grid[k : k + 2] for k in np.flatnonzero(signs[:-1] != signs[1:])]
    exact = [
        scipy.optimize.brentq(lambda v: equation(v)[0], *ends, xtol=1e-15) for ends in brackets
    ]
    found = fixed_points(two_state(), Boltzmann(beta))
    np.testing.assert_allclose([point.value[0] for point in found], exact, atol=1e-10)
    slopes = [abs(equation(v)[1] + 1) for v in exact]
    np.testing.assert_allclose([point.spectral_radius for point in found], slopes, atol=1e-8)


def test_fixed_points_that_are_very_near_each_other_are_told_apart():
    """Action 0 ends, action 1 stays, and their values are nearly equal. Where the policy is nearly
    greedy, there are three fixed points within a few times 1 / beta: with u = beta * discount *
    (value - 1) they are the roots of u (1 - discount * sigmoid(u)) = level."""
    discount, beta, level = 0.98, 5e7, 0.2
    bonus = level / (beta * discount)
    mdp = MDP.from_arrays(
        [[[0, 1], [1, 0]], [[0, 1], [0, 1]]],
        [[1 + bonus, 1 - discount + bonus], [0, 0]],
        discount,
        terminal=[False, True],
    )
    found = fixed_points(mdp, Boltzmann(beta))

    def equation(u):
        return u * (1 - discount * scipy.special.expit(u)) - level

    ends = [(0, 1.4), (1.4, 5.3), (5.3, 20)]  # the slope changes its sign at 1.38 and 5.35
    exact = [scipy.optimize.brentq(equation, *each) for each in ends]
    scaled = [(point.value[0] - 1) * beta * discount for point in found]
    assert scaled == pytest.approx(exact, rel=1e-5)
    assert [point.index for point in found] == [1, -1, 1]
    assert found.complete


def test_at_a_fold_nothing_is_claimed():
    for fold in trace_fixed_points(two_state(), Boltzmann, [16, 17]).folds:
        found = fixed_points(two_state(), Boltzmann(fold.parameter))
        assert not found.complete
        assert "meet" in found.reason
        assert sorted(point.index for point in found) == [0, 1]
        double = next(point for point in found if point.index == 0)
        np.testing.assert_allclose(double.q, fold.q, atol=1e-6)


class Unknown(Boltzmann):
    """A softmax of which nothing is proved."""

    def curvature(self, width):
        return math.inf


def test_without_a_bound_it_searches_and_does_not_claim():
    found = fixed_points(two_state(), Unknown(16.55))
    expected = fixed_points(two_state(), Boltzmann(16.55))
    assert not found.complete
    assert "no useful bound" in found.reason
    np.testing.assert_allclose([p.q for p in found], [p.q for p in expected], atol=1e-12)


# One fixed point.


@pytest.mark.parametrize("mdp", [two_state(), random_mdp(205), copies(3)])
def test_mellowmax_has_one_fixed_point(mdp):
    omegas = np.array([-math.inf, -1e3, -16.55, -1, 0, 1e-9, 1, 16.55, 1e3, math.inf])
    starts = np.zeros((len(omegas), mdp.n_states, mdp.n_actions))
    limits = sweeps(mdp, Mellowmax(omegas[:, None]), starts, 1800)
    for omega, limit in zip(omegas, limits, strict=True):
        found = fixed_points(mdp, Mellowmax(omega))
        assert len(found) == 1
        assert found.complete
        assert "non-expansion" in found.reason
        assert found[0].stable
        assert found[0].index == 1
        assert_fixed(mdp, Mellowmax(omega), found)
        np.testing.assert_allclose(found[0].q, limit, atol=1e-12)


@pytest.mark.parametrize("softmax", [Max(), Mean(), EpsilonGreedy(0.1)], ids=str)
def test_so_have_the_other_non_expansions(softmax):
    for seed in range(2):
        mdp = random_mdp(seed)
        found = fixed_points(mdp, softmax)
        assert len(found) == 1
        limit = sweeps(mdp, softmax, np.zeros(found[0].q.shape), 1800)
        np.testing.assert_allclose(found[0].q, limit, atol=1e-11)


class Sway(Mean):
    """A non-expansion of two actions, neither convex nor concave, whose gradient here is wrong."""

    def value(self, q, *, axis=-1, where=None):
        width = np.ptp(q, axis)
        return np.mean(q, axis) + 0.4 * width * np.cos(width) / (1 + width)


def test_where_newtons_method_is_lost_sweeps_go_the_rest_of_the_way():
    mdp = random_mdp(3, n_actions=2)
    (point,) = fixed_points(mdp, Sway(), tolerance=1e-10)
    limit = sweeps(mdp, Sway(), np.zeros(point.q.shape), 3000)
    np.testing.assert_allclose(point.q, limit, atol=1e-8)


def test_every_policy_alike_leaves_one():
    one_action = MDP.from_arrays([[[0.5, 0.5]], [[0.2, 0.8]]], [[1.0], [2.0]], 0.9)
    found = fixed_points(one_action, Boltzmann(5.0))
    assert found.complete
    assert found[0].value == pytest.approx(np.linalg.solve([[0.55, -0.45], [-0.18, 0.28]], [1, 2]))
    nothing = fixed_points(MDP.from_arrays([[[1.0]]], [[0.0]], 0.9), Boltzmann(5.0))
    assert nothing.complete
    assert nothing[0].value == 0


def test_a_large_sparse_mdp():
    mdp = garnet(600, 3, 4, seed=0)
    (point,) = fixed_points(mdp, Mellowmax(5.0))
    limit = sweeps(mdp, Mellowmax(5.0), point.q, 5)
    np.testing.assert_allclose(point.q, limit, atol=1e-11)
    assert point.spectral_radius == pytest.approx(0.99, abs=1e-9)  # no episode ends


# Several states.


def test_a_random_mdp_with_five_fixed_points():
    mdp = random_mdp(205)  # found by a search: 6 states, 5 actions, as section 7.1 makes them
    found = fixed_points(mdp, Boltzmann(7.0))
    assert [point.index for point in found] == [1, 1, -1, -1, 1]
    assert [point.stable for point in found] == [True, True, False, False, True]
    assert not found.complete
    assert "sum to +1" in found.reason
    assert_fixed(mdp, Boltzmann(7.0), found)


@pytest.mark.parametrize(("seed", "count"), [(71, 3), (194, 3), (205, 3), (267, 3), (0, 1)])
def test_random_mdps_at_beta_3(seed, count):
    found = fixed_points(random_mdp(seed), Boltzmann(3.0))
    assert len(found) == count
    assert sum(point.index for point in found) == 1
    assert_fixed(random_mdp(seed), Boltzmann(3.0), found)


@pytest.mark.parametrize("beta", [3.0, 7.0, 16.55, 30.0])
@pytest.mark.parametrize(
    "seed", [71, 205, *(pytest.param(seed, marks=pytest.mark.release) for seed in (1, 2, 3))]
)
def test_it_finds_what_many_restarts_find(seed, beta, rng):
    mdp = random_mdp(seed)
    found = fixed_points(mdp, Boltzmann(beta))
    brute = restarts(mdp, beta, 1000, rng)
    assert len(brute) >= 1
    for v in brute:
        assert min(abs(v - point.value).max() for point in found) < 1e-8


@pytest.mark.parametrize(("count", "leak", "expected"), [(2, 0.0, 9), (3, 0.0, 27), (4, 5e-4, 81)])
def test_independent_copies_multiply(count, leak, expected):
    mdp = copies(count, leak)
    found = fixed_points(mdp, Boltzmann(16.6))
    assert len(found) == expected
    assert sum(point.index for point in found) == 1
    assert sum(point.stable for point in found) == 2**count
    assert_fixed(mdp, Boltzmann(16.6), found)


def test_what_is_missing_is_said(monkeypatch):
    whole = Search.polished

    def without_the_highest(self, v):
        return tuple(point for point in whole(self, v) if point.value[:2].min() < 0.85)

    monkeypatch.setattr(Search, "polished", without_the_highest)
    found = fixed_points(copies(2), Boltzmann(16.6))
    assert len(found) == 8
    assert "not +1: at least one is missing" in found.reason


def test_the_seed_decides_everything():
    one, other = (fixed_points(random_mdp(71), Boltzmann(3.0), seed=5) for _ in range(2))
    assert one.reason == other.reason
    np.testing.assert_array_equal([p.q for p in one], [p.q for p in other])


# What is said of a fixed point.


@pytest.mark.parametrize(("mdp", "beta"), CASES)
def test_stable_is_where_sweeps_return_to(mdp, beta, rng):
    softmax = Boltzmann(beta)
    found = fixed_points(mdp, softmax)
    assert {point.stable for point in found} == {True, False}
    points = np.array([point.q for point in found])
    starts = points + 1e-6 * rng.normal(size=points.shape)
    starts[:, mdp.terminal] = 0
    distances = abs(sweeps(mdp, softmax, starts, 4000) - points).max((1, 2))
    for point, distance in zip(found, distances, strict=True):
        assert distance < 1e-9 if point.stable else distance > 1e-3


@pytest.mark.parametrize(("mdp", "beta"), CASES)
def test_the_jacobian_against_finite_differences(mdp, beta):
    softmax = Boltzmann(beta)
    for point in fixed_points(mdp, softmax):
        size, width = point.q.size, 1e-6
        columns = [
            (
                sweeps(mdp, softmax, point.q + width * basis, 1)
                - sweeps(mdp, softmax, point.q - width * basis, 1)
            ).ravel()
            / (2 * width)
            for basis in np.eye(size).reshape(size, *point.q.shape)
        ]
        jacobian = np.array(columns).T
        radius = abs(np.linalg.eigvals(jacobian)).max()
        assert point.spectral_radius == pytest.approx(radius, abs=1e-5)
        assert point.index == np.sign(np.linalg.det(np.eye(size) - jacobian))


def test_the_radius_is_the_same_from_a_few_eigenvalues(rng):
    matrix = rng.random((350, 350))
    matrix *= 0.97 / matrix.sum(1, keepdims=True)
    assert spectral_radius(matrix) == pytest.approx(0.97, rel=1e-10)


def test_an_action_that_is_not_allowed_is_as_if_it_were_not_there():
    model = two_state()
    transitions, rewards = np.full((2, 3, 2), 0.5), np.full((2, 3), 7.0)
    transitions[:, [0, 2]], rewards[:, [0, 2]] = model.probabilities, model.rewards
    masked = MDP.from_arrays(
        transitions, rewards, 0.98, allowed=[[True, False, True]] * 2, terminal=[False, True]
    )
    found = fixed_points(masked, Boltzmann(16.55))
    assert found.complete
    expected = [point.q for point in fixed_points(model, Boltzmann(16.55))]
    np.testing.assert_allclose([point.q[:, [0, 2]] for point in found], expected, atol=1e-12)
    assert all(point.q[0, 1] == -np.inf for point in found)
    only = fixed_points(masked, Mellowmax(16.55))[0]
    assert only.residual <= 1e-14
    assert only.q[0, 1] == -np.inf
    trace = trace_fixed_points(masked, Boltzmann, [16.0, 17.0])
    assert all((branch.q[:, 0, 1] == -np.inf).all() for branch in trace.branches)
    assert len(trace.folds) == 2
    assert all(fold.q[0, 1] == -np.inf for fold in trace.folds)
    ranges = ((0.0, 1.0), (0.0, 1.0))
    fields = [
        vector_field(masked, Mellowmax(16.55), ranges=ranges, resolution=3, at=at)
        for at in (None, only.q)
    ]
    whole = vector_field(model, Mellowmax(16.55), ranges=ranges, resolution=3)
    for field in fields:
        assert field.axes == ((0, 2), (0, 0))
        np.testing.assert_allclose(field.dx, whole.dx, atol=1e-12)
        np.testing.assert_allclose(field.dy, whole.dy, atol=1e-12)
    plane = vector_field(masked, Boltzmann(16.55), resolution=3)
    assert plane.axes == ((0, 2), (0, 0))


def test_each_state_can_have_its_own_parameter():
    found = fixed_points(two_state(), Boltzmann(np.array([16.55, 3.0])))
    assert len(found) == 3


def test_the_result_is_a_sequence():
    found = fixed_points(two_state(), Boltzmann(16.55))
    assert found[-1] is found[2]
    assert found[1:] == (found[1], found[2])
    assert list(reversed(found)) == [found[2], found[1], found[0]]
    assert "unstable" in repr(found[1])
    with pytest.raises(AttributeError):
        found.complete = False


# Errors.


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda m: fixed_points(m, Boltzmann(1.0), starts=0),
            "`starts` must be a whole number of at least 1, got 0",
        ),
        (
            lambda m: fixed_points(m, Boltzmann(1.0), tolerance=0.0),
            "`tolerance` must be in [1e-14, 1), got 0.0",
        ),
        (
            lambda m: fixed_points(garnet(5000, 3, 2, seed=0), Max()),
            "`mdp` must have at most 67108864 dense transitions (states * actions * states) here, "
            "got 75000000; `solve` takes larger ones",
        ),
    ],
)
def test_errors_name_the_argument_the_rule_and_the_value(call, message):
    with pytest.raises(ValueError, match=r"^`") as error:
        call(two_state())
    assert str(error.value) == message


def test_a_softmax_that_is_no_non_expansion_is_found_out():
    class Liar(Mean):
        """At least 1 from any value of its own."""

        def value(self, q, *, axis=-1, where=None):
            return np.where(np.mean(q, axis) < 0, 1.0, -1.0)

    around = MDP.from_arrays([[[0.0, 1.0]], [[1.0, 0.0]]], [[0.0], [0.0]], 0.9)
    with pytest.raises(RuntimeError, match="no fixed point of"):
        fixed_points(around, Liar())
