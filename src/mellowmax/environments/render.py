"""The taxi as a picture, in the manner of figure 8."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from ..mdp.taxi import TaxiGrid

__all__ = ["TaxiPicture"]

Pixels = npt.NDArray[np.uint8]

CELL = 48
"""The width and height of a cell in pixels."""
FINE = 4
"""The factor by which a tile is drawn larger, to be smooth after it is scaled down."""

# Okabe and Ito's colours, which differ in lightness too: they can be distinguished without colour.
FLOOR, LINE, WALL, TEXT = "#ffffff", "#c4c4c4", "#33373d", "#1a1a1a"
START, DESTINATION = "#ececec", "#b9e3d6"
PASSENGER, TAXI, WINDOW = "#0072b2", "#f0b323", "#fdf3d8"


class TaxiPicture:
    """Draws the states of a grid; what does not move is drawn once.

    Args:
        grid: the grid.

    Examples:
        >>> picture = TaxiPicture(TaxiGrid.parse("S.F / #.D"))
        >>> picture.draw(0).shape
        (97, 145, 3)
    """

    def __init__(self, grid: TaxiGrid) -> None:
        self.grid = grid
        self._corners = [(row * CELL + 1, column * CELL + 1) for row, column in grid.cells.tolist()]
        self._background = _background(grid)
        self._passenger = _passenger()
        self._taxis = [_taxi(count) for count in range(grid.n_passengers + 1)]

    def draw(self, state: int) -> Pixels:
        """The picture of a state in red, green and blue, `[height, width, 3]`."""
        cell, picked = self.grid.decode(state)
        pixels = self._background.copy()
        for passenger, waits_in in enumerate(self.grid.passengers):
            if passenger not in picked:
                self._put(pixels, waits_in, self._passenger)
        self._put(pixels, cell, self._taxis[len(picked)])
        return pixels

    def _put(self, pixels: Pixels, cell: int, tile: npt.NDArray[np.float32]) -> None:
        """Lay a tile over a cell, which remains visible where the tile is not opaque."""
        row, column = self._corners[cell]
        part = pixels[row : row + CELL - 1, column : column + CELL - 1]
        part[...] = tile[..., :3] + part * tile[..., 3:] + 0.5


def _background(grid: TaxiGrid) -> Pixels:
    height, width = len(grid.rows) * CELL + 1, len(grid.rows[0]) * CELL + 1
    image = Image.new("RGB", (width, height), LINE)
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(size=0.55 * CELL)
    fills = {"#": WALL, "S": START, "D": DESTINATION}
    for i, row in enumerate(grid.rows):
        for j, mark in enumerate(row):
            left, top = j * CELL, i * CELL
            edge = int(mark == "#")  # walls that touch become one
            box = (left + 1 - edge, top + 1 - edge, left + CELL - 1 + edge, top + CELL - 1 + edge)
            draw.rectangle(box, fills.get(mark, FLOOR))
            if mark in "SD":
                draw.text((left + CELL / 2, top + CELL / 2), mark, TEXT, font, anchor="mm")
    draw.rectangle((0, 0, width - 1, height - 1), outline=WALL)
    return np.array(image, np.uint8)


def _passenger() -> npt.NDArray[np.float32]:
    image, draw = _sheet()
    draw.ellipse(_scaled(0.17, 0.17, 0.83, 0.83), PASSENGER)
    _write(draw, 0.5, 0.5, "F", 0.44, "#ffffff")
    return _tile(image)


def _taxi(count: int) -> npt.NDArray[np.float32]:
    """A tile with a car from the side, and the number of passengers on its door."""
    image, draw = _sheet()
    outline, width = TEXT, round(0.03 * CELL * FINE)
    roof = [(0.22, 0.46), (0.33, 0.22), (0.67, 0.22), (0.78, 0.46)]
    glass = [(0.29, 0.46), (0.37, 0.28), (0.63, 0.28), (0.71, 0.46)]
    draw.rounded_rectangle(_scaled(0.42, 0.13, 0.58, 0.24), 0.02 * CELL * FINE, outline)
    draw.polygon([_scaled(*point) for point in roof], TAXI, outline, width)
    draw.polygon([_scaled(*point) for point in glass], WINDOW, outline, width // 2)
    radius = 0.09 * CELL * FINE
    draw.rounded_rectangle(_scaled(0.06, 0.42, 0.94, 0.78), radius, TAXI, outline, width)
    for middle in (0.25, 0.75):
        draw.ellipse(_scaled(middle - 0.11, 0.67, middle + 0.11, 0.89), outline)
        draw.ellipse(_scaled(middle - 0.045, 0.735, middle + 0.045, 0.825), WINDOW)
    _write(draw, 0.5, 0.595, str(count), 0.36, TEXT)
    return _tile(image)


def _sheet() -> tuple[Image.Image, ImageDraw.ImageDraw]:
    """A large, empty tile to draw on."""
    size = (CELL - 1) * FINE
    image = Image.new("RGBA", (size, size), (0, 0, 0, 0))
    return image, ImageDraw.Draw(image)


def _scaled(*parts: float) -> tuple[float, ...]:
    """Coordinates on a sheet in pixels, from fractions of a cell."""
    return tuple(part * (CELL - 1) * FINE for part in parts)


def _write(
    draw: ImageDraw.ImageDraw, x: float, y: float, text: str, size: float, colour: str
) -> None:
    font = ImageFont.load_default(size=size * CELL * FINE)
    position = (x * (CELL - 1) * FINE, y * (CELL - 1) * FINE)
    stroke = 0.012 * CELL * FINE
    draw.text(position, text, colour, font, anchor="mm", stroke_width=stroke, stroke_fill=colour)


def _tile(image: Image.Image) -> npt.NDArray[np.float32]:
    """A tile from a sheet, `[height, width, 4]`: colour times opacity, and 1 minus opacity."""
    small = image.resize((CELL - 1, CELL - 1), Image.Resampling.BOX)  # in RGBa, so edges stay clean
    values = np.array(small, np.float32)
    opacity = values[..., 3:] / 255
    return np.concatenate([values[..., :3] * opacity, 1 - opacity], axis=-1)
