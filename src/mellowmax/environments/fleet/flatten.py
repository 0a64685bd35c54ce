"""Environments in the form that a network takes: arrays as observations, actions from 0 on.

The processes of a fleet import this module, so nothing here imports JAX.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from ..._common.checked_environment import checked, mask_in
from ..._common.gymnasium_ids import make
from ..._common.shown import shown
from .records import Observations

__all__ = ["Masked", "make_discrete", "make_flat"]


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
    env = make_discrete(environment, False, **options)
    space = env.observation_space
    is_vector = isinstance(space, spaces.Box) and len(space.shape) == 1
    return env if is_vector else gymnasium.wrappers.FlattenObservation(env)


def make_discrete(
    environment: str | Callable[[], gymnasium.Env[Any, Any]],
    action_mask: bool = False,
    **options: Any,
) -> gymnasium.Env[Any, Any]:
    """An environment whose observations are arrays, and whose actions are counted from 0.

    An observation is an array of any shape, or a dict or a tuple of such. A state that is a number
    becomes one-hot.

    Args:
        environment: as for `make_flat`.
        action_mask: have the legal actions in what is observed, as `Masked` does?
        options: as for `make_flat`.

    Raises:
        ValueError: as for `make_flat`.
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
    if not isinstance(actions, spaces.Discrete):
        env.close()
        raise ValueError(f"`environment` must have discrete actions, got {actions}")
    if not space.is_np_flattenable:
        env.close()
        raise ValueError(f"`environment` must have observations of one size, got {space}")
    env = checked(env)  # before it is changed, which would hide a wrong shape
    if actions.start != 0:
        counted = spaces.Discrete(actions.n)
        env = gymnasium.wrappers.TransformAction(env, lambda i: i + actions.start, counted)
    if not _is_of_arrays(space):
        env = gymnasium.wrappers.TransformObservation(
            env, lambda seen: _arrays(space, seen), _space_of_arrays(space)
        )
    return Masked(env) if action_mask else env


class Masked(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment whose observations have the legal actions beside them.

    It observes `{"legal": mask, "observation": observation}`. The mask is the `action_mask` in the
    `info` of `reset` and of `step`: a boolean for each action, or 0 and 1.

    Raises:
        FailedEnvironmentError: when there is none.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        assert isinstance(env.action_space, spaces.Discrete)
        self._count = int(env.action_space.n)
        legal = spaces.MultiBinary(self._count)
        self.observation_space = spaces.Dict({"legal": legal, "observation": env.observation_space})

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._seen(observation, info), info

    def step(self, action: object) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take an action."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._seen(observation, info), reward, terminated, truncated, info

    def _seen(self, observation: Observations, info: dict[str, Any]) -> dict[str, Any]:
        mask = mask_in(info, (self._count,))
        return {"legal": mask.astype(np.int8), "observation": observation}


def _is_of_arrays(space: spaces.Space[Any]) -> bool:
    """Are observations arrays, or dicts or tuples of such, as they are?"""
    if isinstance(space, spaces.Dict):
        return all(map(_is_of_arrays, space.spaces.values()))
    if isinstance(space, spaces.Tuple):
        return all(map(_is_of_arrays, space.spaces))
    return isinstance(space, spaces.Box | spaces.MultiBinary)


def _space_of_arrays(space: spaces.Space[Any]) -> spaces.Space[Any]:
    """A space with a vector for each part that is neither a number of a range nor of two."""
    if isinstance(space, spaces.Dict):
        return spaces.Dict({name: _space_of_arrays(x) for name, x in space.spaces.items()})
    if isinstance(space, spaces.Tuple):
        return spaces.Tuple([_space_of_arrays(part) for part in space.spaces])
    return space if _is_of_arrays(space) else spaces.flatten_space(space)


def _arrays(space: spaces.Space[Any], seen: Observations) -> Observations:
    """An observation with a vector for each such part."""
    if isinstance(space, spaces.Dict):
        return {name: _arrays(part, seen[name]) for name, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_arrays(part, one) for part, one in zip(space.spaces, seen, strict=True))
    return seen if _is_of_arrays(space) else spaces.flatten(space, seen)
