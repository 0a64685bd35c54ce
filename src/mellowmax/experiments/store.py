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
from .item import Spec

__all__ = ["Store", "read_table", "write_table"]

METADATA = b"mellowmax"


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
        """Cells of an item that are none of those known: another version, config or scale."""
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
    try:
        arrow = pq.read_table(path, partitioning=None)
    except (pa.ArrowInvalid, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        rule = "a cell must be a Parquet file that can be read"
        raise ValueError(f"{rule}, got {str(path)!r}: delete it to make it again") from error
    made_by = json.loads((arrow.schema.metadata or {}).get(METADATA, b"{}"))
    return arrow.to_pandas(), made_by
