"""The operators: values against their definitions, and what every array function promises."""

from __future__ import annotations

import functools

import jax
import numpy as np
import pytest

import mellowmax as mm
from helpers import reference
from helpers.libraries import LIBRARIES, LIBRARY_NAMES

# JAX compiles a function for each shape that it meets, which is what takes the time here. So there
# are 32 rows of four actions along three of the axes of `Q`, in every test that can do with them,
# and where there is a mask, each row has its own parameter: two programs for each function. Those
# of mellowmax take longest: all of them are compiled as one program with a mask (`masked`), and two
# of them by themselves. Without a mask, `test_adversarial` and `test_gradients` compile the others.
Q = np.random.default_rng(0).normal(size=(4, 2, 4, 4))
MASK = np.random.default_rng(1).random(size=Q.shape) < 0.6
MASK[..., 0] = True
PARAMETERS = np.random.default_rng(2).random(size=Q.shape[:-1])

OPERATORS = {
    "maximum": (mm.maximum, ()),
    "mean": (mm.mean, ()),
    "epsilon_greedy": (mm.epsilon_greedy, (0.3,)),
    "boltzmann": (mm.boltzmann, (3.0,)),
    "mellowmax": (mm.mellowmax, (3.0,)),
    "mellowmax_temperature": (mm.mellowmax_temperature, (3.0,)),
    "log_sum_exp": (mm.log_sum_exp, (3.0,)),
    "sparsemax": (mm.sparsemax, (3.0,)),
    "resmax": (mm.resmax, (3.0,)),
    "epsilon_greedy_parameter_gradient": (mm.epsilon_greedy_parameter_gradient, (0.3,)),
    "boltzmann_parameter_gradient": (mm.boltzmann_parameter_gradient, (3.0,)),
    "log_sum_exp_parameter_gradient": (mm.log_sum_exp_parameter_gradient, (3.0,)),
    "sparsemax_parameter_gradient": (mm.sparsemax_parameter_gradient, (3.0,)),
    "resmax_parameter_gradient": (mm.resmax_parameter_gradient, (3.0,)),
    "mellowmax_parameter_gradient": (mm.mellowmax_parameter_gradient, (3.0,)),
    "mellowmax_temperature_parameter_gradient": (
        mm.mellowmax_temperature_parameter_gradient,
        (3.0,),
    ),
}
POLICIES = {
    "maximum_gradient": (mm.maximum_gradient, ()),
    "mean_gradient": (mm.mean_gradient, ()),
    "epsilon_greedy_gradient": (mm.epsilon_greedy_gradient, (0.3,)),
    "boltzmann_gradient": (mm.boltzmann_gradient, (3.0,)),
    "mellowmax_gradient": (mm.mellowmax_gradient, (3.0,)),
    "mellowmax_temperature_gradient": (mm.mellowmax_temperature_gradient, (3.0,)),
    "resmax_gradient": (mm.resmax_gradient, (3.0,)),
    "greedy_policy": (mm.greedy_policy, ()),
    "uniform_policy": (mm.uniform_policy, ()),
    "epsilon_greedy_policy": (mm.epsilon_greedy_policy, (0.3,)),
    "boltzmann_policy": (mm.boltzmann_policy, (3.0,)),
    "mellowmax_policy": (mm.mellowmax_policy, (3.0,)),
    "sparsemax_policy": (mm.sparsemax_policy, (3.0,)),
    "resmax_policy": (mm.resmax_policy, (3.0,)),
    "greedy_log_policy": (mm.greedy_log_policy, ()),
    "uniform_log_policy": (mm.uniform_log_policy, ()),
    "epsilon_greedy_log_policy": (mm.epsilon_greedy_log_policy, (0.3,)),
    "boltzmann_log_policy": (mm.boltzmann_log_policy, (3.0,)),
    "mellowmax_log_policy": (mm.mellowmax_log_policy, (3.0,)),
    "sparsemax_log_policy": (mm.sparsemax_log_policy, (3.0,)),
    "resmax_log_policy": (mm.resmax_log_policy, (3.0,)),
}
ALL = OPERATORS | POLICIES
OF_POLICIES = {"sample", "choose", "entropy", "kl"}
every = pytest.mark.parametrize("name", ALL)
OF_MELLOWMAX = [name for name in ALL if name.startswith("mellowmax")]
SLOW = {*OF_MELLOWMAX} - {"mellowmax", "mellowmax_policy"}
"""What JAX compiles with others, but not alone."""


def in_every_library(names):
    """Each function in each library; those that JAX compiles slowly, in the others."""
    return pytest.mark.parametrize(
        ("library", "name"),
        [(x, name) for x in LIBRARY_NAMES for name in names if x != "jax" or name not in SLOW],
        indirect=["library"],
    )


one_by_one = in_every_library(ALL)


def rows_one_by_one(name, q, mask=None, parameters=None):
    """The function on each row alone, with masked actions taken out of it."""
    function, given = ALL[name]
    reduces = name in OPERATORS
    result = np.zeros(q.shape[:-1] if reduces else q.shape)
    if "log" in name:
        result[...] = -np.inf
    for index in np.ndindex(q.shape[:-1]):
        kept = np.ones(q.shape[-1], bool) if mask is None else mask[index]
        parameter = (parameters[index],) if parameters is not None else given
        value = function(q[index][kept], *parameter)
        if reduces:
            result[index] = value
        else:
            result[index][kept] = value
    return result


def own_parameters(name):
    """A parameter for each row of `Q`, or None for a function that has none."""
    if not ALL[name][1]:
        return None
    return PARAMETERS if "epsilon" in name else 8 * PARAMETERS - 3


def with_parameters(name, library, q, parameters, **options):
    """The function on arrays of a library."""
    given = () if parameters is None else (library.array(parameters),)
    return library.to_numpy(ALL[name][0](library.array(q), *given, **options))


@functools.cache
def jax_program(names):
    """Some functions with a mask and parameters, compiled as one program."""

    def program(q, parameters, where):
        return {name: ALL[name][0](q, parameters, where=where) for name in names}

    return jax.jit(program)


def masked(name, library, q, parameters, mask):
    """The function with a mask."""
    if library.name == "jax" and name in OF_MELLOWMAX:
        arrays = library.array(q), library.array(parameters), library.array(mask, "bool")
        return library.to_numpy(jax_program(tuple(OF_MELLOWMAX))(*arrays)[name])
    return with_parameters(name, library, q, parameters, where=library.array(mask, "bool"))


def test_the_table_of_functions_is_complete():
    from mellowmax import operators, policies

    assert set(ALL) == {*operators.__all__, *policies.__all__} - OF_POLICIES


def test_operators_equal_their_definitions():
    for row in Q.reshape(-1, 4):
        for parameter in (-20.0, -1.0, 0.0, 1e-9, 0.5, 16.55, 300.0):
            exact = float(reference.mellowmax(row, parameter))
            np.testing.assert_allclose(mm.mellowmax(row, parameter), exact, rtol=4e-15, atol=4e-15)
            exact = float(reference.boltzmann(row, parameter))
            np.testing.assert_allclose(mm.boltzmann(row, parameter), exact, rtol=4e-15, atol=4e-15)
        both = 0.3 * row.mean() + 0.7 * row.max()
        np.testing.assert_allclose(mm.epsilon_greedy(row, 0.3), both, rtol=1e-14)
        assert mm.maximum(row) == row.max()
        np.testing.assert_allclose(mm.mean(row), row.mean(), rtol=1e-14)


def test_mellowmax_of_the_float32_that_libraries_get_wrong():
    q = np.float32([1, 2, 3])
    assert mm.mellowmax(q, 1e-6) == pytest.approx(2 + 1e-6 / 3, abs=3e-7)
    assert mm.mellowmax(q, 1e38) == 3


@pytest.mark.parametrize("omega", [1e-12, 1e-3, 1.0, 50.0, 1e12])
def test_mellowmax_lies_between_mean_and_max_and_rises_with_omega(omega):
    q = Q.reshape(-1, 4)
    value = mm.mellowmax(q, omega)
    slack = 4e-16 * np.ptp(q, axis=-1)
    assert np.all(mm.mean(q) - slack <= value)
    assert np.all(value <= mm.maximum(q))
    assert np.all(value <= mm.mellowmax(q, 2 * omega) + slack)
    np.testing.assert_array_equal(mm.mellowmax(-q, -omega), -value)


@one_by_one
def test_each_library_gives_the_same_numbers(name, library):
    function, parameters = ALL[name]
    q = library.array(Q)
    result = function(q, *parameters)
    assert type(result) is type(q)
    assert result.dtype == q.dtype
    np.testing.assert_allclose(
        library.to_numpy(result), rows_one_by_one(name, Q), rtol=1e-11, atol=1e-13
    )


@every
def test_masked_actions_are_as_good_as_gone(name, library):
    parameters = own_parameters(name)
    result = masked(name, library, Q, parameters, MASK)
    expected = rows_one_by_one(name, Q, MASK, parameters)
    np.testing.assert_allclose(result, expected, rtol=1e-11, atol=1e-13)
    if name in POLICIES and "log" not in name:
        assert np.all(result[~MASK] == 0)


@every
def test_a_masked_value_is_never_looked_at(name, library):
    parameters = own_parameters(name)
    clean = masked(name, library, np.where(MASK, Q, 0.0), parameters, MASK)
    for poison in (np.nan, np.inf, -np.inf, 1e308):
        result = masked(name, library, np.where(MASK, Q, poison), parameters, MASK)
        np.testing.assert_array_equal(result, clean)


@one_by_one
@pytest.mark.parametrize("axis", [0, 2, -2])
def test_the_actions_may_be_along_any_axis(name, axis, library):
    mask = MASK.copy()
    mask[0], mask[:, :, 0] = True, True  # an action is left along either axis
    last, mask_last = np.moveaxis(Q, axis, -1), np.moveaxis(mask, axis, -1)
    parameters = own_parameters(name)
    if parameters is not None:
        parameters = parameters.reshape(last.shape[:-1])
    where = library.array(mask, "bool")
    result = with_parameters(name, library, Q, parameters, axis=axis, where=where)
    expected = rows_one_by_one(name, np.ascontiguousarray(last), mask_last, parameters)
    if name in POLICIES:
        expected = np.moveaxis(expected, -1, axis)
    np.testing.assert_allclose(result, expected, rtol=1e-11, atol=1e-13)


@in_every_library(OPERATORS)
def test_keepdims(name, library):
    function, parameters = ALL[name]
    q = library.array(Q)
    for axis, shape in ((0, (1, 2, 4, 4)), (2, (4, 2, 1, 4))):
        kept = library.to_numpy(function(q, *parameters, axis=axis, keepdims=True))
        assert kept.shape == shape
        plain = library.to_numpy(function(q, *parameters, axis=axis))
        np.testing.assert_array_equal(np.squeeze(kept, axis), plain)


@in_every_library([name for name in ALL if ALL[name][1]])
def test_each_row_may_have_its_own_parameter(name, library):
    """A row of its own too, or the one row that there is."""
    parameters = own_parameters(name)
    where = library.array(np.ones_like(MASK), "bool") if library.name == "jax" else None
    for q in (Q, Q[0, 0, 0]):
        result = with_parameters(name, library, q, parameters, where=where)
        each = np.broadcast_to(q, Q.shape)
        expected = rows_one_by_one(name, each, parameters=parameters)
        np.testing.assert_allclose(result, expected, rtol=1e-11, atol=1e-13)


PRECISIONS = {
    "numpy": ["float32", "float16"],
    "strict": ["float32"],
    "jax": ["float32", "float16", "bfloat16"],
    "torch": ["float32", "float16", "bfloat16"],
}


@pytest.mark.parametrize(
    ("library", "dtype", "name"),
    [
        (library, dtype, name)
        for library, dtypes in PRECISIONS.items()
        for dtype in dtypes
        for name in ALL
        if library != "jax" or name not in SLOW
    ],
    indirect=["library"],
)
def test_other_precisions_come_back_as_they_went_in(name, dtype, library):
    function, parameters = ALL[name]
    q = library.array(Q, dtype)
    result = function(q, *parameters)
    assert result.dtype == q.dtype
    info = library.module.finfo(q.dtype)
    rounded = np.asarray(library.to_numpy(q), dtype=np.float64)
    exact = rows_one_by_one(name, rounded)
    close = 40 * float(info.eps)
    np.testing.assert_allclose(
        np.asarray(library.to_numpy(result), dtype=np.float64), exact, rtol=close, atol=close
    )


@pytest.mark.parametrize("name", sorted(SLOW))
def test_jax_promises_the_same_of_what_it_compiles_slowly(name):
    """Tracing shows the dtype and the shape of a result."""
    function, parameters = ALL[name]
    dtypes = {dtype: dtype for dtype in ("float64", *PRECISIONS["jax"])} | {"int64": "float64"}
    for axis, dtype in ((0, "float64"), *((-1, dtype) for dtype in dtypes)):
        q = jax.ShapeDtypeStruct((2, 0, 4), dtype)
        result = jax.eval_shape(functools.partial(function, axis=axis), q, *parameters)
        rows = (0, 4) if axis == 0 else (2, 0)
        assert (result.shape, result.dtype) == (
            rows if name in OPERATORS else q.shape,
            dtypes[dtype],
        )
        if name in OPERATORS:
            kept = functools.partial(function, axis=axis, keepdims=True)
            shape = jax.eval_shape(kept, q, *parameters).shape
            assert shape == ((1, 0, 4) if axis == 0 else (2, 0, 1))


@pytest.mark.parametrize("axis", [0, -3])
def test_a_parameter_may_add_axes_in_front(axis, library):
    rows, omegas = Q[:, 0], (0.5, 3.0)
    q, omega = library.array(rows), library.array(np.array(omegas)[:, None, None])
    options = {"axis": axis}
    if library.name == "jax":  # as where each row has its own parameter
        options["where"] = library.array(np.ones_like(rows, bool), "bool")
    kept = library.to_numpy(mm.mellowmax(q, omega, keepdims=True, **options))
    policy = library.to_numpy(mm.mellowmax_policy(q, omega, **options))
    assert (kept.shape, policy.shape) == ((2, 1, 4, 4), (2, 4, 4, 4))
    for i, parameter in enumerate(omegas):
        np.testing.assert_allclose(kept[i, 0], mm.mellowmax(rows, parameter, axis=0), rtol=1e-13)
        expected = mm.mellowmax_policy(rows, parameter, axis=0)
        np.testing.assert_allclose(policy[i], expected, rtol=1e-11)


def test_values_and_masks_broadcast_against_each_other(library):
    omega = own_parameters("mellowmax_policy")
    for q, where in ((Q[0, 0, 0], MASK), (Q, MASK[0, 0, 0]), (Q[:, :1], MASK[0])):
        options = {"where": library.array(where, "bool")}
        result = mm.mellowmax_policy(library.array(q), library.array(omega), **options)
        full_q, full = (np.broadcast_to(x, Q.shape) for x in (q, where))
        expected = rows_one_by_one("mellowmax_policy", full_q, full, omega)
        np.testing.assert_allclose(library.to_numpy(result), expected, rtol=1e-11, atol=1e-13)


@every
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_does_not_overflow(name, dtype):
    for library in LIBRARIES.values():
        if dtype not in PRECISIONS[library.name] or (library.name == "jax" and name in SLOW):
            continue
        function, _ = ALL[name]
        for parameter in (1e-3, 1.0) if "epsilon" in name else (1e-3, 100.0, 1e4):
            parameters = ALL[name][1] and (parameter,)
            two_rows = np.array([[[6e4, -6e4, 1.0, 1.0]], [[6e4] * 4]])
            q = library.array(np.broadcast_to(two_rows, Q.shape), dtype)
            result = np.asarray(library.to_numpy(function(q, *parameters)), dtype=np.float64)
            assert not np.any(np.isnan(result))
            without = "greedy_log_policy", "sparsemax_log_policy", "boltzmann_parameter_gradient"
            if name not in without:
                assert np.all(np.isfinite(result))


@one_by_one
def test_integers_become_the_default_float(name, library):
    function, parameters = ALL[name]
    q = np.random.default_rng(5).integers(5, size=Q.shape)
    result = function(library.array(q, "int64"), *parameters)
    expected = {"torch": "torch.float32", "jax": "float64"}.get(library.name, "float64")
    assert str(result.dtype).endswith(expected)
    exact = rows_one_by_one(name, q.astype(np.float64))
    np.testing.assert_allclose(library.to_numpy(result), exact, rtol=1e-5, atol=1e-6)


@every
def test_lists_are_numpy_arrays(name):
    function, parameters = ALL[name]
    np.testing.assert_array_equal(
        function([[1.0, 2.0], [3.0, 4.0]], *parameters),
        function(np.array([[1.0, 2.0], [3.0, 4.0]]), *parameters),
    )


def test_numpy_values_join_a_parameter_of_another_library():
    result = mm.mellowmax(Q[0, 0, 0], jax.numpy.asarray(3.0))
    assert isinstance(result, jax.Array)
    assert float(result) == pytest.approx(mm.mellowmax(Q[0, 0, 0], 3.0), rel=1e-14)


@one_by_one
def test_no_rows_give_no_results(name, library):
    function, parameters = ALL[name]
    result = function(library.array(np.zeros((0, 3))), *parameters)
    assert tuple(result.shape) == ((0,) if name in OPERATORS else (0, 3))


@one_by_one
def test_nan_stays_in_its_row(name, library):
    function, parameters = ALL[name]
    q = Q.copy()
    q[0, 0, 1, 2] = np.nan
    result = np.isnan(library.to_numpy(function(library.array(q), *parameters)))
    rows = result.reshape(32, -1)
    assert np.all(rows[1])
    assert not np.any(np.delete(rows, 1, axis=0))


LARGE = np.random.default_rng(3).normal(size=(30_011, 3))
LARGE_MASK = np.random.default_rng(4).random(size=LARGE.shape) < 0.7
LARGE_MASK[:, 1] = True
ONE_OF_EACH_KIND = ("mellowmax", "mellowmax_temperature", "mellowmax_policy", "boltzmann_gradient")


LARGE_CASES = [
    *(("numpy", name, masked) for name in ALL for masked in (False, True)),
    *((other, name, True) for other in ("strict", "torch") for name in ONE_OF_EACH_KIND),
    *(("jax", name, True) for name in ("mellowmax", "boltzmann_gradient")),
    *((other, "mellowmax_policy", False) for other in ("strict", "jax", "torch")),
]


@pytest.mark.parametrize(("library", "name", "masked"), LARGE_CASES, indirect=["library"])
def test_a_large_batch_is_the_same_row_by_row(name, masked, library):
    """Longer than a chunk of any library, by an uneven number of rows."""
    function, parameters = ALL[name]
    where = library.array(LARGE_MASK, "bool") if masked else None
    whole = library.to_numpy(function(library.array(LARGE), *parameters, where=where))
    for part in (slice(0, 5), slice(1190, 1200), slice(21_840, 21_850), slice(30_000, 30_011)):
        expected = rows_one_by_one(name, LARGE[part], LARGE_MASK[part] if masked else None)
        np.testing.assert_allclose(whole[part], expected, rtol=1e-11, atol=1e-13)


def test_minus_infinity_is_a_value_of_weight_0(library):
    q = library.array([0.0, 1.0, -np.inf])
    assert float(mm.maximum(q)) == 1
    assert float(mm.mean(q)) == -np.inf
    assert float(mm.epsilon_greedy(q, 0.0)) == 1
    assert float(mm.epsilon_greedy(q, 0.1)) == -np.inf
    assert float(mm.boltzmann(q, 2.0)) == pytest.approx(np.exp(2) / (1 + np.exp(2)))
    assert float(mm.mellowmax(q, 2.0)) == pytest.approx(np.log((1 + np.exp(2)) / 3) / 2)
    assert float(mm.mellowmax(q, 1e-300)) == pytest.approx(np.log(2 / 3) / 1e-300)
    assert float(mm.mellowmax(q, 0.0)) == -np.inf
    assert float(mm.mellowmax(q, -1.0)) == -np.inf
    assert float(mm.mellowmax(library.array([-np.inf] * 3), 1.0)) == -np.inf
    for policy in (mm.boltzmann_policy, mm.mellowmax_policy):
        for parameter in (0.5, 2.0, 1e6, np.inf):
            probabilities = library.to_numpy(policy(q, parameter))
            assert probabilities[2] == 0
            assert np.sum(probabilities) == pytest.approx(1)
        np.testing.assert_array_equal(library.to_numpy(policy(q, -1.0)), [0, 0, 1])


def test_the_policy_beside_minus_infinity_is_the_limit_of_ever_lower_values():
    """Mellowmax still counts the action: it lowers the value, and so the temperature."""
    for omega in (0.3, 2.0, 30.0):
        q = np.array([0.3, 1.0, 0.1, -np.inf])
        limit = mm.mellowmax_policy(q, omega)
        low = mm.mellowmax_policy(np.array([0.3, 1.0, 0.1, -1e9]), omega)
        np.testing.assert_allclose(limit, low, atol=2e-7)
    q = np.array([0.0, 0.0, -np.inf])  # mellowmax is below every finite value
    assert 0 < mm.mellowmax_temperature(q, 1.0) < 1e-300
    np.testing.assert_array_equal(mm.mellowmax_policy(q, 1.0), [0.5, 0.5, 0.0])


def test_infinite_and_zero_parameters_are_the_limits(library):
    q = library.array([3.0, 3.0, -1.0])
    for operator in (mm.boltzmann, mm.mellowmax):
        assert float(operator(q, np.inf)) == 3
        assert float(operator(q, -np.inf)) == -1
        assert float(operator(q, 0.0)) == pytest.approx(5 / 3, rel=1e-15)
    for policy in (mm.boltzmann_policy, mm.mellowmax_policy):
        np.testing.assert_array_equal(library.to_numpy(policy(q, np.inf)), [0.5, 0.5, 0])
        np.testing.assert_array_equal(library.to_numpy(policy(q, -np.inf)), [0, 0, 1])
        np.testing.assert_array_equal(library.to_numpy(policy(q, 0.0)), [1 / 3] * 3)
    tiny = library.array([0.0, 1e-306, 0.0])
    np.testing.assert_array_equal(library.to_numpy(mm.boltzmann_policy(tiny, np.inf)), [0, 1, 0])


@pytest.mark.parametrize("library", LIBRARY_NAMES, indirect=True)
def test_a_mask_of_the_integers_0_and_1(library):
    q, mask = library.array(Q[0, 0]), MASK[0, 0]
    expected = library.to_numpy(mm.mean(q, where=library.array(mask)))
    for dtype in ("int64", "uint8"):
        integers = library.array(mask.astype(dtype), dtype)
        np.testing.assert_array_equal(library.to_numpy(mm.mean(q, where=integers)), expected)
        with pytest.raises(ValueError, match="`where` must be boolean, or integers that are 0 or"):
            mm.mean(q, where=integers + library.array(np.asarray(mask, dtype), dtype))


def test_a_traced_mask_with_another_integer_gives_nan():
    masked_mean = jax.jit(lambda where: mm.mean(Q[0, 0], where=where))
    integers = MASK[0, 0].astype(np.int32)
    np.testing.assert_array_equal(masked_mean(integers), mm.mean(Q[0, 0], where=MASK[0, 0]))
    assert np.all(np.isnan(masked_mean(2 * integers)))


def test_the_largest_numbers_there_are():
    largest = np.finfo(np.float64).max
    for q in ([largest, -largest, -largest], [largest] * 4, [-largest, 0.0]):
        for parameter in (-1e8, -1e-308, 0.0, 1e-308, 1e-300, 1.0, 1e8, 1e308, np.inf):
            exact = reference.mellowmax(q, parameter)
            error = abs(float(mm.mellowmax(q, parameter)) / 4 - float(exact / 4))
            assert error <= 1e-15 * largest
            assert np.all(np.isfinite(mm.mellowmax_policy(q, parameter)))
            assert np.isfinite(mm.boltzmann(q, parameter))
        assert np.isfinite(mm.mean(q))


def test_a_bad_argument_names_itself_the_rule_and_the_value():
    cases = [
        (lambda: mm.epsilon_greedy([1.0], 1.2), ValueError, "`epsilon` must be in [0, 1], got 1.2"),
        (lambda: mm.boltzmann([1.0], np.nan), ValueError, "`beta` must be a number, got nan"),
        (lambda: mm.mellowmax([1.0], "5"), TypeError, "`omega` must be a number, got '5'"),
        (lambda: mm.mellowmax([1.0], None), TypeError, "`omega` must be a number, got None"),
        (lambda: mm.mellowmax([1.0], [1.0, np.nan]), ValueError, "`omega` must be a number"),
        (lambda: mm.maximum([1j]), TypeError, "`q` must be real numbers"),
        (lambda: mm.maximum(np.zeros((2, 0))), ValueError, "`q` must have at least one action"),
        (lambda: mm.maximum([1.0], axis=1), ValueError, "`axis` must be one of the 1 axes of `q`"),
        (lambda: mm.maximum([1.0], axis=0.5), TypeError, "`axis` must be a whole number, got 0.5"),
        (lambda: mm.maximum(1.0), ValueError, "`q` must have an axis of actions, got the number 1"),
        (lambda: mm.maximum("q"), TypeError, "`q` must be real numbers, got an array of <U1"),
        (lambda: mm.maximum([[1.0], [1.0, 2.0]]), ValueError, "`q` must be an array of numbers"),
        (lambda: mm.mellowmax([1.0], ["a"]), TypeError, "`omega` must be a number, got ['a']"),
        (lambda: mm.mellowmax([1.0], [[1.0], []]), ValueError, "`omega` must be an array of num"),
        (
            lambda: mm.mellowmax(Q[0, 0], [1.0, 2.0]),
            ValueError,
            "`omega` must broadcast against the rows of `q`, of shape (4,), got (2,)",
        ),
        (
            lambda: mm.mean([1.0, 2.0], where=[1.0, 0.0]),
            TypeError,
            "`where` must be boolean, or integers that are 0 or 1, got an array of float64",
        ),
        (
            lambda: mm.mean([1.0, 2.0], where=[2, 0]),
            ValueError,
            "`where` must be boolean, or integers that are 0 or 1, got",
        ),
        (
            lambda: mm.mean([1.0], where=True),
            TypeError,
            "`where` must be a boolean array, got True",
        ),
        (
            lambda: mm.mean(Q[0, 0], where=np.ones((3, 4), bool)),
            ValueError,
            "`where` must broadcast against `q`, of shape (4, 4), got (3, 4)",
        ),
        (
            lambda: mm.mean(np.zeros((2, 3)), where=[[True] * 3, [False] * 3]),
            ValueError,
            "`where` must leave an action in every row, got none in (1,)",
        ),
    ]
    for call, kind, message in cases:
        with pytest.raises(kind) as error:
            call()
        assert message in str(error.value)


@pytest.mark.parametrize(
    ("rows", "axis", "given"),
    [((2,), -1, (2, 1)), ((4, 4), -1, (4, 4, 1)), ((5, 4), -1, (5, 1, 1)), ((5, 5), 1, (5, 1, 5))],
)
def test_a_parameter_with_the_axis_of_the_actions_kept_is_an_error(rows, axis, given):
    """It would be a further axis in front, and every row would meet the parameters of others."""
    q = np.expand_dims(np.zeros(rows), axis).repeat(3, axis)
    assert mm.mellowmax(q, np.ones(rows), axis=axis).shape == rows
    with pytest.raises(ValueError, match="`omega` must have the shape") as error:
        mm.mellowmax(q, np.ones(given), axis=axis)
    assert str(error.value) == (
        f"`omega` must have the shape {rows} of the rows of `q`, without the axis of the actions, "
        f"got {given}"
    )


@every
def test_a_masked_array_is_an_error_since_its_mask_would_be_lost(name):
    function, parameters = ALL[name]
    masked = np.ma.masked_array([[1.0, 2.0, 3.0]], mask=[[False, False, True]])
    rule = "must be an array without a mask of its own, got a numpy.ma.MaskedArray"
    for q in (masked, [masked[0], masked[0]]):
        with pytest.raises(TypeError, match=f"^`q` {rule}: say by `where` which actions count$"):
            function(q, *parameters)
    with pytest.raises(TypeError, match=f"^`where` {rule}$"):
        function([[1.0, 2.0, 3.0]], *parameters, where=masked > 1)
    for parameter in parameters:
        with pytest.raises(TypeError, match=rf"^`(epsilon|beta|omega|eta)` {rule}$"):
            function([[1.0, 2.0, 3.0]], np.ma.masked_array([parameter]))


def test_a_row_without_actions_is_nan_while_tracing():
    @jax.jit
    def traced(q, where):
        calls = {name: ALL[name] for name in ONE_OF_EACH_KIND}
        return {name: f(q, *parameters, where=where) for name, (f, parameters) in calls.items()}

    where = jax.numpy.asarray([[True] * 3, [False] * 3])
    for name, result in traced(jax.numpy.zeros((2, 3)), where).items():
        assert np.all(np.isnan(result[1])), name
        assert not np.any(np.isnan(result[0])), name


def test_exporting_with_a_batch_of_any_size(rng):
    import jax.export

    batch = jax.export.symbolic_shape("batch")
    where = np.array([True, True, False, True])

    @jax.jit
    def program(q, omega):
        return mm.mellowmax(q, omega), mm.mellowmax_policy(q, 5.0, where=jax.numpy.asarray(where))

    arguments = (jax.ShapeDtypeStruct((*batch, 4), float), jax.ShapeDtypeStruct(batch, float))
    exported = jax.export.export(program)(*arguments)
    q, omega = rng.normal(size=(7, 4)), rng.normal(size=7)
    value, policy = exported.call(q, omega)
    np.testing.assert_allclose(value, mm.mellowmax(q, omega), rtol=1e-12)
    np.testing.assert_allclose(policy, mm.mellowmax_policy(q, 5.0, where=where), rtol=1e-12)
