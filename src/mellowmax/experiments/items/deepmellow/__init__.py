"""DeepMellow, beyond the paper: can deep Q-learning do without a target network?

Kim, Asadi, Littman and Konidaris put mellowmax into the targets of DQN and took the target network
away. Here the maximum with a target network, the maximum without one, and mellowmax without one
over several omegas learn in two environments. All runs in one environment are trained together.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
import pandas as pd

from ...._common.runs import KEYS
from ....deep import dqn, mlp
from ....environments import acrobot, lunar_lander
from ....softmax import Mellowmax
from ...cell_training import train_in_cell
from ...intervals import difference, mean_interval
from ...item import NAMES, Claim, Spec, Verdict, Work
from . import figures
from .text import CAPTIONS, COLUMNS, DEVIATIONS, ENOUGH, FEW, MARGIN, RULE, SETTINGS, SOURCE, TITLE

__all__ = [*NAMES, "resume"]

VERSION = 1
SECONDS_BETWEEN_CHECKPOINTS = 240.0
"""On an accelerator a checkpoint has gigabytes: what 510 runs have learned, and their replay
buffers. A cell that is stopped writes one at once."""
BINS = 25
"""How many points a learning curve has."""
MAX, WITHOUT, MELLOWMAX = "max with a target network", "max without one", "mellowmax without one"
"""The methods."""
NEEDED, SPARED = f"{MAX} or {WITHOUT}", f"{MELLOWMAX} or {MAX}"
"""The questions."""
ANSWERS: dict[object, str] = {True: "yes", False: "no", None: "undecided"}
SETTING = ["environment", "method", "omega"]
LEARNER = ("discount", "minibatch")
"""The fields of `Config` that `dqn` takes as they are."""
OF_LEARNER_IN_EACH = (
    "learning_rate",
    "capacity",
    "learning_starts",
    "train_frequency",
    "exploration_steps",
    "last_epsilon",
)
"""The settings that are the learner's own, and have a number for each environment."""
IN_EACH = ("hidden", *OF_LEARNER_IN_EACH)
"""The settings that have a number for each environment."""
ENVIRONMENTS = {"acrobot": acrobot, "lunar_lander": lunar_lander}


@dataclasses.dataclass(frozen=True)
class Config:
    """What is trained: what the authors' program trains, except for `DEVIATIONS`.

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
    """A cell for each environment."""
    fields = dataclasses.asdict(config)
    return {
        name: fields | {x: [fields[x][i]] for x in ("environments", "episodes", *IN_EACH)}
        for i, name in enumerate(config.environments)
    }


def run(spec: Spec) -> pd.DataFrame:
    """A row for each run, with the mean returns of its bins of episodes."""
    return resume(spec, Work())


def resume(spec: Spec, work: Work) -> pd.DataFrame:
    """Like `run`, resumed from what was learned before the cell was stopped."""
    config = Config(**spec)
    settings = _settings(config)
    learner = dqn(
        Mellowmax(settings["omega"].to_numpy()),
        target=np.where(settings["method"] == MAX, config.target, 1),
        network=mlp(config.hidden[0], config.depth),
        **{name: getattr(config, name) for name in LEARNER},
        **{name: getattr(config, name)[0] for name in OF_LEARNER_IN_EACH},
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
        with_one, without = (
            group.loc[group["method"] == method, "mean_return"] for method in (MAX, WITHOUT)
        )
        rows.append({"environment": name, "question": NEEDED, **difference(with_one, without)})
        ours = group[group["method"] == MELLOWMAX]
        chosen, tested = (ours[ours["run"] % 2 == odd] for odd in (0, 1))
        best = chosen.groupby("omega")["mean_return"].mean().idxmax()
        row = {"environment": name, "question": SPARED, "omega": best}
        rows.append(row | difference(tested.loc[tested["omega"] == best, "mean_return"], with_one))
    return pd.DataFrame(rows)


def plot(tables: Mapping[str, pd.DataFrame]) -> dict[str, Any]:
    """The learning curves, and the means by omega."""
    return {
        "curves": figures.draw_curves(tables["curves"], MELLOWMAX),
        "means": figures.draw_means(tables["means"], MELLOWMAX),
    }


def judge(tables: Mapping[str, pd.DataFrame]) -> Verdict:
    """The verdict by `text.RULE`."""
    means, differences = tables["means"], tables["differences"]
    enough = int(means["runs"].min()) >= ENOUGH
    claims: list[Claim] = []
    spared = []
    few = "" if enough else f"Too few to judge: it takes {ENOUGH} runs of each method. "
    summary = (
        f"{few}Mean returns over all episodes, {int(means['runs'].min())} runs of each method."
    )
    for name, rows in differences.groupby("environment", sort=False):
        answers = rows.set_index("question", drop=False)
        about = _claims(str(name), answers.loc[NEEDED], answers.loc[SPARED], enough)
        claims += about
        spared.append(f"in {name} {ANSWERS[about[1].holds]}")
        summary += f" In {name}, {'; '.join(_words(row) for _, row in rows.iterrows())}."
    in_short = f"Can the target network go with mellowmax? {', '.join(spared).capitalize()}."
    return Verdict(tuple(claims), summary, in_short=in_short)


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
    interval = f"95 %: {row['low']:.1f} to {row['high']:.1f}; "
    about = f"{interval if row['runs'] >= FEW else ''}{row['runs']:.0f} runs"
    return f"{one}{omega} minus {other}: {row['difference']:.1f} ({about})"
