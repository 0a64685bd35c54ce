"""Driving a Gymnasium environment, step by step."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

from .._common import checks
from .._common.gymnasium_ids import make
from .learner import Learner
from .record import Bins, Episodes
from .result import Training
from .train import recorder_of, settings_of

__all__ = ["drive"]


def drive(
    learner: Learner,
    environment: gymnasium.Env[Any, Any] | str,
    *,
    discount: float = 0.99,
    steps: int | None = None,
    episodes: int | None = None,
    seed: int = 0,
    bins: int = 1,
    values: Sequence[int] = (),
    action_mask: bool = False,
) -> Training:
    """Let a learner drive a Gymnasium environment with discrete states and actions: one run.

    An episode that is cut off (truncated) is no end: its last state is bootstrapped from.

    Args:
        learner: from `sarsa`, `expected_sarsa` or `q_learning`, with one setting.
        environment: an environment, or the id to make one from.
        discount: in [0, 1]; Gymnasium's environments have none of their own.
        steps: how long the run is; next to `episodes`, where it ends at the latest.
        episodes: how many episodes it is.
        seed: of the learner's random numbers and of the environment's.
        bins: into how many stretches of equal length the steps are cut, to record the mean reward
            of each.
        values: the states whose values to record at the end of each episode.
        action_mask: keep to the actions that the environment allows in `info["action_mask"]`?

    Returns:
        What was recorded, as `train` has it, without the axes of settings and runs.

    Raises:
        ValueError: for an argument that does not fit, or an environment that is not discrete.

    Examples:
        >>> from mellowmax import Boltzmann
        >>> from mellowmax.learning import drive, sarsa
        >>> drive(sarsa(Boltzmann(20.0), learning_rate=0.2), "FrozenLake-v1", episodes=20)
        Training(q=(16, 4), returns=(20,), lengths=(20,))
    """
    made = isinstance(environment, str)
    env = make(environment) if isinstance(environment, str) else environment
    try:
        table = _size(env, "observation_space"), _size(env, "action_space")
        discount = checks.real("discount", discount, 0, 1)
        seed = checks.whole("seed", seed, 0)
        recorder = recorder_of(steps, episodes, bins, values, *table)
        if settings_of(learner, table):
            raise ValueError("`learner` must have one setting to drive an environment, got several")
        with jax.default_device(jax.local_devices(backend="cpu")[0]):  # steps are small
            q = jnp.array(learner.init(*table))
            return _run(learner, q, env, discount, seed, recorder, action_mask)
    finally:
        if made:
            env.close()


def _size(env: gymnasium.Env[Any, Any], name: str) -> int:
    space = getattr(env, name)
    if not (isinstance(space, gymnasium.spaces.Discrete) and space.start == 0):
        raise ValueError(f"`environment` must have a discrete {name} that starts at 0, got {space}")
    return int(space.n)


def _run(
    learner: Learner,
    q: Any,
    env: gymnasium.Env[Any, Any],
    discount: float,
    seed: int,
    recorder: Bins | Episodes,
    action_mask: bool,
) -> Training:
    act, learn = _programs(learner)
    draw = np.random.default_rng([1, seed]).random  # not the numbers that the environment draws
    memory = _Memory(recorder)
    state, info = env.reset(seed=seed)
    action = act(q, state, np.float32(draw()), 0, _mask(info, action_mask))
    step = 0
    while memory.live(step):
        next_state, reward, terminated, truncated, info = env.step(int(action))
        if terminated:
            next_state, info = env.reset()
        transition = (state, action, np.float32(reward), np.float32(discount * (not terminated)))
        where = _mask(info, action_mask)
        q, _, action = learn(q, *transition, next_state, np.float32(draw()), step, where)
        step += 1
        memory.observe(q, float(reward), terminated or truncated)
        state = next_state
        if truncated and not terminated:
            state, info = env.reset()
            action = act(q, state, np.float32(draw()), step, _mask(info, action_mask))
    return Training(q=np.asarray(q), **memory.result())


def _mask(info: dict[str, Any], action_mask: bool) -> Any:
    return np.asarray(info["action_mask"], np.bool_) if action_mask else None


@functools.lru_cache(maxsize=32)
def _programs(learner: Learner) -> tuple[Any, Any]:
    """`act` and `learn` of a learner, compiled."""

    def act(q: Any, state: Any, uniform: Any, step: Any, where: Any) -> Any:
        return learner.act(uniform, q[state], step=step, where=where)

    def learn(q: Any, *rest: Any) -> Any:
        *transition_and_uniform, step, where = rest
        return learner.learn(q, *transition_and_uniform, step=step, where=where)

    return jax.jit(act), jax.jit(learn, donate_argnums=0)


class _Memory:
    """What a recorder asks for, of one run."""

    def __init__(self, recorder: Bins | Episodes) -> None:
        self.recorder = recorder
        self.rewards: list[float] = []
        self.ends: list[int] = []
        self.values: list[Any] = []

    def live(self, step: int) -> bool:
        """Does the run still go on at this step?"""
        if isinstance(self.recorder, Bins):
            return step < self.recorder.n_bins * self.recorder.width
        return len(self.ends) < self.recorder.n_episodes and step < self.recorder.limit

    def observe(self, q: Any, reward: float, ended: bool) -> None:
        """Note a step."""
        self.rewards.append(reward)
        if ended:
            self.ends.append(len(self.rewards))
            if isinstance(self.recorder, Episodes) and self.recorder.states:
                self.values.append(np.asarray(q)[list(self.recorder.states)])

    def result(self) -> dict[str, Any]:
        """What `Training` has of it."""
        recorder = self.recorder
        rewards = np.array(self.rewards)
        if isinstance(recorder, Bins):
            return {"rewards": rewards.reshape(recorder.n_bins, -1).mean(1).astype(np.float32)}
        n = len(self.ends)
        returns = np.full(recorder.n_episodes, np.nan, np.float32)
        lengths = np.zeros(recorder.n_episodes, np.int32)
        totals = np.append(0.0, np.cumsum(rewards))[[0, *self.ends]]
        returns[:n], lengths[:n] = np.diff(totals), np.diff([0, *self.ends])
        if not recorder.states:
            return {"returns": returns, "lengths": lengths}
        shape = (recorder.n_episodes, len(recorder.states), recorder.n_actions)
        values = np.full(shape, np.nan, np.float32)
        values[:n] = np.array(self.values).reshape(n, *shape[1:])
        return {"returns": returns, "lengths": lengths, "values": values}
