"""Games in normal form under a softmax: quantal response and level-k (section 8).

>>> from mellowmax import Mellowmax
>>> game = Game.from_arrays([[1, 1], [0, 1]], [[1, 1], [2, 1]])
>>> (point,) = equilibria(game, Mellowmax(2.0))
>>> print(point)
Equilibrium([0.6393 0.3607] [0.5883 0.4117], stable, index=+1)
"""

from . import batch
from .equilibrium import Equilibria, Equilibrium
from .find import equilibria
from .fit import Fit, fit
from .game import Game
from .level_k import level_k
from .played import HumanPlay, PlayedGame, human_play
from .trace import Branch, trace

__all__ = [
    "Branch",
    "Equilibria",
    "Equilibrium",
    "Fit",
    "Game",
    "HumanPlay",
    "PlayedGame",
    "batch",
    "equilibria",
    "fit",
    "human_play",
    "level_k",
    "trace",
]
