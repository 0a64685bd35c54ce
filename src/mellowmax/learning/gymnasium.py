"""Training in Gymnasium environments with discrete states and actions, step by step.

The environment steps in Python, and the learner's two functions, to act and to learn, are compiled.
Runs go one after another, each in an environment of its own. The compiled functions take a run's
parameters as arguments, so all runs of all settings share them.

An episode that is cut off (truncated) is no end: its last state is bootstrapped from.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax.tree_util import PyTreeDef

from .._common.discount import discount_of
from .._common.extras import needed_by
from .._common.gymnasium_ids import make
from .learner import Learned
from .record import BinRecorder, EpisodeRecorder, Recorder
from .runs import Runs, Schedules

if TYPE_CHECKING:
    import gymnasium

__all__ = ["Environment", "describe", "learn", "opened", "random_sources"]

Environment: TypeAlias = "str | Callable[[], gymnasium.Env[Any, Any]] | gymnasium.Env[Any, Any]"
"""An id, a function without arguments that makes an environment, or an environment."""


@contextlib.contextmanager
def opened(environment: Environment) -> Iterator[gymnasium.Env[Any, Any]]:
    """An environment to step; one that is made here is closed at the end.

    Raises:
        ValueError: for what is no environment and makes none.
    """
    name = environment if isinstance(environment, str) else "environment"
    with needed_by(name, "gymnasium"):
        import gymnasium

    from .._common.checked_environment import checked

    if isinstance(environment, gymnasium.Env):
        yield checked(environment)
        return
    if isinstance(environment, str):
        env = make(environment)
    else:
        env = environment() if callable(environment) else None
        if not isinstance(env, gymnasium.Env):
            rule = "`environment` must be an MDP, the parameters of an environment, a Gymnasium id"
            raise ValueError(
                f"{rule}, or a function that makes an environment, got {environment!r}"
            )
    with contextlib.closing(checked(env)) as env:
        yield env


def describe(environment: Environment) -> tuple[tuple[int, int], float]:
    """The numbers of states and of actions, and the discount.

    Raises:
        ValueError: for an environment that is not discrete.
    """
    with opened(environment) as env:
        sizes = _size(env, "observation_space"), _size(env, "action_space")
        return sizes, discount_of(env)


def _size(env: gymnasium.Env[Any, Any], name: str) -> int:
    from gymnasium.spaces import Discrete

    space = getattr(env, name)
    if not (isinstance(space, Discrete) and space.start == 0):
        raise ValueError(f"`environment` must have a discrete {name} that starts at 0, got {space}")
    return int(space.n)


def random_sources(
    key: npt.NDArray[np.uint32], number: npt.NDArray[np.uint32] | int
) -> tuple[int, np.random.Generator]:
    """The seed of a run's environment, and a generator for the run's own choices.

    Args:
        key: `[2]`, the data of the key of its setting, which is `(0, seed)` for a whole number.
        number: of the run.

    Returns:
        Both depend on the key and the number alone. The first run of a whole number has that
        number itself as the seed of its environment.
    """
    high, low = (int(word) for word in key)
    words = [low, int(number), high]
    generator = np.random.default_rng([1, *words])
    if words[1:] == [0, 0]:
        return low, generator
    hashed = np.random.SeedSequence([2, *words]).generate_state(1)[0]
    return int(hashed >> 1), generator  # 31 bits, which every environment takes


def learn(
    runs: Runs,
    schedules: Schedules,
    recorder: Recorder,
    *,
    tables: bool,
    environment: Environment,
    table: tuple[int, int],
    action_mask: bool,
) -> dict[str, npt.NDArray[Any]]:
    """Carry out every run, one after another.

    Args:
        runs: all of them.
        schedules: of the learner.
        recorder: what to record.
        tables: record the final tables?
        environment: which each run makes, or resets with a seed of its own.
        table: the numbers of states and of actions.
        action_mask: keep to the actions that `info["action_mask"]` allows?

    Returns:
        The arrays of a `TabularResult` by name, each with an axis of the runs in front.
    """
    results = []
    with jax.default_device(jax.local_devices(backend="cpu")[0]):  # steps are small
        for i in range(runs.setting.size):
            one = jax.tree.map(lambda x, i=i: x[i], runs)
            with opened(environment) as env:
                results.append(_carry_out(one, schedules, env, recorder, table, action_mask))
    names = [name for name in results[0] if tables or name != "q"]
    return {name: np.stack([result[name] for result in results]) for name in names}


def _carry_out(
    run: Runs,
    schedules: Schedules,
    env: gymnasium.Env[Any, Any],
    recorder: Recorder,
    table: tuple[int, int],
    action_mask: bool,
) -> dict[str, npt.NDArray[Any]]:
    """One run, from the first reset to the end."""
    from .._common.checked_environment import mask_in

    def mask() -> npt.NDArray[np.bool_] | None:
        return mask_in(info, table[1:2]) if action_mask else None

    seed, generator = random_sources(run.key, run.number)
    draw = generator.random
    history = _History(recorder)
    q = jnp.array(run.learner.init(*table))
    leaves, tree = jax.tree.flatten(jax.tree.map(jnp.asarray, run))  # once, not at every step
    act = functools.partial(_act, tree, schedules, leaves)
    learn = functools.partial(_learn, tree, schedules, leaves)
    state, info = env.reset(seed=seed)
    action = act(q, state, np.float32(draw()), 0, mask())
    step = 0
    while history.live(step):
        next_state, reward, terminated, truncated, info = env.step(int(action))
        if terminated:
            next_state, info = env.reset()
        transition = (state, action, np.float32(reward), bool(terminated), next_state)
        learned = learn(q, *transition, np.float32(draw()), step, mask())
        q, action = learned.q, learned.action
        step += 1
        history.observe(q, float(reward), terminated or truncated)
        state = next_state
        if truncated and not terminated:
            state, info = env.reset()
            action = act(q, state, np.float32(draw()), step, mask())
    return {"q": np.asarray(q), **history.result()}


@functools.partial(jax.jit, static_argnums=(0, 1))
def _act(
    tree: PyTreeDef,
    schedules: Schedules,
    leaves: list[jax.Array],
    q: jax.Array,
    state: jax.Array,
    uniform: jax.Array,
    step: jax.Array,
    where: jax.Array | None,
) -> jax.Array:
    learner = schedules.apply(jax.tree.unflatten(tree, leaves), step)
    return learner.act(uniform, q[state], where=where)


@functools.partial(jax.jit, static_argnums=(0, 1), donate_argnums=3)
def _learn(
    tree: PyTreeDef,
    schedules: Schedules,
    leaves: list[jax.Array],
    q: jax.Array,
    state: jax.Array,
    action: jax.Array,
    reward: jax.Array,
    terminated: jax.Array,
    next_state: jax.Array,
    uniform: jax.Array,
    step: jax.Array,
    where: jax.Array | None,
) -> Learned:
    learner = schedules.apply(jax.tree.unflatten(tree, leaves), step)
    assert learner.discount is not None
    discount = jnp.where(terminated, jnp.float32(0), jnp.asarray(learner.discount))
    return learner.learn(q, state, action, reward, discount, next_state, uniform, where=where)


class _History:
    """What happened in a run so far, of which a recorder's arrays are made in the end."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.rewards: list[float] = []
        self.ends: list[int] = []
        self.values: list[npt.NDArray[np.float32]] = []

    def live(self, step: int) -> bool:
        """Is the run still under way at this step?"""
        if isinstance(self.recorder, BinRecorder):
            return step < self.recorder.n_bins * self.recorder.width
        return len(self.ends) < self.recorder.n_episodes and step < self.recorder.limit

    def observe(self, q: jax.Array, reward: float, ended: bool) -> None:
        """Add a step."""
        self.rewards.append(reward)
        if ended:
            self.ends.append(len(self.rewards))
            if isinstance(self.recorder, EpisodeRecorder) and self.recorder.states:
                self.values.append(np.asarray(q)[list(self.recorder.states)])

    def result(self) -> dict[str, npt.NDArray[Any]]:
        """The recorder's arrays by name."""
        recorder = self.recorder
        rewards = np.array(self.rewards)
        if isinstance(recorder, BinRecorder):
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
