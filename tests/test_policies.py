"""The policies: that each attains its operator, their limits, and sampling from them."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import mellowmax as mm
from helpers.libraries import needs_torch

PAIRS = [mm.Max(), mm.Mean(), mm.EpsilonGreedy(0.2), mm.Boltzmann(4.0), mm.Mellowmax(4.0)]
pairs = pytest.mark.parametrize("softmax", PAIRS, ids=str)


@pairs
def test_the_policy_attains_the_value(softmax, library, rng):
    for _ in range(6):  # batches of one shape, for which JAX compiles once
        q = rng.normal(size=(32, 4)) * 10 ** rng.uniform(-3, 3, size=(32, 1))
        where = rng.random(size=q.shape) < 0.7
        where[:, 2] = True
        for mask in (None, where):
            given = None if mask is None else library.array(mask, "bool")
            policy = library.to_numpy(softmax.policy(library.array(q), where=given))
            value = library.to_numpy(softmax.value(library.array(q), where=given))
            assert np.all(policy >= 0)
            np.testing.assert_allclose(np.sum(policy, axis=-1), 1, rtol=1e-14)
            error = np.abs(np.sum(policy * (q - value[:, None]), axis=-1))
            assert np.all(error <= 64 * 2.3e-16 * np.ptp(q, axis=-1))


def test_the_maximum_entropy_policy_has_the_largest_entropy(rng):
    """Against random distributions that have the same expected value."""
    q = np.array([0.0, 0.4, 1.0, 0.7])
    policy = mm.mellowmax_policy(q, 6.0)
    entropy = -np.sum(policy * np.log(policy))
    null = np.linalg.svd(np.stack([np.ones(4), q]))[2][2:]  # keeps the sum and the expectation
    for _ in range(200):
        other = policy + 0.02 * rng.normal(size=2) @ null
        assert np.all(other > 0)
        assert other @ q == pytest.approx(mm.mellowmax(q, 6.0), rel=1e-12)
        assert -np.sum(other * np.log(other)) < entropy


def test_the_example_on_which_other_libraries_return_the_uniform_policy():
    np.testing.assert_allclose(
        mm.mellowmax_policy([0.0, 0.05, 0.1], 100.0), [0.0305, 0.1574, 0.8121], atol=5e-5
    )
    assert mm.mellowmax_temperature([0.0, 0.1], 30.0) == pytest.approx(12.96, abs=5e-3)


def test_near_ties_have_half_of_omega():
    assert mm.mellowmax_temperature([1.0, 1.0 + 1e-9], 1e3) == pytest.approx(500, rel=1e-7)
    assert mm.mellowmax_temperature([1.0, 1.0], 1e3) == 500
    assert mm.mellowmax_temperature([7.0], -4.0) == -2


def test_log_policy_is_finite_where_the_probability_underflows():
    q = np.array([0.0, -1.0, -1e6])
    for softmax in (mm.Boltzmann(1e4), mm.Boltzmann(1e305)):
        assert softmax.policy(q)[2] == 0
        assert np.all(np.isfinite(softmax.log_policy(q)))
    assert mm.Boltzmann(1e4).log_policy(q)[2] == pytest.approx(-1e10)
    crowded = np.array([0.0, -1e-6, -1.0])
    assert mm.mellowmax_policy(crowded, 1e9)[2] == 0
    log_policy = mm.mellowmax_log_policy(crowded, 1e9)
    b = mm.mellowmax_temperature(crowded, 1e9)
    assert log_policy[2] - log_policy[0] == pytest.approx(-b)
    np.testing.assert_array_equal(mm.Max().log_policy([0.0, 1.0]), [-np.inf, 0.0])


def keys(library, seed):
    if library.name == "jax":
        return jax.random.key(seed)
    if library.name == "torch":
        return needs_torch().Generator().manual_seed(seed)
    return np.random.default_rng(seed)


@pairs
def test_samples_have_the_frequencies_of_the_policy(softmax, library):
    """A chi-squared test at the 1e-5 level for each of the 20 cases: one in 5000 suites fails."""
    from scipy.stats import chi2

    row = np.array([0.1, 0.5, 0.45, -0.3])
    q = library.array(np.broadcast_to(row, (20_000, 4)))
    actions = library.to_numpy(softmax.sample(keys(library, 1), q)).astype(int)
    expected = softmax.policy(row) * len(actions)
    counts = np.bincount(actions, minlength=4)
    assert np.all(counts[expected == 0] == 0)
    seen = expected > 0
    statistic = np.sum((counts[seen] - expected[seen]) ** 2 / expected[seen])
    assert statistic < chi2.isf(1e-5, max(1, np.sum(seen) - 1))


def test_an_action_without_probability_is_never_drawn(library, rng):
    where = rng.random(size=(5000, 7)) < 0.3
    where[np.arange(5000), rng.integers(0, 7, 5000)] = True
    q = library.array(rng.normal(size=(5000, 7)), "float32")
    mask = library.array(where, "bool")
    actions = mm.Boltzmann(3.0).sample(keys(library, 2), q, where=mask)
    actions = library.to_numpy(actions).astype(int)
    assert np.all(where[np.arange(5000), actions])


@pytest.mark.parametrize(("number", "action"), [(0.0, 1), (1.0, 2)])
def test_the_ends_of_the_uniform_numbers_draw_actions_with_probability(number, action, monkeypatch):
    """0 may come up, and the largest below 1 times a total above 1 may round to the total."""
    from mellowmax import policies

    monkeypatch.setattr(
        policies,
        "uniform",
        lambda xp, key, shape, like: xp.full(shape, number, dtype=like.dtype),
    )
    assert mm.sample(0, np.float32([0.0, 0.25, 0.75, 0.0])) == action


def test_sampling_along_another_axis_and_from_a_seed():
    policy = np.zeros((3, 5))
    policy[[2, 0, 1, 1, 2], np.arange(5)] = 1
    np.testing.assert_array_equal(mm.sample(7, policy, axis=0), [2, 0, 1, 1, 2])
    q = np.zeros((1000, 4))
    np.testing.assert_array_equal(mm.Mean().sample(3, q), mm.Mean().sample(3, q))
    assert len(np.unique(mm.Mean().sample(3, q))) == 4


def test_sampling_needs_the_key_of_its_library_and_probabilities():
    row, generator = np.array([0.5, 0.5]), np.random.default_rng(0)
    key, traced = jax.random.key(0), jax.numpy.asarray(row)
    cases = [
        (key, row, TypeError, "`key` must be a numpy.random.Generator or a seed, got Array((), "),
        ("0", row, TypeError, "`key` must be a numpy.random.Generator or a seed, got '0'"),
        (-1, row, ValueError, "`key` must be at least 0 where it is a seed, got -1"),
        (generator, traced, TypeError, "`key` must be a JAX key, got Generator(PCG64)"),
        (0, traced, TypeError, "`key` must be a JAX key, got 0"),
        (np.uint32(0), traced, TypeError, "`key` must be a JAX key, got np.uint32(0)"),
        (0, [0.5, 0.5], TypeError, "`policy` must be an array, got [0.5, 0.5]"),
        (0, np.array([1, 0]), TypeError, "`policy` must be floating-point numbers, got an array"),
        (0, np.array(1.0), ValueError, "`policy` must have an axis of actions, got the number 1"),
        (0, np.ma.masked_array(row), TypeError, "`policy` must be an array without a mask"),
    ]
    for given, policy, kind, message in cases:
        with pytest.raises(kind) as error:
            mm.sample(given, policy)
        assert str(error.value).startswith(message)
    assert mm.sample(jax.random.PRNGKey(0), traced) in (0, 1)


def test_sampling_inside_jax_transformations(rng):
    softmax = mm.Boltzmann(2.0)
    q = jax.numpy.asarray(rng.normal(size=(50, 3)))
    keys = jax.random.split(jax.random.key(0), 50)
    together = jax.jit(jax.vmap(softmax.sample))(keys, q)
    alone = [int(softmax.sample(key, row)) for key, row in zip(keys, q, strict=True)]
    np.testing.assert_array_equal(together, alone)


def test_choose_passes_through_all_actions_as_the_number_grows(library):
    """Over all numbers from 0 to 1, each action is chosen as often as it is probable."""
    row = np.array([0.0, 0.25, 0.0, 0.5, 0.25, 0.0])
    uniform = (np.arange(400) + 0.5) / 400
    policy = library.array(np.tile(row[:, None], 400))
    chosen = library.to_numpy(mm.choose(policy, library.array(uniform), axis=0)).astype(int)
    np.testing.assert_array_equal(np.bincount(chosen, minlength=6) / 400, row)
    assert (np.diff(chosen) >= 0).all()
    ends = mm.choose(library.array(row[None]), library.array(np.array([1.0])))
    assert int(library.to_numpy(ends)[0]) == 4


@pytest.mark.parametrize("wrong", [np.nan, 0.0, np.inf])
def test_a_row_that_is_no_policy_draws_nothing(wrong, library):
    policy = np.array([[0.5, 0.5, 0.0], [wrong, wrong, wrong]])
    with pytest.raises(ValueError, match=f"`policy` must be probabilities.* adds up to {wrong:g}"):
        mm.sample(keys(library, 0), library.array(policy))
    if library.name == "jax" and wrong != np.inf:
        traced = jax.jit(mm.choose)(policy, np.array([0.2, 0.2]))
        np.testing.assert_array_equal(traced, [0, -1])


@pytest.mark.parametrize(
    ("uniform", "message"),
    [
        (np.array([0.5, 1.5]), r"`uniform` must be in \[0, 1\], got"),
        (np.array([0.5, np.nan]), r"`uniform` must be in \[0, 1\], got"),
        (np.zeros(3), r"`uniform` must broadcast against the rows of `policy`, of shape \(2,\)"),
    ],
)
def test_the_numbers_that_choose_fit_the_rows_and_are_shares(uniform, message, library):
    policy = library.array(np.full((2, 2), 0.5))
    with pytest.raises(ValueError, match=message):
        mm.choose(policy, library.array(uniform))


def test_an_accelerator_finds_the_temperatures_that_a_cpu_finds(monkeypatch):
    """It adds a few actions one by one and takes several steps at a time: here on a CPU that is
    taken for one, with as many rows as no other test has, so that a program of its own is made."""
    rng = np.random.default_rng(0)
    q = rng.normal(size=(37, 5)) * 10.0 ** rng.uniform(-8, 8, (37, 1))
    expected = mm.mellowmax_temperature(q, 7.0)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    got = mm.mellowmax_temperature(jax.numpy.asarray(q), 7.0)
    np.testing.assert_allclose(got, expected, rtol=1e-13)


@pytest.mark.parametrize("omega", [0.0, -0.0])
def test_at_0_the_policy_is_uniform_over_actions_that_have_weight(omega, library):
    for q, expected in (
        ([-np.inf, 0.0, 1.0], [0, 0.5, 0.5]),
        ([-np.inf, -np.inf, 1.0], [0, 0, 1]),
        ([-np.inf, -np.inf, -np.inf], [1 / 3, 1 / 3, 1 / 3]),
    ):
        found = library.to_numpy(mm.mellowmax_policy(library.array(q), omega))
        np.testing.assert_allclose(found, expected, rtol=1e-15)
        boltzmann = library.to_numpy(mm.boltzmann_policy(library.array(q), omega))
        np.testing.assert_allclose(found, boltzmann, rtol=1e-15)


def test_more_than_64_bits_are_refused():
    q = np.array([0.0, 1.0], dtype=np.longdouble)
    if q.dtype.itemsize == 8:
        pytest.skip("here a long double is a double")
    for function in (mm.mellowmax, mm.mellowmax_policy, mm.mellowmax_temperature, mm.boltzmann):
        with pytest.raises(TypeError, match="`q` must be numbers of at most 64 bits, got"):
            function(q, 5.0)
