"""Figure 11: REINFORCE with a Boltzmann and with a mellowmax policy on Lunar Lander.

The figure is the mean of 400 runs of 40,000 episodes for each of ten settings. Beside it are
trained: the same in today's environment, with the learning rate that the paper states, with
mellowmax's inverse temperature held fixed, and over a finer grid of parameters. A cell is what is
trained together; it keeps what has been learned, so it can be stopped at any moment and resumed,
also on another machine.

At the quick scale what is shown was measured at the paper's scale and is kept with the package; two
settings are run again for the first episodes, on other random numbers, and compared with it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ...environments import lunar_lander
from .. import lander_comparisons, lander_curves, lander_verdict, measured, paper
from ..item import NAMES, Caption, Spec, Work
from ..lander_comparisons import SETTING
from ..lander_parts import (
    FIGURE,
    HELD,
    STATED,
    Config,
    cell_names,
    height,
    settings,
    with_whole_grid,
)
from ..lander_runs import BIN, keys_of, mean_curves, mean_returns, run_rows
from ..lander_verdict import COMPARED, SHORT, of_figure
from ..readings import LEARNING_RATE, READING, learner_of
from ..training import train_in_cell

__all__ = [*NAMES, "distances", "resume"]

TITLE = "REINFORCE on Lunar Lander"
SOURCE = "Figure 11, section 7.3"
VERSION = 5
RULE = lander_verdict.RULE
DEVIATIONS = (
    "The paper states neither the discount, nor how an action is weighed, nor a baseline. Readings "
    "of it were compared with its curves (the table of readings); the nearest is what is run here.",
    "The learning rate is 0.001, where the paper states 0.005. With 0.005 no reading comes as near "
    "to the paper's curves, over as many episodes, as the nearest with 0.001. The part called "
    "stated rate has 0.005.",
    "The layer before the softmax has 4 units, one for each action; the paper says 16, which can "
    "hold for the hidden layer only. The weights begin as Glorot's and the biases as 0, which was "
    "the default of the library the paper used.",
    "The environment is our own Lunar Lander, which is Gymnasium's to within its own scatter, with "
    "the height observed as it was until 2018: the paper's environment observed it so, and earned "
    "less by it. Its episodes end after 1000 steps at the latest. The part called today is "
    "LunarLander-v3.",
    "The rule for the curves was written when some readings had been seen.",
)
CAPTIONS = {
    "curves": Caption(
        "The mean return of an episode, in bins of 500 episodes, on one scale for both policies. "
        "Dotted lines are the paper's, one for each parameter; solid lines of the same colour are "
        "ours, where that parameter was run.",
        "Two panels of mean return against episode, with the paper's dotted curves, which rise "
        "from between -240 and -360 to as much as 200, and our solid ones.",
    ),
    "means": Caption(
        "Left: the mean return over all episodes that were run, with 95 % intervals, and the "
        "paper's over as many episodes (pink). Right: the share of runs that solved the domain, "
        "with a mean return above 200 in 100 consecutive episodes; the paper gives none.",
        "Two panels against the parameter: mean returns with the paper's crosses, and shares of "
        "runs between 0 and 1.",
    ),
    "others": Caption(
        "The mean return over all episodes in each of the other parts, with 95 % intervals: in "
        "today's environment, with the learning rate that the paper states, with mellowmax's "
        "inverse temperature held fixed (beside the figure's own), and over a finer grid of "
        "parameters.",
        "Four panels of mean return against the parameter.",
    ),
}
SETTINGS = {
    "betas": "betas of Boltzmann",
    "omegas": "omegas of mellowmax",
    "runs": "runs of each setting of the figure",
    "other_runs": "runs of each setting of the other parts",
    "runs_of_a_row": "runs that share a key",
    "finer": "parameters of each policy in the finer grid",
    "episodes": "episodes of a run",
    "batch": "episodes of an update",
    "hidden": "units of the hidden layer",
    "reading": "what an action is weighed with",
    "discount": "discount",
    "learning_rate": "learning rate of Adam; the paper states 0.005",
    "seed": "seed of the random numbers",
}
COLUMNS = {
    "curves": {
        "part": "what it is for",
        "policy": "boltzmann or mellowmax",
        "parameter": "beta or omega",
        "episode": "the middle of a bin of 500 episodes",
        "mean_return": "averaged over the bin and the runs",
        "standard_error": "of that mean, over the runs",
        "mean_length": "steps of an episode",
        "runs": "how many runs",
        "paper": "the paper's mean return in this bin, where it has one",
    },
    "runs": {
        "part": "what it is for",
        "policy": "boltzmann or mellowmax",
        "parameter": "beta or omega",
        "run": "its number",
        "mean_return": "averaged over all episodes",
        "solved": "after how many episodes the domain was solved; 0 if it was not",
    },
    "means": {
        "part": "what it is for",
        "policy": "boltzmann or mellowmax",
        "parameter": "beta or omega",
        "mean_return": "averaged over all episodes and runs",
        "standard_error": "of that mean, over the runs",
        "paper": "the mean of the paper's curve over as many episodes, where it has one",
        "solved": "the share of runs with a mean return above 200 in 100 consecutive episodes",
        "solved_low": "the lower end of its 95 % interval",
        "solved_high": "the upper end",
        "runs": "how many runs",
        "episodes": "of each run",
    },
    "peaks": {
        "part": "what it is for",
        "boltzmann": "the best beta",
        "mellowmax": "the best omega",
        "difference": "how much more mellowmax earns there, over all episodes",
        "low": "the lower end of its 95 % interval",
        "high": "the upper end",
        "p_value": "how often chance alone gives as large a difference",
        "runs": "how many runs of each are compared",
    },
    "gradients": {
        "omega": "of mellowmax",
        "through": "mean return with the gradient through the inverse temperature",
        "held": "mean return with the inverse temperature held fixed",
        "difference": "how much more the former earns",
        "low": "the lower end of its 95 % interval",
        "high": "the upper end",
        "p_value": "how often chance alone gives as large a difference",
        "runs": "how many runs of each are compared, at least",
    },
    "check": {
        "policy": "boltzmann or mellowmax",
        "parameter": "beta or omega",
        "episode": "the middle of a bin of 500 episodes",
        "here": "the mean return of the runs that were made now",
        "there": "that of the runs that are shown",
        "standard_errors": "how many standard errors the former is above the latter",
        "runs": "how many runs were made now",
    },
    "measured": {
        "cell": "which of the runs that are shown: those that were trained together",
        "device": "where they were made",
        "seconds": "how long that took",
        "at": "when",
        "mellowmax": "the version of this library",
        "jax": "that of JAX",
    },
    "flights": {
        "policy": "boltzmann or mellowmax, at the parameter that is best in the part called today",
        "parameter": "beta or omega",
        "run": "its number",
        "ours": "the mean return of its trained policy over 100 episodes in our LunarLander-v3",
        "gymnasium": "the same in Gymnasium's own",
        "standard_error": "of the difference",
        "standard_errors": "how many of them the former is above the latter",
    },
    "readings": {
        "part": "what it is for; compared: to choose one",
        "reading": "with what an action is weighed, and how many layers there are",
        "discount": "of what is earned",
        "learning_rate": "0.005 is what the paper states",
        "distance": "root mean square distance from the paper's ten curves",
        "episodes": "up to which they are compared; those far off were not trained to the end",
        "figure": "the distance of the figure's own runs up to there; the rows are in the order of "
        "distance / figure",
        "runs": "of each setting",
    },
}
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
SECONDS = {"quick": 70.0, "paper": 18 * 86_400.0}


def cells(config: Config) -> dict[str, Spec]:
    """All that is trained together; at the quick scale some of the figure alone."""
    fields = dataclasses.asdict(config)
    return {name: fields | {"cell": name} for name in cell_names(config)}


def run(spec: Spec) -> pd.DataFrame:
    """A row for each run, as `lander_runs.run_rows` has it."""
    return resume(spec, Work())


def resume(spec: Spec, work: Work) -> pd.DataFrame:
    """The same, resumed from what was learned before it was stopped."""
    fields = dict(spec)
    cell = fields.pop("cell")
    config = Config(**fields)
    table = settings(config, cell)
    result = train_in_cell(
        work,
        learner_of(table, config.batch, config.hidden),
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
        (curves, made_by), (runs, _) = (measured.read(f"fig11_{name}") for name in MEASURED)
        check, measured_at = lander_comparisons.check(here, curves), _measured_at(made_by)
    theirs = _paper_curves().assign(part=FIGURE)
    curves = curves.merge(theirs, on=[*SETTING, "episode"], how="left")
    last = curves["episode"].max()
    theirs = theirs[theirs["episode"] <= last].groupby(SETTING)["paper"].mean().reset_index()
    means = lander_comparisons.means(runs).merge(theirs, on=SETTING, how="left")
    means["episodes"] = int(last + BIN / 2)
    found = {
        "curves": curves,
        "runs": runs,
        "means": means,
        "peaks": lander_comparisons.peaks(runs),
        "gradients": lander_comparisons.gradients(runs, FIGURE, HELD),
        "check": check,
        "measured": measured_at,
        "flights": measured.read("fig11_flights")[0],
        "readings": _readings(curves),
    }
    return {name: table.reindex(columns=list(COLUMNS[name])) for name, table in found.items()}


def _measured_at(made_by: Mapping[str, Any]) -> pd.DataFrame:
    """Where and when the runs that are kept were made, a row for each cell."""
    columns = ("cell", "device", "seconds", "at")
    rows = ({name: cell[name] for name in columns} | cell["versions"] for cell in made_by["cells"])
    return pd.DataFrame(rows)


def _paper_curves() -> pd.DataFrame:
    curves = paper.read("fig11_lunar_lander_curves").rename(columns={"mean_return": "paper"})
    names = {short: name for name, short in SHORT.items()}
    return curves.assign(policy=curves["policy"].map(names), parameter=curves["parameter"] * 1.0)


def distances(readings: pd.DataFrame) -> pd.DataFrame:
    """How far each reading is from the paper's curves, the nearest first.

    Args:
        readings: the learning curves of `benchmarks/readings.py`.
    """
    both = readings.merge(_paper_curves(), on=["policy", "parameter", "episode"])
    both["distance"] = (both["mean_return"] - both["paper"]) ** 2
    groups = both.groupby([*READING, "runs"])
    result = groups.agg(distance=("distance", "mean"), episodes=("episode", "max")).reset_index()
    result["distance"] **= 0.5
    result["episodes"] = (result["episodes"] + BIN / 2).astype(np.int64)
    return result.sort_values("distance", ignore_index=True)


def _readings(curves: pd.DataFrame) -> pd.DataFrame:
    """All distances: of the readings, and of the parts that are one in the paper's environment.

    They are over different numbers of episodes, so each stands beside the figure's over as many.
    """
    config, of_parts = SCALES["paper"], curves.drop(columns="paper")
    rates = {FIGURE: config.learning_rate, STATED: LEARNING_RATE}
    read = {"reading": config.reading, "discount": config.discount}
    parts = {
        part: of_parts[of_parts["part"] == part].assign(learning_rate=rate, **read)
        for part, rate in rates.items()
    }
    tables = [distances(measured.read("fig11_readings")[0]).assign(part=COMPARED)]
    tables += [distances(rows).assign(part=part) for part, rows in parts.items()]
    result, figure = pd.concat(tables, ignore_index=True), parts[FIGURE]
    up_to = {last: figure[figure["episode"] < last] for last in result["episodes"].unique()}
    own = {last: distances(rows)["distance"].mean() for last, rows in up_to.items()}
    result["figure"] = result["episodes"].map(own)
    return result.sort_values("distance", key=lambda x: x / result["figure"], ignore_index=True)


def plot(tables: Mapping[str, pd.DataFrame]) -> dict[str, Any]:
    """The figure's curves and means, and the means of the other parts."""
    curves, means = (of_figure(tables[name]) for name in ("curves", "means"))
    figures = {
        "curves": lander_curves.draw_curves(curves, _paper_curves(), BIN),
        "means": lander_curves.draw_means(means),
    }
    if (tables["means"]["part"] != FIGURE).any():
        figures["others"] = lander_curves.draw_parts(tables["means"], FIGURE, HELD)
    return figures


judge = lander_verdict.judge
