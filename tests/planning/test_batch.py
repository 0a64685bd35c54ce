"""Value iteration and the search for fixed points in batches, against those of one MDP."""

from __future__ import annotations

import functools

import jax
import numpy as np
import pytest

from mellowmax import Boltzmann, Max, Mellowmax
from mellowmax.mdp import MDP, random_mdp, two_state
from mellowmax.planning import fixed_points, solve
from mellowmax.planning.batch import Batch, find_fixed_points, value_iteration

# One shape for all: a softmax is compiled once.
TOLERANCES = [1e-2, 1e-4, 1e-6]
SIZE = {"n_states": 10, "n_actions": 5}
OF_ONE_SIZE = [14, 34, 36]  # MDPs of `batch` for which `solve` is compiled once


@functools.cache
def batch(n=40):
    return Batch.of([random_mdp([0, number]) for number in range(n)], **SIZE)


@functools.cache
def boltzmann_sweeps():
    return value_iteration(batch(), Boltzmann(3.0), tolerances=TOLERANCES)


def masked():
    """Figure 1 with an action that is not allowed before, and another one after, its own two."""
    model = two_state()
    transitions, rewards = np.full((2, 4, 2), 0.5), np.full((2, 4), 7.0)
    transitions[:, 1:3], rewards[:, 1:3] = model.probabilities, model.rewards
    allowed = [[False, True, True, False]] * 2
    return MDP.from_arrays(transitions, rewards, 0.98, allowed=allowed, terminal=[False, True])


# Batches


def test_mdps_are_padded_with_nothing():
    mdp = random_mdp([3, 9], discount=0.5)
    some = Batch.of([two_state(), mdp], **SIZE)
    transitions, rewards = mdp.to_numpy()
    s, a = some.sizes[1]
    assert (s, a) == (mdp.n_states, mdp.n_actions)
    assert (some.transitions[1, :s, :a, :s] == transitions).all()
    assert (some.rewards[1, :s, :a] == rewards).all()
    assert np.count_nonzero(some.transitions[1]) == np.count_nonzero(transitions)
    assert some.allowed[1].sum() == s * a
    assert some.available.sum((1, 2)).tolist() == [2, s * a]  # the second state is terminal
    assert some.discounts.tolist() == [0.98, 0.5]
    assert repr(some) == "Batch(mdps=2, states=10, actions=5)"


def test_some_of_a_batch():
    some = Batch.of([two_state(), random_mdp(0), random_mdp(1)])
    assert some.rewards.shape == (3, 9, 4)
    for chosen in ([2, 0], np.array([True, False, True]), slice(0, 3, 2)):
        part = some[chosen]
        assert len(part) == 2
        assert sorted(part.sizes[:, 0].tolist()) == [2, 6]
    assert (some[[1, 1]].transitions == some.transitions[1]).all()


# Value iteration


@pytest.mark.parametrize("softmax", [Max(), Boltzmann(3.0), Mellowmax(5.0)], ids=str)
def test_sweeps_are_those_of_solve(softmax):
    run = value_iteration(batch(), softmax, tolerances=TOLERANCES)
    for i in OF_ONE_SIZE:
        mdp = random_mdp([0, i])
        solution = solve(mdp, softmax, method="in-place", tolerance=TOLERANCES[-1], history=True)
        first = [int((solution.history < tolerance).argmax()) + 1 for tolerance in TOLERANCES]
        assert run.iterations[:, i].tolist() == first
        assert run.iterations[-1, i] == solution.iterations
        q = run.q[i, : mdp.n_states, : mdp.n_actions]
        assert abs(q - solution.q).max() < 1e-10
        assert (run.q[i, mdp.n_states :] == -np.inf).all()
        assert (run.q[i, :, mdp.n_actions :] == -np.inf).all()


def test_synchronous_sweeps_are_those_of_solve():
    options = {"tolerances": TOLERANCES, "method": "synchronous"}
    run = value_iteration(batch(), Boltzmann(3.0), **options)
    for i in OF_ONE_SIZE:
        mdp = random_mdp([0, i])
        solution = solve(mdp, Boltzmann(3.0), method="synchronous", tolerance=TOLERANCES[-1])
        assert run.iterations[-1, i] == solution.iterations
        q = run.q[i, : mdp.n_states, : mdp.n_actions]
        assert abs(q - solution.q).max() < 1e-10
    alone = value_iteration(batch()[[5]], Boltzmann(3.0), **options)
    assert (alone.q[0] == run.q[5]).all()


def test_initial_values_and_terminal_states():
    pair = Batch.of([two_state(), two_state(printed=True)], **SIZE)
    initial = np.broadcast_to(np.array([[0.3, -0.7]] + [[9.0, 9.0]] * 9), (2, 10, 2))
    initial = np.pad(initial, [(0, 0), (0, 0), (0, 3)], constant_values=9.0)
    run = value_iteration(pair, Boltzmann(10.0), tolerances=TOLERANCES, initial=initial)
    for printed, count, q in zip((False, True), run.iterations[-1], run.q, strict=True):
        solution = solve(
            two_state(printed=printed),
            Boltzmann(10.0),
            method="in-place",
            initial=initial[0, :2, :2],
            tolerance=1e-6,
        )
        assert count == solution.iterations
        assert abs(q[:2, :2] - solution.q).max() < 1e-12
        assert not q[1, :2].any()
        assert (q[2:] == -np.inf).all()


def test_actions_that_are_not_allowed_are_as_if_they_were_not_there():
    pair = Batch.of([two_state(), masked()], **SIZE)
    run = value_iteration(pair, Boltzmann(10.0), tolerances=TOLERANCES, initial=0.5)
    assert run.converged.all()
    assert (run.iterations[:, 0] == run.iterations[:, 1]).all()
    np.testing.assert_allclose(run.q[1, 0, :4], [-np.inf, *run.q[0, 0, :2], -np.inf], rtol=1e-14)
    again = value_iteration(pair, Boltzmann(10.0), tolerances=TOLERANCES, initial=run.q)
    assert (again.iterations == 1).all()
    np.testing.assert_allclose(again.q, run.q, atol=1e-5)


def test_an_mdp_depends_on_nothing_beside_it():
    """Whatever the padding, the batch, the parameters of others and the order, bit for bit."""
    whole = boltzmann_sweeps()
    for i in (17, 31):  # with 2 states, for which sweeps are compiled quickly
        mdp = random_mdp([0, i])
        alone = value_iteration(Batch.of([mdp]), Boltzmann(3.0), tolerances=TOLERANCES)
        assert (alone.iterations[:, 0] == whole.iterations[:, i]).all()
        assert (alone.q[0] == whole.q[i, : mdp.n_states, : mdp.n_actions]).all()
    many = batch()[np.tile(np.arange(40)[::-1], 8)]
    beta = np.repeat([3.0, 0.5, 50.0, 3.0, 1.0, 2.0, 4.0, 3.0], 40)
    discount = np.repeat([0.98, 0.9, 0.95, 0.98, 0.5, 0.99, 0.9, 0.98], 40)
    run = value_iteration(many, Boltzmann(beta), discount=discount, tolerances=TOLERANCES)
    for start in (0, 120, 280):
        part = slice(start, start + 40)
        assert (run.iterations[:, part] == whole.iterations[:, ::-1]).all()
        assert (run.q[part] == whole.q[::-1]).all()


def test_the_most_iterations_and_the_flag():
    before = jax.config.jax_enable_x64
    run = value_iteration(
        batch(), Mellowmax(3.0), tolerances=[1e-2, 1e-4, 1e-9], max_iterations=100
    )
    assert (run.iterations[0] > 0).any()
    assert (run.iterations[-1] == 0).all()
    assert not run.converged[-1].any()
    assert run.iterations.max() <= 100
    assert run.q.dtype == np.float64
    assert jax.config.jax_enable_x64 == before


# Fixed points


def test_the_search_finds_what_fixed_points_finds():
    mdps = [random_mdp(seed) for seed in (71, 194, 205, 267, 0)]
    mdps += [two_state(), masked()]
    beta = [3.0] * 5 + [16.55] * 2
    found = find_fixed_points(Batch.of(mdps), Boltzmann(beta))
    assert found.counts.tolist() == [3, 3, 3, 3, 1, 3, 3]
    assert (found.index_sums == 1).all()
    assert found.residual.max() < 1e-11
    for i, mdp in enumerate(mdps):
        points = fixed_points(mdp, Boltzmann(beta[i]))
        mine = found.mdp == i
        values = found.value[mine][:, : mdp.n_states]
        assert abs(values - np.array([point.value for point in points])).max() < 1e-8
        assert not found.value[mine][:, mdp.n_states :].any()
        assert found.index[mine].tolist() == [point.index for point in points]
        assert found.stable[mine].tolist() == [point.stable for point in points]
        radii = [point.spectral_radius for point in points]
        assert found.spectral_radius[mine] == pytest.approx(radii, abs=1e-6)


def test_the_search_takes_a_parameter_and_a_discount_for_each_mdp():
    mdps = Batch.of([random_mdp(205), random_mdp(0)])[[0, 0, 1, 0]]
    found = find_fixed_points(
        mdps, Boltzmann(np.array([7.0, 3.0, 7.0, 7.0])), discount=[0.98, 0.98, 0.98, 0.5]
    )
    assert found.counts.tolist() == [5, 3, 1, 1]
    alone = find_fixed_points(Batch.of([random_mdp(205)]), Boltzmann(7.0))
    assert (alone.value == found.value[:5, : alone.value.shape[1]]).all()


def test_mellowmax_has_one_fixed_point():
    found = find_fixed_points(batch(), Mellowmax(7.0))
    assert (found.counts == 1).all()
    assert found.stable.all()
    run = value_iteration(
        batch(), Mellowmax(7.0), tolerances=[1e-2, 1e-4, 1e-8], max_iterations=3000
    )
    s, a = batch().sizes[0]
    values = Mellowmax(7.0).value(run.q[0, :s, :a])
    assert abs(values - found.value[0, :s]).max() < 1e-6


# Errors


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda b: Batch.of([]), "`mdps` must have at least one MDP, got none"),
        (
            lambda b: Batch.of([two_state()], n_states=1),
            "`n_states` must be a whole number of at least 2, got 1",
        ),
        (
            lambda b: b[0],
            "`indices` must be a list of whole numbers, a mask or a slice, got int64 with ()",
        ),
        (
            lambda b: value_iteration(b, Max(), tolerances=[1e-3, 1e-2]),
            "`tolerances` must be numbers of at least 0 in descending order, got [0.001, 0.01]",
        ),
        (
            lambda b: value_iteration(b, Max(), tolerances=[]),
            "`tolerances` must be numbers of at least 0 in descending order, got []",
        ),
        (
            lambda b: value_iteration(b, Max(), method="newton"),
            "`method` must be one of in-place, synchronous, got 'newton'",
        ),
        (
            lambda b: value_iteration(b, Max(), max_iterations=0),
            "`max_iterations` must be a whole number of at least 1, got 0",
        ),
        (
            lambda b: value_iteration(b, Max(), initial=np.zeros((2, 3))),
            "`initial` must be a number, one for each of the 2 MDPs, or broadcast to (2, 2, 2), "
            "got the shape (2, 3)",
        ),
        (
            lambda b: value_iteration(b, Max(), initial=np.nan),
            "`initial` must be finite, got nan",
        ),
        (
            lambda b: value_iteration(b, Boltzmann([1.0, 2.0, 3.0])),
            "`softmax` must have one parameter or one for each of the 2 MDPs, got the shape (3,)",
        ),
        (
            lambda b: value_iteration(b, Max(), discount=[0.9]),
            "`discount` must be a number or one for each of the 2 MDPs, got the shape (1,)",
        ),
        (
            lambda b: value_iteration(b, Max(), discount=1.1),
            "`discount` must be in [0, 1], got 1.1",
        ),
        (
            lambda b: find_fixed_points(b, Max(), discount=[0.9, 1.0]),
            "`discount` must be in [0, 1), got 1",
        ),
    ],
)
def test_errors_name_the_argument_the_rule_and_the_value(call, message):
    with pytest.raises(ValueError, match=r"^`") as error:
        call(Batch.of([two_state(), two_state()]))
    assert str(error.value) == message
