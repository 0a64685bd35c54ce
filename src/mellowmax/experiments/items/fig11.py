"""Figure 11: REINFORCE with a Boltzmann and with a mellowmax policy on Lunar Lander.

The paper's figure is the mean of 400 runs of 40,000 episodes for each of ten settings: weeks on two
cores. A cell is some runs of a setting; it keeps what it has learned, so it can be stopped at any
moment. At the quick scale there are two settings, a few runs and the first episodes, and what is
compared are the first episodes of the paper's curves.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ..._typing import Bools, Floats
from ...deep import TrainProgress, reinforce, train
from ...softmax import SOFTMAXES
from .. import lander_curves, paper
from ..intervals import share_interval
from ..item import NAMES, Caption, Claim, Spec, Stopped, Verdict, Work

__all__ = [*NAMES, "ENVIRONMENT", "PAPER_BIN", "distances", "resume"]

TITLE = "REINFORCE on Lunar Lander"
SOURCE = "Figure 11, section 7.3"
VERSION = 1
NEAR = 25.0
RULE = (
    "The curves of a policy are reproduced if for every parameter the mean distance between our "
    f"curve and the paper's is at most {NEAR:g}. Mellowmax outperforms Boltzmann at its peak if "
    "its largest mean return over all 40,000 episodes is above Boltzmann's by more than two "
    "standard errors of the difference. Where not all settings were run for all episodes, that "
    "claim is undecided, and so are curves that agree as far as they were run."
)
DEVIATIONS = (
    "The paper states neither the discount, nor how an action is weighed, nor a baseline. Readings "
    "were compared with the first 3000 episodes of its curves (the table of readings); the nearest "
    "of those with the paper's learning rate is what is run here. None is near: with the stated "
    "learning rate all of them learn faster than the paper's curves, and with a tenth of it they "
    "are no nearer.",
    "The layer before the softmax has 4 units, one for each action; the paper says 16, which can "
    "hold for the hidden layer only. The weights begin as Glorot's and the biases as 0, which was "
    "the default of the library the paper used.",
    "The environment is LunarLander-v3 of Gymnasium, a successor of the paper's; its episodes end "
    "after 1000 steps at the latest.",
    "The rule was written when the readings had been seen.",
)
CAPTIONS = {
    "curves": Caption(
        "The mean return of an episode, in bins of 500 episodes, on one scale for both policies. "
        "Dotted lines are the paper's, one for each parameter; solid lines of the same colour are "
        "ours, where that parameter was run. Ours rise faster than the paper's.",
        "Two panels of mean return against episode. The paper's dotted curves rise from between "
        "-240 and -360. Our solid ones begin higher and stay above the dotted ones of their "
        "colour.",
    ),
    "means": Caption(
        "Left: the mean return over all episodes that were run, with 95 % intervals, and the "
        "paper's over as many episodes (pink). Right: the share of runs that solved the domain, "
        "with a mean return above 200 in 100 consecutive episodes; the paper gives none.",
        "Two panels against the parameter. Left: our points of both policies lie above the paper's "
        "crosses. Right: shares of runs between 0 and 1, with wide intervals where runs are few.",
    ),
}
SETTINGS = {
    "betas": "betas of Boltzmann",
    "omegas": "omegas of mellowmax",
    "runs": "runs of each setting",
    "episodes": "episodes of a run",
    "batch": "episodes of an update",
    "learning_rate": "learning rate of Adam",
    "hidden": "units of the hidden layer",
    "discount": "discount",
    "reward_to_go": "weigh an action by what comes after it alone?",
    "normalise": "normalise the weights of actions?",
    "runs_of_a_cell": "runs that are made together",
    "seed": "seed of the random numbers",
}
COLUMNS = {
    "curves": {
        "policy": "boltzmann or mellowmax",
        "parameter": "beta or omega",
        "episode": "the middle of a bin of 500 episodes",
        "mean_return": "averaged over the bin and the runs",
        "standard_error": "of that mean, over the runs",
        "mean_length": "steps of an episode",
        "runs": "how many runs",
        "paper": "the paper's mean return in this bin",
    },
    "means": {
        "policy": "boltzmann or mellowmax",
        "parameter": "beta or omega",
        "mean_return": "averaged over all episodes and runs",
        "standard_error": "of that mean, over the runs",
        "paper": "the mean of the paper's curve over as many episodes",
        "solved": "the share of runs with a mean return above 200 in 100 consecutive episodes",
        "solved_low": "the lower end of its 95 % interval",
        "solved_high": "the upper end",
        "runs": "how many runs",
        "episodes": "of each run",
    },
    "readings": {
        "discount": "of what is earned",
        "weighing": "with what an action is weighed",
        "learning_rate": "0.005 is what the paper states",
        "distance": "root mean square distance from the paper's ten curves, first 3000 episodes",
        "runs": "of each setting",
    },
}
ENVIRONMENT = "LunarLander-v3"
PAPER_BIN = 500
"""How many episodes a point of the paper's curves stands for."""
BIN = 100
"""The same for a row of a cell."""
SOLVED_RETURN, SOLVED_EPISODES = 200.0, 100
"""Section 7.3: to solve the domain is a mean return above the one in as many episodes."""


@dataclasses.dataclass(frozen=True)
class Config:
    """What is run."""

    betas: tuple[float, ...] = (1.0, 2.0, 3.0, 5.0, 10.0)
    """Figure 11."""
    omegas: tuple[float, ...] = (3.0, 5.0, 7.0, 8.0, 11.0)
    """Figure 11."""
    runs: int = 400
    """Figure 11."""
    episodes: int = 40_000
    """Section 7.3."""
    batch: int = 10
    """Section 7.3."""
    learning_rate: float = 0.005
    """Of Adam (section 7.3)."""
    hidden: int = 16
    """Units of the hidden layer (section 7.3)."""
    discount: float = 1.0
    """The reading that is nearest to the paper's curves."""
    reward_to_go: bool = False
    """The same."""
    normalise: bool = False
    """The same."""
    runs_of_a_cell: int = 128
    """How the runs of a setting are cut."""
    seed: int = 11
    """Of the random numbers."""


SCALES = {
    "quick": Config(betas=(3.0,), omegas=(8.0,), runs=16, episodes=1500, runs_of_a_cell=16),
    "paper": Config(),
}
SECONDS = {"quick": 125.0, "paper": 18 * 86_400.0}
POLICIES = ("boltzmann", "mellowmax")
SHORT = {"boltzmann": "boltz", "mellowmax": "mm"}
"""What the paper's table calls them."""
PEAK = "Mellowmax outperforms Boltzmann at its peak"
"""The claim that matters most."""


def cells(config: Config) -> dict[str, Spec]:
    """Some runs of a policy at a parameter."""
    names = ("episodes", "batch", "learning_rate", "hidden", "discount", "reward_to_go")
    shared = {name: getattr(config, name) for name in (*names, "normalise", "seed")}
    parameters = {"boltzmann": config.betas, "mellowmax": config.omegas}
    step = config.runs_of_a_cell
    return {
        f"{policy}-{parameter:g}-{first:03d}": {
            "policy": policy,
            "parameter": parameter,
            "first": first,
            "runs": min(step, config.runs - first),
        }
        | shared
        for first in range(0, config.runs, step)
        for policy in POLICIES
        for parameter in parameters[policy]
    }


def run(spec: Spec) -> pd.DataFrame:
    """The mean returns of each run in bins of 100 episodes, and when it solved the domain."""
    return resume(spec, Work())


def resume(spec: Spec, work: Work) -> pd.DataFrame:
    """The same, resumed from what was learned before it was stopped."""
    learner = reinforce(
        SOFTMAXES[spec["policy"]](spec["parameter"]),  # type: ignore[call-arg]
        spec["learning_rate"],
        discount=spec["discount"],
        batch=spec["batch"],
        hidden=spec["hidden"],
        reward_to_go=spec["reward_to_go"],
        normalise=spec["normalise"],
    )
    numbers = range(spec["first"], spec["first"] + spec["runs"])
    stopped = []

    def callback(progress: TrainProgress) -> bool:
        if work.callback(progress.episodes / progress.total):
            stopped.append(True)
        return bool(stopped)

    result = train(
        learner,
        ENVIRONMENT,
        episodes=spec["episodes"],
        runs=numbers,
        seed=spec["seed"],
        checkpoint=work.directory,
        callback=callback,
    )
    if stopped:
        raise Stopped
    returns = result.returns.astype(np.float64)
    shape = (len(numbers), spec["episodes"] // BIN)
    return pd.DataFrame(
        {
            "policy": spec["policy"],
            "parameter": spec["parameter"],
            "run": np.repeat(numbers, shape[1]),
            "episode": np.tile((np.arange(shape[1]) + 0.5) * BIN, shape[0]),
            "mean_return": returns.reshape(*shape, BIN).mean(-1).ravel(),
            "mean_length": result.lengths.reshape(*shape, BIN).mean(-1).ravel(),
            "solved": np.repeat(_solved(returns), shape[1]),
        }
    )


def _solved(returns: Floats) -> Bools:
    """Did a run have a mean return above 200 in some 100 consecutive episodes?"""
    sums = np.cumsum(np.pad(returns, ((0, 0), (1, 0))), axis=1)
    means = (sums[:, SOLVED_EPISODES:] - sums[:, :-SOLVED_EPISODES]) / SOLVED_EPISODES
    return np.any(means > SOLVED_RETURN, axis=1)  # type: ignore[no-any-return]


def tables(config: Config, cells: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The learning curves, the means over all episodes, and the readings that were compared."""
    whole = pd.concat(cells.values(), ignore_index=True)
    whole["episode"] = (whole["episode"] // PAPER_BIN + 0.5) * PAPER_BIN
    setting = ["policy", "parameter"]
    of_runs = whole.groupby([*setting, "run", "episode"], sort=False)
    of_runs = of_runs[["mean_return", "mean_length"]].mean().reset_index()
    curves = _over_runs(of_runs, [*setting, "episode"])
    lengths = of_runs.groupby([*setting, "episode"], sort=False)["mean_length"].mean()
    curves["mean_length"] = lengths.to_numpy()
    theirs = _paper_curves()
    curves = curves.merge(theirs, on=[*setting, "episode"], how="left")
    last = curves["episode"].max()
    of_runs = whole.groupby([*setting, "run"], sort=False)
    of_runs = of_runs[["mean_return", "solved"]].mean().reset_index()
    means = _over_runs(of_runs, setting)
    theirs = theirs[theirs["episode"] <= last].groupby(setting)["paper"].mean().reset_index()
    means = means.merge(theirs, on=setting, how="left")
    solved = of_runs.groupby(setting, sort=False)["solved"].sum().to_numpy().round()
    means["solved"], means["solved_low"], means["solved_high"] = share_interval(
        solved, means["runs"].to_numpy()
    )
    means["episodes"] = config.episodes
    return {
        "curves": curves[list(COLUMNS["curves"])],
        "means": means[list(COLUMNS["means"])],
        "readings": distances(paper.read("fig11_readings")),
    }


def _over_runs(table: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    groups = table.groupby(keys, sort=False)["mean_return"]
    result = groups.agg(mean_return="mean", standard_error="sem", runs="count").reset_index()
    return result.fillna({"standard_error": np.inf})  # of one run


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
    keys = ["discount", "weighing", "learning_rate", "runs"]
    result = both.groupby(keys)["distance"].mean().pow(0.5).reset_index()
    result = result.sort_values("distance", ignore_index=True)
    return result[list(COLUMNS["readings"])]


def plot(tables: Mapping[str, pd.DataFrame]) -> dict[str, Any]:
    """The learning curves of both policies, and the means and solved shares by parameter."""
    return {
        "curves": lander_curves.draw_curves(tables["curves"], _paper_curves(), PAPER_BIN),
        "means": lander_curves.draw_means(tables["means"]),
    }


def judge(tables: Mapping[str, pd.DataFrame]) -> Verdict:
    """By the rule above."""
    curves, means = tables["curves"], tables["means"]
    claims = []
    for policy in POLICIES:
        rows = curves[curves["policy"] == policy]
        distance = (rows["mean_return"] - rows["paper"]).abs().groupby(rows["parameter"]).mean()
        worst = distance.idxmax()
        printed = lander_curves.of_setting(rows, policy, worst)
        claims.append(
            Claim(
                f"The learning curves of {policy}",
                f"at {worst:g}, from {printed['paper'].iloc[0]:.0f} to "
                f"{printed['paper'].iloc[-1]:.0f}",
                f"at {worst:g}, from {printed['mean_return'].iloc[0]:.0f} to "
                f"{printed['mean_return'].iloc[-1]:.0f}; {(distance <= NEAR).sum()} of "
                f"{len(distance)} curves within {NEAR:g} on average, the farthest "
                f"{distance.max():.0f} off",
                False if (distance > NEAR).any() else _whole(means) or None,
            )
        )
    claims.append(_peaks(means) if _whole(means) else _no_peaks(means))
    return Verdict(tuple(claims), _summary(tables))


def _reading(readings: pd.DataFrame) -> str:
    """Which reading is run, and by what numbers."""
    stated = readings[readings["learning_rate"] == Config().learning_rate]
    ours, others = stated.iloc[0], stated.iloc[1:]
    return (
        f"Actions are weighed with the {ours['weighing']}, discount {ours['discount']:g}: of the "
        f"readings compared it is the nearest to the paper's first 3000 episodes, "
        f"{ours['distance']:.0f} off in the root mean square, the others "
        f"{others['distance'].min():.0f} to {others['distance'].max():.0f}."
    )


def _whole(means: pd.DataFrame) -> bool:
    """Have all settings been run for all episodes?"""
    full = Config()
    n_settings = len(full.betas) + len(full.omegas)
    return len(means) == n_settings and int(means["episodes"].min()) == full.episodes


def _peaks(means: pd.DataFrame) -> Claim:
    """The claim that mellowmax outperforms Boltzmann at its peak."""
    boltzmann, mellowmax = (
        means.loc[means.loc[means["policy"] == policy, "mean_return"].idxmax()]
        for policy in POLICIES
    )
    ours = mellowmax["mean_return"] - boltzmann["mean_return"]
    theirs = mellowmax["paper"] - boltzmann["paper"]
    error = 2 * np.hypot(mellowmax["standard_error"], boltzmann["standard_error"])
    at = f"omega {mellowmax['parameter']:g} less beta {boltzmann['parameter']:g}"
    return Claim(
        PEAK,
        f"{at}: {theirs:.1f}",
        f"{at}: {ours:.1f} (+- {error:.1f})",
        bool(ours > error),
    )


def _no_peaks(means: pd.DataFrame) -> Claim:
    """The same claim, where too little was run to tell."""
    theirs = paper.read("fig11_lunar_lander_means").groupby("policy")["mean_return"].max()
    boltzmann, mellowmax = (theirs[SHORT[policy]] for policy in POLICIES)
    return Claim(
        PEAK,
        f"best mean return over all episodes {mellowmax:.1f}, Boltzmann's {boltzmann:.1f}",
        f"not tested by the first {int(means['episodes'].max())} episodes",
        None,
    )


def _summary(tables: Mapping[str, pd.DataFrame]) -> str:
    """What was found, how much of the paper's scale it rests on, and which reading was run."""
    means = tables["means"]
    full = Config()
    settings, runs, episodes = len(means), int(means["runs"].min()), int(means["episodes"].max())
    in_all = (len(full.betas) + len(full.omegas)) * full.runs * full.episodes
    share = settings * runs * episodes / in_all
    best = ", ".join(
        f"{policy} {means.loc[means['policy'] == policy, 'mean_return'].max():.0f} (paper "
        f"{means.loc[means['policy'] == policy, 'paper'].max():.0f})"
        for policy in POLICIES
    )
    of_scale = "all of the paper's scale" if share >= 1 else f"{share:.2g} of the paper's episodes"
    untested = "" if _whole(means) else "Which policy is better in the end is not tested by this. "
    return (
        f"{untested}Best mean return over the episodes that were run: {best}. This rests on "
        f"{of_scale}: {settings} of 10 settings, {runs} of {full.runs} runs, {episodes} of "
        f"{full.episodes} episodes. {_reading(tables['readings'])}"
    )
