"""Gymnasium's MountainCar-v0 as pure JAX functions: a weak car has to get out of a valley.

    >>> import jax
    >>> from mellowmax.environments.mountain_car import params, reset, step
    >>> key, parameters = jax.random.key(0), params()
    >>> state = reset(key, parameters)
    >>> state, reward, terminated = step(key, state, 2, parameters)

The car has to swing back and forth to reach the flag on the hill to the right, where the episode
ends; until then every step costs 1.

References:
    Moore, "Efficient memory-based learning for robot control" (1990).
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

MAX_STEPS = 200
"""The step at which Gymnasium cuts an episode off."""
LEFT, RIGHT, FLAG = -1.2, 0.6, 0.5
"""The ends of the road, and the place of the flag."""
FASTEST = 0.07
"""The largest velocity, in either direction."""
GRAVITY = 0.0025


@pytree
@dataclasses.dataclass(frozen=True)
class Params:
    """The parameters of a car in a valley."""

    force: np.float32 | jax.Array
    """How much the engine adds to the velocity in a step."""

    @property
    def n_actions(self) -> int:
        """How many actions there are."""
        return 3


def params(*, force: float = 0.001) -> Params:
    """The parameters of a car in a valley; by default those of Gymnasium's MountainCar-v0.

    Raises:
        ValueError: for a force that is negative or not finite.

    Examples:
        >>> params()
        Params(force=np.float32(0.001))
    """
    return Params(np.float32(checks.real("force", force, 0.0)))


def reset(key: jax.Array, params: Params) -> jax.Array:
    """The car at rest near the bottom of the valley: its place and its velocity, `[2]`.

    Examples:
        >>> reset(jax.random.key(0), params()).shape
        (2,)
    """
    return jnp.stack([jax.random.uniform(key, (), jnp.float32, -0.6, -0.4), jnp.float32(0)])


def step(key: jax.Array, state: jax.Array, action: ArrayLike, params: Params) -> Step:
    """Take a step.

    Args:
        key: a JAX key, which is not used.
        state: the place of the car and its velocity.
        action: 0 to drive to the left, 2 to the right, 1 for neither.
        params: the parameters of the car.

    Returns:
        The state, the reward, and whether the episode has ended. There is no limit on the
        number of steps.

    Examples:
        >>> state, reward, terminated = step(jax.random.key(0), jnp.float32([-0.5, 0]), 2, params())
        >>> print(state, reward, terminated)
        [-0.49917683  0.00082316] -1.0 False
    """
    place, speed = state
    engine = (jnp.asarray(action).astype(jnp.float32) - 1) * params.force
    speed = jnp.clip(speed + engine - GRAVITY * jnp.cos(3 * place), -FASTEST, FASTEST)
    place = jnp.clip(place + speed, LEFT, RIGHT)
    speed = jnp.where((place <= LEFT) & (speed < 0), 0, speed)
    terminated = (place >= FLAG) & (speed >= 0)
    return Step(jnp.stack([place, speed]), jnp.float32(-1), terminated)


def observe(state: jax.Array, params: Params) -> jax.Array:
    """The state itself, `[2]`."""
    return state
