"""Gymnasium's environments, made one by one, and vector environments of someone else."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from ..._common import checks
from ..._common.discount import discount_of
from ..._common.evaluation import MAX_STEPS
from ..._common.extras import needed_by
from ..._typing import PyTree
from ..observation import Seen, count, kept, unmasked
from .names import name_of

if TYPE_CHECKING:
    import gymnasium

    from ...environments.fleet.fleet import Fleet
    from ...environments.fleet.vector_adapter import VectorAdapter

__all__ = ["GymnasiumEnvironment", "VectorEnvironment"]


class GymnasiumEnvironment:
    """A Gymnasium environment with discrete actions.

    Args:
        environment: an id, or a function without arguments that makes an environment. Observations
            stay as they are, and states that are numbers become one-hot.
        workers: how many processes to spread the environments over; 0 for none but this one.
        max_steps: where an episode is cut off; None for the environment's own limit, or 1000.
        action_mask: keep to the actions that the environment allows in `info["action_mask"]`, of
            `reset` and of `step`?

    Raises:
        ValueError: for an unknown environment, or one whose actions are not discrete.
        RuntimeError: for one that fails, or has no such mask.

    Examples:
        >>> environment = GymnasiumEnvironment("CartPole-v1")
        >>> environment.n_observations, environment.n_actions, environment.max_steps
        (4, 2, 500)
    """

    def __init__(
        self,
        environment: str | Callable[[], gymnasium.Env[Any, Any]],
        *,
        workers: int = 0,
        max_steps: int | None = None,
        action_mask: bool = False,
    ) -> None:
        with needed_by(name_of(environment), "gymnasium"):
            from ...environments.fleet.flatten import make_discrete

        self.environment = environment
        self.workers = checks.whole("workers", workers, 0)
        if max_steps is not None:
            max_steps = checks.whole("max_steps", max_steps, 1)
        with contextlib.closing(make_discrete(environment)) as env:
            self.n_actions = int(env.action_space.n)  # type: ignore[attr-defined]
            legal = self.n_actions if action_mask else None
            self.observation = _shapes_in(env.observation_space, legal)
            self.n_observations = count(unmasked(self.observation))
            self.discount = discount_of(env)
            own = None if env.spec is None else env.spec.max_episode_steps
        self._make = functools.partial(make_discrete, environment, action_mask)
        if action_mask:  # is there one?
            with contextlib.closing(self._make()) as env:
                env.reset(seed=0)
        self.max_steps = own or MAX_STEPS if max_steps is None else max_steps

    @property
    def name(self) -> str:
        """The id, or the name of the function that makes the environment."""
        return name_of(self.environment)

    def fleet(self, count: int) -> Fleet:
        """`count` of the environments, side by side."""
        from ...environments.fleet.fleet import Fleet

        return Fleet(self._make, count, workers=self.workers)


class VectorEnvironment:
    """A vector environment: Gymnasium's, envpool's or your own.

    Episodes are played in it as in a `GymnasiumEnvironment`, with the vector environment in place
    of a `Fleet`. envpool takes no seed for an episode: training in it is not repeatable.

    Args:
        make: a function of a count, which makes a vector environment of that many environments. Its
            observations are arrays, and its actions are discrete and count from 0. It is one of
            envpool's, or leaves resets to the caller: its `autoreset_mode` is `DISABLED`.
        max_steps: where an episode is cut off; None for the environment's own limit, or 1000.
        action_mask: as for `GymnasiumEnvironment`.

    Raises:
        ValueError: for an environment that is not as above.
        RuntimeError: for one that fails, or has no mask where one is wanted.

    Examples:
        >>> import gymnasium
        >>> def make(count):
        ...     options = {"autoreset_mode": gymnasium.vector.AutoresetMode.DISABLED}
        ...     return gymnasium.make_vec("CartPole-v1", count, "sync", vector_kwargs=options)
        >>> environment = VectorEnvironment(make)
        >>> environment.n_observations, environment.n_actions, environment.max_steps
        (4, 2, 500)
    """

    def __init__(
        self,
        make: Callable[[int], gymnasium.vector.VectorEnv[Any, Any, Any]],
        *,
        max_steps: int | None = None,
        action_mask: bool = False,
    ) -> None:
        with needed_by(name_of(make), "gymnasium"):
            from ...environments.fleet.vector_adapter import VectorAdapter

        checks.function("make", make, "a function that makes a vector environment")
        self.make = make
        if max_steps is not None:
            max_steps = checks.whole("max_steps", max_steps, 1)
        self._adapter = functools.partial(VectorAdapter, masked=action_mask)
        with contextlib.closing(self.fleet(1)) as env:
            self.n_actions = env.n_actions
            legal = self.n_actions if action_mask else None
            self.observation = _shapes_in(env.single_observation_space, legal)
            if action_mask:  # is there one?
                env.reset(seed=np.zeros(1, np.int32))
            self.n_observations = count(unmasked(self.observation))
            self.discount = discount_of(env)
            own = env.max_episode_steps
        self.max_steps = own or MAX_STEPS if max_steps is None else max_steps

    @property
    def name(self) -> str:
        """The name of the function that makes the environment."""
        return name_of(self.make)

    def fleet(self, count: int) -> VectorAdapter:
        """A vector environment of `count` environments."""
        return self._adapter(self.make(count))


def _shapes_in(space: gymnasium.Space[Any], legal: int | None) -> PyTree:
    """The shapes of what is seen, as it is kept.

    Args:
        space: the space of the observations: boxes, or dicts and tuples of such.
        legal: of how many actions some may be illegal; None if all are always legal.
    """
    from gymnasium import spaces

    def shapes(space: gymnasium.Space[Any]) -> PyTree:
        if isinstance(space, spaces.Dict):
            return {name: shapes(part) for name, part in space.spaces.items()}
        if isinstance(space, spaces.Tuple):
            return tuple(map(shapes, space.spaces))
        assert isinstance(space, spaces.Box | spaces.MultiBinary)
        return jax.ShapeDtypeStruct(space.shape, kept(space.dtype))

    if legal is None:
        return shapes(space)
    return Seen(shapes(space), jax.ShapeDtypeStruct((legal,), np.dtype(np.bool_)))
