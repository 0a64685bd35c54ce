"""What an environment is to training and evaluation: its sizes, limit, discount and name.

There are three kinds: pure JAX functions (`functional`), Gymnasium environments that are made one
by one, and vector environments of someone else (both in `gymnasium`). An object that plays its own
episodes is an environment too (`rollouts`). `argument` makes one of these of whatever `train` is
given, and `names` has the names by which checkpoints tell them apart. `play` has the ways of
playing episodes in each.
"""

from __future__ import annotations

from typing import TypeAlias

from ..._typing import PyTree
from ..observation import vector
from .functional import EnvironmentFunctions, FunctionalEnvironment, ParamsT, StateT, observe
from .gymnasium import GymnasiumEnvironment, VectorEnvironment
from .names import name_of
from .rollouts import Rollouts

__all__ = [
    "EnvironmentFunctions",
    "FunctionalEnvironment",
    "GymnasiumEnvironment",
    "ParamsT",
    "PlayableEnvironment",
    "Rollouts",
    "StateT",
    "VectorEnvironment",
    "name_of",
    "observation_of",
    "observe",
]

PlayableEnvironment: TypeAlias = (
    FunctionalEnvironment | GymnasiumEnvironment | VectorEnvironment | Rollouts
)
"""Every kind of environment that there is a player for."""


def observation_of(environment: PlayableEnvironment) -> PyTree:
    """The shapes and dtypes of an observation; of `Rollouts` that do not say, those of a vector."""
    return getattr(environment, "observation", vector(environment.n_observations))
