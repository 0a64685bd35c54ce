"""Games in normal form, played by softmax: quantal response equilibria (section 8)."""

from .equilibrium import Equilibria, Equilibrium
from .find import equilibria
from .game import Game
from .trace import Branch, trace

__all__ = ["Branch", "Equilibria", "Equilibrium", "Game", "equilibria", "trace"]
