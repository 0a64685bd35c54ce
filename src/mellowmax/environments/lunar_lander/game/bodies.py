"""What the lander is made of, and Box2D's own constants. Metres, kilograms, seconds; y is up.

Gymnasium draws 30 pixels a metre, and gives its shapes in pixels. The legs stand apart: leg 0 of
the observation is the one at +x, here `RIGHT`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ..arrays.vectors import Vector

__all__ = [
    "ANGULAR_SLOP",
    "FLOOR_FRICTION",
    "HULL",
    "LEFT",
    "LEG",
    "LINEAR_SLOP",
    "MAX_ANGULAR_CORRECTION",
    "MAX_LINEAR_CORRECTION",
    "MAX_MOTOR_IMPULSE",
    "MAX_ROTATION",
    "MAX_TRANSLATION",
    "PIXELS",
    "RADIUS",
    "RIGHT",
    "SECONDS",
    "TERRAIN_FRICTION",
    "VIEW",
    "Body",
    "Hinge",
]

PIXELS = 30.0
"""How many a metre has."""
VIEW = Vector(600 / PIXELS, 400 / PIXELS)
"""What is in view."""
SECONDS = 1 / 50
"""Of a step."""

LINEAR_SLOP = 0.005
"""How far shapes may overlap and joints come apart before they are put right."""
ANGULAR_SLOP = math.radians(2)
RADIUS = 0.02
"""The skins of two shapes together: they touch when their cores are this close."""
MAX_LINEAR_CORRECTION = 0.2
MAX_ANGULAR_CORRECTION = math.radians(8)
MAX_TRANSLATION = 2.0
"""How far a body may move within a step."""
MAX_ROTATION = math.pi / 2


class Body(NamedTuple):
    """A body of one convex shape."""

    inverse_mass: float
    inverse_inertia: float
    """About the centre of mass."""
    centre: float
    """How far above its origin the centre of mass lies."""
    vertices: tuple[Vector, ...]
    """Counter-clockwise."""
    normals: tuple[Vector, ...]
    """Of the edge from each vertex to the next one."""
    friction: float
    reach: float
    """No point is further from the centre of mass."""


def _body(
    mass: float,
    inertia: float,
    centre: float,
    friction: float,
    pixels: list[tuple[float, float]],
) -> Body:
    """A body from its inertia about the origin."""
    vertices = [Vector(x / PIXELS, y / PIXELS) for x, y in pixels]
    normals = []
    for a, b in zip(vertices, vertices[1:] + vertices[:1], strict=True):
        size = math.hypot(b.x - a.x, b.y - a.y)
        normals.append(Vector((b.y - a.y) / size, (a.x - b.x) / size))
    reach = max(math.hypot(v.x, v.y - centre) for v in vertices)
    about_centre = inertia - mass * centre**2
    return Body(
        1 / mass, 1 / about_centre, centre, tuple(vertices), tuple(normals), friction, reach
    )


HULL = _body(
    mass=4.816666603088379,
    inertia=0.8333148956298828,
    centre=0.10130717605352402,
    friction=0.1,
    pixels=[(17, -10), (17, 0), (14, 17), (-14, 17), (-17, 0), (-17, -10)],
)
LEG = _body(
    mass=0.07111112028360367,
    inertia=0.0017909470479935408,
    centre=0.0,
    friction=0.2,
    pixels=[(-2, -8), (2, -8), (2, 8), (-2, 8)],
)

MAX_MOTOR_IMPULSE = 40 * SECONDS
"""The torque of a leg's motor, over a step."""
TERRAIN_FRICTION, FLOOR_FRICTION = 0.1, 0.2
"""Two bodies together have the geometric mean of their frictions."""


class Hinge(NamedTuple):
    """How a leg hangs on the hull: on the hull's origin, by an anchor of its own, within limits."""

    anchor: Vector
    """In the leg."""
    reference: float
    """The angle between them that counts as 0."""
    lower: float
    upper: float
    speed: float
    """What the motor would turn it at."""


def _hinge(side: int, lower: float, upper: float) -> Hinge:
    anchor = Vector(side * 20 / PIXELS, 18 / PIXELS)
    return Hinge(anchor, side * 0.05, lower, upper, side * 0.3)


RIGHT = _hinge(-1, 0.4, 0.9)
LEFT = _hinge(1, -0.9, -0.4)
