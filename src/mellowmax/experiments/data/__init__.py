"""The tables of the package: the paper's own numbers, and what was measured once."""

from __future__ import annotations

from importlib import resources
from typing import Any

import pandas as pd

from ..store import read_table

__all__ = ["OPERATORS", "measured", "paper"]

OPERATORS = {"max": "max", "boltz": "boltzmann", "mm": "mellowmax"}
"""From the paper's names of operators to those of `SOFTMAXES`."""


def paper(name: str) -> pd.DataFrame:
    """The paper's numbers in one of its figures, such as `"fig9_taxi"`.

    They were read off the vector graphics, and are good to about the width of a line. Source:
    K. Asadi and M. L. Littman, "An Alternative Softmax Operator for Reinforcement Learning", ICML
    2017 (arXiv 1612.05628).
    """
    source = resources.files(__package__) / f"{name}.csv"
    with source.open() as file:
        return pd.read_csv(file, comment="#")


def measured(name: str) -> tuple[pd.DataFrame, dict[str, Any]]:
    """A table that takes an accelerator to measure, such as `"fig11_readings"`, and its origin."""
    source = resources.files(__package__) / f"{name}.parquet"
    with resources.as_file(source) as path:
        return read_table(path)
