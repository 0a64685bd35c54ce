"""Gambit as an oracle for logit equilibria; nothing of it is copied."""

from __future__ import annotations

import numpy as np

from mellowmax import Boltzmann
from mellowmax.games import trace

__all__ = ["explained", "principal"]


def principal(game, beta):
    """Gambit's equilibrium on the principal branch."""
    import pygambit

    theirs = pygambit.StrategicGame.from_arrays(*game.payoffs)
    (point,) = pygambit.qre.logit_solve_lambda(theirs, beta)
    return [
        np.array([float(point.profile[player][s]) for s in theirs.get_strategies(player)])
        for player in theirs.players
    ]


def difference(one, other):
    return max(abs(np.asarray(a) - b).max() for a, b in zip(one, other, strict=True))


def explained(game, beta, profile):
    """How far a profile is from Gambit's, and why, if it is more than 1e-7 and Gambit's is off.

    Its profiles are exact to some 1e-7 where the branch is steep, and a step of it can pass a fold
    just beyond the parameter, after which it gives a later equilibrium of the same branch. In both
    cases the profile must be the first of the branch, followed in small steps.
    """
    theirs = principal(game, beta)
    apart = difference(profile, theirs)
    if apart <= 1e-7:
        return apart, ""
    branch = trace(game, Boltzmann, [0.0, 1.5 * beta], step=0.05)
    first, *later = (point.profile for point in branch.at(beta))
    if difference(first, profile) > 1e-9:
        return apart, ""
    if difference(first, theirs) < 1e-5:
        return apart, "Gambit's profile is rounded"
    if any(difference(one, theirs) < 1e-4 for one in later):
        return apart, "a step of Gambit's has passed a fold"
    return apart, ""
