"""What the steps of a batch must satisfy, in NumPy and in the compiled program."""

from __future__ import annotations

__all__ = ["CORRECTIONS", "ERROR", "EXACT", "KINK", "MOST_STEPS", "SHORTEST"]

SHORTEST = 1e-10
"""A game whose step must be shorter than this is given up."""
KINK = 1e-6
"""A step shorter than this may pass a corner, as in `_fixed_points.follow`."""
MOST_STEPS = 2000
CORRECTIONS = 6
"""The most corrections of a step, by Newton's method: one that needs more is too long."""
ERROR = 1e-9
"""About how far a point on the way may be from the branch."""
EXACT = 1e-12
"""The largest residual of an equilibrium, as a share of the payoffs."""
