"""How a solution moves with what it was computed from, for users of NumPy."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._common import checks
from .._common.compiled_programs import keep_compiled_programs
from .._common.pytrees import pytree
from .._typing import ArrayLike, Floats
from ..mdp import MDP
from ..mdp import Model as Arrays
from ..softmax import Softmax
from .bellman import action_values
from .implicit import attached, in_double, placed

__all__ = ["Sensitivity", "sensitivity"]


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
    mdp: MDP, softmax: Softmax, value: Floats, converged: bool, q_bar: ArrayLike
) -> Sensitivity:
    """The derivatives at a fixed point with these state values, by one transposed system."""
    given = checks.numbers("q_bar", q_bar)
    shape = mdp.probabilities.shape[:2]
    if given.shape != shape:
        raise ValueError(f"`q_bar` must have the shape {shape}, got {given.shape}")
    given = np.where(mdp.available, given, 0.0)
    checks.finite("q_bar", given)
    keep_compiled_programs()
    with jax.enable_x64(True):
        result = _pulled_back(mdp.model(), softmax, value, given, converged)
        return jax.tree.map(lambda x: np.asarray(x)[()], result)


@jax.jit
def _pulled_back(
    arrays: Arrays, softmax: Softmax, value: jax.Array, q_bar: jax.Array, valid: jax.Array
) -> Sensitivity:
    softmax = in_double(softmax)

    def q_of(
        rewards: jax.Array, probabilities: jax.Array, discount: jax.Array, softmax: Softmax
    ) -> jax.Array:
        model = placed(
            dataclasses.replace(
                arrays, rewards=rewards, probabilities=probabilities, discount=discount
            )
        )
        return action_values(model, attached(model, softmax, value, valid))

    discount = jnp.asarray(arrays.discount, float)
    q, pull = jax.vjp(q_of, arrays.rewards, arrays.probabilities, discount, softmax)
    y, by_probabilities, by_discount, by_softmax = pull(q_bar)
    model = placed(arrays)
    weights = softmax.gradient(q, axis=model.axis, where=model.allowed)
    _, back = jax.vjp(lambda v: action_values(model, v), value)
    (arriving,) = back(y)  # what each state's value is worth, by all that leads there
    left = y - q_bar - weights * arriving[:, None]
    left = jnp.where(model.terminal[:, None], 0.0, left)
    return Sensitivity(y, by_probabilities, by_discount, by_softmax, jnp.max(jnp.abs(left)))
