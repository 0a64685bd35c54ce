"""A prior in planning and learning: one for all states, or one for each."""

from __future__ import annotations

import numpy as np
import pytest

import mellowmax as mm
from mellowmax.learning import expected_sarsa, train
from mellowmax.mdp import MDP, garnet
from mellowmax.planning import batch, fixed_points, solve

WEIGHTS = np.array([3, 1, 2])


@pytest.fixture(scope="module")
def model():
    return garnet(n_states=12, n_actions=3, branching=3, seed=3, discount=0.9)


def repeated(model, times):
    """The model in which each action is there as often as its weight says."""
    transitions, rewards = model.to_numpy()
    copies = np.repeat(np.arange(len(times)), times)
    return MDP.from_arrays(transitions[:, copies], rewards[:, copies], discount=model.discount)


@pytest.mark.parametrize("kind", [mm.Mellowmax, mm.FreeEnergy])
@pytest.mark.parametrize("method", ["auto", "synchronous", "in-place", "newton"])
def test_a_prior_is_the_same_as_repeated_actions(kind, method, model):
    with_prior = solve(model, kind(4.0, prior=WEIGHTS), method=method, tolerance=1e-12)
    copies = solve(repeated(model, WEIGHTS), kind(4.0), tolerance=1e-12)
    np.testing.assert_allclose(with_prior.value, copies.value, atol=1e-11)
    shares = np.add.reduceat(copies.policy, np.cumsum(WEIGHTS) - WEIGHTS, axis=-1)
    np.testing.assert_allclose(with_prior.policy, shares, atol=1e-10)
    assert with_prior.error_bound < 1e-10
    for_each = np.tile(WEIGHTS, (model.n_states, 1))
    each = solve(model, kind(4.0, prior=for_each), method=method, tolerance=1e-12)
    np.testing.assert_allclose(each.value, with_prior.value, atol=1e-11)


def test_a_prior_of_each_state_is_that_of_its_state(model, rng):
    """A sweep by hand at the solution."""
    prior = rng.random((model.n_states, 3)) + 0.05
    prior[2, 1] = 0.0
    solution = solve(model, mm.FreeEnergy(4.0, prior=prior), tolerance=1e-12)
    shares = prior / prior.sum(-1, keepdims=True)
    by_hand = np.log((shares * np.exp(4.0 * solution.q)).sum(-1)) / 4.0
    np.testing.assert_allclose(solution.value, by_hand, atol=1e-10)
    assert solution.policy[2, 1] == 0


def test_where_states_are_as_many_as_actions_a_row_is_of_actions():
    """A prior of one per action is never read as one per state."""
    square = garnet(n_states=3, n_actions=3, branching=2, seed=0, discount=0.8)
    copies = solve(repeated(square, WEIGHTS), mm.Mellowmax(4.0), tolerance=1e-12)
    found = solve(square, mm.Mellowmax(4.0, prior=WEIGHTS), tolerance=1e-12)
    np.testing.assert_allclose(found.value, copies.value, atol=1e-11)


def test_batches_and_fixed_points_take_a_prior(model):
    softmax = mm.Mellowmax(4.0, prior=WEIGHTS)
    value = solve(model, softmax, tolerance=1e-12).value
    (point,) = fixed_points(model, softmax).points
    np.testing.assert_allclose(point.value, value, atol=1e-9)
    small = garnet(n_states=5, n_actions=2, branching=2, seed=1, discount=0.9)
    both = batch.Batch.of([model, small])
    found = batch.find_fixed_points(both, softmax)
    np.testing.assert_allclose(found.value[found.mdp == 0][0], value, atol=1e-9)
    of_two = solve(small, mm.Mellowmax(4.0, prior=WEIGHTS[:2]), tolerance=1e-12).value
    np.testing.assert_allclose(found.value[found.mdp == 1][0][:5], of_two, atol=1e-9)


def test_learners_take_a_prior(model):
    """A prior for each setting is the same as the settings one by one."""
    priors = np.array([[1.0, 1.0, 1.0], [3.0, 1.0, 2.0]])
    for_both = mm.FreeEnergy(np.array([4.0, 4.0]), prior=priors)
    together = train(expected_sarsa(for_both, 0.1), model, steps=400, runs=2, seed=0)
    for row, prior in enumerate(priors):
        learner = expected_sarsa(mm.FreeEnergy(4.0, prior=prior), 0.1)
        alone = train(learner, model, steps=400, runs=2, seed=0)
        np.testing.assert_array_equal(alone.q, together.q[row])
    assert not np.array_equal(together.q[0], together.q[1])


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        (
            np.ones(4),
            r"`softmax` must have a prior with the shape \(3,\) or \(12, 3\), got .*\(4,\)",
        ),
        (np.ones((3, 3)), r"`softmax` must have a prior with the shape \(3,\) or \(12, 3\)"),
    ],
)
def test_a_prior_that_does_not_fit_is_one_sentence(prior, message, model):
    with pytest.raises(ValueError, match=message):
        solve(model, mm.FreeEnergy(2.0, prior=prior))


def test_a_state_without_weight_on_an_action_is_named():
    allowed = np.array([[True, True], [False, True]])
    transitions = np.full((2, 2, 2), 0.5)
    model = MDP.from_arrays(transitions, np.ones((2, 2)), discount=0.9, allowed=allowed)
    with pytest.raises(
        ValueError, match="weight above 0 for an action that can be taken, got none in state 1"
    ):
        solve(model, mm.FreeEnergy(2.0, prior=[1.0, 0.0]))
