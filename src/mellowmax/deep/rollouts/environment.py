"""What a functional environment is, how an episode begins in it, and what is random in one."""

from __future__ import annotations

from typing import Any, Protocol

import jax
import jax.numpy as jnp

__all__ = ["FunctionalEnvironment", "begin", "draw", "observe"]


class FunctionalEnvironment(Protocol):
    """An environment as pure functions of one instance: a module, or an object.

    States and parameters are pytrees of any kind. `mellowmax.environments.tabular` is one. It may
    have a `name`, by which a checkpoint tells it from others; else it is that of its type.

    Where `reset` itself takes a step, an environment may have a function `launch(key)` too: with
    the two keys that `reset` splits its own into, `step` of `launch(first)` with `second` is what
    `reset` gives, whatever the action. Then beginning an episode costs no step of its own.
    """

    def reset(self, key: jax.Array, params: Any, /) -> Any:
        """The state where an episode begins."""

    def step(self, key: jax.Array, state: Any, action: jax.Array, params: Any, /) -> Any:
        """The next state, the reward, and whether the episode has ended."""

    def observe(self, state: Any, params: Any, /) -> jax.Array:
        """What a policy sees of a state, `[D]`."""


def begin(
    environment: FunctionalEnvironment, key: jax.Array, params: Any
) -> tuple[Any, jax.Array, jax.Array]:
    """The state where an episode begins, what is seen of it, and the number of its next step."""
    of_reset = jax.random.fold_in(key, 0)
    if hasattr(environment, "launch"):
        state, step = environment.launch(jax.random.split(of_reset)[0]), jnp.int32(-1)
    else:
        state, step = environment.reset(of_reset, params), jnp.int32(0)
    return state, observe(environment, state, params), step


def draw(key: jax.Array, step: jax.Array, count: int) -> tuple[jax.Array, jax.Array]:
    """The random numbers of the next steps of an episode, `[count]`.

    Args:
        key: of the episode.
        step: the number of its next step.
        count: how many steps.

    Returns:
        Those that decide on the actions, and the keys of the environment's steps; a step with the
        number -1 has the key of a reset.
    """

    def one(number: jax.Array) -> tuple[jax.Array, jax.Array]:
        of_action, of_step = jax.random.split(jax.random.fold_in(key, number))
        return jax.random.uniform(of_action, dtype=jnp.float32), of_step

    numbers = step + jnp.arange(1, count + 1, dtype=step.dtype)
    draws: tuple[jax.Array, jax.Array] = jax.vmap(one)(numbers)
    return draws


def observe(environment: FunctionalEnvironment, state: Any, params: Any) -> jax.Array:
    """What a policy sees of a state, in float32."""
    return environment.observe(state, params).astype(jnp.float32)
