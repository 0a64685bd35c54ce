"""Planning: from an MDP and a softmax to values, with proved bounds.

`solve` finds the fixed point of the Bellman operator with any softmax, the values of each step up
to a horizon, or the average reward; `evaluate` the exact value of a policy, and `fixed_points` and
`trace_fixed_points` all fixed points where there are several. `fixed_point` is the same fixed point
as a function that JAX differentiates.
"""

from .._common.extras import needed_by

with needed_by("mellowmax.planning", "jax"):
    from . import batch
    from .average_reward import AverageSolution
    from .bounds import suboptimality
    from .evaluate import evaluate
    from .finite_horizon import FiniteHorizonSolution
    from .fixed_point import Point, fixed_point
    from .fixed_points.find import fixed_points
    from .fixed_points.point import FixedPoint, FixedPoints
    from .fixed_points.trace import Branch, Fold, Trace, trace_fixed_points
    from .fixed_points.vector_field import VectorField, vector_field
    from .sensitivity import Sensitivity
    from .simulate import Simulation, simulate
    from .solution import NotConvergedError, Solution, SolveProgress, Status
    from .solve import solve

__all__ = [
    "AverageSolution",
    "Branch",
    "FiniteHorizonSolution",
    "FixedPoint",
    "FixedPoints",
    "Fold",
    "NotConvergedError",
    "Point",
    "Sensitivity",
    "Simulation",
    "Solution",
    "SolveProgress",
    "Status",
    "Trace",
    "VectorField",
    "batch",
    "evaluate",
    "fixed_point",
    "fixed_points",
    "simulate",
    "solve",
    "suboptimality",
    "trace_fixed_points",
    "vector_field",
]
