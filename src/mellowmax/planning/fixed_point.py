"""The fixed point of planning as a function that JAX differentiates.

It computes the values `v = f(r + discount * P v)` of a model under a softmax, by the sweeps of
`bellman` and Newton's method: `v <- v + (I - J)^-1 (f(q(v)) - v)`, where `J` is the derivative of a
sweep. Where nothing proves that sweeps lead to one fixed point (Boltzmann) they come first, from
the same start as those of `solve`, and Newton's method only refines what they have led to.
`implicit` has the derivatives, whatever the way to the fixed point.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._common import checks
from .._common.compiled_programs import keep_compiled_programs
from .._common.pytrees import pytree
from .._typing import ArrayLike
from ..mdp import MDP
from ..mdp import Model as Arrays
from ..softmax import Softmax
from .bellman import action_values, values
from .factors import Factors
from .implicit import EXACT, attached, factors_at, in_double, newton_step, placed, solver
from .loop import ROUNDING_OF_A_CHANGE
from .problem import Model
from .solution import Status

__all__ = ["Point", "fixed_point"]

METHODS = ("auto", "synchronous")
NEWTON_STEPS, SWEEPS = 100, 100_000
"""The most iterations, where no number is given: of Newton's method, and of sweeps alone."""
ROUGH = 1e-2
"""What BiCGStab leaves of the right side on the way to the fixed point."""
NEAR = 1e-3
"""Newton's method may move what sweeps have led to by this, relative to the largest value."""
MOST_AMPLIFICATION = 1e6
"""With a larger `(I - J)^-1` rounding costs the derivative most of its digits: it is a fold."""


@pytree
@dataclasses.dataclass(frozen=True, eq=False)
class Point:
    """A fixed point, as arrays that JAX can trace."""

    q: jax.Array
    """`[S, A]`, the action values; -inf for an action that is not allowed."""
    value: jax.Array
    """`[S]`, the value of each state; 0 for a terminal one."""
    residual: jax.Array
    """The largest change of the last sweep, before the last step of Newton's method."""
    iterations: jax.Array
    """The steps of Newton's method, and the sweeps before them."""
    converged: jax.Array
    """Did the residual come down to the tolerance, or to rounding?"""
    regular: jax.Array
    """Can `I - J` be inverted? It cannot at a fold, where there is no derivative."""

    @property
    def status(self) -> Status:
        """How it has ended, in words; not inside of a function that JAX traces."""
        if not np.isfinite(self.residual):
            return Status.OVERFLOW
        if not self.converged:
            return Status.OUT_OF_ITERATIONS
        return Status.CONVERGED if self.regular else Status.AT_A_FOLD


class _Rule(NamedTuple):
    """When the iterations end."""

    tolerance: float
    max_iterations: int
    only_sweeps: bool


def fixed_point(
    model: MDP | Arrays,
    softmax: Softmax,
    *,
    initial: ArrayLike = 0.0,
    tolerance: float = 1e-10,
    max_iterations: int | None = None,
    method: str = "auto",
) -> Point:
    """The fixed point of `q = r + discount * P f(q)`, with all its derivatives.

    It may be traced by `jax.jit`, `vmap`, `grad`, `jvp` and `hessian`, and differentiated with
    respect to every array of floats in its arguments: rewards, probabilities, the discount and the
    parameter of the softmax. It computes in float64: where JAX traces it, that has to be within
    `jax.enable_x64(True)`, or its flag be set. A sparse model of more than 128 states never becomes
    a matrix of states by states; the linear systems of smaller ones, and of dense models, are
    solved by LU factors.

    Args:
        model: the MDP, or its arrays `mdp.model()`, some of which may be replaced.
        softmax: any pair; each state can have a parameter of its own.
        initial: the values to start from, a number or `[S, A]`.
        tolerance: a largest change of a sweep that ends the iterations. One more step of Newton's
            method follows, which makes the values as exact as rounding allows.
        max_iterations: the most of Newton's steps, or of sweeps where the softmax is not a
            non-expansion; None for 100 and 100,000.
        method: `"auto"` is as above; `"synchronous"` is sweeps alone, whatever the softmax, to
            compare softmaxes by one method.

    Returns:
        The values, and whether they have converged; NumPy's arrays if JAX's are in single
        precision. Derivatives are NaN where they have not converged, and at a fold.

    Raises:
        TypeError: for an argument of the wrong kind.
        ValueError: for a discount of 1 and an MDP with a policy that never ends, and where JAX
            would trace single precision.

    Examples:
        How the value of the first state moves with each reward:

        >>> import dataclasses
        >>> import jax
        >>> from mellowmax import Mellowmax
        >>> from mellowmax.mdp import two_state
        >>> model = two_state().model()
        >>> def first(rewards):
        ...     arrays = dataclasses.replace(model, rewards=rewards)
        ...     return fixed_point(arrays, Mellowmax(16.55)).value[0]
        >>> with jax.enable_x64(True):
        ...     print(jax.grad(first)(model.rewards).round(4))
        [[2.3684 5.518 ]
         [0.     0.    ]]
    """
    checks.instance("model", model, MDP | Arrays, "an MDP or its `model()`")
    checks.instance("softmax", softmax, Softmax, "a Softmax such as Mellowmax(5.0)")
    tolerance = checks.real("tolerance", tolerance, 0.0)
    checks.one_of("method", method, METHODS)
    only_sweeps = method == "synchronous"
    if max_iterations is None:
        newton = softmax.non_expansion and not only_sweeps
        max_iterations = NEWTON_STEPS if newton else SWEEPS
    max_iterations = checks.whole("max_iterations", max_iterations, 1)
    if not isinstance(initial, jax.core.Tracer):
        checks.finite("initial", checks.numbers("initial", initial))
    if isinstance(model, MDP):
        model.check_ends()
        model = model.model()
    rule = _Rule(tolerance, max_iterations, only_sweeps)
    keep_compiled_programs()
    if jax.config.jax_enable_x64:  # type: ignore[attr-defined]
        return _program(model, softmax, initial, rule)
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves((model, softmax))):
        raise ValueError(
            "`fixed_point` must be traced in double precision: within `jax.enable_x64(True)`, "
            "got single precision"
        )
    with jax.enable_x64(True):
        result: Point = jax.tree.map(np.asarray, _program(model, softmax, initial, rule))
    return result


@functools.partial(jax.jit, static_argnums=3)
def _program(arrays: Arrays, softmax: Softmax, initial: Any, rule: _Rule) -> Point:
    model = placed(arrays)
    softmax = in_double(softmax)
    fixed_model, fixed_softmax = jax.lax.stop_gradient((model, softmax))
    start = _start(fixed_model, fixed_softmax, jax.lax.stop_gradient(jnp.asarray(initial, float)))
    found = _found(fixed_model, fixed_softmax, start, rule)
    at = action_values(fixed_model, found.v)
    factors = factors_at(fixed_model, fixed_softmax, at)
    regular = _regular(fixed_model, fixed_softmax, found, at, factors)
    v = attached(model, softmax, found.v, found.converged & regular, factors)
    q = action_values(model, v)
    if arrays.allowed is not None:
        q = jnp.where(arrays.allowed, q, -jnp.inf)
    return Point(q, v, found.residual, found.iterations, found.converged, regular)


def _start(model: Model, softmax: Softmax, initial: jax.Array) -> jax.Array:
    """The state values to start from."""
    if initial.ndim == 0:
        return jnp.where(model.terminal, 0.0, initial)
    live = ~model.terminal[:, None]
    there = live if model.allowed is None else live & model.allowed
    return values(model, softmax, jnp.where(there, initial, 0.0))


# The way to the fixed point.


class _Found(NamedTuple):
    v: jax.Array
    residual: jax.Array
    iterations: jax.Array
    converged: jax.Array
    refined: jax.Array  # has Newton's method ended, if it has begun?


def _found(model: Model, softmax: Softmax, start: jax.Array, rule: _Rule) -> _Found:
    """The fixed point."""
    if rule.only_sweeps:
        return _sweeps(model, softmax, start, rule)
    if softmax.non_expansion:
        return _newton(model, softmax, start, rule, rule.max_iterations)
    swept = _sweeps(model, softmax, start, rule)
    limit = jnp.where(swept.converged, NEWTON_STEPS, 0)
    refined = _newton(model, softmax, swept.v, rule, limit)
    moved = jnp.max(jnp.abs(refined.v - swept.v))
    stayed = moved <= NEAR * jnp.maximum(jnp.max(jnp.abs(swept.v)), rule.tolerance)
    better = refined.converged & stayed  # near a fold Newton's method leaps away
    return _Found(
        jnp.where(better, refined.v, swept.v),
        jnp.where(better, refined.residual, swept.residual),
        swept.iterations + refined.iterations,
        swept.converged,
        better,
    )


def _ended(rule: _Rule, v: jax.Array, residual: jax.Array) -> jax.Array:
    """Is a residual within the tolerance, or no more than rounding?"""
    rounding = ROUNDING_OF_A_CHANGE * jnp.max(jnp.abs(v))
    return residual <= jnp.maximum(rule.tolerance, rounding)


def _sweeps(model: Model, softmax: Softmax, start: jax.Array, rule: _Rule) -> _Found:
    """Plain sweeps, until the residual is within the tolerance."""

    def unfinished(found: _Found) -> jax.Array:
        return ~found.converged & (found.iterations < rule.max_iterations)

    def step(found: _Found) -> _Found:
        v = values(model, softmax, action_values(model, found.v))
        residual = jnp.max(jnp.abs(v - found.v))
        ended = _ended(rule, v, residual)
        return _Found(v, residual, found.iterations + 1, ended, ended)

    return jax.lax.while_loop(unfinished, step, _before(start))


def _newton(
    model: Model, softmax: Softmax, start: jax.Array, rule: _Rule, limit: int | jax.Array
) -> _Found:
    """Newton's method; the step from a point that is within the tolerance is the last."""

    def unfinished(found: _Found) -> jax.Array:
        lost = jnp.isnan(found.residual)
        return ~found.converged & ~lost & (found.iterations < limit)

    def step(found: _Found) -> _Found:
        q = action_values(model, found.v)
        change = values(model, softmax, q) - found.v
        residual = jnp.max(jnp.abs(change))
        last = _ended(rule, found.v, residual)
        left = jnp.where(last, EXACT, ROUGH)
        v = found.v + newton_step(model, softmax, q, change, left)
        ended = last & jnp.all(jnp.isfinite(v))
        return _Found(v, residual, found.iterations + 1, ended, ended)

    return jax.lax.while_loop(unfinished, step, _before(start))


def _before(start: jax.Array) -> _Found:
    no = jnp.asarray(False)
    return _Found(start, jnp.asarray(jnp.inf), jnp.asarray(0), no, no)


def _regular(
    model: Model, softmax: Softmax, found: _Found, q: jax.Array, factors: Factors | None
) -> jax.Array:
    """Is `I - J` far from singular? A non-expansion's always is, as no eigenvalue of `J` is 1.

    By some steps of the inverse power method, which find the eigenvalue that is nearest to 1.
    """
    if softmax.non_expansion:
        return jnp.asarray(True)
    solve = solver(model, softmax, q, factors)
    x, size = jnp.cos(1.0 + jnp.arange(found.v.size, dtype=float)), jnp.ones(())
    x = x / jnp.max(jnp.abs(x))
    for _ in range(4):
        x = solve(x)
        size = jnp.max(jnp.abs(x))
        x = x / size
    unsettled = found.converged & ~found.refined
    return ~unsettled & (size < MOST_AMPLIFICATION)
