"""Which policy earns more on Lunar Lander, by how much, and how certain that is."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ...intervals import difference, share_interval

__all__ = ["SETTING", "check", "gradients", "means", "peaks"]

SETTING = ["part", "policy", "parameter"]
"""The columns that identify a setting."""


def means(runs: pd.DataFrame) -> pd.DataFrame:
    """The mean return over all episodes of each setting, and the share of runs that solve.

    Args:
        runs: a row for each run, with its mean return and `solved`.

    Returns:
        A row for each setting, parts in the order of their runs.
    """
    parts = pd.Categorical(runs["part"], runs["part"].unique())
    groups = runs.assign(part=parts).groupby(SETTING, observed=True)
    result = groups["mean_return"].agg(mean_return="mean", standard_error="sem", runs="count")
    result = result.reset_index().astype({"part": runs["part"].dtype})
    result = result.fillna({"standard_error": np.inf})  # of one run
    counts = groups["solved"].agg(lambda solved: (solved > 0).sum()).to_numpy()
    result["solved"], result["solved_low"], result["solved_high"] = share_interval(
        counts, result["runs"].to_numpy()
    )
    return result


def peaks(runs: pd.DataFrame) -> pd.DataFrame:
    """How much more mellowmax earns at its best parameter than Boltzmann at its own, by part.

    The best parameters are those of the runs with even numbers, and the returns are those of the
    others: what was chosen as the best is not flattered by having been chosen.
    """
    rows = []
    for part, group in runs.groupby("part", sort=False):
        if group["policy"].nunique() < 2 or group["run"].nunique() < 4:
            continue
        chosen, tested = (group[group["run"] % 2 == odd] for odd in (0, 1))
        of_settings = chosen.groupby(["policy", "parameter"])["mean_return"].mean()
        best = {policy: of_settings[policy].idxmax() for policy in ("boltzmann", "mellowmax")}
        boltzmann, mellowmax = (
            tested[(tested["policy"] == policy) & (tested["parameter"] == parameter)]
            for policy, parameter in best.items()
        )
        returns = mellowmax["mean_return"], boltzmann["mean_return"]
        rows.append({"part": part, **best, **difference(*returns)})
    return pd.DataFrame(rows)


def gradients(runs: pd.DataFrame, through: str, held: str) -> pd.DataFrame:
    """What the gradient through mellowmax's inverse temperature is worth, by omega.

    Args:
        runs: a row for each run.
        through: the part with the gradient through the inverse temperature.
        held: the part with the inverse temperature held fixed.
    """
    of_policy = runs[runs["policy"] == "mellowmax"]
    with_it, without = (of_policy[of_policy["part"] == part] for part in (through, held))
    rows = []
    for omega in sorted(without["parameter"].unique()):
        one, other = (
            group.loc[group["parameter"] == omega, "mean_return"] for group in (with_it, without)
        )
        row = {"omega": omega, "through": one.mean(), "held": other.mean()}
        rows.append(row | difference(one, other))
    return pd.DataFrame(rows)


def check(here: pd.DataFrame, there: pd.DataFrame) -> pd.DataFrame:
    """Curves of some runs beside the same curves of other runs, where both have them.

    Args:
        here: curves of `runs.mean_curves`.
        there: those that they are compared with.
    """
    both = here.merge(there, on=[*SETTING, "episode"], suffixes=("", "_there"))
    result = both[[*SETTING, "episode", "runs"]].copy()
    result["here"], result["there"] = both["mean_return"], both["mean_return_there"]
    error = np.hypot(both["standard_error"], both["standard_error_there"])
    result["standard_errors"] = (result["here"] - result["there"]) / error
    return result
