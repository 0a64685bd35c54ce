"""Layer 3: Markov decision processes, where they come from and what they are."""

from .generators import chain, garnet, grid_world, random_mdp, two_state
from .model import MDP
from .taxi import multi_passenger_taxi

__all__ = [
    "MDP",
    "chain",
    "garnet",
    "grid_world",
    "multi_passenger_taxi",
    "random_mdp",
    "two_state",
]
