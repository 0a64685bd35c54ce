"""Box2D's constants (`b2Settings.h`), and one of ours. Metres, kilograms, seconds, radians."""

from __future__ import annotations

import math

__all__ = [
    "ANGULAR_SLOP",
    "CONVERGED",
    "EPSILON",
    "LINEAR_SLOP",
    "MAX_ANGULAR_CORRECTION",
    "MAX_LINEAR_CORRECTION",
    "MAX_ROTATION",
    "MAX_TRANSLATION",
    "POSITION_ITERATIONS",
    "RADIUS",
    "TOI_POSITION_ITERATIONS",
    "VELOCITY_ITERATIONS",
]

LINEAR_SLOP = 0.005
"""How far shapes may overlap, and joints come apart, before the position solver corrects them."""
ANGULAR_SLOP = math.radians(2)
"""How far a joint may be beyond its limit before the position solver corrects it."""
RADIUS = 0.02
"""The skins of two polygons together: they touch when their cores are this close."""
MAX_LINEAR_CORRECTION = 0.2
"""The furthest that one pass of the position solver moves a body."""
MAX_ANGULAR_CORRECTION = math.radians(8)
"""The furthest that one pass of the position solver turns a joint."""
MAX_TRANSLATION = 2.0
"""The furthest that a body moves within a step."""
MAX_ROTATION = math.pi / 2
"""The furthest that a body turns within a step."""
VELOCITY_ITERATIONS = 180
"""The most iterations of the velocity solver, as Gymnasium's Lunar Lander asks for."""
POSITION_ITERATIONS = 60
"""The most iterations of the position solver, as Gymnasium's Lunar Lander asks for."""
TOI_POSITION_ITERATIONS = 20
"""The most iterations of the position solver after a time of impact."""
CONVERGED = 1e-6
"""The change at which velocities have converged: ours, since Box2D makes all iterations."""
EPSILON = 1.1920929e-07
"""The machine epsilon of float32."""
