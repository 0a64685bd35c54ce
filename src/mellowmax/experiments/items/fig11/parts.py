"""What is trained for figure 11, part by part.

The figure itself is ten settings in the environment of the paper's time, by the reading of what the
paper leaves open that is nearest to its curves: it has the learning rate that the paper states, and
larger batches. A second reading is about as near: it has the batches that the paper states, and a
smaller learning rate. It was trained first, in as many runs, and the other parts are its: with both
as the paper states them, with mellowmax's inverse temperature held fixed, over a finer grid of
parameters, and in today's environment.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pandas as pd

from .readings import BATCH, LEARNING_RATE, USUAL_RATE, Reading, Weighing
from .runs import setting_rows

__all__ = [
    "FIGURE",
    "FINER",
    "HELD",
    "NEAREST",
    "READINGS_OF_PARTS",
    "SMALLER_RATE",
    "STATED",
    "TODAY",
    "Config",
    "cell_names",
    "height",
    "settings",
    "with_whole_grid",
]

FIGURE, SMALLER_RATE, STATED, HELD, FINER, TODAY = (
    "figure",
    "smaller rate",
    "as stated",
    "temperature held",
    "finer grid",
    "today",
)
"""The parts."""
NEAREST = Reading(
    "reward to go, others as baseline",
    0.99,
    Weighing(to_go=1.0, others=1.0),
    LEARNING_RATE,
    batch=100,
    temperature="held",
)
"""The reading that is nearest to the paper's curves, over all 40,000 episodes."""
_STATED = NEAREST._replace(batch=BATCH, temperature="moves")
_SMALLER = _STATED._replace(learning_rate=USUAL_RATE)
READINGS_OF_PARTS = {FIGURE: NEAREST, SMALLER_RATE: _SMALLER, STATED: _STATED}
"""The readings of the parts whose curves can be compared with the paper's."""
RUNS_OF_A_CELL = 1000
"""The number of runs that are trained together: their checkpoint has a few megabytes, and a GPU has
room for several such processes."""


@dataclasses.dataclass(frozen=True)
class Config:
    """What is run."""

    betas: tuple[float, ...] = (1.0, 2.0, 3.0, 5.0, 10.0)
    """Figure 11."""
    omegas: tuple[float, ...] = (3.0, 5.0, 7.0, 8.0, 11.0)
    """Figure 11."""
    runs: int = 400
    """Figure 11."""
    other_runs: int = 50
    """Runs of each setting of the last four parts; ours."""
    runs_of_a_row: int = 50
    """Runs that share a key; it divides both numbers above."""
    finer: int = 20
    """Parameters of each policy in the finer grid: betas in steps of 0.5, omegas of 1; ours."""
    episodes: int = 40_000
    """Section 7.3."""
    hidden: int = 16
    """Units of the hidden layer (section 7.3)."""
    seed: int = 11
    """Seed of the random numbers; ours."""


def cell_names(config: Config) -> list[str]:
    """The cells, the figure's first; without runs for other parts, the figure's alone."""
    return list(_cells(config))


def height(cell: str) -> str:
    """How the height is observed in the environment of a cell."""
    return "v3" if cell.startswith(TODAY) else "2016"


def settings(config: Config, cell: str) -> pd.DataFrame:
    """The settings that are trained in a cell, in rows of `runs.setting_rows`."""
    return pd.DataFrame(_cells(config)[cell]).reset_index(drop=True)


def _cells(config: Config) -> dict[str, list[dict[str, Any]]]:
    """The settings of each cell: those of a part, some runs of all of them at a time."""
    cells: dict[str, list[dict[str, Any]]] = {}
    for part, rows in _parts(config).items():
        rows = sorted(rows, key=lambda row: row["repeat"])
        step = max(1, RUNS_OF_A_CELL // config.runs_of_a_row)
        some = [rows[first : first + step] for first in range(0, len(rows), step)]
        name = part.replace(" ", "-")
        numbers = [""] if len(some) == 1 else [f"-{i + 1}" for i in range(len(some))]
        cells |= {name + number: few for number, few in zip(numbers, some, strict=True)}
    return cells


def _parts(config: Config) -> dict[str, list[dict[str, Any]]]:
    """The settings of each part.

    Parameters of the finer grid that the second part has as well are trained once, for that part.
    """
    parameters = {"boltzmann": config.betas, "mellowmax": config.omegas}
    between = {
        policy: [parameter for parameter in several if parameter not in parameters[policy]]
        for policy, several in _finer_grid(config).items()
    }
    many, few = (runs // config.runs_of_a_row for runs in (config.runs, config.other_runs))
    figure = {FIGURE: setting_rows(FIGURE, NEAREST, parameters, repeats=many)}
    if not few:
        return figure
    held, of_mellowmax = _SMALLER._replace(temperature="held"), {"mellowmax": config.omegas}
    return figure | {
        SMALLER_RATE: setting_rows(SMALLER_RATE, _SMALLER, parameters, repeats=many),
        STATED: setting_rows(STATED, _STATED, parameters, repeats=few),
        HELD: setting_rows(HELD, held, of_mellowmax, repeats=few),
        FINER: setting_rows(FINER, _SMALLER, between, repeats=few),
        TODAY: setting_rows(TODAY, _SMALLER, parameters, repeats=few),
    }


def with_whole_grid(config: Config, runs: pd.DataFrame) -> pd.DataFrame:
    """Add the runs of the second part that belong to the finer grid, as many as it has of others.

    None are added where nothing else of that grid has been run.

    Args:
        config: what was run.
        runs: a row for each run.
    """
    if not (runs["part"] == FINER).any():
        return runs
    few = runs[(runs["part"] == SMALLER_RATE) & (runs["run"] < config.other_runs)]
    shared = [
        few[(few["policy"] == policy) & few["parameter"].isin(several)]
        for policy, several in _finer_grid(config).items()
    ]
    return pd.concat([runs, *(rows.assign(part=FINER) for rows in shared)], ignore_index=True)


def _finer_grid(config: Config) -> dict[str, list[float]]:
    steps = np.arange(1, config.finer + 1)
    return {"boltzmann": (0.5 * steps).tolist(), "mellowmax": (1.0 * steps).tolist()}
