"""Rollouts: they play episodes of functional and of Gymnasium environments, and never learn."""

from .environment import FunctionalEnvironment
from .functional import FunctionalRollouts
from .gymnasium import GymnasiumRollouts
from .make import Environment, make_rollouts
from .rollouts import Played, Rollouts
from .vector import VectorRollouts

__all__ = [
    "Environment",
    "FunctionalEnvironment",
    "FunctionalRollouts",
    "GymnasiumRollouts",
    "Played",
    "Rollouts",
    "VectorRollouts",
    "make_rollouts",
]
