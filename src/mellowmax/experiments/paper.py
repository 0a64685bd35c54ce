"""The paper's own numbers, read off the vector graphics of its figures.

They are good to about the width of a line. Source: K. Asadi and M. L. Littman, "An Alternative
Softmax Operator for Reinforcement Learning", ICML 2017 (arXiv 1612.05628).
"""

from __future__ import annotations

from importlib import resources

import pandas as pd

__all__ = ["OPERATORS", "read"]

OPERATORS = {"max": "max", "boltz": "boltzmann", "mm": "mellowmax"}
"""From the paper's names of operators to those of `SOFTMAXES`."""


def read(name: str) -> pd.DataFrame:
    """One of the tables in `data`, such as `"fig9_taxi"`."""
    source = resources.files(__package__) / "data" / f"{name}.csv"
    with source.open() as file:
        return pd.read_csv(file, comment="#")
