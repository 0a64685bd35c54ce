"""Layer 4: planning. From an MDP and a softmax to values, with proved bounds."""

from . import batch
from .bounds import suboptimality
from .fixed_points.find import fixed_points
from .fixed_points.point import FixedPoint, FixedPoints
from .fixed_points.trace import Branch, Fold, Trace, trace_fixed_points
from .fixed_points.vector_field import VectorField, vector_field
from .solution import NotConvergedError, Progress, Solution
from .solve import evaluate, solve

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
    "batch",
    "evaluate",
    "fixed_points",
    "solve",
    "suboptimality",
    "trace_fixed_points",
    "vector_field",
]
