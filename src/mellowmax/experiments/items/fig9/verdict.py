"""Which claims of figure 9 hold, and what a silent fallback would have earned."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from ...item import Claim, Verdict
from .text import NEAR

__all__ = ["POLICIES", "judge"]

POLICIES = ("epsilon-greedy", "boltzmann", "mellowmax")
"""Names of `SOFTMAXES`, in the order of the panels."""


def judge(tables: Mapping[str, pd.DataFrame]) -> Verdict:
    """By the rule above."""
    best = tables["best"]
    peaks = {
        policy: rows.loc[rows["mean_reward"].idxmax()] for policy, rows in best.groupby("policy")
    }
    theirs = {policy: rows.loc[rows["paper"].idxmax()] for policy, rows in best.groupby("policy")}
    eps, boltzmann, mellowmax = (peaks[policy] for policy in POLICIES)

    def said(peak: pd.Series, column: str) -> str:
        return f"{peak[column]:.3f} at {peak['parameter']:g}"

    def ours(peak: pd.Series) -> str:
        return f"{said(peak, 'mean_reward')} (+- {1.96 * peak['standard_error']:.3f})"

    claims = []
    for policy in POLICIES:
        rows = best[best["policy"] == policy]
        distance = (rows["mean_reward"] - rows["paper"]).abs()
        worst = rows.loc[distance.idxmax()]
        claims.append(
            Claim(
                f"The curve of {policy}",
                f"best {said(theirs[policy], 'paper')}",
                f"best {ours(peaks[policy])}; {(distance <= NEAR).sum()} of {len(rows)} points "
                f"within {NEAR}, the farthest {distance.max():.3f} off at {worst['parameter']:g}",
                bool((distance <= NEAR).all()),
            )
        )
    error = np.hypot(boltzmann["standard_error"], mellowmax["standard_error"])
    claims += [
        Claim(
            "Epsilon-greedy performs poorly",
            f"best {said(theirs['epsilon-greedy'], 'paper')}",
            f"best {ours(eps)}, Boltzmann's {ours(boltzmann)}",
            bool(eps["mean_reward"] < boltzmann["mean_reward"] / 2),
        ),
        Claim(
            "Mellowmax is no worse than Boltzmann",
            f"best {said(theirs['mellowmax'], 'paper')} against Boltzmann's "
            f"{said(theirs['boltzmann'], 'paper')}",
            f"best {ours(mellowmax)} against {ours(boltzmann)}",
            bool(mellowmax["mean_reward"] >= boltzmann["mean_reward"] - 2 * error),
        ),
    ]
    holds = {claim.statement: claim.holds for claim in claims}
    summary = (
        f"Boltzmann's best is {boltzmann['mean_reward']:.2f} (paper "
        f"{theirs['boltzmann']['paper']:.2f}), mellowmax's {mellowmax['mean_reward']:.2f} (paper "
        f"{theirs['mellowmax']['paper']:.2f})"
    )
    in_short = f"{summary}."
    if not holds["Mellowmax is no worse than Boltzmann"]:
        summary += ": with the maximum-entropy policy as the paper defines it, mellowmax earns less"
    return Verdict(tuple(claims), f"{summary}.{_hypothesis(tables)}", in_short=in_short)


def _hypothesis(tables: Mapping[str, pd.DataFrame]) -> str:
    """What a silent fallback would have earned, as a hypothesis."""
    fallback, fit = tables["fallback"], tables["fit"]
    if fallback.empty:
        return ""
    distance = abs(fallback["mean_reward"] - fallback["paper"])
    at = fallback.loc[fallback["mean_reward"].idxmax()]
    return (
        " A hypothesis, not a result: a root finder that silently falls back on omega "
        f"wherever the root is outside [{at['low']:g}, {at['high']:g}] would have earned "
        f"{at['mean_reward']:.2f} at omega {at['parameter']:g}, and would be "
        f"{distance.mean():.3f} from the paper's curve on average, where mellowmax itself is "
        f"{_mean_distance(tables['best']):.3f} from it. Of {len(fit)} brackets, fitted with other "
        f"seeds, [{fit['low'].iloc[0]:g}, {fit['high'].iloc[0]:g}] is the nearest."
    )


def _mean_distance(best: pd.DataFrame) -> float:
    rows = best[best["policy"] == "mellowmax"]
    return float(abs(rows["mean_reward"] - rows["paper"]).mean())
