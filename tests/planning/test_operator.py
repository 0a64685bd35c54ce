"""MDPs whose transitions are a function: the same values and bounds as with their arrays."""

from __future__ import annotations

import functools
import re

import jax.numpy as jnp
import numpy as np
import pytest

from mellowmax import Boltzmann, EpsilonGreedy, Max, Mellowmax
from mellowmax.mdp import MDP
from mellowmax.planning import fixed_points, simulate, solve

S, A = 12, 3


def dense(rng, discount, ends):
    """Random, sparse, with an action that is not there, and a terminal state where it ends."""
    transitions = rng.dirichlet(np.full(S, 0.2), (S, A))
    allowed = rng.random((S, A)) < 0.8
    allowed[:, 0], allowed[0, 2] = True, False
    terminal = np.arange(S) == (4 if ends else -1)
    rewards = rng.normal(size=(S, A))
    return MDP.from_arrays(transitions, rewards, discount, allowed=allowed, terminal=terminal)


def product(transitions, v):
    return transitions @ v


def as_operator(mdp):
    """The same by a matrix product, which is given its matrix; one program for all of a shape.

    What it gives in a terminal state, or for an action that is not allowed, does not matter.
    """
    transitions = np.where(mdp.available[..., None], mdp.to_numpy()[0], 1 / S)
    expectation = functools.partial(product, transitions)
    options = {"allowed": mdp.allowed, "terminal": mdp.terminal, "branches": S}
    return MDP.from_operator(expectation, mdp.rewards, mdp.discount, **options)


def exact(mdp, softmax):
    """The fixed point by Newton's method with NumPy's dense linear algebra."""
    transitions, rewards = mdp.to_numpy()
    v = np.zeros(S)
    for _ in range(50):
        q = rewards + mdp.discount * transitions @ v
        along = np.einsum("sa,sat->st", softmax.gradient(q, where=mdp.allowed), transitions)
        change = softmax.value(q, where=mdp.allowed) - v
        v = v + np.linalg.solve(np.eye(S) - mdp.discount * along, change)
    assert np.abs(change).max() < 1e-12 * (1 + np.abs(v).max())
    return v


@pytest.mark.parametrize(("softmax", "ends"), [(Max(), True), (Mellowmax(3.0), False)], ids=str)
@pytest.mark.parametrize("samples", [6, pytest.param(300, marks=pytest.mark.release)])
def test_values_and_bounds_are_those_of_the_array(softmax, ends, samples):
    for seed in range(samples):
        rng = np.random.default_rng(seed)
        array = dense(rng, [0.5, 0.99, 0.999999][seed % 3], ends)
        operator = as_operator(array)
        value, best = exact(array, softmax), exact(array, Max())
        for method in ("auto", "shifted", "newton") if seed == 0 else ("newton",):
            solution = solve(operator, softmax, tolerance=1e-7, method=method)
            assert np.abs(solution.value - value).max() <= solution.error_bound
            assert solution.error_bound < 2e-7 / (1 - array.discount) + 1e-9
            assert (best - solution.value).max() <= solution.suboptimality_bound
            np.testing.assert_array_equal(np.isfinite(solution.q), array.available | array.allowed)


def test_other_ways_of_planning():
    array = dense(np.random.default_rng(3), 0.9, ends=False)
    operator = as_operator(array)
    for options in ({"horizon": 5}, {"average": True, "tolerance": 1e-10}):
        ours, theirs = (solve(mdp, EpsilonGreedy(0.2), **options) for mdp in (operator, array))
        np.testing.assert_allclose(ours.q, theirs.q, rtol=0, atol=1e-8)


def test_newtons_method_goes_far_in_a_step():
    """A walk to the only reward, 60 steps away at least: sweeps alone would take as many."""
    rewards = np.zeros((60, 2))
    rewards[-1] = 1.0

    def walk(v):
        left, right = jnp.append(v[:1], v[:-1]), jnp.append(v[1:], v[-1:])
        return jnp.stack([0.8 * left + 0.2 * right, 0.2 * left + 0.8 * right], axis=1)

    mdp = MDP.from_operator(walk, rewards, 0.999, branches=2)
    for softmax in (Max(), EpsilonGreedy(0.1)):
        solution = solve(mdp, softmax, method="newton")
        assert solution.iterations < 40
        assert solution.policy[:, 1].min() > 0.9


def test_what_is_missing_to_1_ends_the_episode():
    """A step goes on with probability 0.8: the value of 1 a step is 1 / (1 - 0.9 * 0.8)."""
    mdp = MDP.from_operator(lambda v: 0.8 * jnp.stack([v, v[::-1]], 1), np.ones((5, 2)), 0.9)
    solution = solve(mdp, Mellowmax(2.0))
    assert np.abs(solution.value - 1 / 0.28).max() <= solution.error_bound
    with pytest.raises(ValueError, match="must go on forever"):
        solve(mdp, Max(), average=True)


def machines(k, n):
    """`k` machines of `n` states each: an action renews one of them, then each wears by itself."""
    wear = np.zeros((n, n))
    wear[np.arange(n), np.arange(n)] += 0.7
    wear[np.arange(n), np.minimum(np.arange(n) + 1, n - 1)] += 0.3

    def expectation(v):
        v = v.reshape((n,) * k)
        for i in range(k):
            v = jnp.moveaxis(jnp.tensordot(jnp.asarray(wear), v, (1, i)), 0, i)
        renewed = [jnp.broadcast_to(jnp.take(v, jnp.array([0]), i), v.shape) for i in range(k)]
        return jnp.stack([after.reshape(-1) for after in (v, *renewed)], axis=1)

    states = np.indices((n,) * k).reshape(k, -1).T
    cost = np.column_stack([0.1 * (states**2).sum(1)] * (k + 1))
    cost[:, 1:] += 3.0
    return expectation, -cost, wear, states


def test_a_factored_model():
    """Three machines, with and without the product of their transitions."""
    expectation, rewards, wear, states = machines(3, 4)
    mdp = MDP.from_operator(expectation, rewards, 0.95, branches=12)
    joint = functools.reduce(np.kron, [wear] * 3)
    number = {tuple(state): s for s, state in enumerate(states.tolist())}
    rows = [joint]
    for i in range(3):
        renewed = states.copy()
        renewed[:, i] = 0
        rows.append(joint[[number[tuple(state)] for state in renewed.tolist()]])
    array = MDP.from_arrays(np.stack(rows, 1), rewards, 0.95)
    v = np.random.default_rng(0).normal(size=64)
    np.testing.assert_allclose(mdp.probabilities @ v, array.probabilities @ v, rtol=0, atol=1e-14)
    solution = solve(mdp, Mellowmax(2.0), tolerance=1e-9, method="newton")
    q = array.rewards + 0.95 * array.probabilities @ solution.value
    change = np.abs(Mellowmax(2.0).value(q) - solution.value).max()
    assert change / 0.05 <= 1.01 * solution.error_bound < 1e-6
    assert repr(mdp) == "MDP(states=64, actions=4, operator, discount=0.95)"


ROLL = MDP.from_operator(lambda v: jnp.stack([v, v], 1), np.ones((2, 2)), 0.9)
NO_ARRAY = "`mdp` must have an array of probabilities for this, got one from an operator"


def of(function, **options):
    return MDP.from_operator(function, np.ones((3, 1)), options.pop("discount", 0.9), **options)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: of(5), "`expectation` must be a function, got 5"),
        (lambda: of(lambda v: v), "`expectation` must give float64 with the shape (3, 1), got"),
        (lambda: of(lambda v: 2 * v[:, None]),
         "`expectation` must give at most 1 for values of 1, got 2 in state 0, action 0"),
        (lambda: of(lambda v: v[:, None] ** 2), "`expectation` must be linear, got "),
        (lambda: of(lambda v: (2 * v - v[::-1])[:, None]),
         "`expectation` must give means of values from 0 to 1, got "),
        (lambda: MDP.from_operator(lambda v: v[:, None], [1.0], 0.9),
         "`rewards` must have the shape (states, actions), got (1,)"),
        (lambda: of(lambda v: v[:, None], branches=0), "`branches` must be a whole number of at"),
        (lambda: solve(of(lambda v: v[:, None], discount=1.0), Max()), NO_ARRAY),
        (lambda: solve(ROLL, Max(), method="in-place"),
         "`method` must be another one for an operator, got 'in-place'"),
        (lambda: ROLL.to_numpy(), NO_ARRAY),
        (lambda: ROLL.to_scipy(), NO_ARRAY),
        (lambda: fixed_points(ROLL, Boltzmann(1.0)), NO_ARRAY),
        (lambda: simulate(np.full((2, 2), 0.5), ROLL, 3), NO_ARRAY),
        (lambda: ROLL.averaged(np.eye(2)), NO_ARRAY),
    ],
)  # fmt: skip
def test_what_has_no_array_or_is_no_expectation(call, message):
    with pytest.raises((TypeError, ValueError), match=f"^{re.escape(message)}"):
        call()


def test_it_is_not_saved(tmp_path):
    with pytest.raises(ValueError, match=NO_ARRAY):
        ROLL.save(tmp_path / "model.npz")
    assert not list(tmp_path.iterdir())
