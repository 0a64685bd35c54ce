"""What the package has for the page's gallery: the multi-passenger taxi, and landings.

Of the taxi there are the policy and the inverse temperature in each cell as omega turns
(`docs/figures.py` writes them); the landings are episodes of a lander in training
(`docs/landings.py`). All is computed once and lies in `data`, so that the page needs no JAX.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import resources

import numpy as np

from ..mdp import multi_passenger_taxi
from ..mdp.taxi import GRID, TaxiGrid
from ..policies import mellowmax_temperature
from ..softmax import Mellowmax
from .numbers import percent, rounded
from .page import Block

__all__ = ["OMEGAS", "compute_taxi", "exhibits", "taxi"]

OMEGAS = tuple(round(float(omega), 3) for omega in np.geomspace(0.1, 100.0, 19))
"""From nearly uniform to nearly greedy."""
TAXI, LANDINGS = "data/taxi.json", "data/landings.json"


def exhibits() -> list[Block]:
    """All blocks of the gallery."""
    return [taxi(), *json.loads(_text(LANDINGS))]


def taxi() -> Block:
    """The taxi's block, as it was computed for the package."""
    return json.loads(_text(TAXI))


def _text(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


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
