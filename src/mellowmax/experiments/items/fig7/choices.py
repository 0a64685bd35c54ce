"""What the paper leaves open in figure 7: the choice made here, and the nearest one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from ...._typing import Floats
from .sweeps import RULES, SWEEPS

__all__ = ["STATED", "chosen", "curve", "nearest", "of_a_rule"]

STATED = {"labels": "fitted", "delta": 1e-4}
"""The choice that is stated, of those whose curves are made."""


def curve(table: pd.DataFrame, operator: str) -> tuple[Floats, Floats]:
    """The parameters of an operator and its iterations."""
    rows = table[table.operator == operator]
    return rows.parameter.to_numpy(), rows.iterations.to_numpy()


def nearest(table: pd.DataFrame, rule: str, sweeps: str) -> pd.DataFrame:
    """The points of the choice that is nearest to the figure by a rule."""
    rows = table[(table.rule == rule) & (table.sweeps == sweeps)]
    best = rows.loc[rows.distance.idxmin()]
    return rows[(rows.labels == best.labels) & (rows.delta == best.delta)]


def of_a_rule(points: pd.DataFrame) -> dict[str, object]:
    """What the nearest choice by a rule gives."""
    factor = np.exp(abs(np.log(points.iterations / points.paper)).groupby(points.operator).mean())
    x, y = curve(points, "boltz")
    numbers = {
        "factor": np.exp(points.distance.iloc[0]),
        "factor_boltz": factor["boltz"],
        "factor_mm": factor["mm"],
        "max": curve(points, "max")[1][0],
        "peak": y.max(),
        "peak_beta": x[y.argmax()],
    }
    return {**points.iloc[0].to_dict(), **numbers}


def chosen(tables: Mapping[str, pd.DataFrame]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The curves of the stated choice and of the nearest one, by the rule of Algorithm 2."""
    stated = tables["stated"]
    for name, value in STATED.items():
        stated = stated[stated[name] == value]
    return stated, nearest(tables["nearest"], RULES[0], SWEEPS[0])
