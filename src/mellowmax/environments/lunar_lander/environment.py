"""Lunar Lander as pure functions of one lander."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import custom_vmap

from ..._common import checks
from ..._rows.pytrees import pytree
from ..._typing import ArrayLike
from .arrays.vectors import Array
from .devices.batch import fly_numbers
from .devices.kernels import pack, unpack
from .game.bodies import VIEW
from .game.initial_state import start
from .game.reward import World, observation
from .state import State, Step, kinds

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
"""By what the height is divided to be observed: today, and from 2016 until August 2018."""


@pytree
@dataclasses.dataclass(frozen=True)
class Params:
    """The world of a lander."""

    gravity: np.float32 | Array
    wind_power: np.float32 | Array
    """The force of the strongest gust; 0 for none."""
    turbulence_power: np.float32 | Array
    """The torque of the strongest gust; 0 for none."""
    height_scale: np.float32 | Array
    """How many metres are a 1 in the observed height."""

    @property
    def n_actions(self) -> int:
        """How many actions there are."""
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
        height: the scale of the observed height, and with it of the reward: `"v3"` as it is today;
            `"2016"` as it was in LunarLander-v2 until August 2018, two thirds of today's. The
            paper's Lunar Lander was that one.

    Raises:
        ValueError: for an argument that is not as above.

    Examples:
        >>> params().height_scale, params(height="2016").height_scale
        (np.float32(6.6666665), np.float32(10.0))
    """
    checks.real("gravity", gravity, -12.0, 0.0)
    checks.real("wind_power", wind_power, 0.0)
    checks.real("turbulence_power", turbulence_power, 0.0)
    if height not in HEIGHTS:
        raise ValueError(f"`height` must be in {list(HEIGHTS)}, got {height!r}")
    numbers = (gravity, wind_power, turbulence_power, HEIGHTS[height])
    return Params(*(np.float32(x) for x in numbers))


def reset(key: jax.Array, params: Params) -> jax.Array:
    """The lander where an episode begins: high above the pad, with a random push and random ground.

    A lander is a row of numbers, which `named` gives names to.

    Examples:
        >>> import jax
        >>> state = jax.eval_shape(reset, jax.random.key(0), params())
        >>> jax.eval_shape(observe, state, params()).shape
        (8,)
    """
    of_start, of_step = jax.random.split(key)
    return step(of_step, launch(of_start), 0, params).state


def step(key: jax.Array, state: jax.Array, action: ArrayLike, params: Params) -> Step:
    """Take an action for a fiftieth of a second.

    Args:
        key: a JAX key; it moves the nozzle of the engine a little.
        state: the lander; once its episode has ended, nothing changes and nothing is earned.
        action: 0 nothing, 1 the left engine, 2 the main engine, 3 the right engine.
        params: the world.

    Returns:
        The lander, the reward, and whether the episode has ended: by a crash or by leaving the view
        (the reward is -100), or by coming to rest (it is 100). There is no limit of steps.

    Examples:
        What a thousand landers earn in a step. It is not run here, since compiling takes a while:

        >>> import jax
        >>> keys = jax.random.split(jax.random.key(0), 1000)
        >>> states = jax.eval_shape(jax.vmap(reset, (0, None)), keys, params())
        >>> fly = jax.vmap(step, (0, 0, None, None))
        >>> jax.eval_shape(fly, keys, states, 2, params()).reward.shape
        (1000,)
    """
    one, two = dispersion(key)
    result: Step = _step(state, jnp.asarray(action, jnp.int32), one, two, world(params))
    return result


def dispersion(key: jax.Array) -> tuple[Array, Array]:
    """Two random numbers in [-1, 1), by which the nozzle is off in a step."""
    one, two = jax.random.uniform(key, (2,), jnp.float32, -1.0, 1.0)
    return one, two


def observe(state: jax.Array, params: Params) -> jax.Array:
    """What a lander observes, `[8]`: x, y, their speeds, angle, its speed, legs on the ground."""
    return jnp.stack(observation(named(state), jnp.asarray(params.height_scale, jnp.float32)))


def named(state: jax.Array) -> State:
    """All that is kept of a lander, or of many, `[..., 78]`, by name.

    Examples:
        >>> import jax
        >>> print(named(launch(jax.random.key(0))).hull.place.centre.x)
        10.0
    """
    return unpack(jnp.moveaxis(state, -1, 0), kinds())


def launch(key: jax.Array) -> jax.Array:
    """A lander before the step that `reset` takes.

    In a loop over many landers a launched one can stand in for one whose episode has ended: its
    next step is that of `reset`, whatever the action, and earns nothing, so that a reset costs no
    step of its own.

    Examples:
        >>> import jax
        >>> print(named(launch(jax.random.key(0))).fresh)
        True
    """
    return pack(start(list(jax.random.uniform(key, (16,), jnp.float32))))


def world(params: Params) -> World:
    """The parameters as the physics takes them."""
    numbers: list[Any] = [
        params.gravity,
        params.wind_power,
        params.turbulence_power,
        params.height_scale,
    ]
    return World(*(jnp.asarray(x, jnp.float32) for x in numbers))


@custom_vmap  # type: ignore[untyped-decorator]
def _step(state: Array, action: Array, one: Array, two: Array, world: World) -> Step:
    """A step of one lander: a row of one."""
    row = jax.tree.map(lambda x: x[None], (state, action, one, two, world))
    return Step(*(x[0] for x in fly_numbers(*row)))


@_step.def_vmap  # type: ignore[untyped-decorator]
def _row(size: int, batched: Any, *arguments: Any) -> tuple[Step, Any]:
    """A row of landers."""

    def all_of(x: Array, is_batched: bool) -> Array:
        return x if is_batched else jnp.broadcast_to(x, (size, *x.shape))

    result = Step(*fly_numbers(*jax.tree.map(all_of, arguments, tuple(batched))))
    return result, jax.tree.map(lambda _: True, result)
