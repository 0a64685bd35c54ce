"""The parts that both ways of playing in a functional environment share."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ..._typing import PyTree
from .. import keys
from ..environment import EnvironmentFunctions, ParamsT, StateT, observe

__all__ = ["begin", "draw"]


def begin(
    functions: EnvironmentFunctions[StateT, ParamsT], key: jax.Array, params: ParamsT
) -> tuple[StateT, PyTree, jax.Array]:
    """Begin an episode, by its key.

    Returns:
        The state, what is seen there, and the number of the next step: 0, or -1 for the step that
        ends a reset that is a launch and a step.
    """
    of_reset = keys.reset(key)
    if hasattr(functions, "launch"):
        state, step = functions.launch(keys.launch(of_reset)), jnp.int32(-1)
    else:
        state, step = functions.reset(of_reset, params), jnp.int32(0)
    return state, observe(functions, state, params), step


def draw(key: jax.Array, step: jax.Array, count: int) -> tuple[jax.Array, jax.Array]:
    """The random numbers of the next steps of an episode, `[count]`.

    Args:
        key: the key of the episode.
        step: the number of its next step.
        count: how many steps to draw for.

    Returns:
        The uniform numbers that choose the actions, and the keys of the environment's steps.
    """

    def one(number: jax.Array) -> tuple[jax.Array, jax.Array]:
        of_action, of_environment = keys.step(key, number)
        return jax.random.uniform(of_action, dtype=jnp.float32), of_environment

    return jax.vmap(one)(step + jnp.arange(count, dtype=step.dtype))
