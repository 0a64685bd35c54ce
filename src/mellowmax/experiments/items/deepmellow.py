"""DeepMellow, beyond the paper: can deep Q-learning do without a target network?

Kim, Asadi, Littman and Konidaris put mellowmax into the targets of DQN and took the target network
away. Here the maximum with a target network, the maximum without one, and mellowmax without one
over several omegas learn in two environments. All that learns in one environment is one training.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
import pandas as pd

from ..._common.runs import KEYS
from ...deep import dqn
from ...environments import acrobot, lunar_lander
from ...softmax import Mellowmax
from .. import target_network_curves
from ..intervals import mean_interval
from ..item import NAMES, Caption, Claim, Spec, Verdict, Work
from ..lander_comparisons import difference
from ..training import train_in_cell

__all__ = [*NAMES, "resume"]

TITLE = "Deep Q-learning without a target network"
SOURCE = "Beyond the paper: Kim, Asadi, Littman and Konidaris, IJCAI 2019"
VERSION = 1
ENOUGH = 100
"""How many runs of each setting it takes to judge."""
BINS = 25
"""How many points a learning curve has."""
MAX, WITHOUT, MELLOWMAX = "max with a target network", "max without one", "mellowmax without one"
"""The methods."""
RULE = (
    "What is compared is the mean return over all episodes of a run. Omega is the best one of the "
    "runs with even numbers, and the returns are those of the others. Of two methods one earns "
    f"more if the 95 % interval of the difference, by Welch's test, is above 0. Max needs its "
    "target network if it earns more with it than without it. The target network can go if max "
    "with one does not earn more than mellowmax without one. Mellowmax outperforms it if it earns "
    f"more. With fewer than {ENOUGH} runs of each method nothing is judged."
)
DEVIATIONS = (
    "The paper has no deep Q-learning: it is a later one of two of its authors, among others, "
    "whose claim is tested here.",
    "The network, the learning rate, the replay buffer and the exploration are this library's "
    "choice, the same for all methods, and were not tuned for any of them.",
    "Max is mellowmax at omega = infinity, which is the same number.",
)
CAPTIONS = {
    "curves": Caption(
        "The mean return of an episode while learning, with 95 % intervals over the runs: the "
        "maximum with a target network and without one, and mellowmax without one at each omega.",
        "A panel for each environment, with a rising line for each method.",
    ),
    "means": Caption(
        "The mean return over all episodes by mellowmax's omega, with 95 % intervals over the "
        "runs. The lines across are the maximum's, with a target network and without one, and "
        "their bands are its intervals.",
        "A panel for each environment: points with bars against omega, and two lines with bands.",
    ),
}
SETTINGS = {
    "environments": "environments",
    "episodes": "episodes of a run in each of them",
    "omegas": "omegas of mellowmax",
    "target": "updates between two copies to the target network",
    "runs": "runs of each setting",
    "learning_rate": "learning rate of Adam",
    "discount": "discount",
    "hidden": "units of each of the two hidden layers",
    "capacity": "steps in the replay buffer",
    "minibatch": "steps of an update",
    "learning_starts": "steps before the first update",
    "train_frequency": "steps from one update to the next",
    "exploration_steps": "steps in which exploration falls from 1 to 0.05",
    "seed": "seed of the random numbers",
}
SETTING = ["environment", "method", "omega"]
COLUMNS = {
    "curves": {
        "environment": "acrobot or lunar_lander",
        "method": "max with a target network or without one, or mellowmax without one",
        "omega": "of mellowmax; infinity for max",
        "episode": "the middle of a bin of episodes",
        "mean_return": "averaged over the bin and the runs",
        "low": "the lower end of its 95 % interval, over the runs",
        "high": "the upper end",
        "runs": "how many runs",
    },
    "runs": {
        "environment": "acrobot or lunar_lander",
        "method": "as above",
        "omega": "as above",
        "run": "its number",
        "mean_return": "averaged over all episodes",
        "last_return": "averaged over the last fifth of them",
    },
    "means": {
        "environment": "acrobot or lunar_lander",
        "method": "as above",
        "omega": "as above",
        "mean_return": "averaged over all episodes and runs",
        "low": "the lower end of its 95 % interval, over the runs",
        "high": "the upper end",
        "last_return": "averaged over the last fifth of the episodes",
        "last_low": "the lower end of its 95 % interval",
        "last_high": "the upper end",
        "runs": "how many runs",
        "episodes": "of each run",
    },
    "differences": {
        "environment": "acrobot or lunar_lander",
        "question": "which method earns more",
        "omega": "of mellowmax, where it is one of them: the best one of the other runs",
        "difference": "how much more the first earns, over all episodes",
        "low": "the lower end of its 95 % interval",
        "high": "the upper end",
        "p_value": "how often chance alone gives as large a difference",
        "runs": "how many runs of each are compared",
    },
}
NEEDED, SPARED = f"{MAX} or {WITHOUT}", f"{MELLOWMAX} or {MAX}"
"""The questions."""
LEARNER = (
    "discount",
    "hidden",
    "capacity",
    "minibatch",
    "learning_starts",
    "train_frequency",
    "exploration_steps",
)
"""The fields of `Config` that `dqn` takes as they are."""
ENVIRONMENTS = {"acrobot": acrobot, "lunar_lander": lunar_lander}


@dataclasses.dataclass(frozen=True)
class Config:
    """What is trained."""

    environments: tuple[str, ...] = ("acrobot", "lunar_lander")
    episodes: tuple[int, ...] = (500, 1000)
    omegas: tuple[float, ...] = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
    target: int = 250
    runs: int = 128
    learning_rate: float = 5e-4
    discount: float = 0.99
    hidden: int = 64
    capacity: int = 20_000
    minibatch: int = 64
    learning_starts: int = 1000
    train_frequency: int = 4
    exploration_steps: int = 10_000
    seed: int = 0


SCALES = {
    "quick": Config(("acrobot",), (50,), (2.0, 10.0), runs=6),
    "paper": Config(),
}
SECONDS = {"quick": 15.0, "paper": 30 * 3600.0}


def cells(config: Config) -> dict[str, Spec]:
    """All that is trained in one environment."""
    fields = dataclasses.asdict(config)
    return {
        name: fields | {"environments": [name], "episodes": [episodes]}
        for name, episodes in zip(config.environments, config.episodes, strict=True)
    }


def run(spec: Spec) -> pd.DataFrame:
    """A row for each run, with the mean returns of its bins of episodes."""
    return resume(spec, Work())


def resume(spec: Spec, work: Work) -> pd.DataFrame:
    """The same, resumed from what was learned before it was stopped."""
    config = Config(**spec)
    settings = _settings(config)
    learner = dqn(
        Mellowmax(settings["omega"].to_numpy()),
        config.learning_rate,
        target=np.where(settings["method"] == MAX, config.target, 1),
        **{name: getattr(config, name) for name in LEARNER},
    )
    (name,), (episodes,) = config.environments, config.episodes
    result = train_in_cell(
        work,
        learner,
        ENVIRONMENTS[name].params(),
        episodes=episodes,
        runs=config.runs,
        seed=jax.random.split(jax.random.key(config.seed, impl=KEYS), len(settings)),
        bin=max(1, episodes // BINS),
        seconds_between_checkpoints=60.0,
    )
    rows = settings.loc[settings.index.repeat(config.runs)].reset_index(drop=True)
    numbers = np.tile(np.arange(config.runs), len(settings))
    curves = [*result.returns.reshape(len(rows), -1)]
    return rows.assign(environment=name, run=numbers, episodes=episodes, returns=curves)


def _settings(config: Config) -> pd.DataFrame:
    """A row for each setting; the maximum is mellowmax at infinity."""
    rows = [(MAX, math.inf), (WITHOUT, math.inf), *((MELLOWMAX, x) for x in config.omegas)]
    return pd.DataFrame(rows, columns=["method", "omega"])


def tables(config: Config, cells: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The learning curves, what each run earned, what that adds up to, and the differences."""
    whole = pd.concat(cells.values(), ignore_index=True)
    runs = whole[[*SETTING, "run", "episodes"]].copy()
    returns = [np.asarray(x, np.float64) for x in whole["returns"]]
    runs["mean_return"] = [x.mean() for x in returns]
    runs["last_return"] = [x[-max(1, len(x) // 5) :].mean() for x in returns]
    found = {
        "curves": _curves(whole),
        "runs": runs,
        "means": _means(runs),
        "differences": _differences(runs),
    }
    return {name: table.reindex(columns=list(COLUMNS[name])) for name, table in found.items()}


def _curves(whole: pd.DataFrame) -> pd.DataFrame:
    """The mean of each bin of episodes over the runs of a setting."""
    parts = []
    for setting, rows in whole.groupby(SETTING, sort=False):
        returns = np.stack([np.asarray(x, np.float64) for x in rows["returns"]])
        width = rows["episodes"].iloc[0] / returns.shape[1]
        mean, low, high = mean_interval(returns)
        part = dict(zip(SETTING, setting, strict=True))
        part["episode"] = (np.arange(returns.shape[1]) + 0.5) * width
        part |= {"mean_return": mean, "low": low, "high": high, "runs": len(rows)}
        parts.append(pd.DataFrame(part))
    return pd.concat(parts, ignore_index=True)


def _means(runs: pd.DataFrame) -> pd.DataFrame:
    """What each setting earned on average."""
    rows = []
    for setting, group in runs.groupby(SETTING, sort=False):
        row = dict(zip(SETTING, setting, strict=True))
        row |= {"runs": len(group), "episodes": group["episodes"].iloc[0]}
        for kind, ends in (("mean_return", ""), ("last_return", "last_")):
            names = (kind, f"{ends}low", f"{ends}high")
            row |= zip(names, mean_interval(group[kind].to_numpy()), strict=True)
        rows.append(row)
    return pd.DataFrame(rows)


def _differences(runs: pd.DataFrame) -> pd.DataFrame:
    """The answers to the two questions in each environment.

    The best omega is that of the runs with even numbers, and the returns are those of the others:
    what was chosen as the best is not flattered by having been chosen.
    """
    rows = []
    for name, group in runs.groupby("environment", sort=False):
        with_one, without = (group[group["method"] == method] for method in (MAX, WITHOUT))
        rows.append({"environment": name, "question": NEEDED, **difference(with_one, without)})
        ours = group[group["method"] == MELLOWMAX]
        chosen, tested = (ours[ours["run"] % 2 == odd] for odd in (0, 1))
        best = chosen.groupby("omega")["mean_return"].mean().idxmax()
        row = {"environment": name, "question": SPARED, "omega": best}
        rows.append(row | difference(tested[tested["omega"] == best], with_one))
    return pd.DataFrame(rows)


def plot(tables: Mapping[str, pd.DataFrame]) -> dict[str, Any]:
    """The learning curves, and the means by omega."""
    return {
        "curves": target_network_curves.draw_curves(tables["curves"], MELLOWMAX),
        "means": target_network_curves.draw_means(tables["means"], MELLOWMAX),
    }


def judge(tables: Mapping[str, pd.DataFrame]) -> Verdict:
    """By the rule above."""
    means, differences = tables["means"], tables["differences"]
    enough = int(means["runs"].min()) >= ENOUGH
    claims: list[Claim] = []
    for name, rows in differences.groupby("environment", sort=False):
        answers = rows.set_index("question", drop=False)
        claims += _claims(str(name), answers.loc[NEEDED], answers.loc[SPARED], enough)
    runs, episodes = int(means["runs"].min()), int(means["episodes"].max())
    names = ", ".join(means["environment"].unique())
    few = "" if enough else f"Too few to judge: it takes {ENOUGH} runs of each method. "
    earned = "; ".join(_words(row) for _, row in differences.iterrows())
    summary = f"{few}In {runs} runs of up to {episodes} episodes ({names}): {earned}."
    return Verdict(tuple(claims), summary)


def _claims(name: str, needed: pd.Series[Any], spared: pd.Series[Any], enough: bool) -> list[Claim]:
    """The claims about an environment."""
    statements = (
        (f"{name}: max needs its target network", needed, needed["low"] > 0),
        (f"{name}: with mellowmax the target network can go", spared, spared["high"] >= 0),
        (f"{name}: mellowmax without one outperforms max with one", spared, spared["low"] > 0),
    )
    theirs = "so it is said of DQN and DeepMellow (IJCAI 2019)"
    return [
        Claim(statement, theirs, _words(row), bool(holds) if enough else None)
        for statement, row, holds in statements
    ]


def _words(row: pd.Series[Any]) -> str:
    """A difference between two methods."""
    one, other = row["question"].split(" or ")
    omega = "" if math.isnan(row["omega"]) else f" at omega {row['omega']:g}"
    interval = f"95 %: {row['low']:.1f} to {row['high']:.1f}; {row['runs']:.0f} runs"
    return f"{one}{omega} less {other}: {row['difference']:.1f} ({interval})"
