"""Planning in thousands of small MDPs at once: value iteration, and the search for fixed points.

The experiments of section 7.1 need the iterations and the fixed points of many random MDPs, each
with several parameters. `Batch` puts MDPs of different sizes into arrays of one size;
`value_iteration`, `fixed_point` and `find_fixed_points` take such a batch, with one softmax for all
or a parameter for each. What an MDP gives does not depend on the others in the batch, bit
for bit (from `fixed_point`, to rounding).

`solve` and `fixed_points` are for one MDP: they have more methods, bounds and proofs.
"""

from .fixed_point import fixed_point
from .fixed_points import BatchFixedPoints, find_fixed_points
from .mdps import Batch
from .value_iteration import ValueIterationResult, value_iteration

__all__ = [
    "Batch",
    "BatchFixedPoints",
    "ValueIterationResult",
    "find_fixed_points",
    "fixed_point",
    "value_iteration",
]
