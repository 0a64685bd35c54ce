"""Lunar Lander for Gymnasium, single and vectorised: the same seeds give the same episodes."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from ..._common import checks
from ..._common.extras import needed_by
from ..._typing import Integers
from ..render_modes import check_mode, check_started, needs_pillow, warn_of_no_mode
from .arrays.vectors import select
from .devices.batch import step_batch
from .environment import Params, dispersion, launch, named, params, world
from .game.reward import observation
from .state import Dispersion, Inputs, State, Step

with needed_by("mellowmax.environments.lunar_lander.gymnasium", "gymnasium"):
    import gymnasium
    from gymnasium.vector import AutoresetMode
    from gymnasium.vector.utils import batch_space

__all__ = ["LunarLander", "LunarLanderVector"]

LARGEST = np.array([2.5, 2.5, 10, 10, 2 * np.pi, 10, 1, 1], np.float32)
"""The bounds that Gymnasium declares for an observation. A lander may exceed them."""
SMALLEST = np.array([*-LARGEST[:6], 0, 0], np.float32)

FEW = 16
"""Up to this many landers share one program, which is compiled once."""

Observations: TypeAlias = npt.NDArray[np.float32]
Picture: TypeAlias = npt.NDArray[np.uint8]
Action: TypeAlias = int | np.integer[Any]


class LunarLander(gymnasium.Env[Observations, Action]):
    """Gymnasium's LunarLander-v3 with discrete actions, flown by JAX.

    It is meant for watching a landing, and for programs that take Gymnasium's environments only.
    One lander at a time is slow: `LunarLanderVector` and the functions of
    `mellowmax.environments.lunar_lander` fly many together. The first `reset` compiles the program.

    Args:
        render_mode: `"rgb_array"` for a picture (it needs Pillow), or None.
        gravity: between -12 and 0.
        enable_wind: is there any wind?
        wind_power: the force of the strongest gust.
        turbulence_power: the torque of the strongest gust.
        height: the scale of the observed height, `"v3"` or `"2016"`: see
            `mellowmax.environments.lunar_lander.params`.

    Examples:
        Without the wrappers of `gymnasium.make("mellowmax/LunarLander-v0")`, which ends an episode
        after 1000 steps:

        >>> env = LunarLander()
        >>> env.action_space, env.observation_space.shape
        (Discrete(4), (8,))
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 50}  # noqa: RUF012
    continuous = False
    """Engines are on or off. Gymnasium's `heuristic` reads this, so it can fly this lander too."""

    def __init__(
        self,
        render_mode: str | None = None,
        *,
        gravity: float = -10.0,
        enable_wind: bool = False,
        wind_power: float = 15.0,
        turbulence_power: float = 1.5,
        height: str = "v3",
    ) -> None:
        self.render_mode = check_mode(render_mode, self.metadata["render_modes"])
        self.observation_space = gymnasium.spaces.Box(SMALLEST, LARGEST)
        self.action_space = gymnasium.spaces.Discrete(4)
        parameters = _parameters(gravity, enable_wind, wind_power, turbulence_power, height)
        self._landers = _Landers(1, parameters)
        self._under_way = False
        self._action = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, dict[str, Any]]:
        """Start an episode.

        Args:
            seed: the seed of the random numbers; None to continue with the generator as it is.
            options: not used.

        Returns:
            The observation, and an empty `info`.
        """
        super().reset(seed=seed)
        observations = self._landers.begin(np.ones(1, np.bool_), [self.np_random])
        self._under_way, self._action = True, 0
        return observations[0], {}

    def step(self, action: Action) -> tuple[Observations, float, bool, bool, dict[str, Any]]:
        """Take an action: 0 nothing, 1 the left engine, 2 the main engine, 3 the right engine.

        Returns:
            The observation, the reward, whether the episode ended, False, and an empty `info`.

        Raises:
            ValueError: for an invalid action.
            gymnasium.error.ResetNeeded: if no episode is under way.
        """
        if not self._under_way:
            rule = "`reset` must be called before `step`"
            raise gymnasium.error.ResetNeeded(f"{rule}, got no episode under way")
        self._action = checks.whole("action", action, 0, 3)
        actions = np.array([self._action], np.int32)
        observations, rewards, terminated = self._landers.advance(actions)
        self._under_way = not terminated[0]
        return observations[0], float(rewards[0]), bool(terminated[0]), False, {}

    @property
    def lander(self) -> State:
        """The state of the lander, by name.

        Raises:
            gymnasium.error.ResetNeeded: before the first `reset`.
        """
        if self._landers.states is None:
            rule = "`reset` must be called before `lander`"
            raise gymnasium.error.ResetNeeded(f"{rule}, got no episode yet")
        return jax.tree.map(lambda x: x[0], jax.device_get(self._landers.states))

    def render(self) -> Picture | None:
        """A picture of the lander; a warning and None if `render_mode` is None."""
        if self.render_mode is None:
            warn_of_no_mode(self)
            return None
        check_started(self._landers.states is not None)
        return self._landers.pictures([self._action])[0]


class LunarLanderVector(gymnasium.vector.VectorEnv[Observations, Integers, npt.NDArray[Any]]):
    """Many landers at once: `gymnasium.make_vec("mellowmax/LunarLander-v0", num_envs=1000)`.

    A lander whose episode has ended begins a new one with its next step, whatever the action
    (`AutoresetMode.NEXT_STEP`). With the seed `s`, the episodes of lander `i` are those of a
    `LunarLander` with the seed `s + i`.

    Args:
        num_envs: the number of landers.
        max_episode_steps: the number of steps after which an episode is truncated.
        render_mode: as for `LunarLander`.
        gravity: as for `LunarLander`.
        enable_wind: as for `LunarLander`.
        wind_power: as for `LunarLander`.
        turbulence_power: as for `LunarLander`.
        height: as for `LunarLander`.

    Examples:
        >>> LunarLanderVector(3).action_space
        MultiDiscrete([4 4 4])
    """

    metadata = {  # noqa: RUF012
        "render_modes": ["rgb_array"],
        "render_fps": 50,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        num_envs: int = 1,
        max_episode_steps: int = 1000,
        render_mode: str | None = None,
        *,
        gravity: float = -10.0,
        enable_wind: bool = False,
        wind_power: float = 15.0,
        turbulence_power: float = 1.5,
        height: str = "v3",
    ) -> None:
        self.num_envs = checks.whole("num_envs", num_envs, 1)
        self.max_episode_steps = checks.whole("max_episode_steps", max_episode_steps, 1)
        self.render_mode = check_mode(render_mode, self.metadata["render_modes"])
        self.single_observation_space = gymnasium.spaces.Box(SMALLEST, LARGEST)
        self.single_action_space = gymnasium.spaces.Discrete(4)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        parameters = _parameters(gravity, enable_wind, wind_power, turbulence_power, height)
        self._landers = _Landers(num_envs, parameters)
        self._ended = np.zeros(num_envs, np.bool_)
        self._actions = np.zeros(num_envs, np.int32)
        self._random = [np.random.default_rng() for _ in range(num_envs)]

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Observations, dict[str, Any]]:
        """Start an episode of every lander.

        Args:
            seed: the seed of the first lander, or one for each; None to continue with them.
            options: `reset_mask`, `[num_envs]`, says which landers start an episode, if not all.

        Returns:
            The observations, and an empty `info`.
        """
        if seed is None or isinstance(seed, int):
            seed = [None if seed is None else seed + i for i in range(self.num_envs)]
        seeds = list(seed)
        if len(seeds) != self.num_envs:
            raise ValueError(f"`seed` must be one for each lander, got {len(seeds)}")
        for i, each in enumerate(seeds):
            if each is not None:
                self._random[i] = gymnasium.utils.seeding.np_random(each)[0]
        mask = np.ones(self.num_envs, np.bool_)
        if options is not None and "reset_mask" in options:
            mask = np.asarray(options["reset_mask"], np.bool_)
        observations = self._landers.begin(mask, self._random)
        self._ended, self._actions = self._ended & ~mask, np.where(mask, 0, self._actions)
        return observations, {}

    def step(
        self, actions: Integers
    ) -> tuple[
        Observations, Observations, npt.NDArray[np.bool_], npt.NDArray[np.bool_], dict[str, Any]
    ]:
        """Take an action with each lander, or start its next episode if the last one has ended.

        Returns:
            The observations, rewards, which ended, which were truncated, and an empty `info`.

        Raises:
            ValueError: for invalid actions.
            gymnasium.error.ResetNeeded: before the first `reset`.
        """
        if self._landers.states is None:
            rule = "`reset` must be called before `step`"
            raise gymnasium.error.ResetNeeded(f"{rule}, got no episode yet")
        actions = np.asarray(actions)
        fits = actions.shape == (self.num_envs,) and actions.dtype.kind in "iu"
        if not fits or not ((actions >= 0) & (actions < 4)).all():
            rule = f"`actions` must be {self.num_envs} whole numbers in [0, 3]"
            raise ValueError(f"{rule}, got {actions}")
        begun = self._ended
        self._actions = np.where(begun, 0, actions).astype(np.int32)
        self._landers.launch(begun, self._random)
        observations, rewards, terminated = self._landers.advance(self._actions)
        steps = self._landers.steps[: self.num_envs]
        truncated = (steps >= self.max_episode_steps) & ~terminated
        self._ended = terminated | truncated
        return observations, rewards, terminated, truncated, {}

    def render(self) -> tuple[Picture, ...] | None:
        """A picture of each lander; a warning and None if `render_mode` is None."""
        if self.render_mode is None:
            warn_of_no_mode(self)
            return None
        check_started(self._landers.states is not None)
        return tuple(self._landers.pictures(self._actions))


class _Landers:
    """Landers, each at some step of its episode; `begin` and `advance` run the same program."""

    def __init__(self, count: int, params: Params) -> None:
        self.count, self.params = count, params
        self.states: State | None = None
        rows = max(count, FEW)
        self.worlds = jax.tree.map(lambda x: jnp.broadcast_to(x, (rows,)), world(params))
        self.episode_seeds = np.zeros(rows, np.uint32)
        """The seed of each episode's random numbers."""
        self.steps = np.zeros(rows, np.int32)
        """The number of steps that each episode has taken."""
        self.launched = np.zeros(rows, np.bool_)
        """Which landers start an episode with the next step."""

    def launch(self, which: npt.NDArray[np.bool_], random: Sequence[np.random.Generator]) -> None:
        """Let some landers start an episode with the next step."""
        for i in np.flatnonzero(which).tolist():
            self.episode_seeds[i] = random[i].integers(2**32, dtype=np.uint32)
        self.launched = self._padded(which)
        self.steps = np.where(self.launched, np.int32(-1), self.steps)

    def begin(
        self, which: npt.NDArray[np.bool_], random: Sequence[np.random.Generator]
    ) -> Observations:
        """Let some landers start an episode now, while the others wait: the observations of all."""
        before, steps = self.states, self.steps
        self.launch(which, random)
        begun = self.launched
        self._step(np.zeros(self.count, np.int32))
        if before is not None:
            self.steps = np.where(begun, self.steps, steps)
            self.states = select(jnp.asarray(begun), self.states, before)
        return self._observations()

    def advance(
        self, actions: npt.NDArray[np.int32]
    ) -> tuple[Observations, Observations, npt.NDArray[np.bool_]]:
        """Take a step with all landers: the observations, the rewards, and which have ended."""
        after = self._step(actions)
        rewards, terminated = (np.array(x[: self.count]) for x in (after.reward, after.terminated))
        return self._observations(), rewards, terminated

    def _step(self, actions: npt.NDArray[np.int32]) -> Step:
        if self.states is None:
            keys = jax.random.split(jax.random.key(0), len(self.episode_seeds))
            self.states = named(jax.vmap(launch)(keys))
        self.steps = self.steps + np.int32(1)
        states, noise = _draw(self.episode_seeds, self.steps, self.launched, self.states)
        after: Step = _step_all(states, Inputs(self._padded(actions), noise, self.worlds))
        self.states, self.launched = after.state, np.zeros_like(self.launched)
        return after

    def pictures(self, actions: Sequence[int] | npt.NDArray[np.int32]) -> list[Picture]:
        """A picture of each lander."""
        try:
            with needed_by("LunarLander.render", "gymnasium"):
                from .picture import draw_lander
        except ImportError as error:
            raise needs_pillow() from error
        states = jax.device_get(self.states)
        return [
            draw_lander(jax.tree.map(lambda x, i=i: x[i], states), int(action))
            for i, action in enumerate(actions)
        ]

    def _padded(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """A number for every row of the program, 0 for rows beyond the landers."""
        return np.pad(values, (0, len(self.episode_seeds) - self.count))

    def _observations(self) -> Observations:
        return np.array(_observe(self.states, self.params)[: self.count])


_step_all = jax.jit(step_batch)


@functools.partial(jax.jit)
def _observe(states: State, params: Params) -> jax.Array:
    """The observations of landers, `[n, 8]`."""
    scale = jnp.asarray(params.height_scale, jnp.float32)
    return jnp.stack(observation(states, scale), axis=-1)


@functools.partial(jax.jit)
def _draw(
    seeds: jax.Array, steps: jax.Array, launched: jax.Array, states: State
) -> tuple[State, Dispersion]:
    """The landers before the next step, some of them newly launched, and their dispersion."""

    def one(
        seed: jax.Array, number: jax.Array, starts: jax.Array, state: State
    ) -> tuple[State, Dispersion]:
        of_launch, of_step = jax.random.split(jax.random.fold_in(jax.random.key(seed), number))
        return select(starts, named(launch(of_launch)), state), dispersion(of_step)

    return jax.vmap(one)(seeds, steps, launched, states)


def _parameters(gravity: float, wind: bool, power: float, turbulence: float, height: str) -> Params:
    """The parameters that belong to Gymnasium's arguments."""
    if wind:
        return params(gravity=gravity, wind_power=power, turbulence_power=turbulence, height=height)
    return params(gravity=gravity, height=height)
