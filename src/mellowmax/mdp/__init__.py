"""Markov decision processes: the class `MDP`, its sources, and examples.

`MDP` holds and checks the arrays of a model, dense or sparse, and reads and writes other forms of
it; `Model` has its arrays alone, for functions that are differentiated. The functions make the
paper's MDPs and families that grow to any size.
"""

from .arrays import Model
from .generators import chain, garnet, grid_world, random_mdp, two_state
from .model import MDP
from .taxi import multi_passenger_taxi

__all__ = [
    "MDP",
    "Model",
    "chain",
    "garnet",
    "grid_world",
    "multi_passenger_taxi",
    "random_mdp",
    "two_state",
]
