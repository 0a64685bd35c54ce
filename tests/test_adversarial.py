"""Rows made to be awkward, against mpmath: no row may fail.

Hypothesis looks for them, and every library gets a batch of them in both precisions. JAX compiles
batches as it does for users: the last digits of an exponential depend on that. Expectations are
checked in exact arithmetic on the numbers returned:
`|sum(policy * (q - mellowmax))| <= 64 eps * range(q)`.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util

import jax
import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import mellowmax as mm
from helpers import adversarial, reference
from helpers.awkward import awkward_rows, many, parameters, rows
from helpers.libraries import AS_USERS, LIBRARIES, LIBRARY_NAMES

SMALLEST = mpmath.mpf(2) ** -1074  # half of the smallest number is no number


def expectation_error(policy, q, omega):
    """The distance of the policy's expected value from mellowmax, in units of the range."""
    exact = reference.mellowmax(q, omega)
    total = mpmath.fsum(
        mpmath.mpf(float(p)) * (v - exact)
        for p, v in zip(policy, reference.exact(q), strict=True)
        if p != 0
    )
    width = reference.value_range(q)
    return 0.0 if total == 0 else float(abs(total) / width) if width > 0 else np.inf


@many
@given(rows, parameters)
@example([0.0, 0.05, 0.1], 100.0)
@example([0.0, 1e-12, 1.0], 1e13)
@example([1e300, -1e300], 1e8)
@example([0.0, 0.1], 30.0)
@example([0.0, 1e-8], -1e-8)
def test_mellowmax_and_its_policy(q, omega):
    eps = np.finfo(np.float64).eps
    exact = reference.mellowmax(q, omega)
    width = reference.value_range(q)
    error = abs(mpmath.mpf(float(mm.mellowmax(q, omega))) - exact)
    assert error <= 4 * eps * (width + abs(exact)) + SMALLEST
    policy = mm.mellowmax_policy(q, omega)
    assert np.all(policy >= 0)
    assert abs(np.sum(policy) - 1) <= 16 * eps
    assert expectation_error(policy, q, omega) <= 64 * eps
    for value in set(q):  # ties share equally
        assert len({float(p) for p, v in zip(policy, q, strict=True) if v == value}) == 1


@many
@given(rows, parameters)
@example([0.0, 1e-12, 1.0], 1.3e12)
@example([3.0, 3.0 + 1e-9, 2.0], 1e-8)
def test_the_temperature_is_accurate(q, omega):
    """To 1e-6 on every row whose values are not all equal: none needs an exception."""
    b = float(mm.mellowmax_temperature(q, omega))
    if np.isinf(omega) or omega == 0:
        assert b == omega
    elif reference.value_range(q) == 0:
        assert b == omega / 2
    else:
        assert 0 < b / omega < 1
        assert reference.relative_error_below(q, omega, b, 1e-6)


@many
@given(rows, parameters)
def test_boltzmann_and_its_policy(q, beta):
    eps = np.finfo(np.float64).eps
    exact = reference.boltzmann_policy(q, beta)
    policy = mm.boltzmann_policy(q, beta)
    log_policy = mm.boltzmann_log_policy(q, beta)
    for p, log_p, x in zip(policy, log_policy, exact, strict=True):
        if np.isinf(beta):
            assert float(p) == pytest.approx(float(x), rel=4 * eps)
            continue
        log_x = mpmath.log(x) if x > 0 else -mpmath.inf
        lowest = np.finfo(np.float64).min
        assert np.isfinite(log_p)
        assert abs(log_p - max(log_x, lowest)) <= 8 * eps * (1 + min(abs(log_x), -lowest))
        assert abs(p - x) <= 16 * eps * x * (1 + abs(log_x)) + 1e-307
    width = reference.value_range(q)
    value = reference.boltzmann(q, beta)
    error = abs(mpmath.mpf(float(mm.boltzmann(q, beta))) - value)
    assert error <= 16 * eps * (width + abs(value)) + SMALLEST


@many
@given(rows, parameters)
def test_log_policy_is_the_logarithm_of_the_policy(q, omega):
    policy, log_policy = mm.mellowmax_policy(q, omega), mm.mellowmax_log_policy(q, omega)
    if np.isfinite(omega):
        assert np.all(np.isfinite(log_policy))
    seen = policy > 1e-300
    scale = 1 + np.abs(log_policy[seen])
    assert np.all(np.abs(log_policy[seen] - np.log(policy[seen])) <= 8e-16 * scale)
    assert np.all(log_policy[~seen] < -690)


@many
@given(rows, parameters, st.data())
def test_masked_and_infinitely_bad_actions(q, omega, data):
    """Masked actions change nothing; actions at -inf have no weight, but count in the mean."""
    junk = data.draw(st.lists(st.sampled_from([np.nan, np.inf, -np.inf, 0.0, 1e300]), max_size=3))
    where = np.array([True] * len(q) + [False] * len(junk))
    row = np.array([*q, *junk])
    width = float(reference.value_range(q) / 2)
    value = mm.mellowmax(row, omega, where=where)
    np.testing.assert_allclose(value, mm.mellowmax(q, omega), rtol=1e-15, atol=2e-15 * width)
    masked = mm.mellowmax_policy(row, omega, where=where)
    np.testing.assert_allclose(masked[: len(q)], mm.mellowmax_policy(q, omega), 1e-12, 1e-300)
    assert np.all(masked[len(q) :] == 0)
    if omega > 0:
        lower = np.array([*q, -np.inf])
        policy = mm.mellowmax_policy(lower, omega)
        assert policy[-1] == 0
        assert abs(np.sum(policy) - 1) <= 1e-15 * len(lower)
        n, exact = len(q), reference.mellowmax(q, omega)
        if np.isfinite(omega):
            exact += mpmath.log(mpmath.mpf(n) / (n + 1)) / mpmath.mpf(omega)
        error = abs(mpmath.mpf(float(mm.mellowmax(lower, omega))) - exact)
        assert error <= 2e-15 * (abs(exact) + reference.value_range(q)) + SMALLEST


def precisions(library, n):
    """Both, but one of them under JAX, which compiles for each of them and for each `n`.

    Four actions are those of `test_rows_and_gradients_anywhere_in_the_dtype`.
    """
    if library != "jax":
        return ("float64", "float32")
    return {1: ("float64",), 2: ("float32",), 4: (), 18: ("float32",), 64: ("float64",)}[n]


RELEASE = pytest.mark.release
LONG = [("jax", 1), ("jax", 2), ("jax", 18)]
"""Batches that are left to release tests: each takes seconds to compile, as others do."""


@functools.partial(jax.jit, compiler_options=AS_USERS)
def compiled(q, omega):
    return mm.mellowmax_policy(q, omega), mm.mellowmax(q, omega)


@pytest.mark.parametrize(
    ("library", "n", "dtype"),
    [
        pytest.param(library, n, dtype, marks=RELEASE if (library, n) in LONG else ())
        for library in LIBRARY_NAMES
        for n in (1, 2, 4, 18, 64)
        for dtype in precisions(library, n)
    ],
    indirect=["library"],
)
def test_a_batch_of_awkward_rows_in_every_library(n, dtype, library):
    rng = np.random.default_rng(n)
    q, omega = awkward_rows(rng, n, 12, 290 if dtype == "float64" else 30)
    with np.errstate(under="ignore"):
        q, omega = q.astype(dtype), omega.astype(dtype)
    eps = np.finfo(dtype).eps
    both = compiled if library.name == "jax" else compiled.__wrapped__
    policies, values = map(
        library.to_numpy, both(library.array(q, dtype), library.array(omega, dtype))
    )
    for row, parameter, policy, value in zip(q, omega, policies, values, strict=True):
        exact, width = reference.mellowmax(row, parameter), reference.value_range(row)
        case = f"q={row!r}, omega={parameter!r}, policy={policy!r}"
        assert abs(mpmath.mpf(float(value)) - exact) <= 8 * eps * (width + abs(exact)), case
        assert expectation_error(policy, row, parameter) <= 64 * eps, case


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_expectations_in_half_precision(dtype):
    for library in LIBRARIES.values():
        if (library.name, dtype) in {("numpy", "bfloat16"), ("strict", dtype)}:
            continue
        q = library.array(np.random.default_rng(0).normal(size=(32, 4)) * 3, dtype)
        eps = float(library.module.finfo(q.dtype).eps)
        rounded = np.asarray(library.to_numpy(q), dtype=np.float64)
        for omega in (-50.0, 1e-3, 0.5, 8.0, 1e4):
            policies = np.asarray(library.to_numpy(mm.mellowmax_policy(q, omega)), np.float64)
            for row, policy in zip(rounded, policies, strict=True):
                assert expectation_error(policy, row, omega) <= 64 * eps


def test_many_actions():
    """More than a chunk. Mellowmax of a row is that of the row repeated, which is soon found."""
    few = np.random.default_rng(0).normal(size=1000)
    q = np.random.default_rng(1).permutation(np.tile(few, 100))
    for omega in (1e-3, 5.0, 1e3):
        policy = mm.mellowmax_policy(q, omega)
        exact = np.float64(reference.mellowmax(few, omega))
        assert abs(np.sum(policy * (q - exact))) <= 64 * np.finfo(float).eps * np.ptp(q)


COMPUTE = adversarial.libraries(AS_USERS)


@pytest.mark.parametrize("draw", [adversarial.rows, adversarial.ordinary_rows])
@pytest.mark.parametrize(
    ("dtype", "names"),
    [
        ("float32", tuple(COMPUTE)),
        ("float64", tuple(name for name in COMPUTE if name != "jax")),
        pytest.param("float64", ("jax",), marks=RELEASE),  # it takes 6 seconds to compile
    ],
    ids=["float32", "float64", "float64 in jax"],
)
def test_rows_and_gradients_anywhere_in_the_dtype(dtype, names, draw):
    """Fills, gaps and parameters over all normal numbers; compiled by JAX.

    And none but ordinary rows, which JAX computes in another way: it is the same program.
    """
    rng = np.random.default_rng(3)
    q, omega = draw(rng, 4, 4000, dtype)
    cotangent = rng.normal(size=q.shape).astype(dtype)
    with np.errstate(all="ignore"):
        exact = adversarial.Exact(q, omega)
        for library in names:
            found = COMPUTE[library](q, omega, cotangent)
            for check, bad in adversarial.wrong(found, exact, dtype, cotangent).items():
                first = int(np.argmax(bad))
                assert not np.any(bad), f"{library}, {check}: {q[first]!r}, {omega[first]!r}"


def value_and_policy(q, omega):
    return mm.mellowmax(q, omega), mm.mellowmax_policy(q, omega)


BOTH = {"numpy": value_and_policy}
if importlib.util.find_spec("torch"):
    from_numpy = importlib.import_module("torch").from_numpy
    BOTH["torch"] = lambda q, omega: value_and_policy(from_numpy(q), omega)
MANY = (1, 2, 3, 9, 17, 20, 64, 257, 1000, 30_000)


def check_sums(q, omega, functions):
    """Mellowmax and the policy's expectation keep their bounds, in a batch and for rows alone."""
    eps = np.finfo(q.dtype).eps
    extended = q.astype(adversarial.EXTENDED)
    top = extended.max(axis=-1, keepdims=True)
    below = np.mean(np.expm1(omega * (extended - top)), axis=-1)
    exact = top[:, 0] + np.log1p(below) / omega
    range_ = np.ptp(extended, axis=-1)
    for library, both in functions.items():
        for part in (slice(None), slice(0, 1), slice(1, 2)):
            value, policy = map(np.asarray, both(q[part], omega))
            error = np.abs(value - exact[part])
            assert np.all(error <= 8 * eps * (range_ + np.abs(exact))[part]), library
            policy = policy.astype(adversarial.EXTENDED)
            assert np.all(np.abs(policy.sum(axis=-1) - 1) <= 64 * eps), library
            earned = np.sum(policy * (extended[part] - exact[part, None]), axis=-1)
            assert np.all(np.abs(earned) <= 64 * eps * range_[part]), library


def where_sums_drift(n, dtype):
    """Random values, one best among ties, and clusters: where sums one by one drift.

    They drift by the number of actions, in units of the dtype's rounding.
    """
    rng = np.random.default_rng(n)
    best = np.arange(n) == 0
    kinds = [rng.normal(size=n), best, 100 + 0.125 * rng.integers(0, 3, size=n)]
    return np.stack(kinds * 3).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", MANY)
def test_many_actions_lose_no_digits_alone_or_in_a_batch(n, dtype):
    check_sums(where_sums_drift(n, dtype), 5.0, BOTH)


@pytest.mark.parametrize(
    "n", [pytest.param(n, marks=RELEASE if i % 3 else ()) for i, n in enumerate(MANY)]
)
def test_many_actions_lose_no_digits_in_jax(n):
    """JAX compiles for each number of actions, so each has one of the dtypes, in turn."""
    dtype = ("float64", "float32")[MANY.index(n) % 2]
    check_sums(where_sums_drift(n, dtype), 5.0, {"jax": jax.jit(value_and_policy)})


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    n=st.one_of(st.sampled_from(MANY), st.floats(0, 5).map(lambda x: int(10**x))),
    rows=st.integers(2, 20),
    centres=st.integers(1, 5),
    spread=st.sampled_from([0.0, 1e-6, 1e-3, 1.0]),
    omega=st.floats(-3, 3).map(lambda x: 10.0**x),
    dtype=st.sampled_from(["float32", "float64"]),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_number_of_actions_in_clusters(n, rows, centres, spread, omega, dtype, seed):
    """One cluster or several, each of ties, of near ties or wide."""
    rng, rows = np.random.default_rng(seed), min(rows, max(2, 100_000 // n))
    q = rng.normal(size=centres)[rng.integers(0, centres, size=(rows, n))]
    check_sums((q + spread * rng.normal(size=q.shape)).astype(dtype), omega, BOTH)
