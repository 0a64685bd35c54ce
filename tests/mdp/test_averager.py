"""Averagers: the MDP over the anchors has the fixed points of fitted value iteration."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from mellowmax import Boltzmann, Mellowmax
from mellowmax.mdp import MDP, garnet, grid_world, random_mdp
from mellowmax.planning import fixed_points, solve

CHAINED = np.array(
    [
        [[0.156, 0.022, 0], [0.998, 0, 0]],
        [[0, 0.307, 0.066], [0.334, 0.665, 0]],
        [[0, 0.002, 0.202], [0, 0.424, 0.572]],
    ]
)
REWARDS = [[0.441, 0.027], [0.398, 0.087], [0.282, 0.008]]
POINTS = [
    ([0.574822, 0.742608, 0.715169], True, 0.849),
    ([0.708150, 0.889604, 0.858257], False, 1.058),
    ([1.227387, 1.402851, 1.344691], True, 0.979),
]


def three_anchors():
    """Each action leads from an anchor to a state of its own, a mean of the anchors."""
    successors = np.concatenate([np.arange(3, 9).reshape(3, 2), np.zeros((6, 2), int)])[..., None]
    rewards = np.concatenate([REWARDS, np.ones((6, 2))])
    mdp = MDP(successors, np.ones((9, 2, 1)), rewards, 0.98)
    return mdp.averaged(np.concatenate([np.eye(3), CHAINED.reshape(6, 3)]))


def random_weights(n_states, n_anchors, seed=0):
    """Sparse ones; some rows sum to 1, some to less, and some are 0."""
    rng = np.random.default_rng(seed)
    weights = rng.random((n_states, n_anchors)) * (rng.random((n_states, n_anchors)) < 0.5)
    weights /= np.maximum(weights.sum(1, keepdims=True), 1e-300)
    weights[::3] *= 0.9
    return weights


def fitted_value_iteration(mdp, softmax, weights, anchors, sweeps):
    """The values of the anchors, from Gordon's description alone."""
    transitions, rewards = mdp.to_numpy()
    v = np.zeros(len(anchors))
    for _ in range(sweeps):
        known = np.where(mdp.terminal, 0.0, weights @ v)
        q = rewards[anchors] + mdp.discount * transitions[anchors] @ known
        where = None if mdp.allowed is None else mdp.allowed[anchors]
        v = np.where(mdp.terminal[anchors], 0.0, softmax.value(q, where=where))
    return v


def test_it_has_three_fixed_points_under_boltzmann_and_one_under_mellowmax():
    mdp = three_anchors()
    np.testing.assert_allclose(mdp.to_numpy()[0], CHAINED, rtol=0, atol=1e-15)
    found = fixed_points(mdp, Boltzmann(16.55))
    assert len(found) == 3
    for point, (value, stable, radius) in zip(found, POINTS, strict=True):
        np.testing.assert_allclose(point.value, value, rtol=0, atol=6e-7)
        assert point.stable == stable
        assert point.spectral_radius == pytest.approx(radius, abs=6e-4)
    (one,) = fixed_points(mdp, Mellowmax(16.55))
    np.testing.assert_allclose(one.value, [0.561282, 0.698102, 0.586161], rtol=0, atol=6e-7)
    assert one.spectral_radius == pytest.approx(0.702, abs=6e-4)


WORLDS = {
    "sparse": (garnet(40, 3, 4, seed=1, discount=0.95), None),
    "other anchors": (garnet(40, 3, 4, seed=1, discount=0.95), np.arange(39, 29, -1)),
    "dense": (random_mdp(3, discount=0.95), [1, 4]),
    "with a goal": (grid_world(["...G", ".G..", "...."], discount=0.95), [0, 3, 5, 6, 9, 11]),
}


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", WORLDS)
def test_solve_gives_the_values_of_fitted_value_iteration(name, sparse):
    mdp, anchors = WORLDS[name]
    count = 10 if anchors is None else len(anchors)
    weights = random_weights(mdp.n_states, count)
    given = scipy.sparse.coo_matrix(weights) if sparse else weights
    solution = solve(mdp.averaged(given, anchors), Mellowmax(5.0), tolerance=1e-10)
    states = np.arange(count) if anchors is None else np.asarray(anchors)
    expected = fitted_value_iteration(mdp, Mellowmax(5.0), weights, states, 600)
    assert abs(solution.value - expected).max() <= solution.error_bound + 1e-9
    assert expected.any()


def test_rewards_by_transition_and_actions_that_are_not_allowed():
    rng = np.random.default_rng(0)
    allowed = np.array([[True, False], [True, True], [False, True]])
    rewards = rng.normal(size=(3, 2, 3))
    mdp = MDP.from_arrays(np.full((3, 2, 3), 1 / 3), rewards, 0.9, allowed=allowed)
    weights = random_weights(3, 2)
    averaged = mdp.averaged(weights, [2, 0])
    np.testing.assert_array_equal(averaged.allowed, allowed[[2, 0]])
    expected = fitted_value_iteration(mdp, Mellowmax(2.0), weights, np.array([2, 0]), 400)
    np.testing.assert_allclose(solve(averaged, Mellowmax(2.0)).value, expected, atol=1e-7)


def test_every_state_as_its_own_anchor_changes_nothing():
    mdp = random_mdp(5)
    same = mdp.averaged(np.eye(mdp.n_states))
    for ours, theirs in zip(same.to_numpy(), mdp.to_numpy(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-15)
    assert same.discount == mdp.discount
    assert (same.successors < mdp.n_states).all()  # rounding does not end an episode


def test_rows_that_sum_to_1_but_for_rounding_end_no_episode():
    mdp = garnet(30, 2, 5, seed=2)
    weights = np.random.default_rng(0).random((30, 7)).astype(np.float32)
    weights /= weights.sum(1, keepdims=True)
    averaged = mdp.averaged(weights)
    assert (averaged.successors < 7).all()
    np.testing.assert_allclose(averaged.probabilities.sum(-1), 1, rtol=0, atol=1e-12)


def test_a_discount_of_1_is_allowed_where_the_averager_ends_every_policy():
    allowed = np.ones((4, 1), bool)
    chain = MDP([[[1]], [[2]], [[3]], [[4]]], np.ones((4, 1, 1)), -np.ones((4, 1)), 1.0, allowed)
    ends = chain.averaged([[1.0, 0.0], [0.5, 0.4], [0.0, 1.0], [0.2, 0.8]], [0, 2])
    assert solve(ends, Mellowmax(1.0)).value.shape == (2,)
    with pytest.raises(ValueError, match="`discount` must be below 1 unless every policy ends"):
        chain.averaged([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0], [0.2, 0.8]], [0, 2]).check_ends()


GOOD = np.full((5, 2), 0.5)


def changed(row, column, value):
    weights = GOOD.copy()
    weights[row, column] = value
    return weights


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (
            changed(3, 1, 0.51),
            "`weights` must have rows with a sum of at most 1, got 1.01 in row 3",
        ),
        (changed(2, 1, -1e-9), "`weights` must be numbers of at least 0, got -1e-09 in row 2, "),
        (changed(4, 0, np.nan), "`weights` must be numbers of at least 0, got nan in row 4, "),
        (changed(1, 0, np.inf), "`weights` must have rows with a sum of at most 1, got inf in "),
        (GOOD[:4], r"`weights` must have the shape \(5, anchors\), got \(4, 2\)"),
    ],
)
def test_weights_of_no_averager_are_an_error_that_says_where(weights, message, kind):
    with pytest.raises(ValueError, match=message):
        garnet(5, 2, 2, seed=0).averaged(kind(weights))


@pytest.mark.parametrize(
    ("weights", "anchors", "error", "message"),
    [
        ("a", None, TypeError, "`weights` must be an array of numbers"),
        (np.full((5, 6), 0.1), None, ValueError, "at most 5 columns, one for each state, got 6"),
        (GOOD, [0, 5], ValueError, r"`anchors` must be in \[0, 4\], got 5 at position 1"),
        (GOOD, [0], ValueError, r"`anchors` must be integers with the shape \(2,\), got "),
        (GOOD, [0.0, 1.0], TypeError, "`anchors` must be integers"),
    ],
)
def test_bad_arguments(weights, anchors, error, message):
    with pytest.raises(error, match=message):
        garnet(5, 2, 2, seed=0).averaged(weights, anchors)
