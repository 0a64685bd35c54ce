"""Episodes of vector environments of others."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..._common import checks
from ..._common.discount import discount_of
from ..._common.evaluation import MAX_STEPS
from ..._common.extras import needed_by
from .gymnasium import GymnasiumRollouts
from .rollouts import name_of

if TYPE_CHECKING:
    import gymnasium

    from ...environments.fleet.resting import Resting

__all__ = ["VectorRollouts"]


class VectorRollouts(GymnasiumRollouts):
    """Rollouts of a vector environment: Gymnasium's, envpool's or your own.

    They play as `GymnasiumRollouts` do, with the vector environment in the place of a `Fleet`.
    envpool's environments take no seed for an episode: a training in them is not the same twice.

    Args:
        make: makes a vector environment of as many environments as it is told. Its observations are
            arrays, which are flattened, and its actions are discrete and count from 0. It is one
            of envpool's, or resets nothing by itself: its `autoreset_mode` is `DISABLED`.
        max_steps: where an episode is cut off; None for the environment's own limit, or 1000.

    Raises:
        ValueError: for an environment that is not as above.

    Examples:
        >>> import gymnasium
        >>> def make(count):
        ...     options = {"autoreset_mode": gymnasium.vector.AutoresetMode.DISABLED}
        ...     return gymnasium.make_vec("CartPole-v1", count, "sync", vector_kwargs=options)
        >>> rollouts = VectorRollouts(make)
        >>> rollouts.n_observations, rollouts.n_actions, rollouts.max_steps
        (4, 2, 500)
    """

    def __init__(
        self,
        make: Callable[[int], gymnasium.vector.VectorEnv[Any, Any, Any]],
        *,
        max_steps: int | None = None,
    ) -> None:
        with needed_by(name_of(make), "gymnasium"):
            from ...environments.fleet.resting import Resting

        checks.function("make", make, "a function that makes a vector environment")
        if max_steps is not None:
            max_steps = checks.whole("max_steps", max_steps, 1)
        self.environment: Any = make
        self._resting = Resting
        with contextlib.closing(self.fleet(1)) as env:
            self.n_actions, self.n_observations = env.n_actions, env.n_observations
            self.discount = discount_of(env)
            own = env.max_episode_steps
        self.max_steps = own or MAX_STEPS if max_steps is None else max_steps

    def fleet(self, count: int) -> Resting:
        """So many of the environments, side by side."""
        return self._resting(self.environment(count))
