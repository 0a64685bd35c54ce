"""The six ways of playing, side by side, each in its file.

                                functional                  Gymnasium, or a vector environment
    whole episodes              episodes_functional         episodes_gymnasium
    single steps                steps_functional            steps_gymnasium
    segments                    segments_functional         segments_gymnasium

A learner says which of the rows it wants, the kind of its environment which of the columns.
`player` has the verbs of all six. `episodes` has what the first row shares, `segments` what the
last row does, `functional` what the first column does. `act_kernel` chooses the actions of many
policies on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, overload

from ..environment import (
    FunctionalEnvironment,
    GymnasiumEnvironment,
    PlayableEnvironment,
    Rollouts,
    VectorEnvironment,
)
from .episodes import EpisodePlayer, OwnEpisodes
from .episodes_functional import FunctionalEpisodes
from .episodes_gymnasium import GymnasiumEpisodes
from .player import Player
from .segments_functional import FunctionalSegments
from .segments_gymnasium import GymnasiumSegments
from .steps_functional import FunctionalSteps
from .steps_gymnasium import GymnasiumSteps

__all__ = ["EpisodePlayer", "Player", "player_of"]

PLAYERS: dict[str, dict[type, Callable[[Any], Player[Any]]]] = {
    "episodes": {
        FunctionalEnvironment: FunctionalEpisodes,
        GymnasiumEnvironment: GymnasiumEpisodes,
        VectorEnvironment: GymnasiumEpisodes,
        Rollouts: OwnEpisodes,
    },
    "steps": {
        FunctionalEnvironment: FunctionalSteps,
        GymnasiumEnvironment: GymnasiumSteps,
        VectorEnvironment: GymnasiumSteps,
    },
    "segments": {
        FunctionalEnvironment: FunctionalSegments,
        GymnasiumEnvironment: GymnasiumSegments,
        VectorEnvironment: GymnasiumSegments,
    },
}
"""The players by what a learner learns from, and by the kind of the environment."""


@overload
def player_of(
    learns_from: Literal["episodes"], environment: PlayableEnvironment
) -> EpisodePlayer: ...
@overload
def player_of(learns_from: str, environment: PlayableEnvironment) -> Player[Any]: ...
def player_of(learns_from: str, environment: PlayableEnvironment) -> Player[Any]:
    """The player for a kind of learner in an environment.

    Args:
        learns_from: `"episodes"`, `"steps"` or `"segments"`.
        environment: from `environment_of`.

    Raises:
        ValueError: if there is none: `Rollouts` play whole episodes only.
    """
    for kind, player in PLAYERS[learns_from].items():
        if isinstance(environment, kind):
            return player(environment)
    rule = "`environment` must be a functional one or Gymnasium's for a learner that learns while"
    raise ValueError(f"{rule} it plays, got {environment!r}")
