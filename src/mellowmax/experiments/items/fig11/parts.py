"""What is trained for figure 11, part by part.

The figure itself is ten settings in the environment of the paper's time, by one reading of what the
paper leaves open. The other parts are the same in today's environment, with the learning rate and
the batch that the paper states, with the other gradient (mellowmax's inverse temperature held
fixed, or moving), and over a finer grid of parameters.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pandas as pd

from .readings import BATCH, LEARNING_RATE, READINGS, USUAL_RATE, Reading
from .runs import setting_rows

__all__ = [
    "FIGURE",
    "FINER",
    "HELD",
    "MOVES",
    "STATED",
    "TODAY",
    "Config",
    "cell_names",
    "height",
    "figure_reading",
    "settings",
    "stated_reading",
    "with_whole_grid",
]

FIGURE, TODAY, STATED, HELD, MOVES, FINER = (
    "figure",
    "today",
    "as stated",
    "temperature held",
    "temperature moves",
    "finer grid",
)
"""The parts; of `HELD` and `MOVES` there is the one that the figure is not."""
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
    batch: int = BATCH
    """Episodes of an update in that reading (section 7.3)."""
    hidden: int = 16
    """Units of the hidden layer (section 7.3)."""
    reading: str = "reward to go, others as baseline"
    """The reading that is nearest to the paper's curves."""
    discount: float = 0.99
    """The discount of that reading."""
    learning_rate: float = USUAL_RATE
    """The learning rate of that reading; section 7.3 states another."""
    temperature: str = "moves"
    """Mellowmax's inverse temperature in the gradient of that reading: it moves, or is held."""
    fallback: str = "none"
    """Where mellowmax's policy falls back on Boltzmann's at omega in that reading."""
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


def figure_reading(config: Config) -> Reading:
    """The reading that is run as the figure."""
    (weighing,) = (
        reading
        for reading in READINGS
        if (reading.name, reading.discount) == (config.reading, config.discount)
        and reading.learning_rate == LEARNING_RATE
    )
    return weighing._replace(
        learning_rate=config.learning_rate,
        batch=config.batch,
        temperature=config.temperature,
        fallback=config.fallback,
    )


def stated_reading(config: Config) -> Reading:
    """The same with the learning rate and the batch that the paper states."""
    return figure_reading(config)._replace(learning_rate=LEARNING_RATE, batch=BATCH)


def _parts(config: Config) -> dict[str, list[dict[str, Any]]]:
    """The settings of each part.

    Parameters of the finer grid that the figure has as well are trained once, for the figure.
    """
    parameters = {"boltzmann": config.betas, "mellowmax": config.omegas}
    between = {
        policy: [parameter for parameter in several if parameter not in parameters[policy]]
        for policy, several in _finer_grid(config).items()
    }
    plain = figure_reading(config)
    other, gradient = (MOVES, "moves") if config.temperature == "held" else (HELD, "held")
    other_gradient = plain._replace(temperature=gradient)
    many, few = (runs // config.runs_of_a_row for runs in (config.runs, config.other_runs))
    figure = {FIGURE: setting_rows(FIGURE, plain, parameters, repeats=many)}
    if not few:
        return figure
    return figure | {
        STATED: setting_rows(STATED, stated_reading(config), parameters, repeats=few),
        other: setting_rows(other, other_gradient, {"mellowmax": config.omegas}, repeats=few),
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
