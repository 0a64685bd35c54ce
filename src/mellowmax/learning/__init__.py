"""Layer 5: tabular learning. SARSA and its kin with any softmax, thousands of runs at once."""

from .gymnasium import drive
from .learner import Learned, Learner, Update, expected_sarsa, q_learning, sarsa
from .result import Training
from .train import train

__all__ = [
    "Learned",
    "Learner",
    "Training",
    "Update",
    "drive",
    "expected_sarsa",
    "q_learning",
    "sarsa",
    "train",
]
