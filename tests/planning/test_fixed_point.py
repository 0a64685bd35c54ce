"""The fixed point that JAX differentiates, against differences of `solve` and closed forms."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mellowmax import Boltzmann, LogSumExp, Max, Mellowmax
from mellowmax.mdp import MDP, garnet, two_state
from mellowmax.planning import Status, fixed_point, solve, trace_fixed_points
from mellowmax.planning.batch import Batch
from mellowmax.planning.batch import fixed_point as of_each
from mellowmax.planning.evaluate import FixedPolicy
from mellowmax.planning.implicit import FEW_STATES
from mellowmax.planning.linear import rule
from mellowmax.planning.linear.banded import Banded
from mellowmax.planning.linear.dense import Dense
from mellowmax.planning.linear.gauss_seidel import GaussSeidel
from mellowmax.planning.sensitivity import _by_series, _form

RNG = np.random.default_rng(5)
LOOKED_AT = RNG.normal(size=(8, 3))
"""The gradients are those of `sum(LOOKED_AT * q)`."""


def awkward(discount):
    """Eight states with ends, a terminal state, and actions that are not there."""
    rng = np.random.default_rng(1)
    allowed = rng.random((8, 3)) < 0.7
    allowed[np.arange(8), rng.integers(3, size=8)] = True
    successors = rng.integers(8, size=(8, 3, 4))
    successors[..., 3] = 8
    goes_on = 0.97 * rng.dirichlet([5.0, 5.0, 5.0], (8, 3))
    probabilities = np.concatenate([goes_on, np.full((8, 3, 1), 0.03)], 2)
    rewards, terminal = rng.normal(size=(8, 3)), np.arange(8) == 5
    return MDP(successors, probabilities, rewards, discount, allowed=allowed, terminal=terminal)


def dense(mdp):
    return MDP.from_arrays(*mdp.to_numpy(), mdp.discount)


def changed(mdp, **fields):
    """A model with other arrays."""
    return dataclasses.replace(mdp.model(), **fields)


def looked_at(rewards, probabilities, discount, softmax, mdp):
    model = changed(mdp, rewards=rewards, probabilities=probabilities, discount=discount)
    q = fixed_point(model, softmax).q
    return jnp.sum(jnp.where(mdp.available, q * LOOKED_AT, 0.0))


gradient = jax.grad(looked_at, argnums=(0, 1, 2, 3))


def exact(mdp, softmax):
    solution = solve(mdp, softmax, tolerance=1e-13, throw=False)
    assert solution.status in (Status.CONVERGED, Status.LIMITED_BY_ROUNDING)
    return float(np.where(mdp.available, solution.q * LOOKED_AT, 0.0).sum())


def difference(mdp, softmax, h, **directions):
    """A central difference of fourth order."""

    def moved(t):
        fields = {name: getattr(mdp, name) + t * by for name, by in directions.items()}
        return exact(dataclasses.replace(mdp, **fields), softmax)

    return (8 * (moved(h) - moved(-h)) - moved(2 * h) + moved(-2 * h)) / (12 * h)


@pytest.mark.parametrize(
    "softmax",
    [Mellowmax(3.0), LogSumExp(2.0), pytest.param(Boltzmann(0.3), marks=pytest.mark.release)],
)
def test_gradients_are_those_of_solve(softmax):
    for discount, most in ((0.5, 1e-6), (0.99, 1e-6), (0.999, 1e-5)):
        mdp = awkward(discount)
        arguments = (mdp.rewards, mdp.probabilities, discount, softmax)
        with jax.enable_x64(True):
            by = gradient(*arguments, mdp)
        rows = RNG.normal(size=mdp.rewards.shape)
        assert np.isclose(np.sum(by[0] * rows), difference(mdp, softmax, 1e-3, rewards=rows), most)
        mixed = np.roll(mdp.probabilities, 1, axis=0) - mdp.probabilities  # rows still sum to 1
        mixed = np.where(mdp.available[..., None], mixed, 0.0)
        mixed[~np.isclose(mixed.sum(-1), 0)] = 0.0
        assert np.abs(mixed).max() > 0.1
        expected = difference(mdp, softmax, 1e-4, probabilities=mixed)
        assert np.isclose(np.sum(by[1] * mixed), expected, most)
        expected = difference(mdp, softmax, 1e-4 * (1 - discount), discount=1.0)
        assert np.isclose(by[2], expected, most)
        name = dataclasses.fields(softmax)[0].name
        parameter = getattr(softmax, name)
        h = 1e-3
        ends = [exact(mdp, type(softmax)(parameter + k * h)) for k in (1, -1, 2, -2)]
        expected = (8 * (ends[0] - ends[1]) - ends[2] + ends[3]) / (12 * h)
        assert np.isclose(getattr(by[3], name), expected, most)
    for discount in (0.0, 1.0):  # here every policy ends
        mdp = awkward(discount)
        with jax.enable_x64(True):
            by = gradient(mdp.rewards, mdp.probabilities, discount, softmax, mdp)
        rows = RNG.normal(size=mdp.rewards.shape)
        expected = difference(mdp, softmax, 1e-3, rewards=rows)
        assert np.isclose(np.sum(by[0] * rows), expected, 1e-6)


@pytest.mark.parametrize("kind", [Dense, Banded, GaussSeidel, None])
def test_a_solution_gives_the_same_derivatives_to_numpy(kind, monkeypatch):
    """By each form of the matrix, and by JAX, as on an accelerator."""
    mdp, softmax = awkward(0.99), Mellowmax(3.0)
    if kind is not Dense:
        monkeypatch.setattr(rule, "FEW_STATES", 0)
    if kind is GaussSeidel:
        monkeypatch.setattr("mellowmax.planning.sensitivity.direct_form", lambda mdp: None)
    if kind is None:
        monkeypatch.setattr("mellowmax.planning.sensitivity._form", lambda mdp: None)
    else:
        assert isinstance(_form(mdp), kind)
    moved = solve(mdp, softmax, tolerance=1e-12).vjp(LOOKED_AT)
    with jax.enable_x64(True):
        by = gradient(mdp.rewards, mdp.probabilities, mdp.discount, softmax, mdp)
    for ours, theirs in zip(
        (moved.rewards, moved.probabilities, moved.discount, moved.softmax.omega),
        (by[0], by[1], by[2], by[3].omega),
        strict=True,
    ):
        assert np.allclose(ours, theirs, rtol=1e-8, atol=1e-8 * np.abs(theirs).max())
    assert moved.residual < 1e-11
    assert not moved.rewards[~mdp.available].any()
    with pytest.raises(ValueError, match=r"`q_bar` must have the shape \(8, 3\), got \(3,\)"):
        solve(mdp, softmax).vjp([1, 2, 3])


def test_derivatives_by_parameters_of_states_and_priors(monkeypatch):
    """In main memory and by JAX: with a bonus, which a terminal state has not, and with a prior."""
    mdp = awkward(0.99)
    prior = RNG.dirichlet(np.ones(3), 8)
    for softmax in (LogSumExp(2.0), Mellowmax(np.linspace(1.0, 3.0, 8), prior=prior)):
        solution = solve(mdp, softmax, tolerance=1e-12)
        ours = solution.vjp(LOOKED_AT)
        with monkeypatch.context() as patch:
            patch.setattr("mellowmax.planning.sensitivity._form", lambda mdp: None)
            theirs = solution.vjp(LOOKED_AT)
        for x, y in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
            assert x.shape == y.shape
            assert np.allclose(x, y, rtol=1e-9, atol=1e-11 + 1e-9 * np.abs(y).max())


def test_dense_sparse_and_batched_agree():
    softmax = LogSumExp(2.0)
    mdps = [garnet(8, 3, 3, seed, discount=0.95) for seed in range(3)]
    each = [fixed_point(mdp, softmax) for mdp in mdps]
    batch = Batch.of([*mdps, two_state()])  # which is padded
    together = of_each(batch, softmax)
    assert together.converged.all()
    assert np.allclose(together.value[3, :2], fixed_point(two_state(), softmax).value, 0, 1e-12)
    for mdp, point, q in zip(mdps, each, together.q, strict=False):
        assert point.status == "converged"
        assert np.allclose(fixed_point(dense(mdp), softmax).q, point.q, 0, 1e-12)
        assert np.allclose(q, point.q, 0, 1e-12)
        assert np.allclose(solve(mdp, softmax, tolerance=1e-13, throw=False).q, point.q, 0, 1e-11)

    def total(rewards, model):
        q = fixed_point(dataclasses.replace(model, rewards=rewards), softmax).q
        return jnp.sum(q * LOOKED_AT)

    with jax.enable_x64(True):
        slope = jax.grad(total)
        models = batch[:3].model()
        mapped = jax.vmap(slope)(models.rewards, models)
        for mdp, by in zip(mdps, mapped, strict=True):
            alone = slope(mdp.rewards, mdp.model())
            assert np.allclose(alone, by, 0, 1e-12 * np.abs(by).max() * 100)


def test_a_larger_sparse_model_agrees_with_the_dense_one():
    """JAX solves its linear systems without a matrix of states by states."""
    mdp, softmax = garnet(150, 2, 3, 3, discount=0.97), Mellowmax(3.0)
    assert mdp.n_states > FEW_STATES
    weights = RNG.normal(size=(150, 2))
    whole = solve(dense(mdp), softmax, tolerance=1e-13, throw=False).vjp(weights)

    def total(rewards, discount):
        q = fixed_point(changed(mdp, rewards=rewards, discount=discount), softmax).q
        return jnp.sum(q * weights)

    with jax.enable_x64(True):
        rewards, discount = jax.grad(total, (0, 1))(mdp.rewards, 0.97)
    assert np.allclose(rewards, whole.rewards, 0, 1e-12 * np.abs(whole.rewards).max() * 100)
    assert np.isclose(discount, whole.discount, 1e-11)


@pytest.mark.parametrize("mixes", [True, False])
def test_the_adjoint_where_states_are_numbered_at_random(mixes, monkeypatch):
    """By a series where the chain forgets its start at once, by sweeps where it does not."""
    order = RNG.permutation(150)
    around = (np.arange(150)[:, None, None] + np.array([[-1, 0], [0, 1]])) % 150
    ring = MDP(
        order[around][np.argsort(order)], np.full((150, 2, 2), 0.5), RNG.normal(size=(150, 2)), 0.97
    )
    mdp, softmax = garnet(150, 2, 9, 3, discount=0.97) if mixes else ring, Mellowmax(3.0)
    weights = RNG.normal(size=(150, 2))
    solution = solve(mdp, softmax, tolerance=1e-12)
    by_lu = solution.vjp(weights)
    swept, factors = [], GaussSeidel.factors
    for name in ("direct_form", "is_numbered"):
        monkeypatch.setattr(f"mellowmax.planning.sensitivity.{name}", lambda mdp: None)
    monkeypatch.setattr(GaussSeidel, "factors", lambda *x: swept.append(1) or factors(*x))
    ours = solution.vjp(weights)
    assert bool(swept) != mixes
    assert np.allclose(ours.rewards, by_lu.rewards, 0, 1e-11 * np.abs(by_lu.rewards).max())
    assert np.isclose(ours.softmax.omega, by_lu.softmax.omega, 1e-10)
    assert ours.residual < 1e-11


def test_second_derivatives_and_forward_mode():
    """Of a value by a reward and the parameter, against differences of its gradient."""
    mdp = two_state()

    def value(x):
        rewards = jnp.asarray(mdp.expected_rewards).at[0, 1].add(x[0])
        point = fixed_point(changed(mdp, rewards=rewards), Mellowmax(x[1]))
        return point.value[0]

    with jax.enable_x64(True):
        at, h = jnp.array([0.1, 4.0]), 1e-4
        slope = jax.jit(jax.grad(value))
        steps = h * jnp.eye(2)
        expected = jnp.stack([(slope(at + e) - slope(at - e)) / (2 * h) for e in steps])
        assert np.allclose(jax.jit(jax.hessian(value))(at), expected, rtol=1e-6)
        assert np.allclose(jax.jit(jax.jacfwd(value))(at), slope(at), rtol=1e-13)


def test_a_fixed_policy_has_the_closed_form():
    mdp = dense(garnet(8, 3, 3, 1, discount=0.9))
    policy = RNG.dirichlet(np.ones(3), 8)
    transitions, rewards = mdp.to_numpy()
    along = np.einsum("sa,sat->st", policy, transitions)
    inverse = np.linalg.inv(np.eye(8) - 0.9 * along)
    with jax.enable_x64(True):

        def values(rewards):
            return fixed_point(changed(mdp, rewards=rewards), FixedPolicy(policy)).value

        by = jax.jacrev(values)(rewards)
    assert np.allclose(by, inverse[:, :, None] * policy, 0, 1e-13)


def test_ties_of_the_maximum_share_the_derivative():
    mdp = MDP.from_arrays([[[1.0], [1.0]]], [[1.0, 1.0]], 0.5)
    moved = solve(mdp, Max()).vjp([[1.0, 0.0]])
    assert np.allclose(moved.rewards, [[1.5, 0.5]])


def test_where_there_is_no_derivative_it_is_nan():
    """Boltzmann's sweeps that have not converged, and a fold of its fixed points."""
    mdp = two_state()
    branch = trace_fixed_points(mdp, Boltzmann, (16.0, 17.0))
    fold = branch.folds[0]

    def value(beta, initial, limit):
        point = fixed_point(mdp, Boltzmann(beta), initial=initial, max_iterations=limit)
        return point.value[0], point

    with jax.enable_x64(True):
        slope = jax.value_and_grad(value, has_aux=True)
        for beta, initial, limit, status in (
            (16.55, np.zeros((2, 2)), 10, "out of iterations"),
            (16.55, np.zeros((2, 2)), 5000, "converged"),
            (fold.parameter, fold.q, 5000, "at a fold"),
        ):
            (_, point), by = slope(beta, initial, limit)
            assert point.status == status
            assert np.isfinite(by) == (status == "converged")


def test_sweeps_alone_are_those_of_numpy():
    """They are counted, and end where their change is small."""
    mdp = two_state()
    transitions, rewards = mdp.to_numpy()
    v, change, sweeps = np.zeros(2), np.inf, 0
    while change > 1e-6:
        new = Mellowmax(16.55).value(rewards + mdp.discount * transitions @ v)
        v, change, sweeps = new, np.abs(new - v).max(), sweeps + 1
    options = {"tolerance": 1e-6, "method": "synchronous"}
    point = fixed_point(mdp, Mellowmax(16.55), **options)
    assert point.iterations == sweeps > 50
    assert np.allclose(point.value, v, rtol=0, atol=1e-12)
    assert point.converged
    exact = fixed_point(mdp, Mellowmax(16.55))
    assert 1e-9 < np.abs(point.value - exact.value).max() < 1e-6 / (1 - mdp.discount)
    few = fixed_point(mdp, Mellowmax(16.55), max_iterations=10, **options)
    assert (few.iterations, few.converged) == (10, False)


def test_single_precision_is_not_traced():
    with jax.enable_x64(False), pytest.raises(ValueError, match="traced in double precision"):
        jax.eval_shape(lambda beta: fixed_point(two_state(), LogSumExp(beta)).q, 1.0)


def test_wrong_arguments():
    with pytest.raises(TypeError, match="`model` must be an MDP or its `model\\(\\)`, got 3"):
        fixed_point(3, Max())
    with pytest.raises(ValueError, match="`discount` must be below 1 unless every policy ends"):
        fixed_point(garnet(3, 2, 2, 0, discount=1.0), Max())


def test_gradients_are_those_of_unrolled_sweeps():
    """Sixty sweeps at a discount of 0.5, which are within 1e-16 of the fixed point."""
    mdp = garnet(6, 3, 2, 4, discount=0.5)
    probabilities, _ = mdp.to_numpy()

    def swept(rewards, omega):
        def sweep(v, _):
            q = rewards + 0.5 * jnp.einsum("sat,t->sa", probabilities, v)
            return Mellowmax(omega).value(q), None

        v, _ = jax.lax.scan(sweep, jnp.zeros(6), length=60)
        return jnp.sum(jnp.sin(v))

    def solved(rewards, omega):
        point = fixed_point(dataclasses.replace(mdp.model(), rewards=rewards), Mellowmax(omega))
        return jnp.sum(jnp.sin(point.value))

    arguments = jnp.asarray(mdp.rewards), jnp.asarray(3.0)
    for found, expected in zip(
        jax.grad(solved, (0, 1))(*arguments), jax.grad(swept, (0, 1))(*arguments), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_a_series_with_a_small_slow_part_is_given_up():
    shrinks, b = np.array([0.3, 0.3, 0.9999]), np.array([1.0, -1.0, 1e-3])
    x, left = _by_series(lambda x: shrinks * x, b, 0.0)
    assert not x.any()
    assert (left == b).all()
    x, left = _by_series(lambda x: 0.3 * x, b, 0.3)
    np.testing.assert_allclose(x, b / 0.7, rtol=1e-12)
    assert np.abs(left).max() < 1e-12
