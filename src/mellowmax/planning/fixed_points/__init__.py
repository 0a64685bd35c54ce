"""All fixed points of planning: found, traced over a parameter, and the updates around them."""

from .find import fixed_points
from .point import FixedPoint, FixedPoints
from .trace import Branch, Fold, Trace, trace_fixed_points
from .vector_field import VectorField, vector_field

__all__ = [
    "Branch",
    "FixedPoint",
    "FixedPoints",
    "Fold",
    "Trace",
    "VectorField",
    "fixed_points",
    "trace_fixed_points",
    "vector_field",
]
