"""Which claims of figure 9 hold, and what a silent fallback would have earned."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from scipy import stats

from ...intervals import holm
from ...item import Claim, Verdict
from .silent_fallback import LARGE, overflows, root_mean_square
from .text import FALSE

__all__ = ["POLICIES", "judge"]

POLICIES = ("epsilon-greedy", "boltzmann", "mellowmax")
"""Names of `SOFTMAXES`, in the order of the panels."""
LARGEST_VALUE = 15.0
"""No action is worth more: what three passengers pay."""


def judge(tables: Mapping[str, pd.DataFrame]) -> Verdict:
    """The verdict by `text.RULE`."""
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

    runs = int(tables["rates"]["runs"].iloc[0])
    claims = []
    for policy in POLICIES:
        rows = best[best["policy"] == policy]
        off = (rows["mean_reward"] - rows["paper"]).abs() / (2**0.5 * rows["standard_error"])
        equal = holm(2 * stats.t.sf(off, 2 * (runs - 1))) >= FALSE
        claims.append(
            Claim(
                f"The curve of {policy}",
                f"best {said(theirs[policy], 'paper')}",
                f"best {ours(peaks[policy])}; {equal.sum()} of {len(rows)} points differ by no "
                f"more than chance allows, the farthest {off.max():.1f} standard errors off at "
                f"{rows.loc[off.idxmax(), 'parameter']:g}",
                bool(equal.all()),
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
    return Verdict(tuple(claims), f"{summary}.", _hypothesis(tables), in_short=in_short)


def _hypothesis(tables: Mapping[str, pd.DataFrame]) -> tuple[str, ...]:
    """What a silent fallback would have earned, as a hypothesis."""
    fallback, fit, best = tables["fallback"], tables["fit"], tables["best"]
    if fallback.empty:
        return ()
    brackets = "; ".join(
        f"the bracket [{low:g}, {high:g}]{_failure(low, high)}, "
        f"{rows['mean_reward'].max():.2f} at its best, {_distances(rows)}"
        for (low, high), rows in fallback.groupby(["low", "high"], sort=False)
    )
    near = fit.iloc[0]
    return (
        "A hypothesis, not a result: a policy that is right in rows of nearly equal values, and "
        "Boltzmann's at omega in rows that are spread, comes near the paper's curve for omegas "
        f"from {LARGE:g} on, and not for smaller ones. A root finder that fails and silently falls "
        f"back on omega gives such a policy. With {brackets}. Mellowmax itself is "
        f"{_distances(best[best['policy'] == 'mellowmax'])}. Of {len(fit)} brackets that were "
        f"fitted with other seeds, [{near['low']:g}, {near['high']:g}] is the nearest.",
    )


def _failure(low: float, high: float) -> str:
    """Where the search of a bracket overflows, if rows spread as far."""
    spread = float(overflows(low, high))
    far = f", which overflows where mellowmax is more than {spread:.2f} above the least value"
    return far if spread < LARGEST_VALUE else ""


def _distances(rows: pd.DataFrame) -> str:
    """The root mean square distances of a curve from the paper's mellowmax."""
    large = root_mean_square(rows[rows["parameter"] >= LARGE])
    return (
        f"{root_mean_square(rows):.3f} off in the root mean square, {large:.3f} from {LARGE:g} on"
    )
