"""Games in normal form, played by softmax: quantal response equilibria (section 8)."""

from .game import Game

__all__ = ["Game"]
