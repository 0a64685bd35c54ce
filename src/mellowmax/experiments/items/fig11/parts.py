"""What is trained for figure 11, part by part.

The figure itself is ten settings in the environment of the paper's time. The other parts are the
same in today's environment, with the learning rate that the paper states, with mellowmax's inverse
temperature held fixed, and over a finer grid of parameters.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pandas as pd

from .readings import AT_USUAL_RATE, LEARNING_RATE, READINGS, USUAL_RATE
from .runs import setting_rows

__all__ = [
    "FIGURE",
    "FINER",
    "HELD",
    "STATED",
    "TODAY",
    "Config",
    "cell_names",
    "height",
    "settings",
    "with_whole_grid",
]

FIGURE, TODAY, STATED, HELD, FINER = (
    "figure",
    "today",
    "stated rate",
    "temperature held",
    "finer grid",
)
"""The parts."""
RUNS_OF_A_CELL = 1000
"""How many runs are trained together: their checkpoint has a few megabytes, and a GPU takes several
processes with as many each."""


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
    """Runs of each setting of the other parts: what an accelerator makes in half an hour; ours."""
    runs_of_a_row: int = 50
    """Runs that share a key; it divides both numbers above."""
    finer: int = 20
    """Parameters of each policy in the finer grid: betas in steps of 0.5, omegas of 1; ours."""
    episodes: int = 40_000
    """Section 7.3."""
    batch: int = 10
    """Section 7.3."""
    hidden: int = 16
    """Units of the hidden layer (section 7.3)."""
    reading: str = "reward to go, others as baseline"
    """The reading that is nearest to the paper's curves."""
    discount: float = 0.99
    """The discount of that reading."""
    learning_rate: float = USUAL_RATE
    """The learning rate of that reading; section 7.3 states another."""
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

    Parameters of the finer grid that the figure has as well are trained once, for the figure.
    """
    parameters = {"boltzmann": config.betas, "mellowmax": config.omegas}
    between = {
        policy: [parameter for parameter in several if parameter not in parameters[policy]]
        for policy, several in _finer_grid(config).items()
    }
    nearest = (config.reading, config.discount, config.learning_rate)
    (plain,) = (
        reading
        for reading in (*READINGS, *AT_USUAL_RATE)
        if (reading.name, reading.discount, reading.learning_rate) == nearest
    )
    stated = plain._replace(learning_rate=LEARNING_RATE)
    held = plain._replace(temperature="held")
    many, few = (runs // config.runs_of_a_row for runs in (config.runs, config.other_runs))
    figure = {FIGURE: setting_rows(FIGURE, plain, parameters, repeats=many)}
    if not few:
        return figure
    return figure | {
        STATED: setting_rows(STATED, stated, parameters, repeats=few),
        HELD: setting_rows(HELD, held, {"mellowmax": config.omegas}, repeats=few),
        FINER: setting_rows(FINER, plain, between, repeats=few),
        TODAY: setting_rows(TODAY, plain, parameters, repeats=few),
    }


def with_whole_grid(config: Config, runs: pd.DataFrame) -> pd.DataFrame:
    """Add the runs of the figure that belong to the finer grid, as many as it has of others.

    None are added where nothing else of that grid has been run.

    Args:
        config: what was run.
        runs: a row for each run.
    """
    if not (runs["part"] == FINER).any():
        return runs
    figure = runs[(runs["part"] == FIGURE) & (runs["run"] < config.other_runs)]
    shared = [
        figure[(figure["policy"] == policy) & figure["parameter"].isin(several)]
        for policy, several in _finer_grid(config).items()
    ]
    return pd.concat([runs, *(rows.assign(part=FINER) for rows in shared)], ignore_index=True)


def _finer_grid(config: Config) -> dict[str, list[float]]:
    steps = np.arange(1, config.finer + 1)
    return {"boltzmann": (0.5 * steps).tolist(), "mellowmax": (1.0 * steps).tolist()}
