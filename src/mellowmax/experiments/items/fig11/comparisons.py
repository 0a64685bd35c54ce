"""Which policy earns more on Lunar Lander, by how much, and how certain that is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ...intervals import difference, holm, share_interval
from .parts import HELD, SMALLER_RATE

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


def peaks(runs: pd.DataFrame, keys: Sequence[str] = ("part",)) -> pd.DataFrame:
    """How much more mellowmax earns at its best parameter than Boltzmann at its own, by part.

    The best parameters are those of the runs with even numbers, and the returns are those of the
    others: what was chosen as the best is not flattered by having been chosen. P values are
    corrected by Holm for the number of parts.

    Args:
        runs: a row for each run.
        keys: the columns that identify a part.
    """
    tested = [
        (dict(zip(keys, part, strict=True)), group)
        for part, group in runs.groupby(list(keys), sort=False)
        if group["policy"].nunique() == 2 and group["run"].nunique() >= 4
    ]
    rows = pd.DataFrame([part | _peak(group, len(tested)) for part, group in tested])
    return rows.assign(corrected=holm(rows["p_value"])) if len(rows) else rows


def _peak(runs: pd.DataFrame, tests: int) -> dict[str, Any]:
    """The best parameters of a part, and the difference between them."""
    chosen, tested = (runs[runs["run"] % 2 == odd] for odd in (0, 1))
    of_settings = chosen.groupby(["policy", "parameter"])["mean_return"].mean()
    best, at_edge = {}, []
    for policy in ("boltzmann", "mellowmax"):
        of_policy = of_settings[policy]
        best[policy] = of_policy.idxmax()
        if best[policy] in (of_policy.index.min(), of_policy.index.max()):
            at_edge.append(policy)
    boltzmann, mellowmax = (
        tested[(tested["policy"] == policy) & (tested["parameter"] == parameter)]
        for policy, parameter in best.items()
    )
    found = difference(mellowmax["mean_return"], boltzmann["mean_return"], tests)
    return best | {"at_edge": " and ".join(at_edge) or "none"} | found


def gradients(runs: pd.DataFrame) -> pd.DataFrame:
    """How much the gradient through mellowmax's inverse temperature gains, for each omega.

    Args:
        runs: a row for each run.
    """
    of_policy = runs[runs["policy"] == "mellowmax"]
    moves, held = (of_policy[of_policy["part"] == part] for part in (SMALLER_RATE, HELD))
    rows = []
    for omega in sorted({*held["parameter"]} & {*moves["parameter"]}):
        one, other = (
            group.loc[group["parameter"] == omega, "mean_return"] for group in (moves, held)
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
