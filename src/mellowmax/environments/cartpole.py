"""Gymnasium's CartPole-v1 as pure JAX functions: a cart has to keep its pole upright.

    >>> import jax
    >>> from mellowmax.environments.cartpole import params, reset, step
    >>> key, parameters = jax.random.key(0), params()
    >>> state = reset(key, parameters)
    >>> state, reward, terminated = step(key, state, 1, parameters)

Every step earns 1. An episode ends when the pole leans by more than 12 degrees or the cart has left
the track. The equations of motion are those of Barto, Sutton and Anderson, in steps of 0.02 s by
Euler's method.

References:
    Barto, Sutton and Anderson, "Neuronlike adaptive elements that can solve difficult learning
    control problems" (1983).
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from .._common import checks
from .._common.pytrees import pytree
from .._typing import ArrayLike
from .step import Step

__all__ = ["MAX_STEPS", "Params", "Step", "observe", "params", "reset", "step"]

MAX_STEPS = 500
"""The step at which Gymnasium cuts an episode off."""
SECONDS = 0.02
"""The duration of a step."""
GRAVITY = 9.8
CART, POLE, HALF_LENGTH = 1.0, 0.1, 0.5
"""The masses of the cart and of the pole, and half the pole's length."""
EDGE, LEAN = 2.4, 12 * np.pi / 180
"""How far the cart may be from the middle of the track, and how far the pole may lean."""


@pytree
@dataclasses.dataclass(frozen=True)
class Params:
    """The parameters of a cart with a pole."""

    force: np.float32 | jax.Array
    """The force of an action to one side."""

    @property
    def n_actions(self) -> int:
        """How many actions there are."""
        return 2


def params(*, force: float = 10.0) -> Params:
    """The parameters of a cart with a pole; by default those of Gymnasium's CartPole-v1.

    Raises:
        ValueError: for a force that is negative or not finite.

    Examples:
        >>> params()
        Params(force=np.float32(10.0))
    """
    return Params(np.float32(checks.real("force", force, 0.0)))


def reset(key: jax.Array, params: Params) -> jax.Array:
    """The cart in the middle, the pole upright, both nearly at rest, `[4]`.

    Examples:
        >>> reset(jax.random.key(0), params()).shape
        (4,)
    """
    return jax.random.uniform(key, (4,), jnp.float32, -0.05, 0.05)


def step(key: jax.Array, state: jax.Array, action: ArrayLike, params: Params) -> Step:
    """Take a step, a fiftieth of a second.

    Args:
        key: a JAX key, which is not used.
        state: the place of the cart and its velocity, the angle of the pole from upright and its
            velocity.
        action: 0 to push the cart to the left, 1 to the right.
        params: the parameters of the cart.

    Returns:
        The state, the reward, and whether the episode has ended. There is no limit on the
        number of steps.

    Examples:
        >>> upright = jnp.zeros(4, jnp.float32)
        >>> state, reward, terminated = step(jax.random.key(0), upright, 1, params())
        >>> print(f"{state[1]:.3f} {state[3]:.3f}", reward, terminated)
        0.195 -0.293 1.0 False
    """
    _, speed, angle, turning = state
    push = (2 * jnp.asarray(action).astype(jnp.float32) - 1) * params.force
    cosine, sine = jnp.cos(angle), jnp.sin(angle)
    both, moment = CART + POLE, POLE * HALF_LENGTH
    pushed = (push + moment * turning**2 * sine) / both
    bend = (GRAVITY * sine - cosine * pushed) / (HALF_LENGTH * (4 / 3 - POLE * cosine**2 / both))
    change = jnp.stack([speed, pushed - moment * bend * cosine / both, turning, bend])
    moved = state + SECONDS * change
    terminated = (jnp.abs(moved[0]) > EDGE) | (jnp.abs(moved[2]) > LEAN)
    return Step(moved, jnp.float32(1), terminated)


def observe(state: jax.Array, params: Params) -> jax.Array:
    """The state itself, `[4]`."""
    return state
