"""Layer 4: planning. From an MDP and a softmax to values, with proved bounds."""

from .bounds import suboptimality
from .continuation import Branch, Fold, Trace, trace_fixed_points
from .field import VectorField, vector_field
from .points import FixedPoint, FixedPoints, fixed_points
from .solution import NotConvergedError, Progress, Solution
from .solver import evaluate, solve

__all__ = [
    "Branch",
    "FixedPoint",
    "FixedPoints",
    "Fold",
    "NotConvergedError",
    "Progress",
    "Solution",
    "Trace",
    "VectorField",
    "evaluate",
    "fixed_points",
    "solve",
    "suboptimality",
    "trace_fixed_points",
    "vector_field",
]
