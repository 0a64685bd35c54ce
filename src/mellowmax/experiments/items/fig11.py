"""Figure 11: REINFORCE with a Boltzmann and with a mellowmax policy on Lunar Lander.

The figure is the mean of 400 runs of 40,000 episodes for each of ten settings. Beside it are
trained: the same in today's environment, with the learning rate that the paper states, with
mellowmax's temperature held still, and over a finer grid of parameters. A cell is all that is
trained in one environment; it keeps what has been learned, so it can be stopped at any moment and
resumed, also on another machine. At the quick scale there are two settings, a few runs and the
first episodes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ...environments import lunar_lander
from .. import lander_comparisons, lander_curves, measured, paper
from ..item import NAMES, Caption, Claim, Spec, Verdict, Work
from ..lander_comparisons import SETTING
from ..lander_parts import FIGURE, HEIGHTS, HELD, Config, settings, with_whole_grid
from ..lander_runs import BIN, keys_of, mean_curves, run_rows
from ..readings import LEARNING_RATE, learner_of
from ..training import train_in_cell

__all__ = [*NAMES, "distances", "resume"]

TITLE = "REINFORCE on Lunar Lander"
SOURCE = "Figure 11, section 7.3"
VERSION = 4
NEAR = 25.0
SURE = 0.05
RULE = (
    "The curves of a policy are reproduced if for every parameter the mean distance between our "
    f"curve and the paper's is at most {NEAR:g}. Mellowmax outperforms Boltzmann at its peak if it "
    "earns more over all 40,000 episodes, each policy at its best parameter, and chance alone "
    f"gives such a difference in fewer than {SURE:.0%} of experiments (Welch's test). The best "
    "parameters are chosen by half of the runs and compared by the other half. Where not all "
    "settings were run for all episodes, that claim is undecided, and so are curves that agree as "
    "far as they were run."
)
DEVIATIONS = (
    "The paper states neither the discount, nor how an action is weighed, nor a baseline. Readings "
    "of it were compared with its curves (the table of readings); the nearest is what is run here.",
    "The learning rate is 0.001, where the paper states 0.005. With 0.005 no reading comes as near "
    "to the paper's curves as the nearest with 0.001. The part called stated rate has 0.005.",
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
        "temperature held still (beside the figure's own), and over a finer grid of parameters.",
        "Four panels of mean return against the parameter.",
    ),
}
SETTINGS = {
    "betas": "betas of Boltzmann",
    "omegas": "omegas of mellowmax",
    "runs": "runs of each setting, in the paper's environment and in today's",
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
        "through": "mean return with the gradient through the temperature",
        "held": "mean return with the temperature held still",
        "difference": "how much more the former earns",
        "low": "the lower end of its 95 % interval",
        "high": "the upper end",
        "p_value": "how often chance alone gives as large a difference",
        "runs": "how many runs of each are compared, at least",
    },
    "readings": {
        "reading": "with what an action is weighed, and how many layers there are",
        "discount": "of what is earned",
        "learning_rate": "0.005 is what the paper states",
        "distance": "root mean square distance from the paper's ten curves",
        "episodes": "up to which they are compared; those far off were not trained to the end",
        "runs": "of each setting",
    },
}
SOLVED_RETURN = 200.0
"""Section 7.3: to solve the domain is a mean return above it in 100 episodes in a row."""
POLICIES = ("boltzmann", "mellowmax")
SHORT = {"boltzmann": "boltz", "mellowmax": "mm"}
"""What the paper's table calls them."""
PEAK = "Mellowmax outperforms Boltzmann at its peak"
"""The claim that matters most."""


SCALES = {
    "quick": Config(
        betas=(3.0,),
        omegas=(8.0,),
        runs=16,
        other_runs=0,
        runs_of_a_row=16,
        finer=0,
        episodes=1000,
    ),
    "paper": Config(),
}
SECONDS = {"quick": 110.0, "paper": 18 * 86_400.0}


def cells(config: Config) -> dict[str, Spec]:
    """All that is trained in one environment; today's at the paper's scale only."""
    heights = HEIGHTS if config.other_runs else ("2016",)
    return {height: dataclasses.asdict(config) | {"height": height} for height in heights}


def run(spec: Spec) -> pd.DataFrame:
    """A row for each run, as `lander_runs.run_rows` has it."""
    return resume(spec, Work())


def resume(spec: Spec, work: Work) -> pd.DataFrame:
    """The same, resumed from what was learned before it was stopped."""
    fields = dict(spec)
    height = fields.pop("height")
    config = Config(**fields)
    table = settings(config, height)
    result = train_in_cell(
        work,
        learner_of(table, config.batch, config.hidden),
        lunar_lander.params(height=height),
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
    whole = with_whole_grid(config, pd.concat(cells.values(), ignore_index=True))
    theirs = _paper_curves().assign(part=FIGURE)
    curves = mean_curves(whole, SETTING).merge(theirs, on=[*SETTING, "episode"], how="left")
    runs = whole[[*SETTING, "run", "solved"]].copy()
    runs["mean_return"] = [returns.mean(dtype=np.float64) for returns in whole["returns"]]
    theirs = theirs[theirs["episode"] <= curves["episode"].max()]
    theirs = theirs.groupby(SETTING)["paper"].mean().reset_index()
    means = lander_comparisons.means(runs).merge(theirs, on=SETTING, how="left")
    means["episodes"] = config.episodes
    found = {
        "curves": curves,
        "runs": runs,
        "means": means,
        "peaks": lander_comparisons.peaks(runs),
        "gradients": lander_comparisons.gradients(runs, FIGURE, HELD),
        "readings": distances(measured.read("fig11_readings")[0]),
    }
    return {name: table.reindex(columns=list(COLUMNS[name])) for name, table in found.items()}


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
    groups = both.groupby(["reading", "discount", "learning_rate", "runs"])
    result = groups.agg(distance=("distance", "mean"), episodes=("episode", "max")).reset_index()
    result["distance"] **= 0.5
    result["episodes"] = (result["episodes"] + BIN / 2).astype(np.int64)
    result = result.sort_values("distance", ignore_index=True)
    return result[list(COLUMNS["readings"])]


def plot(tables: Mapping[str, pd.DataFrame]) -> dict[str, Any]:
    """The figure's curves and means, and the means of the other parts."""
    curves, means = (_of_figure(tables[name]) for name in ("curves", "means"))
    figures = {
        "curves": lander_curves.draw_curves(curves, _paper_curves(), BIN),
        "means": lander_curves.draw_means(means),
    }
    if (tables["means"]["part"] != FIGURE).any():
        figures["others"] = lander_curves.draw_parts(tables["means"], FIGURE, HELD)
    return figures


def judge(tables: Mapping[str, pd.DataFrame]) -> Verdict:
    """By the rule above."""
    means = tables["means"]
    curves = _of_figure(tables["curves"])
    whole = _whole(means)
    claims = [_curves(curves[curves["policy"] == policy], policy, whole) for policy in POLICIES]
    claims.append(_peak(tables["peaks"], means, whole))
    return Verdict(tuple(claims), _summary(tables, whole))


def _whole(means: pd.DataFrame) -> bool:
    """Have all settings of the figure been run for all episodes?"""
    full, figure = Config(), _of_figure(means)
    n_settings = len(full.betas) + len(full.omegas)
    return len(figure) == n_settings and int(figure["episodes"].min()) == full.episodes


def _of_figure(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["part"] == FIGURE]


def _curves(rows: pd.DataFrame, policy: str, whole: bool) -> Claim:
    """Are a policy's curves the paper's?"""
    distance = (rows["mean_return"] - rows["paper"]).abs().groupby(rows["parameter"]).mean()
    worst = distance.idxmax()
    ours, theirs = (
        lander_curves.of_setting(rows, policy, worst)[name] for name in ("mean_return", "paper")
    )
    return Claim(
        f"The learning curves of {policy}",
        f"at {worst:g}, from {theirs.iloc[0]:.0f} to {theirs.iloc[-1]:.0f}",
        f"at {worst:g}, from {ours.iloc[0]:.0f} to {ours.iloc[-1]:.0f}; "
        f"{(distance <= NEAR).sum()} of {len(distance)} curves within {NEAR:g} on average, the "
        f"farthest {distance.max():.0f} off",
        False if (distance > NEAR).any() else whole or None,
    )


def _peak(peaks: pd.DataFrame, means: pd.DataFrame, whole: bool) -> Claim:
    """Does mellowmax outperform Boltzmann at its peak?"""
    theirs = paper.read("fig11_lunar_lander_means").groupby("policy")["mean_return"].max()
    boltzmann, mellowmax = (theirs[SHORT[policy]] for policy in POLICIES)
    printed = f"best mean return over all episodes {mellowmax:.1f}, Boltzmann's {boltzmann:.1f}"
    if not whole:
        episodes = int(means["episodes"].max())
        return Claim(PEAK, printed, f"not tested by the first {episodes} episodes", None)
    row = peaks.set_index("part").loc[FIGURE]
    return Claim(PEAK, printed, _words(row), bool(row["difference"] > 0 and row["p_value"] < SURE))


def _words(row: pd.Series[Any]) -> str:
    """A difference between two peaks."""
    return (
        f"omega {row['mellowmax']:g} less beta {row['boltzmann']:g}: {row['difference']:.1f} "
        f"(95 %: {row['low']:.1f} to {row['high']:.1f}; p = {row['p_value']:.2g})"
    )


def _summary(tables: Mapping[str, pd.DataFrame], whole: bool) -> str:
    """What was found, how much of the paper's scale it rests on, and which reading was run."""
    full, figure = Config(), _of_figure(tables["means"])
    runs, episodes = int(figure["runs"].min()), int(figure["episodes"].max())
    best = ", ".join(
        f"{policy} {rows['mean_return'].max():.0f} (paper {rows['paper'].max():.0f})"
        for policy, rows in figure.groupby("policy")
    )
    untested = "" if whole else "Which policy is better in the end is not tested by this. "
    peaks, readings = tables["peaks"], tables["readings"]
    beside = peaks[peaks["part"] != FIGURE]
    others = "; ".join(f"{row['part']}, {_words(row)}" for _, row in beside.iterrows())
    ours, rest = readings.iloc[0], readings["distance"].iloc[1:]
    stated = readings[readings["learning_rate"] == LEARNING_RATE].iloc[0]
    return (
        f"{untested}Best mean return over the episodes that were run: {best}. This rests on "
        f"{len(figure)} of 10 settings, {runs} of {full.runs} runs, {episodes} of {full.episodes} "
        f"episodes. {f'At the peaks of the other parts: {others}. ' if others else ''}Actions are "
        f"weighed with the {ours['reading']}, discount {ours['discount']:g}, learning rate "
        f"{ours['learning_rate']:g}: the reading that is nearest to the paper's curves, "
        f"{ours['distance']:.0f} off in the root mean square over {ours['episodes']} episodes, "
        f"the others {rest.min():.0f} to {rest.max():.0f}; with the learning rate that the paper "
        f"states, {LEARNING_RATE:g}, the nearest is {stated['distance']:.0f} off."
    )
