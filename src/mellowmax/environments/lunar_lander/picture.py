"""A picture of a lander: the ground with its flags, the hull, the legs and the flame."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from .game.bodies import HULL, LEG, PIXELS, VIEW, Body
from .game.terrain import EDGES
from .state import Leg, Place, State

__all__ = ["draw_lander"]

FINE = 2
"""The factor by which it is drawn larger, to be smooth after it is scaled down."""
SIZE = round(VIEW.x * PIXELS), round(VIEW.y * PIXELS)

# The colours of Okabe and Ito on a dark sky, which differ in lightness too.
SKY, GROUND, EDGE = "#0f1626", "#8d929b", "#dfe2e6"
POLE, FLAG = "#ffffff", "#f0e442"
SHELL, WINDOW, FOOT, FOOT_DOWN = "#56b4e9", "#0072b2", "#dfe2e6", "#009e73"
FLAME, GLOW = "#d55e00", "#f0e442"

Points = Sequence[tuple[float, float]]

PAD = (4 / EDGES * VIEW.x, 6 / EDGES * VIEW.x)
"""The two ends of the helipad."""
MAIN_FLAME: Points = [(-6, -10), (6, -10), (0, -34)]
RIGHT_FLAME: Points = [(17, 18), (17, 10), (35, 14)]
LEFT_FLAME: Points = [(-x, y) for x, y in RIGHT_FLAME]
FLAMES = {1: RIGHT_FLAME, 2: MAIN_FLAME, 3: LEFT_FLAME}
"""The flame of each action, in the hull's pixels. A flame to the right pushes to the left."""
GLASS: Points = [(-9, 13), (9, 13), (11, 3), (-11, 3)]


def draw_lander(state: State, action: int = 0) -> npt.NDArray[np.uint8]:
    """A lander after an action, as red, green and blue, `[400, 600, 3]`.

    Examples:
        >>> import jax
        >>> from mellowmax.environments.lunar_lander import launch, named
        >>> draw_lander(named(launch(jax.random.key(0)))).shape
        (400, 600, 3)
    """
    image = Image.new("RGB", (SIZE[0] * FINE, SIZE[1] * FINE), SKY)
    draw = ImageDraw.Draw(image)
    heights = [float(height) for height in state.terrain]
    _draw_ground(draw, heights)
    hull = state.hull.place
    for leg in (state.right, state.left):
        _draw_leg(draw, leg)
    if action in FLAMES:
        flame = FLAMES[action]
        draw.polygon(_placed(hull, HULL, flame), FLAME)
        middle = [sum(axis) / 3 for axis in zip(*flame, strict=True)]
        inner = [tuple((x + m) / 2 for x, m in zip(p, middle, strict=True)) for p in flame]
        draw.polygon(_placed(hull, HULL, inner), GLOW)
    shell = [(v.x * PIXELS, v.y * PIXELS) for v in HULL.vertices]
    draw.polygon(_placed(hull, HULL, shell), SHELL, EDGE, FINE)
    draw.polygon(_placed(hull, HULL, GLASS), WINDOW)
    return np.array(image.resize(SIZE, Image.Resampling.BOX), np.uint8)


def _draw_ground(draw: ImageDraw.ImageDraw, heights: Sequence[float]) -> None:
    line = [_pixel(i * VIEW.x / EDGES, height) for i, height in enumerate(heights)]
    draw.polygon([_pixel(0, 0), *line, _pixel(VIEW.x, 0)], GROUND)
    draw.line(line, EDGE, 2 * FINE)
    level = heights[EDGES // 2]
    for x in PAD:
        (left, bottom), top = _pixel(x, level), _pixel(x, level + 50 / PIXELS)[1]
        draw.line([(left, bottom), (left, top)], POLE, FINE)
        draw.polygon(
            [(left, top), (left, top + 10 * FINE), (left + 25 * FINE, top + 5 * FINE)], FLAG
        )


def _draw_leg(draw: ImageDraw.ImageDraw, leg: Leg) -> None:
    shape = [(v.x * PIXELS, v.y * PIXELS) for v in LEG.vertices]
    colour = FOOT_DOWN if bool(leg.on_ground) else FOOT
    draw.polygon(_placed(leg.motion.place, LEG, shape), colour, EDGE, FINE // 2)


def _placed(place: Place, body: Body, points: Points) -> list[tuple[float, float]]:
    """Points of a body, given in its pixels, on the picture."""
    angle, x, y = (float(value) for value in (place.angle, place.centre.x, place.centre.y))
    sin, cos = math.sin(angle), math.cos(angle)
    placed = []
    for right, up in points:
        right, up = right / PIXELS, up / PIXELS - body.centre
        placed.append(_pixel(x + cos * right - sin * up, y + sin * right + cos * up))
    return placed


def _pixel(x: float, y: float) -> tuple[float, float]:
    """The pixel at which a point of the world is drawn."""
    return x * PIXELS * FINE, (VIEW.y - y) * PIXELS * FINE
