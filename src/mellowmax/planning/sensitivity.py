"""How a solution moves with what it was computed from, for users of NumPy.

With `dv = W (dr + ...)` for the values and `dq = dr + discount P dv`, the weights `q_bar` of the
action values put `b = discount P^T q_bar` on the values of the states. So the derivative with
respect to the rewards is `q_bar + W x`, where `x` solves the transposed system of Newton's method,
`(I - J)^T x = b`, and all others follow from it. On a CPU the form that suits the model solves it
(`linear`), as it does in `solve`; elsewhere JAX differentiates (`implicit`). On a mesh of several
devices BiCGStab solves it where the sweeps were, so that none of these holds more than its states.

**Random transitions.** Where states are numbered at random no form is of use, but the series
`x = b + J^T b + ...` converges as fast as the chain forgets where it started, but for one part.
Where no episode ends, the entries of `J^T y` sum to the discount times those of `y`. So a constant
`x` that takes away the sum of `b` comes first, and none of the terms that follow has a sum: it is
the counterpart of the shift in `methods.shifted`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from .._common import checks
from .._common.compiled_programs import keep_compiled_programs
from .._common.pytrees import pytree
from .._typing import ArrayLike, Floats
from ..mdp import MDP
from ..mdp import Model as Arrays
from ..softmax import Softmax
from .arguments import mesh_of
from .bellman import action_values, worth
from .devices import STATES, largest, place_array
from .implicit import EXACT, RESTARTS, SOLVED, attached, factors_at, in_double, krylov, placed
from .linear import Form, direct_form, is_numbered, swept_form
from .problem import Model, Problem

__all__ = ["Sensitivity", "sensitivity"]

TRIAL, SLOW = 10, 1e-2
"""The series is given up if more than this part of the right side is left after a few terms."""
MOST_TERMS = 200
"""It is given up after this many, too: a small part of the right side may be a slow one."""


@pytree
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Sensitivity:
    """The derivative of `sum(q_bar * q)` with respect to all that `q` depends on."""

    rewards: Any
    """`[S, A]`, with respect to each expected reward."""
    probabilities: Any
    """`[S, A, K]`, with respect to each probability, laid out as the MDP's are."""
    discount: Any
    """With respect to the discount."""
    softmax: Any
    """A softmax of the same kind whose parameters are the derivatives with respect to them."""
    residual: Any
    """The largest error in the equations that `rewards` solves."""

    def __repr__(self) -> str:
        return f"Sensitivity(discount={self.discount:.6g}, residual={self.residual:.3g})"


def sensitivity(
    mdp: MDP, softmax: Softmax, mesh: Mesh | None, value: Floats, converged: bool, q_bar: ArrayLike
) -> Sensitivity:
    """The derivatives at a fixed point with these state values, by one transposed system.

    `mesh` is that of the solve; None for any of one device.
    """
    given = checks.numbers("q_bar", q_bar)
    shape = mdp.probabilities.shape[:2]
    if given.shape != shape:
        raise ValueError(f"`q_bar` must have the shape {shape}, got {given.shape}")
    given = np.where(mdp.available, given, 0.0)
    checks.finite("q_bar", given)
    keep_compiled_programs()
    if mesh is not None:
        with jax.enable_x64(True), np.errstate(all="ignore"):
            problem = Problem.of(mdp, softmax, mesh)
            result = _on_a_mesh(problem, value, given if converged else given + np.nan)
            return jax.tree.map(lambda x: np.asarray(x)[()], result)
    on_cpu = mesh_of(None).devices.flat[0].platform == "cpu"
    if on_cpu and (form := _form(mdp)):
        with jax.enable_x64(True), np.errstate(all="ignore"):
            result = _in_memory(mdp, softmax, form, value, given if converged else given + np.nan)
            return jax.tree.map(lambda x: np.asarray(x)[()], result)
    with jax.enable_x64(True):
        result = _pulled_back(mdp.model(), softmax, value, given, converged)
        return jax.tree.map(lambda x: np.asarray(x)[()], result)


def _form(mdp: MDP) -> Form | None:
    return direct_form(mdp) or (None if mdp.successors is None else swept_form(mdp))


def _in_memory(mdp: MDP, softmax: Softmax, form: Form, value: Floats, q_bar: Floats) -> Sensitivity:
    problem = Problem.of(mdp, softmax, None)
    transitions: Any = problem.model.probabilities
    live, discount = ~mdp.terminal[:, None], mdp.discount
    means = transitions @ value
    q: Any = mdp.expected_rewards + discount * means
    weights = live * problem.placed_softmax.gradient(q, axis=1, where=mdp.allowed)
    back = transitions.rows.T

    def arriving(y: Floats) -> Floats:
        """What each state's value is worth, by all that leads there."""
        return discount * (back @ y.reshape(-1))

    def product(x: Floats) -> Floats:
        """`J^T x`."""
        return arriving(weights * x[:, None])

    b = arriving(q_bar)
    x, left, size = np.zeros_like(b), b, np.abs(b).max()
    if problem.model.endless and form is not direct_form(mdp) and not is_numbered(mdp):
        x, left = _by_series(product, b, discount)
    factors = None
    for _ in range(RESTARTS):
        much = np.abs(left).max()
        if not much > EXACT * size:
            break
        factors = factors or form.factors(weights)
        x = x + factors.solve(left, transposed=True, left=0.3 * EXACT * size / much)
        left = b - x + product(x)
    if not np.abs(left).max() <= SOLVED * size:
        x = x + np.nan
    y = np.where(live, q_bar + weights * x[:, None], 0.0)
    residual = np.abs(y - live * (q_bar + weights * arriving(y)[:, None])).max()
    return _of_all(mdp, softmax, value, means, x, y, residual)


def _on_a_mesh(problem: Problem, value: Floats, q_bar: Floats) -> Sensitivity:
    mdp, mesh, pairs = problem.mdp, problem.mesh, problem.model.pairs
    assert mesh is not None
    extra = -mdp.n_states % mesh.size  # copies of the last state, which weigh nothing
    weights = problem.place_pairs(np.pad(q_bar, [(0, extra), (0, 0)]))
    outputs = (pairs, P(STATES), pairs, P())
    *found, residual = problem.call(_transposed, outputs, place_array(value, mesh), weights)
    means, x, y = map(problem.fetch, found)
    return _of_all(mdp, problem.softmax, value, means, x, y, residual)


def _transposed(model: Model, softmax: Softmax, v: jax.Array, q_bar: jax.Array) -> Any:
    """The mean values after each action, and what solves the transposed system."""
    only_means = dataclasses.replace(model, rewards=jnp.zeros(()), discount=jnp.ones(()))
    means, back = jax.vjp(lambda v: action_values(only_means, v), v)
    q = model.rewards + model.discount * means
    live = ~jnp.expand_dims(model.terminal, model.axis)
    weights = jnp.where(live, softmax.gradient(q, axis=model.axis, where=model.allowed), 0.0)

    def arriving(y: jax.Array) -> jax.Array:
        (result,) = back(model.discount * y)
        return result

    def of_actions(x: jax.Array) -> jax.Array:
        return weights * jnp.expand_dims(x, model.axis)

    x = krylov(lambda x: x - arriving(of_actions(x)), arriving(q_bar), EXACT)
    y = jnp.where(live, q_bar + of_actions(x), 0.0)
    left = jnp.where(live, y - q_bar - of_actions(arriving(y)), 0.0)
    return means, x, y, largest(jnp.abs(left))


def _of_all(
    mdp: MDP, softmax: Softmax, value: Floats, means: Floats, x: Floats, y: Floats, residual: Any
) -> Sensitivity:
    """The derivatives with respect to all arguments, from those `y` with respect to rewards."""
    by_probabilities = mdp.discount * y[:, :, None]
    if mdp.successors is None:
        by_probabilities = by_probabilities * value
    else:  # in place, since it is as large as the model
        after = np.append(value, 0.0)[mdp.successors]
        by_probabilities = np.multiply(by_probabilities, after, out=after)
    by_softmax = softmax
    if jax.tree.leaves(softmax):
        q = mdp.expected_rewards + mdp.discount * means
        by_softmax = _by_parameters(softmax, q, mdp.allowed, mdp.terminal, x)
    return Sensitivity(y, by_probabilities, np.sum(y * means), by_softmax, residual)


def _by_series(
    product: Callable[[Floats], Floats], b: Floats, discount: float
) -> tuple[Floats, Floats]:
    """The sum of the series, and what it leaves of `b`: all of it where it converges slowly."""
    x, size = np.full_like(b, b.mean() / (1 - discount)), np.abs(b).max()
    left = b - x + product(x)
    for term in range(MOST_TERMS):
        much = np.abs(left).max()
        if term == TRIAL and not much <= SLOW * size:
            break
        if not much > EXACT * size:
            return x, left
        x += left
        left = product(left)
    return np.zeros_like(b), b


@jax.jit
def _by_parameters(
    softmax: Softmax, q: jax.Array, allowed: jax.Array | None, terminal: jax.Array, x: jax.Array
) -> Softmax:
    def value_of(softmax: Softmax) -> jax.Array:
        return worth(softmax, softmax.value(q, axis=1, where=allowed), terminal)

    _, pull = jax.vjp(value_of, in_double(softmax))
    (result,) = pull(x)
    return cast(Softmax, result)


@jax.jit
def _pulled_back(
    arrays: Arrays, softmax: Softmax, value: jax.Array, q_bar: jax.Array, valid: jax.Array
) -> Sensitivity:
    softmax = in_double(softmax)
    model = placed(arrays)
    factors = factors_at(model, softmax, action_values(model, value))

    def q_of(
        rewards: jax.Array, probabilities: jax.Array, discount: jax.Array, softmax: Softmax
    ) -> jax.Array:
        model = placed(
            dataclasses.replace(
                arrays, rewards=rewards, probabilities=probabilities, discount=discount
            )
        )
        return action_values(model, attached(model, softmax, value, valid, factors))

    discount = jnp.asarray(arrays.discount, float)
    q, pull = jax.vjp(q_of, arrays.rewards, arrays.probabilities, discount, softmax)
    y, by_probabilities, by_discount, by_softmax = pull(q_bar)
    weights = softmax.gradient(q, axis=model.axis, where=model.allowed)
    _, back = jax.vjp(lambda v: action_values(model, v), value)
    (arriving,) = back(y)  # what each state's value is worth, by all that leads there
    left = y - q_bar - weights * arriving[:, None]
    left = jnp.where(model.terminal[:, None], 0.0, left)
    return Sensitivity(y, by_probabilities, by_discount, by_softmax, jnp.max(jnp.abs(left)))
