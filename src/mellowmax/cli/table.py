"""A table of numbers, in pieces where a terminal is too narrow for it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from .._common.terminal import wrapped

__all__ = ["Table", "column"]


def column(heading: str, cells: Sequence[str], least: int) -> list[str]:
    """The cells of a column below its heading, right-justified, after two spaces.

    Args:
        heading: of the column.
        cells: below it.
        least: the width of the column if nothing in it is wider.
    """
    width = max(least, 2 + max(map(len, [heading, *cells])))
    return [f"{cell:>{width}s}" for cell in [heading, *cells]]


@dataclasses.dataclass(frozen=True)
class Table:
    """Columns of equal length; each cell is as wide as its column."""

    title: str
    """Above the columns from `titled` on."""
    index: list[str]
    """The first column, which every piece has."""
    columns: list[list[str]]
    """The other columns."""
    titled: int = 0

    def lines(self, width: int | None) -> list[str]:
        """The lines for a terminal of a width, which no number crosses; None for any width."""
        start = len(self.index[0])
        pieces: list[list[list[str]]] = [[]]
        used = start
        for one in self.columns:
            if pieces[-1] and used + len(one[0]) > (math.inf if width is None else width):
                pieces.append([])
                used = start
            pieces[-1].append(one)
            used += len(one[0])
        indent = 2 + start + sum(len(one[0]) for one in self.columns[: self.titled])
        lines = wrapped(" " * indent + self.title, width, indent).split("\n")
        for number, piece in enumerate(pieces):
            lines += [""] * (number > 0)
            lines += ["".join(cells) for cells in zip(self.index, *piece, strict=True)]
        return lines
