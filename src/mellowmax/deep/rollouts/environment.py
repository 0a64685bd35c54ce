"""What a functional environment is, how an episode begins in it, and what is random in one."""

from __future__ import annotations

import functools
from typing import Any, NoReturn, Protocol

import jax
import jax.numpy as jnp

__all__ = [
    "FUNCTIONS",
    "FunctionalEnvironment",
    "begin",
    "draw",
    "observe",
    "size_of_observations",
]

FUNCTIONS = ("reset", "step", "observe")
"""What a functional environment has."""


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


def size_of_observations(environment: FunctionalEnvironment, params: Any) -> int:
    """How many numbers an observation has, when a step gives what it should.

    Raises:
        ValueError: for an environment that does not; nothing has been compiled by then.
    """
    key = jax.random.key(0)
    state, seen, after = jax.eval_shape(functools.partial(_step, environment), params, key)
    if len(seen.shape) != 1 or not jnp.isdtype(seen.dtype, ("real floating", "integral", "bool")):
        _refuse("observations that are vectors of numbers", seen)
    if not (isinstance(after, tuple) and len(after) == 3):
        rule = "`environment` must return a state, a reward and `terminated` from `step`"
        raise ValueError(f"{rule}, got {type(after).__name__}")
    moved, reward, terminated = after
    if reward.shape or not jnp.isdtype(reward.dtype, ("real floating", "integral")):
        _refuse("a number as the reward", reward)
    if terminated.shape or terminated.dtype != jnp.bool_:
        _refuse("one boolean as `terminated`", terminated)
    before, then = (jax.tree.map(lambda x: (x.shape, x.dtype), one) for one in (state, moved))
    if before != then:
        rule = "`environment` must return states of one form from `reset` and from `step`"
        raise ValueError(f"{rule}, got {before} and {then}")
    return int(seen.shape[0])


@functools.partial(jax.jit, static_argnums=0)
def _step(environment: FunctionalEnvironment, params: Any, key: jax.Array) -> Any:
    """A state where an episode begins, what is seen of it, and a step from there."""
    state = environment.reset(key, params)
    seen = environment.observe(state, params)
    return state, seen, environment.step(key, state, jnp.int32(0), params)


def _refuse(rule: str, got: Any) -> NoReturn:
    given = f"{got.dtype} with the shape {got.shape}"
    raise ValueError(f"`environment` must return {rule}, got {given}")


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
