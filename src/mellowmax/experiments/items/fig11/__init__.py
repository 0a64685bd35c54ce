"""Figure 11: REINFORCE with a Boltzmann and with a mellowmax policy on Lunar Lander.

The figure is the mean of 400 runs of 40,000 episodes for each of ten settings. The other parts
train the same with a smaller learning rate and smaller batches, with both as the paper states them,
with mellowmax's inverse temperature held fixed, over a finer grid of parameters, and in today's
environment. The runs of a cell are trained together. What they have learned is kept on disk, so a
cell can be stopped at any moment and resumed, also on another machine.

The quick scale shows runs that were made at the paper's scale and are kept with the package. It
runs the first episodes of two settings again, with other random numbers, and compares them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ....environments import lunar_lander
from ...cell_training import train_in_cell
from ...data import measured, paper
from ...item import NAMES, Spec, Work
from . import comparisons, figures
from .comparisons import SETTING
from .parts import (
    FIGURE,
    READINGS_OF_PARTS,
    Config,
    cell_names,
    height,
    settings,
    with_whole_grid,
)
from .readings import BATCH, LEARNING_RATE, READING, learner_of
from .runs import BIN, keys_of, mean_curves, mean_returns, run_rows
from .text import CAPTIONS, COLUMNS, COUNTS, DEVIATIONS, RULE, SETTINGS, SOURCE, TITLE
from .verdict import COMPARED, SHORT, judge, of_figure

__all__ = [*NAMES, "counted", "distances", "resume"]

VERSION = 6
SOLVED_RETURN = 200.0
"""Section 7.3: to solve the domain is a mean return above it in 100 episodes in a row."""
MEASURED = ("curves", "runs")
"""The tables that are kept with the package."""


SCALES = {
    "quick": Config(
        betas=(3.0,),
        omegas=(8.0,),
        runs=16,
        other_runs=0,
        runs_of_a_row=16,
        finer=0,
        episodes=500,
        seed=12,
    ),
    "paper": Config(),
}
SECONDS = {"quick": 70.0, "paper": 28 * 86_400.0}


def cells(config: Config) -> dict[str, Spec]:
    """A cell for the runs that are trained together; at the quick scale, some of the figure."""
    fields = dataclasses.asdict(config)
    return {name: fields | {"cell": name} for name in cell_names(config)}


def run(spec: Spec) -> pd.DataFrame:
    """Train a cell: a row for each run, see `runs.run_rows`."""
    return resume(spec, Work())


def resume(spec: Spec, work: Work) -> pd.DataFrame:
    """Like `run`, resumed from what was learned before the cell was stopped."""
    fields = dict(spec)
    cell = fields.pop("cell")
    config = Config(**fields)
    table = settings(config, cell)
    result = train_in_cell(
        work,
        learner_of(table, config.hidden),
        lunar_lander.params(height=height(cell)),
        episodes=config.episodes,
        runs=config.runs_of_a_row,
        seed=keys_of(table, config.seed),
        bin=min(BIN, config.episodes),
        solved_return=SOLVED_RETURN,
        seconds_between_checkpoints=20.0,
    )
    return run_rows(table, result)


def tables(config: Config, cells: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The learning curves, what each run earned, what that adds up to, and the readings."""
    trained = with_whole_grid(config, pd.concat(cells.values(), ignore_index=True))
    curves, runs = mean_curves(trained, SETTING), mean_returns(trained)
    check = measured_at = pd.DataFrame()
    if not config.other_runs:
        here = curves
        (curves, made_by), (runs, _) = (measured(f"fig11_{name}") for name in MEASURED)
        check, measured_at = comparisons.check(here, curves), _measured_at(made_by)
    theirs = _paper_curves().assign(part=FIGURE)
    curves = curves.merge(theirs, on=[*SETTING, "episode"], how="left")
    last = curves["episode"].max()
    theirs = theirs[theirs["episode"] <= last].groupby(SETTING)["paper"].mean().reset_index()
    means = comparisons.means(runs).merge(theirs, on=SETTING, how="left")
    means["episodes"] = int(last + BIN / 2)
    found = {
        "curves": curves,
        "runs": runs,
        "means": means,
        "peaks": comparisons.peaks(runs),
        "gradients": comparisons.gradients(runs),
        "check": check,
        "measured": measured_at,
        "flights": measured("fig11_flights")[0],
        "readings": (readings := _readings(curves)),
        "counted": counted(readings, measured("fig11_readings_runs")[0], runs),
    }
    return {name: table.reindex(columns=list(COLUMNS[name])) for name, table in found.items()}


def _measured_at(made_by: Mapping[str, Any]) -> pd.DataFrame:
    """Where and when the runs that are kept were made, a row for each cell."""
    columns = ("cell", "device", "seconds", "at")
    rows = ({name: cell[name] for name in columns} | cell["versions"] for cell in made_by["cells"])
    return pd.DataFrame(rows)


def _paper_curves() -> pd.DataFrame:
    curves = paper("fig11_lunar_lander_curves").rename(columns={"mean_return": "paper"})
    names = {short: name for name, short in SHORT.items()}
    return curves.assign(policy=curves["policy"].map(names), parameter=curves["parameter"] * 1.0)


def distances(readings: pd.DataFrame) -> pd.DataFrame:
    """How far each reading is from the paper's curves, the nearest first.

    Args:
        readings: the learning curves of `benchmarks/readings.py`.

    Returns:
        A row for each reading. The scatter is how far off the runs alone would put it, if their
        expected curves were the paper's: the root mean square of the standard errors.
    """
    both = readings.merge(_paper_curves(), on=["policy", "parameter", "episode"])
    both["distance"] = (both["mean_return"] - both["paper"]) ** 2
    both["scatter"] = both["standard_error"] ** 2
    groups = both.groupby([*READING, "runs"])
    result = groups.agg(
        distance=("distance", "mean"), scatter=("scatter", "mean"), episodes=("episode", "max")
    ).reset_index()
    result[["distance", "scatter"]] **= 0.5
    result["episodes"] = (result["episodes"] + BIN / 2).astype(np.int64)
    return result.sort_values("distance", ignore_index=True)


def _readings(curves: pd.DataFrame) -> pd.DataFrame:
    """The distances of the readings, and of the parts that use one in the paper's environment.

    They are over different numbers of episodes, so each row also has the distance of the figure
    over the same episodes.
    """
    of_parts = curves.drop(columns="paper")
    parts = {
        part: of_parts[of_parts["part"] == part].assign(**reading.identity)
        for part, reading in READINGS_OF_PARTS.items()
    }
    tables = [distances(measured("fig11_readings")[0]).assign(part=COMPARED)]
    tables += [distances(rows).assign(part=part) for part, rows in parts.items()]
    result, figure = pd.concat(tables, ignore_index=True), parts[FIGURE]
    up_to = {last: figure[figure["episode"] < last] for last in result["episodes"].unique()}
    own = {last: distances(rows)["distance"].mean() for last, rows in up_to.items()}
    result["figure"] = result["episodes"].map(own)
    rate, batch = result["learning_rate"] != LEARNING_RATE, result["batch"] != BATCH
    names = ["rate and batch", "rate", "batch"]
    result["contradicts"] = np.select([rate & batch, rate, batch], names, "nothing")
    return result.sort_values("distance", key=lambda x: x / result["figure"], ignore_index=True)


def counted(
    readings: pd.DataFrame, runs_of_readings: pd.DataFrame, runs: pd.DataFrame
) -> pd.DataFrame:
    """The readings that the verdict rests on, and how the two policies compare in each.

    Args:
        readings: the distances of all readings and of the parts that use one.
        runs_of_readings: what each run of a reading earned.
        runs: what each run of the parts earned.
    """
    episodes = SCALES["paper"].episodes
    near = readings[(readings["distance"] <= COUNTS) & (readings["episodes"] == episodes)]
    of_parts = near["part"] != COMPARED
    again = (
        near[READING].apply(tuple, axis=1).isin(near.loc[of_parts, READING].apply(tuple, axis=1))
    )
    near = near[of_parts | ~again]  # a part has more runs than its reading had for the comparison
    names = [*READING, "part"]
    of_readings = runs_of_readings[runs_of_readings["episodes"] == episodes].assign(part=COMPARED)
    found = pd.concat(
        [
            of_readings.merge(near[[*names, "distance"]], on=names),
            runs.merge(near.loc[near["part"] != COMPARED, [*names, "distance"]], on="part"),
        ]
    )
    return comparisons.peaks(found, [*names, "distance"])


def plot(tables: Mapping[str, pd.DataFrame]) -> dict[str, Any]:
    """The figure's curves and means, and the means of the other parts."""
    curves, means = (of_figure(tables[name]) for name in ("curves", "means"))
    drawn = {
        "curves": figures.draw_curves(curves, _paper_curves(), BIN),
        "means": figures.draw_means(means),
    }
    if (tables["means"]["part"] != FIGURE).any():
        drawn["others"] = figures.draw_parts(tables["means"])
    return drawn
