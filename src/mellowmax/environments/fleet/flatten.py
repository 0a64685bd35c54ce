"""Environments in the form that a network takes: vectors as observations, actions from 0 on.

The processes of a fleet import this module, so nothing here imports JAX.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium

from ..._common.checked_environment import checked
from ..._common.gymnasium_ids import make
from ..._common.shown import shown

__all__ = ["make_flat"]


def make_flat(
    environment: str | Callable[[], gymnasium.Env[Any, Any]], **options: str
) -> gymnasium.Env[Any, Any]:
    """An environment whose observations are vectors, and whose actions are counted from 0.

    A state that is a number becomes one-hot.

    Args:
        environment: an id, or a function that makes an environment.
        options: further arguments of `gymnasium.make`, for an id.

    Raises:
        ValueError: for an environment that does not exist, whose observations have no fixed size,
            or whose actions are not discrete.
    """
    if isinstance(environment, str):
        env = make(environment, disable_env_checker=True, **options)
    elif callable(environment):
        env = environment()
    else:
        rule = (
            "`environment` must be the id of a Gymnasium environment or a function that makes one"
        )
        raise TypeError(f"{rule}, got {shown(environment)}")
    if not isinstance(env, gymnasium.Env):
        rule = "`environment` must make a Gymnasium environment"
        raise ValueError(f"{rule}, got one that makes {shown(env)}")
    space, actions = env.observation_space, env.action_space
    if not isinstance(actions, gymnasium.spaces.Discrete):
        env.close()
        raise ValueError(f"`environment` must have discrete actions, got {actions}")
    if not space.is_np_flattenable:
        env.close()
        raise ValueError(f"`environment` must have observations of one size, got {space}")
    env = checked(env)  # before it is flattened, which would hide a wrong shape
    if actions.start != 0:
        counted = gymnasium.spaces.Discrete(actions.n)
        env = gymnasium.wrappers.TransformAction(env, lambda i: i + actions.start, counted)
    is_vector = isinstance(space, gymnasium.spaces.Box) and len(space.shape) == 1
    return env if is_vector else gymnasium.wrappers.FlattenObservation(env)
