"""A vector environment of others whose environments can rest, as those of a `Fleet` can."""

from __future__ import annotations

from typing import Any, cast

import gymnasium
import numpy as np
import numpy.typing as npt

from ..._common.checked_environment import check_batch
from ..._typing import Bools, Integers
from .worker import REST

__all__ = ["Resting"]


class Resting:
    """A vector environment in which an action of -1 leaves an environment alone.

    envpool steps and resets those environments whose numbers it is given, so the others do rest.
    Gymnasium's vector environments step all of theirs: one that is to rest takes any action, and is
    reset when its episode ends. Nothing of that is seen; `reset` begins a new episode.

    Args:
        env: one of envpool's, or one whose `autoreset_mode` is `DISABLED`.

    Raises:
        ValueError: for another, or for one whose actions are not discrete or whose observations are
            not arrays.
    """

    def __init__(self, env: gymnasium.vector.VectorEnv[Any, Any, Any]) -> None:
        rule = "`make` must make a vector environment"
        if not isinstance(env, gymnasium.vector.VectorEnv):
            raise ValueError(f"{rule}, got one that makes {env!r}")
        self.env = cast(Any, env)  # envpool has arguments that Gymnasium has not
        self._takes_numbers = hasattr(env, "all_env_ids")
        if self._takes_numbers:  # its spaces are those of one environment
            seen, actions = env.observation_space, env.action_space
            self.max_episode_steps = self.env.spec.config.max_episode_steps
            self._count = len(self.env.all_env_ids)
        else:
            seen, actions = env.single_observation_space, env.single_action_space
            self.max_episode_steps = None if env.spec is None else env.spec.max_episode_steps
            self._count = env.num_envs
            mode = env.metadata.get("autoreset_mode")
            if mode != gymnasium.vector.AutoresetMode.DISABLED:
                env.close()
                raise ValueError(f"{rule} with `autoreset_mode` DISABLED, got {mode}")
        if not isinstance(actions, gymnasium.spaces.Discrete) or actions.start != 0:
            env.close()
            raise ValueError(f"{rule} with discrete actions from 0 on, got {actions}")
        if not isinstance(seen, gymnasium.spaces.Box):
            env.close()
            raise ValueError(f"{rule} whose observations are arrays, got {seen}")
        self.n_actions, self.n_observations = int(actions.n), int(np.prod(seen.shape))
        self._shape = seen.shape
        self._seen = np.zeros((self._count, self.n_observations), seen.dtype)
        self._over = np.ones(self._count, np.bool_)
        """Which environments cannot be stepped before they are reset."""

    def reset(
        self, *, seed: Integers, options: dict[str, Any] | None = None
    ) -> tuple[npt.NDArray[Any], dict[str, Any]]:
        """Begin episodes, all or those of `options["reset_mask"]`; envpool ignores the seeds."""
        mask = np.ones(self._count, np.bool_) if options is None else options["reset_mask"]
        self._reset(mask, [int(one) for one in seed])
        return self._seen.copy(), {}

    def step(
        self, actions: Integers
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.float64], Bools, Bools, dict[str, Any]]:
        """Take an action in every environment, or none where it is -1."""
        awake = np.asarray(actions != REST)
        if self._takes_numbers:
            numbers = np.flatnonzero(awake)
            chosen = np.asarray(actions)[awake].astype(np.int32)
            answer = self.env.step(chosen, numbers)
            order = np.asarray(answer[4]["env_id"])
        else:
            if self._over.any():
                self._reset(self._over, None)
            answer = self.env.step(np.where(awake, actions, 0))
            order = np.arange(self._count)
        seen, rewards, terminated, truncated, _ = answer
        check_batch(len(order), self._shape, seen, rewards, terminated, truncated)
        self._seen[order] = np.reshape(seen, (len(order), -1))
        self._over[order] = np.logical_or(terminated, truncated)
        all_rewards = np.zeros(self._count)
        ends = np.zeros((2, self._count), np.bool_)
        all_rewards[order], ends[0, order], ends[1, order] = rewards, terminated, truncated
        return self._seen.copy(), np.where(awake, all_rewards, 0.0), *(ends & awake), {}

    def _reset(self, mask: Bools, seeds: list[int] | None) -> None:
        if self._takes_numbers:
            seen, info = self.env.reset(np.flatnonzero(mask))
            order = np.asarray(info["env_id"])
            check_batch(len(order), self._shape, seen)
        else:
            seen, _ = self.env.reset(seed=seeds, options={"reset_mask": mask.copy()})
            check_batch(self._count, self._shape, seen)
            order, seen = np.flatnonzero(mask), np.asarray(seen)[mask]
        self._seen[order] = np.reshape(seen, (len(order), -1))
        self._over[order] = False

    def close(self) -> None:
        """Close the vector environment."""
        self.env.close()
