"""The pairs: frozen, hashable, readable, and data to JAX."""

from __future__ import annotations

import dataclasses
import pickle

import jax
import numpy as np
import pytest
from array_api_compat import array_namespace

import mellowmax as mm
from helpers.libraries import needs_torch

PAIRS = [
    mm.Max(),
    mm.Mean(),
    mm.EpsilonGreedy(0.2),
    mm.Boltzmann(4.0),
    mm.Mellowmax(4.0),
    mm.FreeEnergy(4.0),
    mm.LogSumExp(4.0),
    mm.Sparsemax(4.0),
    mm.Resmax(4.0),
]
pairs = pytest.mark.parametrize("softmax", PAIRS, ids=str)
Q = np.random.default_rng(0).normal(size=(6, 3))


def test_they_print_as_they_are_written():
    assert [str(pair) for pair in PAIRS] == [
        "Max()",
        "Mean()",
        "EpsilonGreedy(epsilon=0.2)",
        "Boltzmann(beta=4.0)",
        "Mellowmax(omega=4.0)",
        "FreeEnergy(beta=4.0)",
        "LogSumExp(beta=4.0)",
        "Sparsemax(beta=4.0)",
        "Resmax(eta=4.0)",
    ]
    assert all(eval(repr(pair), vars(mm)) == pair for pair in PAIRS)
    assert str(mm.Mellowmax(np.float32(0.5))) == "Mellowmax(omega=0.5)"


def test_they_are_frozen_and_hashable():
    assert len({*PAIRS, mm.Mellowmax(4), mm.Boltzmann(4), mm.Max()}) == len(PAIRS)
    assert mm.Max() != mm.Mean()
    assert mm.Boltzmann(4.0) != mm.Mellowmax(4.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        mm.Mellowmax(4.0).omega = 5.0


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: mm.EpsilonGreedy(1.5), ValueError, "`epsilon` must be in [0, 1], got 1.5"),
        (lambda: mm.EpsilonGreedy(-0.1), ValueError, "`epsilon` must be in [0, 1], got -0.1"),
        (lambda: mm.EpsilonGreedy(np.nan), ValueError, "`epsilon` must be in [0, 1], got nan"),
        (lambda: mm.Boltzmann(np.nan), ValueError, "`beta` must be a number, got nan"),
        (lambda: mm.Mellowmax("much"), TypeError, "`omega` must be a number, got 'much'"),
        (lambda: mm.Mellowmax(None), TypeError, "`omega` must be a number, got None"),
    ],
)
def test_an_invalid_parameter_is_an_error_at_once(make, kind, message):
    with pytest.raises(kind) as error:
        make()
    assert str(error.value) == message


@pairs
def test_the_gradient_is_that_of_the_value(softmax):
    gradient = jax.grad(lambda q: jax.numpy.sum(softmax.value(q)))(jax.numpy.asarray(Q))
    np.testing.assert_allclose(softmax.gradient(Q), gradient, rtol=1e-12)


@pairs
def test_methods_take_an_axis_and_a_mask(softmax):
    where = np.array([True, True, False, True, True, True])[:, None]
    kept = softmax.value(Q[where[:, 0]], axis=0)
    np.testing.assert_allclose(softmax.value(Q, axis=0, where=where), kept, rtol=1e-13)
    assert np.all(softmax.policy(Q, axis=0, where=where)[2] == 0)
    assert np.all(softmax.log_policy(Q, axis=0, where=where)[2] == -np.inf)
    assert np.all(softmax.sample(0, Q, axis=0, where=where) != 2)


@pytest.mark.parametrize("kind", [mm.EpsilonGreedy, mm.Boltzmann, mm.Mellowmax])
def test_one_compiled_function_serves_a_sweep(kind):
    compiled = 0

    @jax.jit
    def f(softmax, q):
        nonlocal compiled
        compiled += 1
        return softmax.value(q), softmax.policy(q)

    for parameter in (0.1, 0.5, 0.9):
        value, policy = f(kind(parameter), jax.numpy.asarray(Q))
        np.testing.assert_allclose(value, kind(parameter).value(Q), rtol=1e-12)
        np.testing.assert_allclose(policy, kind(parameter).policy(Q), rtol=1e-11)
    assert compiled == 1


@pytest.mark.parametrize("kind", [mm.EpsilonGreedy, mm.Boltzmann, mm.Mellowmax])
def test_vmap_and_grad_over_the_parameter(kind):
    parameters = jax.numpy.asarray([0.1, 0.5, 0.9])
    q = jax.numpy.asarray(Q)
    values = jax.vmap(lambda softmax: softmax.value(q))(kind(parameters))
    for value, parameter in zip(values, parameters, strict=True):
        np.testing.assert_allclose(value, kind(float(parameter)).value(Q), rtol=1e-12)
    gradient = jax.grad(lambda softmax: jax.numpy.sum(softmax.value(q)))(kind(0.5))
    assert isinstance(gradient, kind)
    h = 1e-6
    rise = np.sum(kind(0.5 + h).value(Q) - kind(0.5 - h).value(Q)) / (2 * h)
    np.testing.assert_allclose(dataclasses.astuple(gradient)[0], rise, rtol=1e-8)


def test_vmap_over_values_and_scan_over_steps():
    softmax = mm.Mellowmax(3.0)
    q = jax.numpy.asarray(Q)
    np.testing.assert_allclose(jax.vmap(softmax.policy)(q), softmax.policy(Q), rtol=1e-12)
    nested = jax.vmap(jax.vmap(softmax.value))(q.reshape(2, 3, 3))
    np.testing.assert_allclose(nested.reshape(-1), softmax.value(Q), rtol=1e-12)
    _, values = jax.lax.scan(lambda carry, row: (carry, carry.value(row)), softmax, q)
    np.testing.assert_allclose(values, softmax.value(Q), rtol=1e-12)


def test_torch_tensors_as_parameters_and_under_vmap():
    torch = needs_torch()
    omega = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    mm.Mellowmax(omega).value(torch.asarray(Q)).sum().backward()
    exact = np.sum(mm.mellowmax_parameter_gradient(Q, 2.0))
    np.testing.assert_allclose(float(omega.grad), exact, rtol=1e-12)
    policies = torch.func.vmap(mm.Mellowmax(2.0).policy)(torch.asarray(Q))
    np.testing.assert_allclose(policies, mm.mellowmax_policy(Q, 2.0), rtol=1e-12)
    where = torch.asarray(Q > -0.5)
    where[:, 0] = True
    masked = torch.func.vmap(lambda q, where: mm.mellowmax(q, 2.0, where=where))
    expected = mm.mellowmax(Q, 2.0, where=where.numpy())
    np.testing.assert_allclose(masked(torch.asarray(Q), where), expected, rtol=1e-12)


class Half(mm.Softmax):
    """Epsilon-greedy and the maximum, half of each, with its parameter in a plain attribute.

    Not mellowmax: the gradient of its policy takes JAX long to compile.
    """

    non_expansion = True

    def __init__(self, epsilon):
        self.epsilon = epsilon

    def _mixture(self, method, q, axis, where):
        pairs = mm.EpsilonGreedy(self.epsilon), mm.Max()
        soft, hard = (getattr(pair, method)(q, axis=axis, where=where) for pair in pairs)
        return (soft + hard) / 2

    def value(self, q, *, axis=-1, where=None):
        return self._mixture("value", q, axis, where)

    def policy(self, q, *, axis=-1, where=None):
        return self._mixture("policy", q, axis, where)

    def log_policy(self, q, *, axis=-1, where=None):
        return array_namespace(q).log(self.policy(q, axis=axis, where=where))

    def gradient(self, q, *, axis=-1, where=None):
        return self._mixture("gradient", q, axis, where)


@dataclasses.dataclass(frozen=True)
class HalfAsDataclass(Half):
    epsilon: float


@pytest.mark.parametrize("kind", [Half, HalfAsDataclass])
def test_a_softmax_of_your_own_plans_and_learns_without_more_ado(kind, tmp_path):
    """In planning, tabular and deep learning; its parameter may be a grid there, too."""
    from mellowmax import deep, learning, mdp, planning
    from mellowmax.environments import two_state

    solution = planning.solve(mdp.two_state(), kind(0.3))
    np.testing.assert_allclose(solution.value, kind(0.3).value(solution.q), atol=1e-9)
    learner = learning.sarsa(kind(np.array([0.3, 0.9])), 0.1)
    ours = learning.sarsa(HalfAsDataclass(0.3), 0.1)
    many = learning.train(learner, two_state.params(), steps=128, runs=2)
    one = learning.train(ours, two_state.params(), steps=128, runs=2)
    np.testing.assert_array_equal(many.q[0], one.q)
    if kind is Half:  # the other one is a dataclass as the library's own are
        learner, place = deep.reinforce(kind(0.3), batch=2), two_state.params()
        result = deep.train(learner, place, episodes=4, checkpoint=tmp_path)
        assert np.isfinite(result.returns).all()
        again = deep.train(learner, place, episodes=4, checkpoint=tmp_path)
        np.testing.assert_array_equal(again.returns, result.returns)
        with pytest.raises(ValueError, match=r"`epsilon` was 0\.3\d* and is 0\.4"):
            deep.train(deep.reinforce(kind(0.4), batch=2), place, episodes=4, checkpoint=tmp_path)
        assert deep.load_policy(tmp_path, softmax=kind(0.9)).policy.softmax.epsilon == np.float32(
            0.3
        )
        with pytest.raises(ValueError, match=r"`softmax` must be .*Half, got None"):
            deep.load_policy(tmp_path)
    assert pickle.loads(pickle.dumps(kind(0.3))).epsilon == 0.3


def test_a_softmax_of_your_own_needs_four_methods():
    class Minimum(mm.Softmax):
        def value(self, q, *, axis=-1, where=None):
            return -mm.maximum(-np.asarray(q), axis=axis, where=where)

        def policy(self, q, *, axis=-1, where=None):
            return mm.greedy_policy(-np.asarray(q), axis=axis, where=where)

        def log_policy(self, q, *, axis=-1, where=None):
            return mm.greedy_log_policy(-np.asarray(q), axis=axis, where=where)

        gradient = policy

    assert np.all(Minimum().sample(0, Q) == np.argmin(Q, axis=-1))
    with pytest.raises(TypeError, match="abstract"):
        mm.Softmax()


@pytest.mark.parametrize("width", [1e-9, 0.1, 1.0])
def test_the_second_derivative_of_boltzmann_is_within_its_bound(width):
    """Along random lines, by central differences; for a narrow row the bound is reached."""
    rng, pair, h = np.random.default_rng(0), mm.Boltzmann(5.0), 1e-4
    q = width * rng.uniform(-0.5, 0.5, (4000, 2))
    line = np.sign(rng.normal(size=q.shape)) / 2
    after, here, before = (pair.value(q + step * h * line) for step in (1, 0, -1))
    steepest = np.abs(after - 2 * here + before).max() / h**2
    assert steepest <= pair.curvature(width) * (1 + 1e-6)
    if width < 1e-6:
        assert steepest >= pair.curvature(width) * (1 - 1e-6)


def test_a_list_of_parameters_is_an_array_of_them():
    for given in ([1.0, 2.0], (1.0, 2.0)):
        pair = mm.Boltzmann(given)
        assert isinstance(pair.beta, np.ndarray)
        assert jax.tree.leaves(pair)[0].shape == (2,)
        np.testing.assert_array_equal(
            pair.value(Q[:2]), [mm.boltzmann(Q[0], 1.0), mm.boltzmann(Q[1], 2.0)]
        )


def test_vmap_over_many_parameters_of_one_row_is_more_rows():
    """More of them than fit into a chunk."""
    omegas = jax.numpy.linspace(-5.0, 5.0, 5001)
    row = jax.numpy.asarray(Q[0])
    policies = jax.vmap(lambda omega: mm.mellowmax_policy(row, omega))(omegas)
    np.testing.assert_allclose(
        policies, mm.mellowmax_policy(Q[0], np.asarray(omegas)), rtol=1e-11, atol=1e-14
    )
