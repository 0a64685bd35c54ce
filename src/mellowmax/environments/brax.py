"""Environments like brax's as functional ones, with a table of actions to choose from.

In brax and its like, `env.reset(key)` returns a state with `obs`, `reward` and `done`, and
`env.step(state, action)` the next one. Their actions are vectors of numbers, so a number of an
action stands for a row of a table here. Nothing is imported from brax.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .._common import checks
from .._common.adapter import Adapter
from .._common.extras import needed_by
from .._common.shown import shown
from .._typing import ArrayLike, PyTree

with needed_by("mellowmax.environments.brax", "jax"):
    import jax
    import jax.numpy as jnp
    import numpy as np

__all__ = ["BraxEnvironment", "BraxParams", "functional"]

State = Any
"""A state of brax's: a pytree with the observation, the reward and whether it is the last."""


class BraxParams(NamedTuple):
    """The actions to choose from."""

    actions: Any
    """`[A, D]`: each row is an action of the environment's."""

    @property
    def n_actions(self) -> int:
        """How many there are."""
        return int(self.actions.shape[0])


class BraxEnvironment(Adapter):
    """The functions of an environment like brax's, as a `FunctionalEnvironment` takes them.

    Args:
        env: the environment.
    """

    @property
    def name(self) -> str:
        """The name in checkpoints."""
        return f"brax {type(self.env).__module__}.{type(self.env).__qualname__}"

    def reset(self, key: jax.Array, params: BraxParams) -> State:
        """The state where an episode begins."""
        return self.env.reset(key)

    def step(
        self, key: jax.Array, state: State, action: jax.Array, params: BraxParams
    ) -> tuple[State, jax.Array, jax.Array]:
        """The next state, its reward, and whether the episode has ended."""
        after = self.env.step(state, jnp.asarray(params.actions)[action])
        return after, after.reward, after.done.astype(jnp.bool_)

    def observe(self, state: State, params: BraxParams) -> PyTree:
        """The observation of a state."""
        return state.obs


def functional(env: Any, actions: ArrayLike) -> tuple[BraxEnvironment, BraxParams]:
    """Turn an environment like brax's into a functional environment and its parameters.

    Args:
        env: the environment, without a wrapper that begins episodes by itself.
        actions: `[A, D]`, the actions to choose from: each row is one, with `env.action_size`
            numbers.

    Raises:
        TypeError: for anything else.
        ValueError: for actions of another size.

    Examples:
        With brax installed, three forces on a cart:

            env = brax.envs.get_environment("inverted_pendulum")
            own = FunctionalEnvironment(*functional(env, [[-1.0], [0.0], [1.0]]), max_steps=1000)
            result = train(learner, own, episodes=1000)
    """
    if not hasattr(env, "action_size"):
        raise TypeError(f"`env` must be an environment like brax's, got {shown(env)}")
    table = checks.numbers("actions", actions)
    if table.ndim != 2 or not len(table) or table.shape[1] != env.action_size:
        rule = f"`actions` must be rows of {env.action_size} numbers"
        raise ValueError(f"{rule}, got the shape {table.shape}")
    return BraxEnvironment(env), BraxParams(table.astype(np.float32))
