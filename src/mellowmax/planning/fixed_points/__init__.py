"""All fixed points of planning: found, traced over a parameter, and the field around them."""

from .find import FixedPoint, FixedPoints, fixed_points
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
