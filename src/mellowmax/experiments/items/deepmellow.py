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
SECONDS_BETWEEN_CHECKPOINTS = 240.0
"""Those of a block on an accelerator have gigabytes: what 510 runs have learned, and their replay
buffers. A cell that is told to stop writes one then."""
BINS = 25
"""How many points a learning curve has."""
MAX, WITHOUT, MELLOWMAX = "max with a target network", "max without one", "mellowmax without one"
"""The methods."""
MARGIN = 20.0
"""How much less mellowmax may earn without a target network than max with one."""
RULE = (
    "What is compared is the mean return over all episodes of a run. Omega is the best one of the "
    "runs with even numbers, and the returns are those of the others. The interval of a "
    "difference is that of 95 %, by Welch's test. Max needs its target network if it earns more "
    "with it than without it: the interval is above 0. The target network can go if mellowmax "
    f"without one earns at most {MARGIN:g} less than max with one. This is a test of "
    f"non-inferiority: it holds if the interval is above {-MARGIN:g}, it does not if the interval "
    f"is below {-MARGIN:g}, and else it is undecided. The margin was fixed before the paper scale "
    "was run. It is a twentieth of the way from what a policy at random earns, about -500 in "
    "Acrobot and -200 in Lunar Lander, to what Gymnasium counts as solved, -100 and 200. "
    "Mellowmax outperforms max with a target network if the interval is above 0. A claim that is "
    "false is found to hold once in 40 times at most. "
    f"With fewer than {ENOUGH} runs of each method nothing is judged."
)
DEVIATIONS = (
    "The paper has no deep Q-learning: it is a later one of two of its authors, among others, "
    "whose claim is tested here. The settings are those of the program that the first author of "
    "that later one has published (github.com/seungchan-kim/DeepMellow), but for what follows.",
    "Acrobot: a run has 250 episodes, theirs 1000. Exploration falls linearly, over 200 steps; "
    "theirs falls by 1 % with each update, which makes as many random actions.",
    "Lunar Lander: three layers of 64 units, where theirs have 512; minibatches of 64, not 1024; "
    "an update every 4 steps, not after each; a replay buffer of 50,000 steps, not of a million; "
    "800 episodes, not 1200. Theirs takes thousands of times the arithmetic. The learning rate "
    "goes with that: 5e-4 for theirs of 5e-5. They let exploration fall further below 0.05, by "
    "3 % with each episode, and have a little weight decay; there is neither here.",
    "An episode that a limit of steps cuts off has not ended here. It has in their targets.",
    "They ran Lunar Lander 50 times, and Acrobot 100 times as here. None of these settings was "
    "tuned for a method, and all methods have the same.",
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
    "omegas": "omegas of mellowmax",
    "target": "updates between two copies to the target network",
    "runs": "runs of each setting",
    "discount": "discount",
    "depth": "hidden layers",
    "minibatch": "steps of an update",
    "seed": "seed of the random numbers",
    "episodes": "episodes of a run, in each environment",
    "hidden": "units of a hidden layer",
    "learning_rate": "learning rate of Adam",
    "capacity": "steps in the replay buffer",
    "learning_starts": "steps before the first update",
    "train_frequency": "steps from one update to the next",
    "exploration_steps": "steps in which exploration falls",
    "last_epsilon": "exploration from then on",
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
LEARNER = ("discount", "depth", "minibatch")
"""The fields of `Config` that `dqn` takes as they are."""
IN_EACH = (
    "hidden",
    "learning_rate",
    "capacity",
    "learning_starts",
    "train_frequency",
    "exploration_steps",
    "last_epsilon",
)
"""Those that have a number for each environment."""
ENVIRONMENTS = {"acrobot": acrobot, "lunar_lander": lunar_lander}


@dataclasses.dataclass(frozen=True)
class Config:
    """What is trained: what the authors' program has, but for `DEVIATIONS`.

    There are 510 runs in each environment: on an accelerator they learn side by side, in one block.
    """

    environments: tuple[str, ...] = ("acrobot", "lunar_lander")
    omegas: tuple[float, ...] = (1.0, 2.0, 5.0)
    target: int = 100
    runs: int = 102
    discount: float = 0.99
    depth: int = 3
    minibatch: int = 64
    seed: int = 0
    episodes: tuple[int, ...] = (250, 800)
    hidden: tuple[int, ...] = (300, 64)
    learning_rate: tuple[float, ...] = (1e-3, 5e-4)
    capacity: tuple[int, ...] = (2000, 50_000)
    learning_starts: tuple[int, ...] = (64, 1024)
    train_frequency: tuple[int, ...] = (1, 4)
    exploration_steps: tuple[int, ...] = (200, 100_000)
    last_epsilon: tuple[float, ...] = (0.001, 0.05)


SCALES = {
    "quick": Config(
        ("acrobot",),
        (1.0, 5.0),
        runs=4,
        depth=2,
        episodes=(50,),
        hidden=(64,),
        learning_rate=(1e-3,),
        capacity=(2000,),
        learning_starts=(64,),
        train_frequency=(4,),
        exploration_steps=(200,),
        last_epsilon=(0.001,),
    ),
    "paper": Config(),
}
SECONDS = {"quick": 10.0, "paper": 9 * 3600.0}


def cells(config: Config) -> dict[str, Spec]:
    """All that is trained in one environment."""
    fields = dataclasses.asdict(config)
    return {
        name: fields | {x: [fields[x][i]] for x in ("environments", "episodes", *IN_EACH)}
        for i, name in enumerate(config.environments)
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
        target=np.where(settings["method"] == MAX, config.target, 1),
        **{name: getattr(config, name) for name in LEARNER},
        **{name: getattr(config, name)[0] for name in IN_EACH},
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
        seconds_between_checkpoints=SECONDS_BETWEEN_CHECKPOINTS,
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
    few = "" if enough else f"Too few to judge: it takes {ENOUGH} runs of each method. "
    summary = (
        f"{few}Mean returns over all episodes, {int(means['runs'].min())} runs of each method."
    )
    for name, rows in differences.groupby("environment", sort=False):
        answers = rows.set_index("question", drop=False)
        claims += _claims(str(name), answers.loc[NEEDED], answers.loc[SPARED], enough)
        summary += f" In {name}, {'; '.join(_words(row) for _, row in rows.iterrows())}."
    return Verdict(tuple(claims), summary)


def _claims(name: str, needed: pd.Series[Any], spared: pd.Series[Any], enough: bool) -> list[Claim]:
    """The claims about an environment."""
    low, high = spared["low"], spared["high"]
    can_go = bool(low > -MARGIN) if low > -MARGIN or high < -MARGIN else None
    statements = (
        (f"{name}: max needs its target network", needed, bool(needed["low"] > 0)),
        (f"{name}: with mellowmax the target network can go", spared, can_go),
        (f"{name}: mellowmax without one outperforms max with one", spared, bool(low > 0)),
    )
    theirs = "so it is said of DQN and DeepMellow (IJCAI 2019)"
    return [
        Claim(statement, theirs, _words(row), holds if enough else None)
        for statement, row, holds in statements
    ]


def _words(row: pd.Series[Any]) -> str:
    """A difference between two methods."""
    one, other = row["question"].split(" or ")
    omega = "" if math.isnan(row["omega"]) else f" at omega {row['omega']:g}"
    interval = f"95 %: {row['low']:.1f} to {row['high']:.1f}; {row['runs']:.0f} runs"
    return f"{one}{omega} less {other}: {row['difference']:.1f} ({interval})"
