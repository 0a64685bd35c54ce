"""All fixed points, the curves they lie on, and the field of updates round them."""

from __future__ import annotations

import functools
import itertools
import math

import mpmath
import numpy as np
import pytest
import scipy.optimize

from mellowmax import Boltzmann, EpsilonGreedy, Max, Mean, Mellowmax
from mellowmax.experiments import paper
from mellowmax.mdp import MDP, garnet, random_mdp, two_state
from mellowmax.planning import fixed_points, trace_fixed_points, vector_field
from mellowmax.planning.fixed_points.find import _Search
from mellowmax.planning.fixed_points.roots import all_roots
from mellowmax.planning.fixed_points.sweep_map import spectral_radius

FITTED = ((0.12211, 0.65867), (0.03284, 0.99075))
PRINTED = ((0.122, 0.66), (0.033, 0.99))


def sweep(mdp, softmax, q):
    """One synchronous sweep, in plain Python."""
    transitions, rewards = mdp.to_numpy()
    values = [float(softmax.value(row)) for row in np.asarray(q)]
    return np.array(
        [
            [
                r + mdp.discount * sum(p * v for p, v in zip(row, values, strict=True))
                for r, row in zip(rewards[s], transitions[s], strict=True)
            ]
            for s in range(mdp.n_states)
        ]
    )


def sweeps(mdp, softmax, q, count):
    """The same, many times and vectorised, `[..., S, A]`."""
    transitions, rewards = mdp.to_numpy()
    for _ in range(count):
        q = rewards + mdp.discount * np.tensordot(softmax.value(q), transitions, (-1, -1))
    return q


def scalar_equation(beta, labels, exp):
    """`boltz(q(v)) - v` for figure 1 as a function of `v`, and its derivative, from the formula."""

    def equation(v):
        q = [r + 0.98 * p * v for r, p in labels]
        weights = [exp(beta * (x - q[0])) for x in q]
        policy = [w / sum(weights) for w in weights]
        value = sum(w * x for w, x in zip(policy, q, strict=True))
        slopes = [w * (1 + beta * (x - value)) for w, x in zip(policy, q, strict=True)]
        return value - v, sum(0.98 * p * w for (_, p), w in zip(labels, slopes, strict=True)) - 1

    return equation


def restarts(mdp, beta, count, rng):
    """What Newton's method finds from many starts, from Boltzmann's formula alone."""
    transitions, rewards = mdp.to_numpy()
    size = len(rewards)

    def residual(v):
        q = rewards + mdp.discount * np.einsum("sat,bt->bsa", transitions, v)
        policy = np.exp(beta * (q - q.max(-1, keepdims=True)))
        policy /= policy.sum(-1, keepdims=True)
        value = (policy * q).sum(-1)
        weights = policy * (1 + beta * (q - value[..., None]))
        return value - v, mdp.discount * np.einsum("bsa,sat->bst", weights, transitions)

    low, high = rewards.min() / (1 - mdp.discount), rewards.max() / (1 - mdp.discount)
    v = low + (high - low) * rng.random((count, size))
    half = low + (high - low) * rng.random((count // 2, 1))
    v[: count // 2] = half + rng.normal(size=(count // 2, size))
    for _ in range(30):
        v[: count // 4] += residual(v[: count // 4])[0]
    for _ in range(50):
        change, jacobian = residual(v)
        step = np.linalg.solve(np.eye(size) - jacobian, change[..., None])[..., 0]
        v = v + step * np.minimum(1, 5 / np.maximum(abs(step).max(-1, keepdims=True), 1e-300))
    v = v[abs(residual(v)[0]).max(-1) < 1e-10]
    found = []
    for row in v:
        if all(abs(row - other).max() > 1e-6 for other in found):
            found.append(row)
    return found


def copies(count, leak=0.0):
    """Figure 1 many times over, each copy leaking a little into the next."""
    transitions, rewards = np.zeros((count + 1, 2, count + 1)), np.zeros((count + 1, 2))
    for s, (a, (reward, stay)) in itertools.product(range(count), enumerate(FITTED)):
        transitions[s, a, s] = stay * (1 - leak)
        transitions[s, a, (s + 1) % count] += stay * leak
        transitions[s, a, count] = 1 - stay
        rewards[s, a] = reward
    transitions[count, :, count] = 1
    return MDP.from_arrays(transitions, rewards, 0.98)


def assert_fixed(mdp, softmax, found):
    """What every result promises."""
    for point in found:
        change = abs(sweep(mdp, softmax, point.q) - point.q).max()
        assert change <= 1e-13 * abs(point.q).max()
        assert point.residual <= 1e-13 * abs(point.q).max()
        np.testing.assert_allclose(softmax.value(point.q), point.value, rtol=0, atol=1e-12)
        assert point.stable == (point.spectral_radius < 1)
        assert not point.q.flags.writeable
        assert not point.value.flags.writeable
    sums = [point.value.sum() for point in found]
    assert (np.diff(sums) >= -1e-8 * np.max(np.abs(sums), initial=0)).all()


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


@pytest.mark.parametrize("degree", [1, 2, 7, 20])
def test_all_roots_of_a_chebyshev_polynomial(degree):
    polynomial = np.polynomial.Chebyshev.basis(degree)
    bound = degree**2 * (degree**2 - 1) / 3  # of its second derivative, at the ends
    found, doubtful = all_roots(
        lambda x: (polynomial(x), polynomial.deriv()(x)), -1.0, 1.0, bound, (1e-14, 1e-12)
    )
    exact = np.cos((np.arange(degree) + 0.5) * np.pi / degree)[::-1]
    once = found[
        np.append(True, np.diff(found) > 1e-12)
    ]  # one between two intervals is listed twice
    np.testing.assert_allclose(once, exact, atol=1e-13)
    assert len(doubtful) == 0


def test_a_double_root_is_left_in_doubt_and_a_miss_is_excluded():
    for shift, in_doubt in ((0.0, True), (1e-10, False)):
        found, doubtful = all_roots(
            lambda x, c=shift: ((x - 0.3) ** 2 + c, 2 * (x - 0.3)), 0.0, 1.0, 2.0, (1e-14, 1e-14)
        )
        assert (len(doubtful) > 0) == in_doubt
        assert in_doubt or len(found) == 0
        np.testing.assert_allclose(np.append(found, doubtful), 0.3, atol=1e-6)


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
@pytest.mark.parametrize("seed", [71, 205, 1, 2, 3])
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
    whole = _Search._polished

    def without_the_highest(self, v):
        return tuple(point for point in whole(self, v) if point.value[:2].min() < 0.85)

    monkeypatch.setattr(_Search, "_polished", without_the_highest)
    found = fixed_points(copies(2), Boltzmann(16.6))
    assert len(found) == 8
    assert "not +1: at least one is missing" in found.reason


def test_the_seed_decides_everything():
    one, other = (fixed_points(random_mdp(71), Boltzmann(3.0), seed=5) for _ in range(2))
    assert one.reason == other.reason
    np.testing.assert_array_equal([p.q for p in one], [p.q for p in other])


# What is said of a fixed point.

CASES = [(two_state(), 16.55), (random_mdp(205), 7.0), (copies(2, 1e-3), 16.6)]


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
    assert all(point.q[0, 1] == 0 for point in found)
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


# Branches and folds.


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
    for row in paper.read("fig4_fixed_points").itertuples():
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
        (two_state(), np.linspace(16, 17, 11)),
        (random_mdp(205), [0.0, 10.0]),
        (random_mdp(71), [0.0, 3.0, 20.0]),
        (copies(2, 1e-3), [16.6, 16.7]),
    ],
)
def test_branches_are_of_fixed_points_and_miss_none(mdp, parameters):
    trace = trace_fixed_points(mdp, Boltzmann, parameters)
    for branch in trace.branches:
        for k in range(0, len(branch.parameters), 11):
            softmax = Boltzmann(branch.parameters[k])
            change = sweep(mdp, softmax, branch.q[k]) - branch.q[k]
            assert abs(change).max() < 1e-11 * abs(branch.q[k]).max()
            np.testing.assert_allclose(softmax.value(branch.q[k]), branch.value[k], atol=1e-9)
        np.testing.assert_array_equal(branch.stable, branch.spectral_radius < 1)
        assert branch.parameters.min() >= parameters[0]
        assert branch.parameters.max() <= parameters[-1]
    for beta in np.linspace(parameters[0], parameters[-1], 9):
        expected = fixed_points(mdp, Boltzmann(beta))
        found = trace.at(beta)
        assert_fixed(mdp, Boltzmann(beta), found)
        np.testing.assert_allclose([p.q for p in found], [p.q for p in expected], atol=1e-8)
        assert [p.index for p in found] == [p.index for p in expected]


def test_a_branch_that_reaches_neither_end_needs_a_parameter_within():
    mdp = random_mdp(194)
    ends, within = (trace_fixed_points(mdp, Boltzmann, p) for p in ([0, 50], [0, 3, 50]))
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
    for mdp, ends in ((two_state(), (16, 17)), (random_mdp(205), (0, 10))):
        trace = trace_fixed_points(mdp, Boltzmann, ends)
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
    mdp = random_mdp(205)
    trace = trace_fixed_points(mdp, family, ends)
    (branch,) = trace.branches
    assert trace.folds == ()
    assert branch.stable.all()
    assert (np.diff(branch.parameters) > 0).all()
    middle = trace.at(sum(ends) / 2)
    assert_fixed(mdp, family(sum(ends) / 2), middle)
    assert len(middle) == 1


# The field.


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
            "`at` must be finite, got nan",
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
