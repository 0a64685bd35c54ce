"""Derivatives three ways: the closed forms against mpmath, finite differences and autodiff."""

from __future__ import annotations

import jax
import mpmath
import numpy as np
import pytest

import mellowmax as mm
from helpers import reference
from helpers.libraries import needs_torch

ROWS = [
    np.array([0.3, -1.2, 0.9, 0.1]),
    np.array([1.0, 1.0, 0.0]),
    np.array([1e3, 1e3 + 0.5, 1e3 - 2]),
    np.random.default_rng(0).normal(size=7),
]
PARAMETERS = [-3.0, -1e-3, 1e-3, 0.4, 16.55]

# function, its gradient with respect to q, its derivative with respect to the parameter
OPERATORS = {
    "boltzmann": (mm.boltzmann, mm.boltzmann_gradient, mm.boltzmann_parameter_gradient),
    "mellowmax": (mm.mellowmax, mm.mellowmax_gradient, mm.mellowmax_parameter_gradient),
    "log_sum_exp": (mm.log_sum_exp, mm.boltzmann_policy, mm.log_sum_exp_parameter_gradient),
    "sparsemax": (mm.sparsemax, mm.sparsemax_policy, mm.sparsemax_parameter_gradient),
    "resmax": (mm.resmax, mm.resmax_gradient, mm.resmax_parameter_gradient),
    "mellowmax_temperature": (
        mm.mellowmax_temperature,
        mm.mellowmax_temperature_gradient,
        mm.mellowmax_temperature_parameter_gradient,
    ),
}
# Functions that JAX compiles together: they share most of their derivatives, which take the time.
FAMILIES = {
    "boltzmann": [mm.boltzmann, mm.boltzmann_policy, mm.boltzmann_log_policy],
    "mellowmax": [
        mm.mellowmax,
        mm.mellowmax_temperature,
        mm.mellowmax_policy,
        mm.mellowmax_log_policy,
    ],
}
DIFFERENTIABLE = [function for family in FAMILIES.values() for function in family]
families = pytest.mark.parametrize("family", FAMILIES.values(), ids=list(FAMILIES))


def exact_temperature(q, omega):
    """The root in mpmath: a bracket that always holds it, halved, then Newton's method."""
    low, high = sorted([mpmath.mpf(0), mpmath.mpf(omega)])
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(q, omega, middle)[0] < 0 else (low, middle)
    b = (low + high) / 2
    for _ in range(5):
        value, slope = excess(q, omega, b)
        b -= value / slope
    return b


def excess(q, omega, b):
    top = max(q)
    mean = mpmath.fsum(mpmath.exp(omega * (v - top)) for v in q) / len(q)
    value = top + mpmath.log(mean) / omega
    terms = [(mpmath.exp(b * (v - top)), v - value) for v in q]
    return mpmath.fsum(w * v for w, v in terms), mpmath.fsum(w * v * v for w, v in terms)


def of_numbers(name):
    """The definition as a function of mpmath numbers, to be differentiated by mpmath."""

    def mellowmax(q, omega):
        top = max(q)
        return (
            top + mpmath.log(mpmath.fsum(mpmath.exp(omega * (v - top)) for v in q) / len(q)) / omega
        )

    def boltzmann(q, beta):
        top = max(q)
        weights = [mpmath.exp(beta * (v - top)) for v in q]
        total = mpmath.fsum(w * v for w, v in zip(weights, q, strict=True))
        return total / mpmath.fsum(weights)

    def log_sum_exp(q, beta):
        return mellowmax(q, beta) + mpmath.log(len(q)) / beta

    def sparsemax(q, beta):
        if beta < 0:
            return -sparsemax([-v for v in q], -beta)
        z = sorted((beta * v for v in q), reverse=True)
        sums = [mpmath.fsum(z[: k + 1]) for k in range(len(z))]
        size = max(k + 1 for k in range(len(z)) if 1 + (k + 1) * z[k] > sums[k])
        threshold = (sums[size - 1] - 1) / size
        policy = [max(beta * v - threshold, mpmath.mpf(0)) for v in q]
        earned = mpmath.fsum(p * v for p, v in zip(policy, q, strict=True))
        return earned + (1 - mpmath.fsum(p * p for p in policy)) / (2 * beta)

    def resmax(q, eta):
        if eta < 0:
            return -resmax([-v for v in q], -eta)
        gaps = [max(q) - v for v in q]
        return max(q) - mpmath.fsum(gap / (len(q) + eta * gap) for gap in gaps)

    return {
        "boltzmann": boltzmann,
        "log_sum_exp": log_sum_exp,
        "mellowmax": mellowmax,
        "resmax": resmax,
        "sparsemax": sparsemax,
        "mellowmax_temperature": exact_temperature,
    }[name]


@pytest.mark.parametrize("parameter", PARAMETERS)
@pytest.mark.parametrize("name", OPERATORS)
def test_closed_forms_are_the_derivatives_of_the_definitions(name, parameter):
    """mpmath differentiates the definition itself, at 80 digits and by central differences."""
    _, by_q, by_parameter = OPERATORS[name]
    definition = of_numbers(name)
    with mpmath.workdps(80):
        h = mpmath.mpf(10) ** -20
        for row in ROWS:
            if name == "mellowmax_temperature" and len(row) > 4:
                continue
            q = reference.exact(row)
            x = mpmath.mpf(parameter)

            def moved(i, step, q=q, x=x):
                return definition([v + step * (j == i) for j, v in enumerate(q)], x)

            exact = [float((moved(i, h) - moved(i, -h)) / (2 * h)) for i in range(len(q))]
            scale = np.max(np.abs(exact))
            np.testing.assert_allclose(by_q(row, parameter), exact, rtol=1e-7, atol=1e-8 * scale)
            exact = float((definition(q, x + h) - definition(q, x - h)) / (2 * h))
            np.testing.assert_allclose(by_parameter(row, parameter), exact, rtol=1e-8)


def test_the_derivative_by_omega_at_0_is_half_the_variance(library):
    rows = np.stack([ROWS[0], [1.0, 1.0, 0.0, 0.0], 1e3 + ROWS[0], ROWS[3][:4]])
    q = library.array(rows)
    for omega in (0.0, 1e-300, -1e-12):
        by_omega = library.to_numpy(mm.mellowmax_parameter_gradient(q, omega))
        np.testing.assert_allclose(by_omega, np.var(rows, axis=1) / 2, rtol=1e-9)
        half = library.to_numpy(mm.mellowmax_temperature_parameter_gradient(q, omega))
        np.testing.assert_allclose(half, 0.5, rtol=1e-9)


@pytest.mark.parametrize("width", 10.0 ** np.arange(-9.0, 3))
def test_no_seam_where_the_series_takes_over(width):
    """The closed forms cross the border between series and formula without a step."""
    q = np.array([0.0, 0.3, 1.0, 0.9])
    for name in ("mellowmax", "mellowmax_temperature"):
        function, by_q, by_parameter = OPERATORS[name]
        with mpmath.workdps(80):
            h = mpmath.mpf(width) * mpmath.mpf(10) ** -15
            definition, exact_q = of_numbers(name), reference.exact(q)
            x = mpmath.mpf(width)
            exact = float((definition(exact_q, x + h) - definition(exact_q, x - h)) / (2 * h))
            np.testing.assert_allclose(by_parameter(q, width), exact, rtol=2e-10)
            np.testing.assert_allclose(function(q, width), float(definition(exact_q, x)), 1e-10)
            d = mpmath.mpf(10) ** -15
            moved = [[v + d * s * (i == 0) for i, v in enumerate(exact_q)] for s in (1, -1)]
            exact = float((definition(moved[0], x) - definition(moved[1], x)) / (2 * d))
            np.testing.assert_allclose(by_q(q, width)[0], exact, rtol=3e-7)


def test_gradients_of_operators_sum_to_1_and_of_the_temperature_to_0(rng):
    q = rng.normal(size=(500, 6)) * 10 ** rng.uniform(-3, 3, size=(500, 1))
    omega = rng.normal(size=500) * 10 ** rng.uniform(-3, 2, size=500)
    for gradient in (mm.boltzmann_gradient, mm.mellowmax_gradient):
        np.testing.assert_allclose(np.sum(gradient(q, omega), axis=-1), 1, rtol=1e-9)
    gradient = mm.mellowmax_temperature_gradient(q, omega)
    scale = np.max(np.abs(gradient), axis=-1)
    assert np.all(np.abs(np.sum(gradient, axis=-1)) <= 1e-6 * scale)
    for gradient in (mm.maximum_gradient, mm.mean_gradient):
        np.testing.assert_allclose(np.sum(gradient(q), axis=-1), 1, rtol=1e-12)


def derivatives(function, direction, weights):
    """The derivative along a direction, and the gradient of the weighted sum of the results."""

    def forwards(*x):
        return jax.jvp(function, x, direction)[1]

    def backwards(*x):
        return jax.vjp(function, *x)[1](weights)

    return forwards, backwards


def inner(x, y):
    return sum(float(np.vdot(a, b)) for a, b in zip(*map(jax.tree.leaves, (x, y)), strict=True))


def together(functions, **options):
    named = {function.__name__: function for function in functions}
    return lambda q, x: {name: function(q, x, **options) for name, function in named.items()}


@pytest.mark.parametrize(
    ("family", "backwards_last"),
    [
        pytest.param(FAMILIES["boltzmann"], True, id="boltzmann"),
        pytest.param(FAMILIES["mellowmax"], False, id="mellowmax, forwards last"),
        pytest.param(FAMILIES["mellowmax"], True, id="mellowmax", marks=pytest.mark.release),
    ],
)
def test_jax_agrees_with_finite_differences_to_second_order(family, backwards_last, rng):
    """In all four orders of the two modes.

    The logarithm of mellowmax's policy has all of its temperature's derivatives in it; the
    temperature and the policy themselves would take JAX as long again to compile. So would the two
    orders of it that end backwards: those are traced, which is where they would fail, and JAX
    makes their numbers out of those of the other two.
    """
    function = together(
        f for f in family if f not in (mm.mellowmax_temperature, mm.mellowmax_policy)
    )
    q, along = jax.numpy.asarray(rng.normal(size=(2, 2, 4)))
    direction = (along, jax.numpy.asarray(rng.normal()))
    shapes = jax.eval_shape(function, q, along[0, 0])
    weights = jax.tree.map(lambda like: jax.numpy.asarray(rng.normal(size=like.shape)), shapes)
    forwards, backwards = derivatives(function, direction, weights)
    checked = [(function, weights), (forwards, weights), (backwards, direction)]

    @jax.jit
    def program(*x):
        found = []
        for f, w in checked:
            forward, backward = derivatives(f, direction, w)
            by_both = f is function or backwards_last
            found.append((f(*x), forward(*x), backward(*x) if by_both else None))
        return found

    if not backwards_last:
        for f, w in checked[1:]:
            jax.eval_shape(derivatives(f, direction, w)[1], q, along[0, 0])
    for parameter in (-2.0, 0.0, 1e-5, 0.3, 5.0):
        x = (q, jax.numpy.asarray(parameter))
        after, before = (
            program(*jax.tree.map(lambda x, d, h=h: x + h * d, x, direction)) for h in (1e-4, -1e-4)
        )
        for i, (_, forward, backward) in enumerate(program(*x)):
            slope = jax.tree.map(lambda a, b: (a - b) / 2e-4, after[i][0], before[i][0])
            pairs = zip(*map(jax.tree.leaves, (forward, slope)), strict=True)
            if backward is not None:
                pairs = (*pairs, (inner(backward, direction), inner(checked[i][1], slope)))
            for one, other in pairs:
                np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-4, err_msg=f"{x[1]}, {i}")


@pytest.mark.parametrize("parameters", [[-2.0, 0.0, 1e-5, 0.3, 5.0], 0.3], ids=["each", "one"])
@pytest.mark.parametrize("function", DIFFERENTIABLE, ids=lambda f: f.__name__)
def test_torch_agrees_with_finite_differences_to_second_order(function, parameters, rng):
    """With a parameter of each row's own, and with one for all rows."""
    torch = needs_torch()
    x = torch.tensor(parameters, dtype=torch.float64, requires_grad=True)
    q = torch.tensor(rng.normal(size=(len(x) if x.ndim else 2, 4)), requires_grad=True)
    assert torch.autograd.gradcheck(
        function,
        (q, x),
        check_forward_ad=True,
        check_batched_grad=True,
        check_batched_forward_grad=True,
    )
    assert torch.autograd.gradgradcheck(function, (q, x))


@pytest.mark.parametrize("name", OPERATORS)
def test_autodiff_uses_the_closed_forms(name, rng):
    function, by_q, by_parameter = OPERATORS[name]
    q = jax.numpy.asarray(rng.normal(size=5))
    gradients = jax.jit(jax.grad(function, argnums=(0, 1)))(q, 2.0)
    np.testing.assert_allclose(gradients[0], by_q(np.asarray(q), 2.0), rtol=1e-12)
    np.testing.assert_allclose(gradients[1], by_parameter(np.asarray(q), 2.0), rtol=1e-12)


def test_operators_with_kinks_share_the_gradient_at_ties():
    q = jax.numpy.asarray([1.0, 3.0, 3.0])
    np.testing.assert_allclose(jax.grad(mm.maximum)(q), [0, 0.5, 0.5])
    np.testing.assert_allclose(jax.grad(mm.epsilon_greedy)(q, 0.3), [0.1, 0.45, 0.45])
    np.testing.assert_allclose(jax.grad(mm.epsilon_greedy, argnums=1)(q, 0.3), 7 / 3 - 3)
    np.testing.assert_allclose(jax.grad(mm.mean)(q), [1 / 3] * 3)


def test_dropping_the_temperature_from_the_gradient_would_be_noticed(rng):
    """At omega = 20 and four actions much of the gradient of a log-probability goes through b."""
    q = jax.numpy.asarray(rng.normal(size=(200, 4)))
    b = jax.numpy.asarray(mm.mellowmax_temperature(np.asarray(q), 20.0))
    full = jax.jit(jax.grad(lambda q: jax.numpy.sum(mm.mellowmax_log_policy(q, 20.0)[:, 0])))(q)
    without = jax.jit(jax.grad(lambda q: jax.numpy.sum(mm.boltzmann_log_policy(q, b)[:, 0])))(q)
    assert np.linalg.norm(full - without) > 0.3 * np.linalg.norm(full)


def finite_total(results):
    """The sum of what is finite."""
    return sum(
        jax.numpy.sum(jax.numpy.where(jax.numpy.isfinite(x), x, 0.0)) for x in results.values()
    )


@families
def test_gradients_are_finite_at_the_edges(family):
    """Ties, all equal, one action, -inf, zero and infinite parameters: no NaN comes back."""
    rows = [[1.0, 1.0, 0.0], [2.0, 2.0, 2.0], [0.0, -np.inf, 1.0], [1e300, -1e300, 0.0]]

    def gradients_of(function):
        return jax.grad(lambda q, x: finite_total(function(q, x)), argnums=(0, 1))

    by_name = {function.__name__: gradients_of(together([function])) for function in family}
    gradients = jax.jit(jax.vmap(lambda q, x: {name: by(q, x) for name, by in by_name.items()}))
    for several in (rows, [[5.0]]):
        cases = [
            (row, parameter)
            for row in several
            for parameter in (0.0, 1e-300, 3.0, -3.0, 1e8, np.inf)
            if -np.inf not in row or parameter > 0  # the value itself is infinite
        ]
        for name, found in gradients(*map(np.array, zip(*cases, strict=True))).items():
            for case, by_q, by_parameter in zip(cases, *found, strict=True):
                assert not np.any(np.isnan(by_q)), f"{name}, {case}: {by_q}"
                assert not np.isnan(by_parameter), f"{name}, {case}"


@families
def test_a_masked_action_has_no_gradient(family):
    q = np.array([0.5, np.nan, 1.0, -0.3])
    where = np.array([True, False, True, True])
    masked = together(family, where=jax.numpy.asarray(where))
    gradient = np.asarray(jax.jit(jax.grad(lambda q: finite_total(masked(q, 3.0))))(q))
    assert gradient[1] == 0

    def total(short):
        return sum(np.sum(function(short, 3.0)) for function in family)

    short, h = q[where], 1e-6
    slopes = [(total(short + h * e) - total(short - h * e)) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(gradient[where], slopes, rtol=1e-7, atol=1e-8)
