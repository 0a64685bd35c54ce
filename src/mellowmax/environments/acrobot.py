"""Gymnasium's Acrobot-v1 as pure JAX functions: two hanging links have to swing up.

    >>> import jax
    >>> from mellowmax.environments.acrobot import params, reset, step
    >>> key, parameters = jax.random.key(0), params()
    >>> state = reset(key, parameters)
    >>> state, reward, terminated = step(key, state, 1, parameters)

A torque acts on the joint between the links. An episode ends when the free end is a link's length
above the fixed joint; until then every step costs 1. The equations of motion are those of Sutton
and Barto's book, in steps of 0.2 s by the classical Runge-Kutta method.

References:
    Sutton, "Generalization in reinforcement learning: successful examples using sparse coarse
    coding" (1996).
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
SECONDS = 0.2
"""The duration of a step."""
GRAVITY = 9.8
MASS, LENGTH, CENTRE, INERTIA = 1.0, 1.0, 0.5, 1.0
"""Mass and length of each link, the distance of its centre of mass from its upper joint, and its
moment of inertia."""
FASTEST = np.array([4 * np.pi, 9 * np.pi], np.float32)
"""The largest angular velocities of the two links."""


@pytree
@dataclasses.dataclass(frozen=True)
class Params:
    """The parameters of an acrobot."""

    torque: np.float32 | jax.Array
    """The torque of an action to one side."""

    @property
    def n_actions(self) -> int:
        """How many actions there are."""
        return 3


def params(*, torque: float = 1.0) -> Params:
    """The parameters of an acrobot; by default those of Gymnasium's Acrobot-v1.

    Raises:
        ValueError: for a torque that is negative or not finite.

    Examples:
        >>> params()
        Params(torque=np.float32(1.0))
    """
    return Params(np.float32(checks.real("torque", torque, 0.0)))


def reset(key: jax.Array, params: Params) -> jax.Array:
    """Both links hang down, nearly at rest: angles and angular velocities, `[4]`.

    Examples:
        >>> reset(jax.random.key(0), params()).shape
        (4,)
    """
    return jax.random.uniform(key, (4,), jnp.float32, -0.1, 0.1)


def step(key: jax.Array, state: jax.Array, action: ArrayLike, params: Params) -> Step:
    """Take a step, a fifth of a second.

    Args:
        key: a JAX key, which is not used.
        state: the angle of the first link from straight down, that of the second from the first,
            and their velocities.
        action: 0 or 2 for a torque to one side or the other, 1 for none.
        params: the parameters of the acrobot.

    Returns:
        The state, the reward, and whether the episode has ended. There is no limit on the
        number of steps.

    Examples:
        >>> print(*step(jax.random.key(0), jnp.zeros(4, jnp.float32), 1, params()))
        [0. 0. 0. 0.] -1.0 False
    """
    torque = (jnp.asarray(action).astype(jnp.float32) - 1) * params.torque
    moved = _runge_kutta(state, torque)
    angles = (moved[:2] + np.float32(np.pi)) % np.float32(2 * np.pi) - np.float32(np.pi)
    state = jnp.concatenate([angles, jnp.clip(moved[2:], -FASTEST, FASTEST)])
    terminated = -jnp.cos(angles[0]) - jnp.cos(angles[0] + angles[1]) > 1
    return Step(state, jnp.where(terminated, jnp.float32(0), jnp.float32(-1)), terminated)


def observe(state: jax.Array, params: Params) -> jax.Array:
    """The cosines and sines of the two angles, and the angular velocities, `[6]`.

    Examples:
        >>> print(observe(jnp.zeros(4, jnp.float32), params()))
        [1. 0. 1. 0. 0. 0.]
    """
    first, second = state[0], state[1]
    angles = [jnp.cos(first), jnp.sin(first), jnp.cos(second), jnp.sin(second)]
    return jnp.stack([*angles, state[2], state[3]])


def _runge_kutta(state: jax.Array, torque: jax.Array) -> jax.Array:
    """The state after a step, by the classical method of order four."""
    one = _derivative(state, torque)
    two = _derivative(state + SECONDS / 2 * one, torque)
    three = _derivative(state + SECONDS / 2 * two, torque)
    four = _derivative(state + SECONDS * three, torque)
    return state + SECONDS / 6 * (one + 2 * two + 2 * three + four)


def _derivative(state: jax.Array, torque: jax.Array) -> jax.Array:
    """The derivative of a state with respect to time, `[4]`."""
    first, second, speed, second_speed = state
    cosine, sine = jnp.cos(second), jnp.sin(second)
    own = MASS * CENTRE**2 + 2 * INERTIA
    d1 = own + MASS * (LENGTH**2 + CENTRE**2 + 2 * LENGTH * CENTRE * cosine)
    d2 = MASS * (CENTRE**2 + LENGTH * CENTRE * cosine) + INERTIA
    phi2 = MASS * CENTRE * GRAVITY * jnp.sin(first + second)
    phi1 = -MASS * LENGTH * CENTRE * second_speed * (second_speed + 2 * speed) * sine
    phi1 = phi1 + (MASS * CENTRE + MASS * LENGTH) * GRAVITY * jnp.sin(first) + phi2
    pull = MASS * LENGTH * CENTRE * speed**2 * sine
    inertia = MASS * CENTRE**2 + INERTIA - d2**2 / d1
    change = (torque + d2 / d1 * phi1 - pull - phi2) / inertia
    return jnp.stack([speed, second_speed, -(d2 * change + phi1) / d1, change])
