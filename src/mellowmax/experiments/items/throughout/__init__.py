"""Throughout reinforcement learning: mellowmax in Boltzmann's place, in four algorithms.

The paper ends with the remark that mellowmax could be used in place of Boltzmann throughout
reinforcement-learning research. Here PPO, soft actor-critic, deep Q-learning and REINFORCE learn
with each of the two, in classic environments and in MinAtar. The parameter and the learning rate of
each are chosen on some runs, and what was chosen is judged on others.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from typing import Any

import pandas as pd

from ...item import NAMES, Spec, Verdict, Work
from ...scores import bootstrap, improvement, interquartile_mean, profile
from . import figures, verdict
from .learners import MINATAR
from .text import CAPTIONS, COLUMNS, DEVIATIONS, RULE, SETTINGS, SOURCE, TITLE
from .training import CHOOSING, JUDGING, trained
from .verdict import LEVEL, RESAMPLES, SEED, arrays_of, iqm_difference

__all__ = [*NAMES, "resume"]

VERSION = 1
SOFTMAXES = ("boltzmann", "mellowmax")
THRESHOLDS = tuple(x / 20 for x in range(-4, 29))
"""The scores at which the performance profiles are computed."""


@dataclasses.dataclass(frozen=True)
class Config:
    """What is trained. Learning rates and steps are those of each algorithm.

    For outputs that are close together mellowmax's policy has the inverse temperature omega / 2,
    so omega is twice beta.
    """

    environments: tuple[str, ...] = (
        "lunar_lander",
        "asterix",
        "breakout",
        "freeway",
        "space_invaders",
        "cartpole",
        "acrobot",
        "mountain_car",
    )
    algorithms: tuple[str, ...] = ("ppo", "sac", "dqn", "reinforce")
    betas: tuple[float, ...] = (0.3, 1.0, 3.0, 10.0, 30.0)
    omegas: tuple[float, ...] = (0.6, 2.0, 6.0, 20.0, 60.0)
    learning_rates: tuple[tuple[float, ...], ...] = (
        (2.5e-4, 1e-3, 4e-3),
        (3e-4, 1e-3, 3e-3),
        (3e-4, 1e-3, 3e-3),
        (1e-3, 4e-3, 1.6e-2),
    )
    steps: tuple[int, ...] = (500_000, 100_000, 100_000, 1_000_000)
    minatar_betas: tuple[float, ...] = (1.0, 3.0, 10.0)
    minatar_omegas: tuple[float, ...] = (2.0, 6.0, 20.0)
    minatar_learning_rates: tuple[tuple[float, ...], ...] = (
        (2.5e-4, 1e-3),
        (3e-4, 1e-3),
        (3e-4, 1e-3),
        (1e-3, 4e-3),
    )
    minatar_steps: tuple[int, ...] = (1_500_000, 200_000, 300_000, 400_000)
    choosing: int = 10
    judging: int = 40
    seed: int = 37


SCALES = {
    "quick": Config(
        ("cartpole",),
        betas=(1.0,),
        omegas=(2.0,),
        learning_rates=((1e-3,), (1e-3,), (1e-3,), (1e-2,)),
        steps=(2048, 1500, 1500, 2000),
        choosing=2,
        judging=2,
    ),
    "paper": Config(),
}
SECONDS = {"quick": 40.0, "paper": 30 * 86_400.0}


def cells(config: Config) -> dict[str, Spec]:
    """A cell for each softmax in each environment, for each algorithm; the longest come first."""
    found = {}
    parts = itertools.product(config.environments, enumerate(config.algorithms), SOFTMAXES)
    for number, (environment, (i, algorithm), softmax) in enumerate(parts):
        betas, omegas = config.betas, config.omegas
        rates, steps = config.learning_rates, config.steps
        if environment in MINATAR:
            betas, omegas = config.minatar_betas, config.minatar_omegas
            rates, steps = config.minatar_learning_rates, config.minatar_steps
        found[f"{algorithm}-{environment}-{softmax}"] = {
            "algorithm": algorithm,
            "environment": environment,
            "softmax": softmax,
            "parameters": list(betas if softmax == "boltzmann" else omegas),
            "learning_rates": list(rates[i]),
            "steps": steps[i],
            "choosing": config.choosing,
            "judging": config.judging,
            "seed": 1000 * config.seed + number,
        }
    return found


def run(spec: Spec) -> pd.DataFrame:
    """A row for each run, with its score."""
    return resume(spec, Work())


def resume(spec: Spec, work: Work) -> pd.DataFrame:
    """Like `run`, resumed from what was learned before the cell was stopped."""
    return trained(spec, work)


def tables(config: Config, cells: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """What each run scored, and what that adds up to for each algorithm."""
    runs = pd.concat(cells.values(), ignore_index=True)
    found = {
        "runs": runs,
        "scores": _scores(runs),
        "differences": _differences(runs),
        "profiles": _profiles(runs),
    }
    return {name: table.reindex(columns=list(COLUMNS[name])) for name, table in found.items()}


def _scores(runs: pd.DataFrame) -> pd.DataFrame:
    """The interquartile mean over all environments, of what was chosen."""
    rows = []
    for (algorithm, softmax), group in runs.groupby(["algorithm", "softmax"], sort=False):
        scores = arrays_of(group, JUDGING)
        low, high = bootstrap(interquartile_mean, scores, resamples=RESAMPLES, seed=SEED)
        row = {"algorithm": algorithm, "softmax": softmax, "score": interquartile_mean(scores)}
        row |= {"low": low, "high": high, "runs": scores.shape[0], "environments": scores.shape[1]}
        rows.append(row | {"diverged": int(group["diverged"].sum())})
    return pd.DataFrame(rows)


def _differences(runs: pd.DataFrame) -> pd.DataFrame:
    """Mellowmax minus Boltzmann: of what was chosen, and over all parameters and rates."""
    rows = []
    for algorithm, group in runs.groupby("algorithm", sort=False):
        row: dict[str, Any] = {"algorithm": algorithm}
        for stage, ending in ((JUDGING, ""), (CHOOSING, "_of_all")):
            ours, theirs = (
                arrays_of(group[group["softmax"] == softmax], stage)
                for softmax in ("mellowmax", "boltzmann")
            )
            options: dict[str, Any] = {"level": LEVEL, "resamples": RESAMPLES, "seed": SEED}
            ends = bootstrap(iqm_difference, ours, theirs, **options)
            row |= {f"difference{ending}": iqm_difference(ours, theirs)}
            row |= zip((f"low{ending}", f"high{ending}"), ends, strict=True)
            if stage == JUDGING:
                ends = bootstrap(improvement, ours, theirs, **options)
                row |= {"improvement": improvement(ours, theirs)}
                row |= zip(("improvement_low", "improvement_high"), ends, strict=True)
                row |= {"runs": len(ours), "environments": ours.shape[1]}
        rows.append(row)
    return pd.DataFrame(rows)


def _profiles(runs: pd.DataFrame) -> pd.DataFrame:
    """The share of runs above each score, of what was chosen."""
    parts = []
    for (algorithm, softmax), group in runs.groupby(["algorithm", "softmax"], sort=False):
        scores = arrays_of(group, JUDGING)
        low, high = bootstrap(
            lambda x: profile(x, THRESHOLDS), scores, resamples=RESAMPLES // 10, seed=SEED
        )
        part = {"algorithm": algorithm, "softmax": softmax, "threshold": THRESHOLDS}
        part |= {"share": profile(scores, THRESHOLDS), "low": low, "high": high}
        parts.append(pd.DataFrame(part))
    return pd.concat(parts, ignore_index=True)


def plot(tables: Mapping[str, pd.DataFrame]) -> dict[str, Any]:
    """The differences, and the performance profiles."""
    return {
        "differences": figures.draw_differences(tables["differences"]),
        "profiles": figures.draw_profiles(tables["profiles"]),
    }


def judge(tables: Mapping[str, pd.DataFrame]) -> Verdict:
    """The verdict by `text.RULE`."""
    return verdict.judge(tables["differences"], tables["scores"])
