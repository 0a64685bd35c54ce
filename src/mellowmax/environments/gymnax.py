"""gymnax environments as functional environments.

gymnax's functions return the observation with the state: `env.reset_env(key, params)` returns the
observation and the state, `env.step_env(key, state, action, params)` both, then the reward, whether
the episode has ended, and a dictionary. Here the state has both, and `observe` returns the
observation that came with the state: it is not computed again, nor drawn again if it is random.
Nothing is imported from gymnax.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple, Protocol

from .._common.extras import needed_by
from .._common.shown import shown

with needed_by("mellowmax.environments.gymnax", "jax"):
    import jax
    import jax.numpy as jnp

__all__ = ["GymnaxEnvironment", "GymnaxParams", "GymnaxState", "functional"]


class GymnaxState(NamedTuple):
    """A state of gymnax, with its observation."""

    observation: jax.Array
    state: object


class GymnaxParams(NamedTuple):
    """gymnax's parameters, with the number of actions."""

    params: object
    n_actions: int


class _Gymnax(Protocol):
    """What a gymnax environment has; its states and parameters are pytrees of its own."""

    @property
    def name(self) -> str:
        """Its name."""

    def action_space(self, params: object, /) -> object:
        """The space of its actions."""

    def reset_env(self, key: jax.Array, params: object, /) -> tuple[jax.Array, object]:
        """The observation and the state where an episode begins."""

    def step_env(
        self, key: jax.Array, state: object, action: jax.Array, params: object, /
    ) -> tuple[jax.Array, object, jax.Array, jax.Array, dict[str, Any]]:
        """The next observation and state, the reward, whether the episode has ended, and more."""


@dataclasses.dataclass(frozen=True)
class GymnaxEnvironment:
    """The functions of a gymnax environment, as a `FunctionalEnvironment` takes them.

    Args:
        env: the environment.
    """

    env: _Gymnax

    @property
    def name(self) -> str:
        """The name in checkpoints."""
        return f"gymnax {self.env.name}"

    def reset(self, key: jax.Array, params: GymnaxParams) -> GymnaxState:
        """The state where an episode begins."""
        return GymnaxState(*self.env.reset_env(key, params.params))

    def step(
        self, key: jax.Array, state: GymnaxState, action: jax.Array, params: GymnaxParams
    ) -> tuple[GymnaxState, jax.Array, jax.Array]:
        """The next state, the reward, and whether the episode has ended.

        Before gymnax 1.0 an episode that is cut off has ended too. Since then the `max_steps` of
        the `FunctionalEnvironment` is the only limit.
        """
        observation, after, reward, ended, _ = self.env.step_env(
            key, state.state, action, params.params
        )
        return GymnaxState(observation, after), jnp.asarray(reward, jnp.float32), ended

    def observe(self, state: GymnaxState, params: GymnaxParams) -> jax.Array:
        """The observation of a state, such as an image of MinAtar."""
        return state.observation


def functional(env: _Gymnax, params: object) -> tuple[GymnaxEnvironment, GymnaxParams]:
    """Turn what `gymnax.make` returns into a functional environment and its parameters.

    Args:
        env: a gymnax environment with discrete actions.
        params: its parameters.

    Raises:
        ValueError: for an environment whose actions are not discrete.

    Examples:
        With gymnax installed:

            env, params = gymnax.make("CartPole-v1")
            own = FunctionalEnvironment(*functional(env, params), params.max_steps_in_episode)
            result = train(learner, own, episodes=1000)
    """
    if not hasattr(env, "action_space"):
        raise TypeError(f"`env` must be an environment of gymnax's, got {shown(env)}")
    actions = env.action_space(params)
    if not hasattr(actions, "n"):
        rule = "`env` must have discrete actions"
        raise ValueError(f"{rule}, got {env.name} with {type(actions).__name__}")
    return GymnaxEnvironment(env), GymnaxParams(params, int(actions.n))
