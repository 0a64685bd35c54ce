"""Layer 4: planning. From an MDP and a softmax to values, with proved bounds."""

from .bounds import suboptimality
from .solution import NotConvergedError, Progress, Solution
from .solver import evaluate, solve

__all__ = ["NotConvergedError", "Progress", "Solution", "evaluate", "solve", "suboptimality"]
