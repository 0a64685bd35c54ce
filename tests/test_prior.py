"""Mellowmax under a prior: repeated actions, the definition in mpmath, and what is refused."""

from __future__ import annotations

import re

import jax
import mpmath
import numpy as np
import pytest

import mellowmax as mm
from helpers.libraries import needs_torch

GOLDENS = {
    2.0: (2.252155029879, 0.943865860968, (0.21722119, 0.20893506, 0.57384375)),
    -2.0: (1.243858221397, -0.802942168102, None),
}
"""(1, 1.5, 3) under the prior (0.5, 0.3, 0.2): the value, the inverse temperature, the policy."""
Q, PRIOR = [1.0, 1.5, 3.0], [0.5, 0.3, 0.2]


@pytest.mark.parametrize("omega", GOLDENS)
def test_golden_values(omega, library):
    value, b, policy = GOLDENS[omega]
    q, prior = library.array(Q), library.array(PRIOR)
    assert float(mm.mellowmax(q, omega, prior=prior)) == pytest.approx(value, rel=1e-11)
    assert float(mm.mellowmax_temperature(q, omega, prior=prior)) == pytest.approx(b, rel=1e-10)
    if policy is not None:
        got = library.to_numpy(mm.mellowmax_policy(q, omega, prior=prior))
        np.testing.assert_allclose(got, policy, atol=1e-8)
        got = library.to_numpy(mm.FreeEnergy(omega, prior=prior).policy(q))
        np.testing.assert_allclose(got, (0.04086598, 0.06665116, 0.89248286), atol=1e-8)


def repeated(q, times):
    """The rows with each action as often as `times` says."""
    return np.repeat(q, times, axis=-1)


def test_a_prior_is_the_same_as_repeated_actions(rng):
    """The exact test: weights k / n against k copies, within rounding of both."""
    for _ in range(60):
        n = int(rng.integers(1, 6))
        times = rng.integers(1, 7, size=n)
        q = rng.normal(size=(50, n)) * 10 ** rng.uniform(-4, 4, size=(50, 1))
        q[::7] = np.round(q[::7])  # ties
        omega = rng.normal(size=50) * 10 ** rng.uniform(-4, 3, size=50)
        of_copies, size = repeated(q, times), np.ptp(q, axis=-1) + np.max(np.abs(q), axis=-1)
        prior = times / times.sum()
        error = mm.mellowmax(q, omega, prior=prior) - mm.mellowmax(of_copies, omega)
        assert np.all(np.abs(error) <= 64 * np.finfo(float).eps * size)
        copies = mm.mellowmax_policy(of_copies, omega)
        shares = np.add.reduceat(copies, np.cumsum(times) - times, axis=-1)
        policy = mm.mellowmax_policy(q, omega, prior=prior)
        np.testing.assert_allclose(policy, shares, atol=1e-12)
        logs = mm.mellowmax_log_policy(q, omega, prior=prior)
        some = shares > 0
        np.testing.assert_allclose(logs[some], np.log(shares[some]), rtol=1e-9, atol=1e-11)
        b = mm.mellowmax_temperature(q, omega, prior=prior)
        assert np.all((b * np.sign(omega) >= 0) & (np.abs(b) <= np.abs(omega)))


def test_a_weight_of_0_is_a_masked_action(rng, library):
    q = rng.normal(size=(40, 5))
    where = rng.random((40, 5)) < 0.6
    where[:, 2] = True
    for function in (mm.mellowmax, mm.mellowmax_policy, mm.mellowmax_temperature):
        given = library.array(q), 3.0
        by_prior = library.to_numpy(function(*given, prior=library.array(where * 1.0)))
        by_mask = library.to_numpy(function(*given, where=library.array(where, "bool")))
        np.testing.assert_allclose(by_prior, by_mask, rtol=1e-12)


def test_a_mask_leaves_the_prior_of_the_others(rng):
    q, prior = rng.normal(size=(20, 4)), rng.random((20, 4)) + 0.1
    where = rng.random((20, 4)) < 0.7
    where[:, 0] = True
    together = mm.mellowmax_policy(q, 4.0, prior=prior, where=where)
    for row in range(20):
        kept = where[row]
        alone = mm.mellowmax_policy(q[row][kept], 4.0, prior=prior[row][kept])
        np.testing.assert_allclose(together[row][kept], alone, rtol=1e-12)
        assert np.all(together[row][~kept] == 0)


def test_equal_weights_are_no_prior(rng):
    q = rng.normal(size=(30, 7))
    for weight in (1.0, 1e-300, 1e300):
        prior = np.full(7, weight)
        for function in (mm.mellowmax, mm.mellowmax_policy, mm.boltzmann_policy):
            plain = function(q, 5.0)
            np.testing.assert_allclose(function(q, 5.0, prior=prior), plain, rtol=1e-13)


@pytest.mark.parametrize("factor", [2.0**-300, 2.0**300])
def test_the_scale_of_the_values_does_not_matter(factor, rng):
    q, prior = rng.normal(size=(30, 4)), rng.random(4)
    plain = mm.mellowmax(q, 3.0, prior=prior)
    scaled = mm.mellowmax(q * factor, 3.0 / factor, prior=prior)
    np.testing.assert_allclose(scaled, plain * factor, rtol=1e-13, atol=1e-15 * factor)
    policy = mm.mellowmax_policy(q, 3.0, prior=prior)
    np.testing.assert_allclose(
        mm.mellowmax_policy(q * factor, 3.0 / factor, prior=prior), policy, rtol=1e-12
    )


def test_limits_of_omega():
    q, prior = [1.0, 3.0, 3.0, 9.0], [0.5, 0.1, 0.3, 0.0]
    value = mm.mellowmax(q, [0.0, np.inf, -np.inf], prior=prior)
    np.testing.assert_allclose(value, [(0.5 + 1.2) / 0.9, 3.0, 1.0], rtol=1e-14)
    policies = mm.mellowmax_policy(q, [0.0, np.inf, -np.inf], prior=prior)
    shared = [[5 / 9, 1 / 9, 3 / 9, 0], [0, 0.25, 0.75, 0], [1, 0, 0, 0]]
    np.testing.assert_allclose(policies, shared, rtol=1e-14)


def test_the_prior_goes_with_the_actions(rng, library):
    q, each, one = rng.normal(size=(4, 3, 5)), rng.random((4, 3, 5)) + 0.1, rng.random(5) + 0.1
    for prior in (each, one):
        last = mm.mellowmax_policy(q, 2.0, prior=prior)
        moved = prior if prior.ndim == 1 else np.moveaxis(prior, -1, 1)
        first = mm.mellowmax_policy(
            library.array(np.moveaxis(q, -1, 1)), 2.0, axis=1, prior=library.array(moved)
        )
        np.testing.assert_allclose(np.moveaxis(library.to_numpy(first), 1, -1), last, rtol=1e-12)
        softmax = mm.Mellowmax(2.0, prior=prior)
        along = softmax.policy(np.moveaxis(q, -1, 1), axis=1)
        np.testing.assert_allclose(np.moveaxis(along, 1, -1), last, rtol=1e-12)


def test_vmap_takes_a_prior(rng):
    q, prior = rng.normal(size=(6, 4)), rng.random((6, 4)) + 0.1
    expected = mm.mellowmax(q, 3.0, prior=prior)
    shared = mm.mellowmax(q, 3.0, prior=prior[0])
    arrays = jax.numpy.asarray(q), jax.numpy.asarray(prior)
    each = jax.vmap(lambda q, prior: mm.mellowmax(q, 3.0, prior=prior))(*arrays)
    np.testing.assert_allclose(each, expected, rtol=1e-12)
    one = jax.vmap(lambda q: mm.mellowmax(q, 3.0, prior=arrays[1][0]))(arrays[0])
    np.testing.assert_allclose(one, shared, rtol=1e-12)


def definitions(q, omega):
    """Functions of the weights: mellowmax, its inverse temperature, and the policy's logarithms."""

    def value(prior):
        total = mpmath.fsum(w * mpmath.exp(omega * v) for w, v in zip(prior, q, strict=True))
        return mpmath.log(total / mpmath.fsum(prior)) / omega

    def temperature(prior):
        center = value(prior)

        def excess(b):
            parts = zip(prior, q, strict=True)
            return mpmath.fsum(w * mpmath.exp(b * (v - center)) * (v - center) for w, v in parts)

        low, high = sorted([mpmath.mpf(0), omega])
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if excess(middle) < 0 else (low, middle)
        return (low + high) / 2

    def logs(prior):
        b = temperature(prior)
        weights = [w * mpmath.exp(b * v) for w, v in zip(prior, q, strict=True)]
        return [mpmath.log(w / mpmath.fsum(weights)) for w in weights]

    return value, temperature, logs


def test_derivatives_by_the_prior(rng):
    """JAX and PyTorch against differences of the definitions, relative to the largest."""
    torch = needs_torch()
    by_jax = jax.jit(
        lambda prior, q, omega, cotangent: (
            jax.grad(lambda p: mm.mellowmax(q, omega, prior=p))(prior),
            jax.grad(lambda p: mm.mellowmax_temperature(q, omega, prior=p))(prior),
            jax.grad(lambda p: mm.mellowmax_log_policy(q, omega, prior=p) @ cotangent)(prior),
        )
    )
    for case in range(8):
        q = rng.normal(size=4) * 10.0 ** rng.uniform(-2, 1)
        omega = float(10.0 ** rng.uniform(-2, 1.5) * rng.choice([-1, 1]))
        prior, cotangent = rng.random(4) + 0.05, rng.normal(size=4)
        if case == 0:
            prior[1] = 1e-5
        with mpmath.workdps(60):
            exact_q, weights = ([mpmath.mpf(float(x)) for x in each] for each in (q, prior))
            value, temperature, logs = definitions(exact_q, mpmath.mpf(omega))

            def loss(prior, logs=logs, cotangent=cotangent):
                parts = zip(cotangent, logs(prior), strict=True)
                return mpmath.fsum(mpmath.mpf(float(c)) * log for c, log in parts)

            def slopes(function, weights=weights):
                for i, weight in enumerate(weights):
                    h = mpmath.mpf(10) ** -20 * weight
                    high, low = list(weights), list(weights)
                    high[i], low[i] = weight + h, weight - h
                    yield float((function(high) - function(low)) / (2 * h) * weight)

            expected = [np.array(list(slopes(each))) for each in (value, temperature, loss)]
            b = abs(float(temperature(weights)))
        tensors = [torch.tensor(x) for x in (q, cotangent)]
        functions = (
            lambda p, q=tensors[0], omega=omega: mm.mellowmax(q, omega, prior=p),
            lambda p, q=tensors[0], omega=omega: mm.mellowmax_temperature(q, omega, prior=p),
            lambda p, q=tensors[0], c=tensors[1], omega=omega: (
                mm.mellowmax_log_policy(q, omega, prior=p) @ c
            ),
        )
        found = by_jax(prior, q, omega, cotangent)
        for exact, got, function, size in zip(expected, found, functions, (0, b, 1), strict=True):
            allowed = 1e-10 * np.max(np.abs(exact)) + 1e-13 * size
            np.testing.assert_allclose(np.asarray(got) * prior, exact, rtol=0, atol=allowed)
            leaf = torch.tensor(prior, requires_grad=True)
            function(leaf).backward()
            np.testing.assert_allclose(leaf.grad.numpy() * prior, exact, rtol=0, atol=allowed)


BAD = [
    ([0.5, -0.1, 0.6], "`prior` must be finite and at least 0"),
    ([0.5, np.nan, 0.5], "`prior` must be finite and at least 0"),
    ([0.5, np.inf, 0.5], "`prior` must be finite and at least 0"),
    ([0.5, 0.5], "`prior` must have the 3 actions of `q` along its axis -1, or be one row of 3"),
    ([[0.5, 0.5]], "`prior` must have the 3 actions of `q` along its axis -1, or be one row of 3"),
    ([0.0, 0.0, 0.0], "`prior` must have a weight above 0 in every row"),
    ([0.0, 0.0, 1.0], "`prior` must have a weight above 0 in every row"),
]


@pytest.mark.parametrize(("prior", "message"), BAD, ids=str)
def test_a_wrong_prior_is_one_sentence(prior, message):
    q = np.zeros((2, 3))
    where = [[True, True, False], [True, True, True]] if prior == [0.0, 0.0, 1.0] else None
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        mm.mellowmax_policy(q, 2.0, prior=prior, where=where)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("kind", [mm.Mellowmax, mm.FreeEnergy])
@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ([0.5, -0.1], "`prior` must be finite and at least 0, got [0.5, -0.1]"),
        ([0.5, np.nan], "`prior` must be finite and at least 0, got [0.5, nan]"),
        ([0.0, 0.0], "`prior` must have a weight above 0 in every row, got [0.0, 0.0]"),
    ],
)
def test_a_softmax_checks_its_prior_at_once(kind, prior, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        kind(2.0, prior=prior)


def test_the_gap_is_that_of_the_least_weight(rng):
    prior = np.array([0.6, 0.3, 0.1])
    for kind in (mm.Mellowmax, mm.FreeEnergy):
        softmax = kind(2.0, prior=prior)
        assert softmax.gap(3) == pytest.approx(-np.log(0.1) / 2)
        q = rng.normal(size=(200, 3)) * 10 ** rng.uniform(-1, 3, size=(200, 1))
        short = q.max(-1) - softmax.value(q)
        assert np.all(short <= softmax.gap(3) * (1 + 1e-12))
        assert np.max(short) > 0.999 * softmax.gap(3)  # where the rarest is best by far
        assert kind(2.0, prior=[0.5, 0.5, 0.0]).gap(3) == np.inf
