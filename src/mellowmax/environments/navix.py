"""navix's environments as functional environments. Nothing is imported from navix."""

from __future__ import annotations

from typing import Any

from .._common.adapter import Adapter, AdapterParams
from .._common.extras import needed_by
from .._common.shown import shown

with needed_by("mellowmax.environments.navix", "jax"):
    import jax

__all__ = ["NavixEnvironment", "functional"]

Timestep = Any
"""A time step of navix's: a pytree with the observation, the reward and the state in it."""


class NavixEnvironment(Adapter):
    """The functions of a navix environment, as a `FunctionalEnvironment` takes them.

    Args:
        env: the environment.
    """

    @property
    def name(self) -> str:
        """The name in checkpoints."""
        env = self.env
        return f"navix {type(env).__name__} {env.height} {env.width}"

    def reset(self, key: jax.Array, params: AdapterParams) -> Timestep:
        """The time step where an episode begins."""
        return self.env.reset(key)

    def step(
        self, key: jax.Array, state: Timestep, action: jax.Array, params: AdapterParams
    ) -> tuple[Timestep, jax.Array, jax.Array]:
        """The next time step, its reward, and whether the episode has terminated.

        The `max_steps` of the `FunctionalEnvironment` is to be the environment's own: it cuts an
        episode off before navix would begin another.
        """
        after = self.env.step(state, action)
        return after, after.reward, after.is_termination()

    def observe(self, state: Timestep, params: AdapterParams) -> jax.Array:
        """The observation, as the environment's `observation_fn` makes it."""
        return state.observation


def functional(env: Any) -> tuple[NavixEnvironment, AdapterParams]:
    """Turn what `navix.make` returns into a functional environment and its parameters.

    Args:
        env: a navix environment.

    Raises:
        TypeError: for anything else.

    Examples:
        With navix installed:

            env = navix.make("Navix-Empty-5x5-v0")
            own = FunctionalEnvironment(*functional(env), env.max_steps)
            result = train(learner, own, episodes=1000)
    """
    if not hasattr(env, "action_set"):
        raise TypeError(f"`env` must be an environment of navix's, got {shown(env)}")
    return NavixEnvironment(env), AdapterParams(len(env.action_set))
