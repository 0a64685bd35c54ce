"""Softmaxes that the paper does not have: their contract, their golden values, their formulas."""

from __future__ import annotations

import jax
import numpy as np
import optax
import pytest
import scipy.special

import mellowmax as mm
from helpers.libraries import needs_torch
from mellowmax.mdp import MDP, two_state
from mellowmax.planning import solve

EPS = np.finfo(float).eps
CLASSES = [
    mm.Max(),
    mm.Mean(),
    mm.EpsilonGreedy(0.1),
    mm.Boltzmann(3.0),
    mm.Mellowmax(3.0),
    mm.Resmax(3.0),
    mm.Mellowmax(3.0, prior=[0.1, 0.2, 0.3, 0.4]),
    mm.FreeEnergy(3.0),
    mm.FreeEnergy(3.0, prior=[0.1, 0.2, 0.3, 0.4]),
    mm.LogSumExp(3.0),
    mm.Sparsemax(3.0),
]
REGULARISED = [mm.FreeEnergy, mm.LogSumExp, mm.Sparsemax]


def with_parameter(softmax, parameter):
    """The same with another parameter; None for one without, or where it is not allowed."""
    try:
        return type(softmax)(parameter, **({} if not hasattr(softmax, "prior") else prior(softmax)))
    except (TypeError, ValueError):
        return None


def prior(softmax):
    return {} if softmax.prior is None else {"prior": softmax.prior}


@pytest.mark.parametrize("softmax", CLASSES, ids=str)
def test_the_policy_earns_the_value_but_for_the_bonus(softmax, library, rng):
    """The contract, for every parameter: value == sum(policy * q) + bonus."""
    q = rng.normal(size=(40, 4)) * 10.0 ** rng.uniform(-3, 3, size=(40, 1))
    where = rng.random((40, 4)) < 0.7
    where[:, 1] = True
    array, mask = library.array(q), library.array(where, "bool")
    for parameter in (None, 0.0, 1e-3, 30.0, -2.0, np.inf, -np.inf):
        one = softmax if parameter is None else with_parameter(softmax, parameter)
        if one is None or (parameter == 0 and isinstance(one, mm.LogSumExp | mm.Sparsemax)):
            continue
        value, policy, bonus = (
            library.to_numpy(method(array, where=mask))
            for method in (one.value, one.policy, one.bonus)
        )
        assert np.all(policy[~where] == 0)
        np.testing.assert_allclose(policy.sum(-1), 1, rtol=8 * EPS)
        size = np.ptp(q, axis=-1) + np.abs(q).max(-1) + np.abs(bonus)
        earned = (policy * q).sum(-1)
        assert np.all(np.abs(value - earned - bonus) <= 64 * EPS * size), one
        if one.attained:
            assert np.all(bonus == 0)
        assert np.all(bonus <= one.largest_bonus(4) + 64 * EPS * size)
        each = library.to_numpy(one.action_bonus(array, where=mask))
        mean = np.sum(np.where(policy > 0, policy * np.where(policy > 0, each, 0), 0), axis=-1)
        assert np.all(np.abs(mean - bonus) <= 64 * EPS * size)


@pytest.mark.parametrize("softmax", CLASSES, ids=str)
def test_the_contract_holds_in_single_precision(softmax, rng):
    eps = np.finfo(np.float32).eps
    q = (rng.normal(size=(200, 5)) * 10.0 ** rng.uniform(-3, 3, size=(200, 1))).astype(np.float32)
    q = q[:, :4]
    value, policy, bonus = softmax.value(q), softmax.policy(q), softmax.bonus(q)
    assert value.dtype == policy.dtype == bonus.dtype == np.float32
    size = np.ptp(q, axis=-1) + np.abs(q).max(-1) + np.abs(bonus)
    earned = (policy.astype(float) * q).sum(-1)
    assert np.all(np.abs(value - earned - bonus) <= 64 * eps * size)


@pytest.mark.parametrize("softmax", CLASSES, ids=str)
def test_a_shift_of_all_values_is_one_of_the_value(softmax, rng):
    """By a power of two, which loses no digit of the values."""
    q = np.round(rng.normal(size=(50, 4)) * 2**10) / 2**10
    moved = softmax.value(q + 2.0**20) - 2.0**20
    np.testing.assert_allclose(moved, softmax.value(q), atol=8 * EPS * 2**20)
    np.testing.assert_allclose(softmax.policy(q + 2.0**20), softmax.policy(q), rtol=1e-13)


def test_log_probabilities_of_the_free_energy_do_not_underflow():
    softmax = mm.FreeEnergy(1e5, prior=[0.5, 0.2, 0.3, 0.0])
    logs = softmax.log_policy([0.0, 1.0, 2.0, 3.0])
    assert np.all(np.isfinite(logs[:3]))
    assert logs[0] == pytest.approx(-2e5, rel=1e-4)
    assert logs[3] == -np.inf


def test_a_row_without_a_spread_pays_the_largest_bonus():
    q = np.zeros(4)
    assert mm.LogSumExp(5.0).bonus(q) == pytest.approx(np.log(4) / 5, rel=1e-15)
    assert mm.LogSumExp(5.0).largest_bonus(4) == np.log(4) / 5
    assert mm.Sparsemax(5.0).bonus(q) == pytest.approx(0.075, rel=1e-15)
    assert mm.Sparsemax(5.0).largest_bonus(4) == 0.075
    assert mm.FreeEnergy(5.0).largest_bonus(4) == 0
    assert mm.FreeEnergy(-5.0).largest_bonus(4) == pytest.approx(np.log(4) / 5)
    assert mm.LogSumExp(0.0).largest_bonus(4) == np.inf
    assert mm.LogSumExp(0.0).largest_bonus(1) == 0


def test_the_free_energy_is_mellowmax_bit_for_bit(rng):
    q = rng.normal(size=(100, 5))
    for beta in (-3.0, 0.0, 1e-9, 5.0, np.inf):
        assert np.array_equal(mm.FreeEnergy(beta).value(q), mm.mellowmax(q, beta))
        assert np.array_equal(mm.FreeEnergy(beta).policy(q), mm.boltzmann_policy(q, beta))


@pytest.mark.parametrize("kind", REGULARISED)
def test_the_policy_is_the_gradient_of_the_value(kind, rng):
    q = jax.numpy.asarray(rng.normal(size=(50, 4)) * 10.0 ** rng.uniform(-2, 2, size=(50, 1)))
    softmax = kind(2.0)
    by_q = jax.grad(lambda q: softmax.value(q).sum())(q)
    np.testing.assert_allclose(by_q, softmax.policy(q), atol=4 * EPS)
    np.testing.assert_allclose(softmax.gradient(q), softmax.policy(q), atol=4 * EPS)


def test_log_sum_exp_is_scipys(rng):
    q = rng.normal(size=(100, 6)) * 10.0 ** rng.uniform(-2, 3, size=(100, 1))
    for beta in (0.1, 2.0, 40.0, -3.0):
        exact = scipy.special.logsumexp(beta * q, axis=-1) / beta
        np.testing.assert_allclose(mm.log_sum_exp(q, beta), exact, rtol=1e-13, atol=1e-14)
    assert mm.log_sum_exp([1.0, 2.0], np.inf) == 2
    assert mm.log_sum_exp([1.0, 2.0], 0.0) == np.inf
    assert mm.log_sum_exp([7.0], 0.0) == 7
    assert mm.log_sum_exp([1e300, 1e300], 1e-300) == pytest.approx(1e300 * (1 + np.log(2)))
    assert mm.log_sum_exp([-np.inf, 3.0], 2.0) == 3


def of_one_state(stays, rewards, discount):
    """A model of one state, whose actions stay with these probabilities, and else end."""
    probabilities = np.stack([stays, 1 - np.asarray(stays)], axis=-1)[None]
    successors = np.broadcast_to(np.int32([0, 1]), probabilities.shape)
    return MDP(successors, probabilities, np.asarray(rewards)[None], discount=discount)


def test_golden_values_of_the_two_state_mdp():
    """Its second state is an end here, so that no bonus is paid where nothing is chosen."""
    whole = two_state(printed=True)
    transitions, rewards = whole.to_numpy()
    model = of_one_state(transitions[0, :, 0], rewards[0], whole.discount)
    goldens = {
        mm.Mellowmax(16.55): (0.4315480482, (0.3983, 0.6017)),
        mm.FreeEnergy(16.55): (0.4315480482, (0.3022, 0.6978)),
        mm.LogSumExp(16.55): (1.1283534917, (0.0103, 0.9897)),
        mm.Sparsemax(16.55): (1.1073825503, (0.0, 1.0)),
        mm.Resmax(16.55): (0.4531899672, (0.3387, 0.6613)),
    }
    for softmax, (value, policy) in goldens.items():
        solution = solve(model, softmax, tolerance=1e-12)
        assert solution.value[0] == pytest.approx(value, abs=1e-10)
        np.testing.assert_allclose(solution.policy[0], policy, atol=5e-5)


def test_the_log_n_of_log_sum_exp_is_paid_in_every_step():
    """One state, four actions that cost 1, one of which ends: who leaves?"""
    model = of_one_state([0.0, 1.0, 1.0, 1.0], [-1.0] * 4, 0.99)
    for softmax, leaves, value in (
        (mm.LogSumExp(1.0), 1.9e-5, 9.86),
        (mm.FreeEnergy(1.0), 0.718, -2.06),
        (mm.Mellowmax(1.0), 0.481, -2.06),
    ):
        solution = solve(model, softmax, tolerance=1e-12)
        assert solution.policy[0, 0] == pytest.approx(leaves, rel=0.02)
        assert solution.value[0] == pytest.approx(value, abs=0.005)


def test_sparsemax_is_a_distribution_at_a_large_offset(rng):
    """In float32 at an offset of 1e6, where projecting the values themselves sums to 1.0625."""
    q = np.float32(1e6) + rng.normal(size=(100, 5)).astype(np.float32)
    policy = mm.sparsemax_policy(q, 1.0)
    assert policy.dtype == np.float32
    assert np.all(np.abs(policy.astype(float).sum(-1) - 1) <= 2 * np.finfo(np.float32).eps)
    with jax.numpy_dtype_promotion("standard"), jax.enable_x64(False):
        others = jax.vmap(optax.projections.projection_simplex)(jax.numpy.asarray(q))
    assert float(abs(others.sum(-1) - 1).max()) >= 0.0625  # what the gaps are for


def test_sparsemax_is_the_projection(rng):
    """Against optax's projection of ordinary rows, and by the conditions of the nearest point."""
    q = rng.normal(size=(100_000, 6))
    policy = mm.sparsemax_policy(q, 1.3)
    with jax.numpy_dtype_promotion("standard"):
        projected = jax.jit(jax.vmap(optax.projections.projection_simplex))(1.3 * q)
    np.testing.assert_allclose(policy, projected, atol=1e-6)
    assert np.all(np.abs(policy.sum(-1) - 1) <= 2 * EPS)
    rest = 1.3 * q - policy  # equal on the support, and no larger elsewhere
    level = np.max(rest, axis=-1, keepdims=True)
    assert np.all(np.abs(np.where(policy > 1e-12, rest - level, 0)) <= 1e-14)


def test_the_support_of_sparsemax_is_exact_at_ties():
    np.testing.assert_array_equal(mm.sparsemax_policy([3.0, 3.0, 1.0], 1.0), [0.5, 0.5, 0.0])
    np.testing.assert_array_equal(mm.sparsemax_policy([3.0, 2.0, 1.0], 1.0), [1.0, 0.0, 0.0])
    np.testing.assert_array_equal(mm.sparsemax_policy([5.0] * 4, 1e6), [0.25] * 4)
    np.testing.assert_array_equal(mm.sparsemax_policy([-np.inf, 0.0], 1.0), [0.0, 1.0])
    np.testing.assert_array_equal(mm.sparsemax_policy([1.0, 2.0], 0.0), [0.5, 0.5])
    np.testing.assert_array_equal(mm.sparsemax_policy([1.0, 2.0, 2.0], np.inf), [0, 0.5, 0.5])


def test_sparsemax_of_many_spread_actions_takes_few_steps(rng):
    """Gaps over all decades, for which the threshold falls in the most steps."""
    q = -(10.0 ** rng.uniform(-12, 1, size=(20, 5000)))
    policy = mm.sparsemax_policy(q, 3.0)
    np.testing.assert_allclose(policy.sum(-1), 1, rtol=8 * EPS)
    rest = 3.0 * q - policy
    level = np.max(rest, axis=-1, keepdims=True)
    assert np.all(np.abs(np.where(policy > 1e-10, rest - level, 0)) <= 1e-12)


def test_resmax_stays_within_its_gap_and_gives_every_action_its_share(rng):
    eta, n = 2.5, 4
    softmax = mm.Resmax(eta)
    q = rng.normal(size=(300, n)) * 10.0 ** rng.uniform(-2, 6, size=(300, 1))
    short = q.max(-1) - softmax.value(q)
    assert np.all(short <= softmax.gap(n) * (1 + 1e-12))
    assert np.max(short) > 0.999 * (n - 1) / eta  # at large gaps
    floor = -np.log(n + eta * np.ptp(q, axis=-1, keepdims=True))
    logs = softmax.log_policy(q)
    assert np.all(logs >= floor - 1e-12)
    np.testing.assert_allclose(np.exp(logs), softmax.policy(q), rtol=1e-12)
    np.testing.assert_allclose(mm.Resmax(0.0).value(q), q.mean(-1), rtol=1e-12, atol=1e-9)
    assert np.array_equal(mm.Resmax(np.inf).value(q), q.max(-1))


def test_resmax_at_the_extremes():
    assert mm.resmax([-np.inf, 1.0], 2.0) == 0.5  # what is infinitely far costs 1 / eta
    assert mm.resmax([-1e308, 1e308], 1e10) == 1e308
    logs = mm.resmax_log_policy([-1e307, 1e307], 1e10)
    np.testing.assert_allclose(logs, [-np.log(2e307) - np.log(1e10), 0], rtol=1e-12)
    np.testing.assert_array_equal(mm.resmax_policy([2.0, 2.0, 1.0], np.inf), [0.5, 0.5, 0.0])
    np.testing.assert_allclose(mm.resmax_policy([2.0, 2.0, 1.0], 0.0), [1 / 3] * 3, rtol=2 * EPS)


@pytest.mark.parametrize("kind", [mm.Resmax, mm.Sparsemax, mm.LogSumExp, mm.FreeEnergy])
def test_they_are_non_expansions_that_move_with_a_shift(kind, rng):
    for parameter in (0.3, 5.0, 100.0):
        softmax = kind(parameter)
        x = rng.normal(size=(2000, 3)) * 10.0 ** rng.uniform(-1, 1, size=(2000, 1))
        y = x + rng.uniform(-1, 1, size=x.shape)
        moved = np.abs(softmax.value(x) - softmax.value(y))
        assert np.all(moved <= np.abs(x - y).max(-1) * (1 + 1e-12))
        np.testing.assert_allclose(softmax.value(x + 2), softmax.value(x) + 2, rtol=0, atol=1e-12)


# Entropy and divergence.


def test_entropy_and_divergence_are_scipys(library, rng):
    p, r = (rng.dirichlet(np.ones(5), size=20) for _ in range(2))
    p[:5, 2] = 0
    p /= p.sum(-1, keepdims=True)
    got = library.to_numpy(mm.entropy(library.array(p)))
    np.testing.assert_allclose(got, scipy.special.entr(p).sum(-1), rtol=1e-13)
    got = library.to_numpy(mm.kl(library.array(p), library.array(r)))
    np.testing.assert_allclose(got, scipy.special.rel_entr(p, r).sum(-1), rtol=1e-12)


def test_the_divergence_of_near_policies_keeps_its_digits():
    prior = np.array([0.25, 0.25, 0.5])
    moved = prior + 1e-9 * np.array([1, -1, 0])
    exact = 1e-18 * (0.5 / 0.25 + 0.5 / 0.25)
    assert mm.kl(moved, prior) == pytest.approx(exact, rel=1e-6)
    assert mm.kl(prior, prior) == 0
    assert mm.kl(np.array([0.5, 0.5]), np.array([1.0, 0.0])) == np.inf


def test_their_gradients_are_finite_at_probability_0(library):
    """What users of other libraries meet: an illegal action at minus infinity, and NaN."""
    q = np.array([[1.0, -np.inf, 0.5], [0.0, 2.0, 1.0]])
    softmax, prior = mm.Boltzmann(2.0), np.array([0.2, 0.3, 0.5])
    where = np.isfinite(q)

    def loss(q, mask, prior):
        policy = softmax.policy(q, where=mask)
        return mm.entropy(policy).sum() + mm.kl(policy, prior).sum()

    filled = np.where(where, q, -1e30)
    if library.name == "jax":
        found = jax.grad(loss)(jax.numpy.asarray(filled), where, jax.numpy.asarray(prior))
    elif library.name == "torch":
        torch = needs_torch()
        leaf = torch.tensor(filled, requires_grad=True)
        loss(leaf, torch.tensor(where), torch.tensor(prior)).backward()
        found = leaf.grad.numpy()
    else:
        pytest.skip("a library without derivatives")
    found = np.asarray(found)
    assert np.all(np.isfinite(found))
    assert found[0, 1] == 0
    h = 1e-6
    for row, action in ((0, 0), (0, 2), (1, 1)):
        moved = [filled.copy() for _ in range(2)]
        moved[0][row, action] += h
        moved[1][row, action] -= h
        slope = (loss(moved[0], where, prior) - loss(moved[1], where, prior)) / (2 * h)
        assert found[row, action] == pytest.approx(slope, abs=1e-8)
