"""Tables as CSV, which spreadsheets and pandas read."""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy.typing as npt

from .._common.files import replacing

__all__ = ["has_columns", "write_csv"]


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
