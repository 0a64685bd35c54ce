"""Names of mellowmax 0.1 that have successors: they work as they did, and warn."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple

import jax

from .._common.evaluation import MAX_STEPS
from .._typing import Integers
from .environment import EnvironmentFunctions, FunctionalEnvironment, GymnasiumEnvironment
from .episodes import Episodes
from .network import Policy
from .play.episodes_functional import FunctionalEpisodes
from .play.episodes_gymnasium import GymnasiumEpisodes

__all__ = ["SUCCESSORS", "FunctionalRollouts", "GymnasiumRollouts", "Played", "deprecated"]


class Played(NamedTuple):
    """A batch of episodes of some lanes; now `Round`."""

    lanes: Integers
    episodes: Episodes | None
    computed: int = 0


class FunctionalRollouts(FunctionalEnvironment):
    """Now `FunctionalEnvironment`, which does not play."""

    def __init__(
        self, environment: EnvironmentFunctions, params: object, max_steps: int = MAX_STEPS
    ) -> None:
        super().__init__(environment, params, max_steps)
        self.environment = environment

    def play(
        self,
        policies: Callable[[], Policy],
        keys: jax.Array,
        done: Sequence[int],
        until: int,
        batch: int,
    ) -> Generator[Played]:
        """Play batches of episodes."""
        for round in FunctionalEpisodes(self).episodes(policies, keys, done, until, batch):
            yield Played(round.lanes, round.episodes, round.computed)


class GymnasiumRollouts(GymnasiumEnvironment):
    """Now `GymnasiumEnvironment`, which does not play."""

    def play(
        self,
        policies: Callable[[], Policy],
        keys: jax.Array,
        done: Sequence[int],
        until: int,
        batch: int,
    ) -> Generator[Played]:
        """Play batches of episodes."""
        for round in GymnasiumEpisodes(self).episodes(policies, keys, done, until, batch):
            yield Played(round.lanes, round.episodes, round.computed)


SUCCESSORS: dict[str, tuple[type, str]] = {
    "FunctionalRollouts": (FunctionalRollouts, "FunctionalEnvironment"),
    "GymnasiumRollouts": (GymnasiumRollouts, "GymnasiumEnvironment"),
    "Played": (Played, "Round"),
}
"""The objects by their former names, and the names of their successors."""


def deprecated(name: str) -> type:
    """The object of a former name of `mellowmax.deep`, with a warning.

    Raises:
        AttributeError: for any other name.
    """
    if name not in SUCCESSORS:
        raise AttributeError(f"module 'mellowmax.deep' has no attribute {name!r}")
    found, successor = SUCCESSORS[name]
    message = f"`deep.{name}` is now `deep.{successor}`; the old name will go"
    warnings.warn(message, DeprecationWarning, stacklevel=3)
    return found
