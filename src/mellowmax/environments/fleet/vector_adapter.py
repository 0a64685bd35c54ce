"""Vector environments of Gymnasium and envpool, stepped in the way of a `Fleet`."""

from __future__ import annotations

from typing import Any, cast

import gymnasium
import numpy as np
import numpy.typing as npt

from ..._common.checked_environment import MASK, check_batch, mask_in
from ..._typing import Bools, Integers
from .records import Observations
from .worker import REST

__all__ = ["VectorAdapter"]


class VectorAdapter:
    """A vector environment in which an action of -1 leaves an environment alone.

    envpool steps and resets only those environments whose numbers it is given. Gymnasium's vector
    environments step all of theirs, so here an environment that is to be left alone takes any legal
    action, and is reset when its episode ends. What it does meanwhile is not returned, and the next
    `reset` begins a new episode.

    Args:
        env: a vector environment of envpool, or one whose `autoreset_mode` is `DISABLED`.
        masked: have the legal actions in what is observed, as `Masked` does?

    Raises:
        ValueError: for any other vector environment, or for one whose actions are not discrete or
            whose observations are not arrays.
    """

    def __init__(
        self, env: gymnasium.vector.VectorEnv[Any, Any, Any], masked: bool = False
    ) -> None:
        rule = "`make` must make a vector environment"
        if not isinstance(env, gymnasium.vector.VectorEnv):
            raise ValueError(f"{rule}, got one that makes {env!r}")
        self.env = cast(Any, env)  # envpool has arguments that Gymnasium does not have
        self._takes_numbers = hasattr(env, "all_env_ids")
        if self._takes_numbers:  # its spaces are those of one environment
            space, actions = env.observation_space, env.action_space
            self.max_episode_steps = self.env.spec.config.max_episode_steps
            self._count = len(self.env.all_env_ids)
        else:
            space, actions = env.single_observation_space, env.single_action_space
            self.max_episode_steps = None if env.spec is None else env.spec.max_episode_steps
            self._count = env.num_envs
            mode = env.metadata.get("autoreset_mode")
            if mode != gymnasium.vector.AutoresetMode.DISABLED:
                env.close()
                raise ValueError(f"{rule} with `autoreset_mode` DISABLED, got {mode}")
        if not isinstance(actions, gymnasium.spaces.Discrete) or actions.start != 0:
            env.close()
            raise ValueError(f"{rule} with discrete actions from 0 on, got {actions}")
        if not isinstance(space, gymnasium.spaces.Box):
            env.close()
            raise ValueError(f"{rule} whose observations are arrays, got {space}")
        self.n_actions, self.single_observation_space = int(actions.n), space
        self._shape = space.shape
        self._observations = np.zeros((self._count, *self._shape), space.dtype)
        self._legal = np.ones((self._count, self.n_actions), np.bool_) if masked else None
        self._over = np.ones(self._count, np.bool_)
        """Which environments cannot be stepped before they are reset."""

    def reset(
        self, *, seed: Integers, options: dict[str, Any] | None = None
    ) -> tuple[Observations, dict[str, Any]]:
        """Begin all episodes, or those of `options["reset_mask"]`; envpool ignores the seeds."""
        mask = np.ones(self._count, np.bool_) if options is None else options["reset_mask"]
        self._reset(mask, [int(each) for each in seed])
        return self._seen(), {}

    def step(
        self, actions: Integers
    ) -> tuple[Observations, npt.NDArray[np.float64], Bools, Bools, dict[str, Any]]:
        """Take an action in every environment, or none where it is -1."""
        acts = np.asarray(actions != REST)
        if self._takes_numbers:
            numbers = np.flatnonzero(acts)
            chosen = np.asarray(actions)[acts].astype(np.int32)
            answer = self.env.step(chosen, numbers)
            order = np.asarray(answer[4]["env_id"])
        else:
            if self._over.any():
                self._reset(self._over, None)
            any_legal = 0 if self._legal is None else self._legal.argmax(1)
            answer = self.env.step(np.where(acts, actions, any_legal))
            order = np.arange(self._count)
        observations, rewards, terminated, truncated, info = answer
        check_batch(len(order), self._shape, observations, rewards, terminated, truncated)
        self._observations[order] = observations
        self._note_legal(order, info)
        self._over[order] = np.logical_or(terminated, truncated)
        all_rewards = np.zeros(self._count)
        ends = np.zeros((2, self._count), np.bool_)
        all_rewards[order], ends[0, order], ends[1, order] = rewards, terminated, truncated
        return self._seen(), np.where(acts, all_rewards, 0.0), *(ends & acts), {}

    def _reset(self, mask: Bools, seeds: list[int] | None) -> None:
        if self._takes_numbers:
            observations, info = self.env.reset(np.flatnonzero(mask))
            order = np.asarray(info["env_id"])
            check_batch(len(order), self._shape, observations)
        else:
            observations, info = self.env.reset(seed=seeds, options={"reset_mask": mask.copy()})
            check_batch(self._count, self._shape, observations)
            order, observations = np.flatnonzero(mask), np.asarray(observations)[mask]
            if MASK in info:
                info = {MASK: np.asarray(info[MASK])[mask]}
        self._observations[order] = observations
        self._note_legal(order, info)
        self._over[order] = False

    def _note_legal(self, order: Integers, info: dict[str, Any]) -> None:
        """Take over the legal actions of some environments, if there is a mask at all."""
        if self._legal is not None:
            self._legal[order] = mask_in(info, (len(order), self.n_actions))

    def _seen(self) -> Observations:
        """The observations, beside the legal actions where there is a mask, as in `Masked`."""
        if self._legal is None:
            return self._observations.copy()
        return {"legal": self._legal.copy(), "observation": self._observations.copy()}

    def close(self) -> None:
        """Close the vector environment."""
        self.env.close()
