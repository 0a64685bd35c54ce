"""Lunar Lander as pure functions of one lander."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import custom_vmap

from ..._common import checks
from ..._common.pytrees import pytree
from ..._typing import ArrayLike
from .arrays.vectors import Array
from .devices.batch import step_packed
from .devices.rows import pack, unpack
from .game.bodies import VIEW
from .game.initial_state import start
from .game.reward import observation
from .state import Dispersion, Inputs, State, Step, World, state_dtypes

__all__ = [
    "HEIGHTS",
    "Params",
    "dispersion",
    "launch",
    "named",
    "observe",
    "params",
    "reset",
    "start",
    "step",
    "world",
]

HEIGHTS = {"v3": VIEW.y / 2, "2016": VIEW.x / 2}
"""The height in metres that is observed as 1: today, and from 2016 until August 2018."""


@pytree
@dataclasses.dataclass(frozen=True)
class Params:
    """The parameters of the environment."""

    gravity: np.float32 | Array
    wind_power: np.float32 | Array
    """The force of the strongest gust; 0 for none."""
    turbulence_power: np.float32 | Array
    """The torque of the strongest gust; 0 for none."""
    height_scale: np.float32 | Array
    """The height in metres that is observed as 1."""

    @property
    def n_actions(self) -> int:
        """The number of actions."""
        return 4


def params(
    *,
    gravity: float = -10.0,
    wind_power: float = 0.0,
    turbulence_power: float = 0.0,
    height: str = "v3",
) -> Params:
    """The parameters of Lunar Lander; by default those of Gymnasium's LunarLander-v3.

    Args:
        gravity: between -12 and 0.
        wind_power: the force of the strongest gust of wind; Gymnasium's `enable_wind` has 15.
        turbulence_power: the torque of the strongest gust; Gymnasium's `enable_wind` has 1.5.
        height: the scale of the observed height, and with it of the reward. `"v3"` is today's;
            `"2016"` is that of LunarLander-v2 until August 2018, with which an observed height is
            two thirds of today's. The paper's Lunar Lander had that one.

    Raises:
        ValueError: for an argument outside of what is said above.

    Examples:
        >>> params().height_scale, params(height="2016").height_scale
        (np.float32(6.6666665), np.float32(10.0))
    """
    checks.real("gravity", gravity, -12.0, 0.0)
    checks.real("wind_power", wind_power, 0.0)
    checks.real("turbulence_power", turbulence_power, 0.0)
    checks.one_of("height", height, HEIGHTS)
    numbers = (gravity, wind_power, turbulence_power, HEIGHTS[height])
    return Params(*(np.float32(x) for x in numbers))


def reset(key: jax.Array, params: Params) -> jax.Array:
    """A lander at the beginning of an episode: high above random ground, after a random push.

    The state is an array of 78 numbers, to which `named` gives names.

    Examples:
        >>> import jax
        >>> state = jax.eval_shape(reset, jax.random.key(0), params())
        >>> jax.eval_shape(observe, state, params()).shape
        (8,)
    """
    of_start, of_step = jax.random.split(key)
    return step(of_step, launch(of_start), 0, params).state


def step(key: jax.Array, state: jax.Array, action: ArrayLike, params: Params) -> Step:
    """Take one step, a fiftieth of a second.

    Args:
        key: a JAX key, for the random offset of the engine's nozzle.
        state: the lander. Once its episode has ended, nothing changes and the reward is 0.
        action: 0 nothing, 1 the left engine, 2 the main engine, 3 the right engine.
        params: the parameters of the environment.

    Returns:
        The lander, the reward, and whether the episode has ended: by a crash or by leaving the view
        (the reward is -100), or by coming to rest (the reward is 100). There is no limit on the
        number of steps.

    Examples:
        A thousand ways to fire the main engine. Only the shape of their rewards is computed here,
        since compiling takes a while:

        >>> import jax
        >>> state = jax.eval_shape(reset, jax.random.key(0), params())
        >>> keys = jax.random.split(jax.random.key(1), 1000)
        >>> many = jax.vmap(step, (0, None, None, None))
        >>> jax.eval_shape(many, keys, state, 2, params()).reward.shape
        (1000,)
    """
    noise = dispersion(key)
    inputs = Inputs(jnp.asarray(action, jnp.int32), noise, world(params))
    return _step(state, inputs)


def dispersion(key: jax.Array) -> Dispersion:
    """The random offset of the nozzle in a step."""
    along, across = jax.random.uniform(key, (2,), jnp.float32, -1.0, 1.0)
    return Dispersion(along, across)


def observe(state: jax.Array, params: Params) -> jax.Array:
    """The observation, `[8]`: x, y, their speeds, angle, its speed, legs on the ground."""
    return jnp.stack(observation(named(state), jnp.asarray(params.height_scale, jnp.float32)))


def named(state: jax.Array) -> State:
    """The state of a lander, or of many, `[..., 78]`, by name.

    Examples:
        >>> import jax
        >>> print(named(launch(jax.random.key(0))).hull.place.centre.x)
        10.0
    """
    return unpack(jnp.moveaxis(state, -1, 0), state_dtypes())


def launch(key: jax.Array) -> jax.Array:
    """A lander before the step that `reset` takes.

    In a loop over many landers, put a launched one in place of one whose episode has ended. Its
    next step is that of `reset`, whatever the action, with the reward 0. So a reset costs no step
    of its own.

    Examples:
        >>> import jax
        >>> print(named(launch(jax.random.key(0))).fresh)
        True
    """
    return pack(start(list(jax.random.uniform(key, (16,), jnp.float32))))


def world(params: Params) -> World:
    """The parameters in the form that the physics takes."""
    numbers = (
        params.gravity,
        params.wind_power,
        params.turbulence_power,
        params.height_scale,
    )
    return World(*(jnp.asarray(x, jnp.float32) for x in numbers))


@custom_vmap
def _step(state: Array, inputs: Inputs) -> Step:
    """A step of one lander: a row of one."""
    row = jax.tree.map(lambda x: x[None], (state, inputs))
    return Step(*(x[0] for x in step_packed(*row)))


@_step.def_vmap
def _row(size: int, batched: Sequence[object], *arguments: object) -> tuple[Step, Step]:
    """A row of landers."""

    def all_of(x: Array, is_batched: bool) -> Array:
        return x if is_batched else jnp.broadcast_to(x, (size, *x.shape))

    result = Step(*step_packed(*jax.tree.map(all_of, arguments, tuple(batched))))
    return result, jax.tree.map(lambda _: True, result)
