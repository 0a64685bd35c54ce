"""What `train` and `evaluate` take as an environment, and which kind of environment it becomes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from ..._common import checks
from ..._common.evaluation import MAX_STEPS
from ...environments import acrobot, cartpole, lunar_lander, mountain_car, tabular
from ...mdp import MDP
from ..observation import Seen
from . import (
    FunctionalEnvironment,
    GymnasiumEnvironment,
    PlayableEnvironment,
    Rollouts,
    VectorEnvironment,
)

if TYPE_CHECKING:
    import gymnasium

__all__ = ["Environment", "environment_of"]

LUNAR_LANDER = "mellowmax/LunarLander-v0"
"""The one id that stands for pure functions: its landers fly together in one program."""
MODULES: dict[type, Any] = {
    module.Params: module for module in (acrobot, cartpole, lunar_lander, mountain_car, tabular)
}
"""The functional environments of the library by the types of their parameters."""
Environment: TypeAlias = (
    "tabular.Params | lunar_lander.Params | acrobot.Params | cartpole.Params | "
    "mountain_car.Params | MDP | str | "
    "Callable[[], gymnasium.Env[Any, Any]] | "
    "FunctionalEnvironment | GymnasiumEnvironment | VectorEnvironment | Rollouts"
)
"""What `train` and `evaluate` take: the parameters of a functional environment of the library, an
MDP, the id of a Gymnasium environment or a function that makes one, or a `PlayableEnvironment`."""


def environment_of(
    environment: Environment,
    max_steps: int | None = None,
    workers: int | None = None,
    *,
    default_workers: int = 0,
    action_mask: bool = False,
) -> PlayableEnvironment:
    """The environment that an argument of `train` or `evaluate` stands for.

    Args:
        environment: as for `train`.
        max_steps: as for `train`.
        workers: as for `train`.
        default_workers: the number of workers if `workers` is None.
        action_mask: as for `train`.

    Raises:
        ValueError: for an argument that does not fit.
    """
    if isinstance(environment, PlayableEnvironment):
        for name, value in (("max_steps", max_steps), ("workers", workers)):
            if value is not None:
                rule = f"`{name}` must be None for an environment that has its own"
                raise ValueError(f"{rule}, got {value!r}")
        if action_mask:
            rule = "`action_mask` must be False for an environment that says itself what is legal"
            raise ValueError(f"{rule}, got True")
        return environment
    if max_steps is not None:
        max_steps = checks.whole("max_steps", max_steps, 1)
    workers = checks.whole("workers", default_workers if workers is None else workers, 0)
    if isinstance(environment, str) and environment == LUNAR_LANDER:
        environment = lunar_lander.params()
    if isinstance(environment, MDP):
        environment = tabular.params(environment)
    module = MODULES.get(type(environment))
    if module is None:
        return GymnasiumEnvironment(
            cast(Any, environment), workers=workers, max_steps=max_steps, action_mask=action_mask
        )
    own = getattr(module, "MAX_STEPS", MAX_STEPS)
    made = FunctionalEnvironment(module, environment, own if max_steps is None else max_steps)
    if action_mask and not isinstance(made.observation, Seen):
        rule = "`action_mask` must be left out where every action is legal"
        raise ValueError(f"{rule}, got True")
    return made
