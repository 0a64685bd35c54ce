"""The hull, the legs and the joints between them. Metres, kilograms, seconds; y points up.

Gymnasium gives its shapes in pixels, 30 a metre. Leg 0 of the observation is the one at +x, here
`RIGHT`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ..arrays.vectors import Vector

__all__ = [
    "FLOOR_FRICTION",
    "HULL",
    "LEFT",
    "LEG",
    "MAX_MOTOR_IMPULSE",
    "PIXELS",
    "RIGHT",
    "SECONDS",
    "TERRAIN_FRICTION",
    "VIEW",
    "Body",
    "JointDef",
]

PIXELS = 30.0
"""Pixels per metre."""
VIEW = Vector(600 / PIXELS, 400 / PIXELS)
"""The width and the height of the view."""
SECONDS = 1 / 50
"""The duration of a step."""


class Body(NamedTuple):
    """A body of one convex shape."""

    inverse_mass: float
    inverse_inertia: float
    """The inverse of the moment of inertia about the centre of mass."""
    centre: float
    """The height of the centre of mass above the origin of the body."""
    vertices: tuple[Vector, ...]
    """The corners, counter-clockwise."""
    normals: tuple[Vector, ...]
    """The normal of the face from each vertex to the next one."""
    friction: float
    reach: float
    """The largest distance of a vertex from the centre of mass."""


def _body(
    mass: float,
    inertia: float,
    centre: float,
    friction: float,
    pixels: list[tuple[float, float]],
) -> Body:
    """A body, from its moment of inertia about the origin and its vertices in pixels."""
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

TERRAIN_FRICTION, FLOOR_FRICTION = 0.1, 0.2


class JointDef(NamedTuple):
    """The definition of the revolute joint that fastens a leg to the origin of the hull."""

    anchor: Vector
    """The anchor in the frame of the leg."""
    reference_angle: float
    """The angle between leg and hull that counts as 0."""
    lower_angle: float
    upper_angle: float
    motor_speed: float


def _joint_def(side: int, lower: float, upper: float) -> JointDef:
    anchor = Vector(side * 20 / PIXELS, 18 / PIXELS)
    return JointDef(anchor, side * 0.05, lower, upper, side * 0.3)


RIGHT = _joint_def(-1, 0.4, 0.9)
LEFT = _joint_def(1, -0.9, -0.4)
MAX_MOTOR_IMPULSE = 40 * SECONDS
"""The largest torque of a joint's motor, times the duration of a step."""
