"""Cells on disk: a finished one is there for good, with what made it.

A cell is one Parquet file, `cells/ITEM/NAME.KEY.parquet`. The key is a digest of all that
determines its numbers: the item, the version of its code and of the package, and the specification.
A cell of another version or specification has another key, so it is never taken for this one. A
file appears whole or not at all, and two processes that make the same cell write the same table.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from .. import __version__
from .._common.files import replacing
from .._common.schema import Field, json_object
from .item import Spec

__all__ = ["Store", "read_cell", "read_table", "write_table"]

METADATA = b"mellowmax"
MADE_BY = {
    "item": Field("text"),
    "cell": Field("text"),
    "device": Field("text"),
    "seconds": Field("number", least=0),
}
"""The fields of a cell's origin that are read again."""


class Store:
    """The cells in a directory.

    Args:
        root: the directory; it is made when the first cell is written.
    """

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)

    def path(self, item: str, version: int, name: str, spec: Spec) -> Path:
        """The file of a cell."""
        made_by = {"package": __version__, "item": item, "version": version, "spec": spec}
        text = json.dumps(made_by, sort_keys=True, allow_nan=False)
        key = hashlib.sha256(text.encode()).hexdigest()[:16]
        return self.root / "cells" / item / f"{name}.{key}.parquet"

    def others(self, item: str, known: Collection[Path]) -> list[Path]:
        """The cells of an item that are not known: of another version, config or scale."""
        return sorted(set((self.root / "cells" / item).glob("*.parquet")) - set(known))


def write_table(path: Path, table: pd.DataFrame, made_by: Mapping[str, Any] | None = None) -> None:
    """Write a table as Parquet, whole or not at all; the same table gives the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    metadata = {} if made_by is None else {METADATA: json.dumps(made_by).encode()}
    with replacing(path) as file:
        pq.write_table(arrow.replace_schema_metadata(metadata), file)


def read_table(path: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """A table, and what `made_by` said of it.

    Raises:
        ValueError: for a file that is no such table.
    """
    table, made_by = _read(path)
    return table, json.loads(made_by)


def read_cell(path: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The table of a cell, and `MADE_BY`.

    Raises:
        ValueError: for a file that is no cell.
    """
    table, text = _read(path)
    try:
        return table, json_object(METADATA.decode(), text, MADE_BY)
    except ValueError as error:
        rule = "a cell must say what made it"
        raise ValueError(f"{rule}, got {str(path)!r}, where {error}") from None


def _read(path: Path) -> tuple[pd.DataFrame, bytes]:
    try:
        arrow = pq.read_table(path, partitioning=None)
        made_by = (arrow.schema.metadata or {}).get(METADATA, b"{}")
        return arrow.replace_schema_metadata(None).to_pandas(), made_by
    except (pa.ArrowException, ValueError, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        rule = "a cell must be a Parquet file that can be read"
        raise ValueError(f"{rule}, got {str(path)!r}: delete it to make it again") from error
