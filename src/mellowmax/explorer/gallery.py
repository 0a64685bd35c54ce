"""The multi-passenger taxi for the page: its policy and temperature in each cell as omega turns.

The numbers are computed once and lie in `data/taxi.json`, so that the page needs no JAX.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from .._common.files import replacing
from ..mdp import multi_passenger_taxi
from ..mdp.taxi import GRID, TaxiGrid
from ..policies import mellowmax_temperature
from ..softmax import Mellowmax
from .numbers import percent, rounded
from .page import Block

__all__ = ["OMEGAS", "compute_taxi", "taxi", "write_taxi"]

OMEGAS = tuple(round(float(omega), 3) for omega in np.geomspace(0.1, 100.0, 19))
"""From nearly uniform to nearly greedy."""
FILE = "data/taxi.json"


def taxi() -> Block:
    """The block of the page, as it was computed for the package."""
    text = resources.files(__package__).joinpath(FILE).read_text(encoding="utf-8")
    block: dict[str, Any] = json.loads(text)
    return block


def compute_taxi(omegas: Sequence[float] = OMEGAS) -> Block:
    """The block of the page, computed.

    Args:
        omegas: the parameters of mellowmax.

    Returns:
        `grid` (rows of text), `cells` (row and column of each), `passengers` (their cells), and for
        each of `omegas` a level with the `policy` (in hundredths, by state and action), the
        `temperature` (inverse) and the `value` of each state. State `cell * 2**passengers + bits`
        has the taxi in a cell, and those on board whose bits are set.
    """
    from ..planning import solve

    mdp, grid = multi_passenger_taxi(), TaxiGrid.parse(GRID)
    levels = []
    for omega in omegas:
        solution = solve(mdp, Mellowmax(omega))
        levels.append(
            {
                "policy": percent(solution.policy),
                "temperature": rounded(mellowmax_temperature(solution.q, omega)),
                "value": rounded(solution.value),
            }
        )
    return {
        "kind": "taxi",
        "grid": list(grid.rows),
        "cells": grid.cells.tolist(),
        "passengers": list(grid.passengers),
        "omegas": list(omegas),
        "levels": levels,
    }


def write_taxi() -> None:
    """Compute the block and write the file of the package: `make figures` does that."""
    text = json.dumps(compute_taxi(), separators=(",", ":"))
    with replacing(Path(__file__).parent / FILE) as file:
        file.write(text.encode() + b"\n")
