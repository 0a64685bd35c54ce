"""jumanji's environments as functional environments, with their masks of legal actions.

Nothing is imported from jumanji.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

from .._common.adapter import Adapter, AdapterParams, n_actions_of
from .._common.extras import needed_by
from .._common.shown import shown
from .._typing import PyTree

with needed_by("mellowmax.environments.jumanji", "jax"):
    import jax

__all__ = ["JumanjiEnvironment", "JumanjiState", "functional"]

MASK = "action_mask"
"""The field of an observation that says which actions are legal."""


class JumanjiState(NamedTuple):
    """A state of jumanji's, with its observation."""

    state: object
    observation: PyTree


class JumanjiEnvironment(Adapter):
    """The functions of a jumanji environment, as a `FunctionalEnvironment` takes them.

    Args:
        env: the environment.
    """

    @property
    def name(self) -> str:
        """The name in checkpoints."""
        return f"jumanji {' '.join(str(self.env).split())}"

    def reset(self, key: jax.Array, params: AdapterParams) -> JumanjiState:
        """The state where an episode begins."""
        state, first = self.env.reset(key)
        return JumanjiState(state, first.observation)

    def step(
        self, key: jax.Array, state: JumanjiState, action: jax.Array, params: AdapterParams
    ) -> tuple[JumanjiState, jax.Array, jax.Array]:
        """The next state, the reward, and whether the episode has terminated.

        The `max_steps` of the `FunctionalEnvironment` should be the environment's own time limit,
        at which most environments say that the episode has terminated.
        """
        after, said = self.env.step(state.state, action)
        return (
            JumanjiState(after, said.observation),
            said.reward,
            said.last() & (said.discount == 0),
        )

    def observe(self, state: JumanjiState, params: AdapterParams) -> PyTree:
        """The observation by its fields, without the mask."""
        parts = _fields(state.observation)
        if parts is None:
            return state.observation
        return {name: part for name, part in parts.items() if name != MASK}

    def legal(self, state: JumanjiState, params: AdapterParams) -> jax.Array | None:
        """Which actions are legal; None for an environment without a mask."""
        return (_fields(state.observation) or {}).get(MASK)


def _fields(observation: PyTree) -> dict[str, Any] | None:
    """The fields of an observation that has names for them."""
    if hasattr(observation, "_asdict"):
        return dict(observation._asdict())
    if dataclasses.is_dataclass(observation):
        names = [field.name for field in dataclasses.fields(observation)]
        return {name: getattr(observation, name) for name in names}
    return None


def functional(env: Any) -> tuple[JumanjiEnvironment, AdapterParams]:
    """Turn what `jumanji.make` returns into a functional environment and its parameters.

    Args:
        env: a jumanji environment with one discrete action at a time.

    Raises:
        TypeError: for anything else.
        ValueError: for an environment whose actions are not discrete.

    Examples:
        With jumanji installed:

            env = jumanji.make("Snake-v1")
            own = FunctionalEnvironment(*functional(env), env.time_limit)
            result = train(learner, own, episodes=1000)
    """
    if not hasattr(env, "action_spec"):
        raise TypeError(f"`env` must be an environment of jumanji's, got {shown(env)}")
    return JumanjiEnvironment(env), AdapterParams(
        n_actions_of(env, env.action_spec, "num_values", "jumanji")
    )
