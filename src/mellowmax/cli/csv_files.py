"""Tables as CSV, which spreadsheets and pandas read."""

from __future__ import annotations

import codecs
import csv
import dataclasses
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy.typing as npt

from .._common.files import replacing
from .._common.shown import shown

__all__ = ["CsvTable", "has_columns", "read_csv", "write_csv"]


def write_csv(path: Path, columns: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write columns of equal length below their names, whole or not at all.

    A number has the digits that it takes to read the same number again.
    """
    with replacing(path) as file:
        writer = csv.writer(codecs.getwriter("utf-8")(file), lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def has_columns(path: Path, names: Iterable[str]) -> bool:
    """Does a file begin with the names of these columns?"""
    line = f"{','.join(names)}\n".encode()
    with path.open("rb") as file:
        return file.read(len(line)) == line


@dataclasses.dataclass(frozen=True)
class CsvTable:
    """The texts of a CSV file."""

    argument: str
    """The argument that named the file."""
    path: Path
    names: list[str]
    """The names of its columns."""
    rows: list[list[str]]
    lines: list[int]
    """The number of the line of each row, where it ends."""

    def error(self, why: str) -> ValueError:
        """The error for a file that is not as it must be."""
        return _wrong(self.argument, self.path, why)

    def column(self, name: str) -> list[str]:
        """The texts of a column."""
        place = self.names.index(name)
        return [row[place].strip() for row in self.rows]

    def numbers_of(self, name: str, known: Mapping[str, int]) -> list[int]:
        """The numbers of what a column names."""
        return [self._number(name, row, text, known) for row, text in enumerate(self.column(name))]

    def _number(self, name: str, row: int, text: str, known: Mapping[str, int]) -> int:
        number = known.get(text)
        if number is None:
            some = ", ".join(map(shown, list(known)[:3]))
            rule = f"must have one of the model's {name}s, such as {some}"
            raise self.error(f"line {self.lines[row]} {rule}, got {shown(text)}")
        return number

    def reals(self, name: str) -> list[float]:
        """The numbers in a column, none of which is infinite."""
        return [self._real(name, row, text) for row, text in enumerate(self.column(name))]

    def _real(self, name: str, row: int, text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            place = f"line {self.lines[row]} must have a finite number for {shown(name)}"
            raise self.error(f"{place}, got {shown(text)}")
        return number


def read_csv(argument: str, path: Path) -> CsvTable:
    """Read a CSV file in UTF-8, whose first line has the names of its columns.

    Raises:
        ValueError: for what is no such file.
    """
    if not path.is_file():
        raise ValueError(f"`{argument}` must be a CSV file that exists, got {str(path)!r}")
    rows, lines = [], []
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, strict=True)
            for row in filter(None, reader):
                rows.append(row)
                lines.append(reader.line_num)
    except UnicodeDecodeError:
        raise _wrong(argument, path, "it is not in UTF-8") from None
    except csv.Error as error:
        raise _wrong(argument, path, str(error)) from None
    if not rows:
        raise _wrong(argument, path, "it is empty")
    names = [name.strip() for name in rows[0]]
    table = CsvTable(argument, path, names, rows[1:], lines[1:])
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise table.error(f"it must have a column once, got {shown(twice[0])} twice")
    if "" in names:
        raise table.error("every column must have a name")
    for row, line in zip(table.rows, table.lines, strict=True):
        if len(row) != len(names):
            raise table.error(f"line {line} must have {len(names)} values, got {len(row)}")
    return table


def _wrong(argument: str, path: Path, why: str) -> ValueError:
    return ValueError(f"`{argument}` must be a CSV file, got {str(path)!r}: {why}")
