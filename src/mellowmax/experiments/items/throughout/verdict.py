"""Can mellowmax take Boltzmann's place in an algorithm, over all environments?"""

from __future__ import annotations

from typing import Any

import pandas as pd

from ...._typing import Floats
from ...item import Claim, Verdict
from ...scores import interquartile_mean

__all__ = [
    "ENOUGH",
    "ENVIRONMENTS",
    "LEVEL",
    "MARGIN",
    "NAMES",
    "RESAMPLES",
    "SEED",
    "arrays_of",
    "iqm_difference",
    "judge",
]

ENVIRONMENTS, ENOUGH = 8, 40
"""How many environments it takes to judge, and how many runs in each."""
MARGIN = 0.05
"""A difference of scores that is smaller is none."""
LEVEL = 1 - 0.05 / 4
"""Four algorithms are four tests, which share an error rate of 5 %."""
RESAMPLES, SEED = 10_000, 0
NAMES = {
    "ppo": "PPO",
    "sac": "soft actor-critic",
    "dqn": "deep Q-learning",
    "reinforce": "REINFORCE",
}
ANSWERS = {"better": True, "as good": True, "worse": False, "undecided": None}
"""Whether the claim holds."""


def arrays_of(runs: pd.DataFrame, stage: str) -> Floats:
    """The scores of the runs of a stage, `[runs, environments]`: the mean of a run's settings."""
    chosen = runs[runs["stage"] == stage]
    means = chosen.groupby(["run", "environment"], sort=False)["score"].mean()
    return means.unstack().to_numpy()


def iqm_difference(ours: Floats, theirs: Floats) -> Floats:
    """How much larger one interquartile mean is than another."""
    return interquartile_mean(ours) - interquartile_mean(theirs)


def judge(differences: pd.DataFrame, scores: pd.DataFrame) -> Verdict:
    """By the rule in `text`."""
    rows = differences.to_dict("records")
    answers = {row["algorithm"]: _answer(row) for row in rows}
    claims = tuple(
        Claim(
            f"Mellowmax can be used in place of Boltzmann in {NAMES[row['algorithm']]}",
            "it could be used in place of Boltzmann throughout reinforcement learning (section 9)",
            f"{answers[row['algorithm']]}: {_words(row)}",
            ANSWERS[answers[row["algorithm"]]],
        )
        for row in rows
    )
    least = differences[["environments", "runs"]].min()
    few = "" if _enough(least) else (
        f"Too little was run to judge: it takes {ENOUGH} runs in each of {ENVIRONMENTS} "
        "environments. "
    )  # fmt: skip
    said = "; ".join(f"{NAMES[name]} {answer}" for name, answer in answers.items())
    diverged = int(scores["diverged"].sum())
    lost = f" {diverged} runs were of settings that diverged, and score 0." if diverged else ""
    where = "one environment" if (n := least["environments"]) == 1 else f"each of {n} environments"
    summary = f"{few}Mellowmax against Boltzmann, {least['runs']} runs in {where}: {said}.{lost}"
    beside = "Over all parameters and learning rates, on the runs that choose: " + "; ".join(
        f"{NAMES[row['algorithm']]} {row['difference_of_all']:+.3f} "
        f"({row['low_of_all']:+.3f} to {row['high_of_all']:+.3f})"
        for row in rows
    )
    short = f"Mellowmax in Boltzmann's place: {said if few == '' else 'undecided at this scale'}."
    return Verdict(claims, summary, beside=(f"{beside}.",), in_short=short)


def _enough(row: Any) -> bool:
    return bool(row["environments"] >= ENVIRONMENTS and row["runs"] >= ENOUGH)


def _answer(row: dict[str, Any]) -> str:
    """What the rule says of an algorithm."""
    if not _enough(row):
        return "undecided"
    if row["low"] > 0 and row["improvement_low"] > 0.5:
        return "better"
    if row["high"] < 0 and row["improvement_high"] < 0.5:
        return "worse"
    if row["low"] > -MARGIN and row["high"] < MARGIN:
        return "as good"
    return "undecided"


def _words(row: dict[str, Any]) -> str:
    """A difference between the two, in words."""
    level = f"{100 * LEVEL:g} %"
    return (
        f"a difference of {row['difference']:+.3f} ({level}: {row['low']:+.3f} to "
        f"{row['high']:+.3f}), a probability of improvement of {row['improvement']:.2f} "
        f"({row['improvement_low']:.2f} to {row['improvement_high']:.2f})"
    )
