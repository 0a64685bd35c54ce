"""The rollouts of anything that `train` and `evaluate` take as an environment."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from ..._common import checks
from ..._common.evaluation import MAX_STEPS
from ...environments import acrobot, lunar_lander, tabular
from ...mdp import MDP
from .functional import FunctionalRollouts
from .gymnasium import GymnasiumRollouts
from .rollouts import Rollouts

if TYPE_CHECKING:
    import gymnasium

__all__ = ["Environment", "make_rollouts"]

Environment: TypeAlias = (
    "tabular.Params | lunar_lander.Params | acrobot.Params | MDP | str | "
    "Callable[[], gymnasium.Env[Any, Any]] | Rollouts"
)
"""The parameters of a functional environment of the library, an MDP, the id of a Gymnasium
environment or a function that makes one, or rollouts of an environment of one's own."""

LUNAR_LANDER = "mellowmax/LunarLander-v0"
"""The one id that stands for pure functions: its landers fly together in one program."""


def make_rollouts(
    environment: Environment,
    max_steps: int | None = None,
    workers: int | None = None,
    *,
    default_workers: int = 0,
) -> Rollouts:
    """The rollouts of an environment; rollouts are taken as they are.

    Args:
        environment: as for `train`.
        max_steps: as for `train`.
        workers: as for `train`.
        default_workers: what stands for `workers` if they are None.

    Raises:
        ValueError: for an argument that does not fit.
    """
    if isinstance(environment, Rollouts):
        for name, value in (("max_steps", max_steps), ("workers", workers)):
            if value is not None:
                rule = f"`{name}` must be None for rollouts, which have their own"
                raise ValueError(f"{rule}, got {value!r}")
        return environment
    limit = checks.whole("max_steps", MAX_STEPS if max_steps is None else max_steps, 1)
    workers = checks.whole("workers", default_workers if workers is None else workers, 0)
    if isinstance(environment, str) and environment == LUNAR_LANDER:
        environment = lunar_lander.params()
    if isinstance(environment, lunar_lander.Params):
        return FunctionalRollouts(lunar_lander, environment, limit)
    if isinstance(environment, acrobot.Params):
        limit = acrobot.MAX_STEPS if max_steps is None else max_steps
        return FunctionalRollouts(acrobot, environment, limit)
    if isinstance(environment, MDP):
        environment = tabular.params(environment)
    if not isinstance(environment, tabular.Params):
        return GymnasiumRollouts(environment, workers=workers, max_steps=max_steps)
    if environment.allowed is not None:
        rule = "`environment` must allow every action in every state"
        raise ValueError(f"{rule}, got {environment}, which does not")
    return FunctionalRollouts(tabular, environment, limit)
