"""Games whose equilibria are known from elsewhere."""

from __future__ import annotations

import numpy as np

from mellowmax.games import Game

CONSTANT_SUM = Game.from_arrays([[1, 1], [0, 1]], [[1, 1], [2, 1]])
"""`const_sum_game.nfg` of Gambit's tests."""
OCHS = Game.from_arrays([[1.1141, 0], [0, 0.2785]], [[0, 1.1141], [1.1141, 0]])
"""Ochs (1995), in the units of McKelvey and Palfrey (1995)."""
IDENTITY = Game.symmetric(np.eye(2))
STAG_HUNT = Game.symmetric([[4, 0], [3, 3]])
THREE_BY_TWO = Game.zero_sum([[10, -10], [-12, 10], [88, -558]])
"""A zero-sum game with three equilibria of mellowmax."""


def of_three():
    """The 2 x 2 x 2 game of McKelvey and McLennan, with 9 Nash equilibria."""
    payoffs = np.zeros((3, 2, 2, 2))
    payoffs[:, 0, 0, 0] = 9, 8, 12
    payoffs[:, 1, 1, 0] = 9, 8, 2
    payoffs[:, 1, 0, 1] = payoffs[:, 0, 1, 1] = 3, 4, 6
    return Game(payoffs)


OUTCOMES = """NFG 1 R "A game of \\"three\\"" { "Ann" "Bob" "Cy" }

{ { "up" "down" }
{ "left" "right" }
{ "1" "2" }
}
"What is said
of it"

{
{ "first" 9, 8, 12 }
{ "" 1/2, .25 -3e-1 }
}
1 0 2 0
0 0 0 2
"""
"""A file in the outcome format."""
