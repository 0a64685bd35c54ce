"""An equilibrium, and the list of those that a search has found."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from .._fixed_points.maps import read_only
from .._fixed_points.points import Found, Local, local
from .._typing import Floats
from ..softmax import Softmax
from .game import Game, Profile
from .responses import Payoffs, Response

__all__ = ["Equilibria", "Equilibrium", "Setting"]


@dataclasses.dataclass(frozen=True, eq=False)
class Setting:
    """What the equilibria of one game have in common."""

    game: Game
    payoffs: Payoffs

    @classmethod
    def of(cls, game: Game) -> Setting:
        """The game, and its payoffs centred."""
        return cls(game, Payoffs.of(game))


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Equilibrium:
    """A quantal response equilibrium: every player plays softmax against what the others play."""

    softmax: Softmax
    parameter: float
    """The parameter of the softmax; NaN where it has none, or not one number."""
    _setting: Setting
    _vector: Floats
    """The centred action values, in one vector."""

    @property
    def game(self) -> Game:
        """The game."""
        return self._setting.game

    @functools.cached_property
    def profile(self) -> Profile:
        """The probabilities of each player's actions."""
        return self._by_player(self._response.policy(self._vector))

    @functools.cached_property
    def log_profile(self) -> Profile:
        """The logarithms of the probabilities, finite where a probability underflows."""
        return self._by_player(self._response.log_policy(self._vector))

    @functools.cached_property
    def action_values(self) -> Profile:
        """What each action of each player pays on average."""
        return tuple(map(read_only, self.game.action_values(self.profile)))

    @functools.cached_property
    def values(self) -> Floats:
        """`[N]`, what each player gets on average."""
        pairs = zip(self.profile, self.action_values, strict=True)
        return read_only([policy @ own for policy, own in pairs])

    @functools.cached_property
    def regret(self) -> Floats:
        """`[N]`, how much more the best action of each player pays on average."""
        pairs = zip(self.profile, self.action_values, strict=True)
        return read_only([policy @ (own.max() - own) for policy, own in pairs])

    @functools.cached_property
    def residual(self) -> float:
        """How much an action's value differs from what it pays, as a share of the payoffs."""
        size = self._setting.payoffs.size
        return float(abs(self._response.residual(self._vector)).max() / (size or 1.0))

    @property
    def spectral_radius(self) -> float:
        """The largest absolute eigenvalue of the Jacobian of the response."""
        return self._local.spectral_radius

    @property
    def index(self) -> int:
        """The sign of `det(I - J)`; 0 where it is 0 to rounding: equilibria meet there."""
        return self._local.index

    @property
    def stable(self) -> bool:
        """Do players come back to it who respond to each other again and again?"""
        return self.spectral_radius < 1

    @functools.cached_property
    def _response(self) -> Response:
        return Response(self._setting.payoffs, self.softmax)

    @functools.cached_property
    def _local(self) -> Local:
        return local(self._response, self._vector)

    def _by_player(self, rows: Floats) -> Profile:
        pairs = zip(rows, self.game.shape, strict=True)
        return tuple(read_only(row[:count]) for row, count in pairs)

    def __repr__(self) -> str:
        profile = " ".join(str(np.round(own, 4)) for own in self.profile)
        kind = "stable" if self.stable else "unstable"
        return f"Equilibrium({profile}, {kind}, index={self.index:+d})"


class Equilibria(Found[Equilibrium]):
    """Equilibria of a game under one softmax, and whether they are all."""
