"""What takes an accelerator to measure, measured once and kept here, with what made it."""

from __future__ import annotations

from importlib import resources
from typing import Any

import pandas as pd

from .store import read_table

__all__ = ["read"]


def read(name: str) -> tuple[pd.DataFrame, dict[str, Any]]:
    """One of the Parquet tables in `data`, such as `"fig11_readings"`, and what made it."""
    source = resources.files(__package__) / "data" / f"{name}.parquet"
    with resources.as_file(source) as path:
        return read_table(path)
