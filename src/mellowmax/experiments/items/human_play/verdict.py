"""Does mellowmax predict what people do better than logit, on games that were not looked at?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

import numpy as np
import pandas as pd

from ...item import Claim, Verdict

__all__ = ["CRITICAL", "MODELS", "SEEN", "decided", "judge", "totals"]

MODELS = {"qre": "quantal response", "qlk": "quantal level-k"}
"""The models that the rule is about, in words."""
CRITICAL = 2.0
"""How many standard errors a gain is above or below 0 to count."""
SEEN = (
    "Stahl and Wilson (1994)",
    "Stahl and Wilson (1995)",
    "Rogers, Palfrey and Camerer (2009)",
    "Haruvy, Stahl and Wilson (2001)",
    "Haruvy and Stahl (2007)",
    "Stahl and Haruvy (2008)",
    "Goeree and Holt (2001)",
    "Rydval and Ortmann (2005)",
    "Haruvy and Stahl (1998)",
    "Costa-Gomes, Crawford and Broseta (2001)",
    "Kuelpmann and Kuzmics, hawk-dove",
    "Kuelpmann and Kuzmics, hawk-middle-dove",
    "Kuelpmann and Kuzmics, matching pennies",
    "Kuelpmann and Kuzmics, rock-scissors-paper",
)
"""The papers whose games were looked at before the rule was written."""


def totals(games: pd.DataFrame) -> pd.DataFrame:
    """The gain of each model on the games that were seen, and on fresh ones if there are any.

    Its standard error is that of a sum of independent numbers, one for each different matrix of
    payoffs.
    """
    rows = []
    for (model, fresh), own in games.groupby(["model", "fresh"], sort=False):
        gains = own.groupby("payoffs")["gain"].sum()
        error = len(gains) ** 0.5 * float(gains.std())
        row = {"model": model, "fresh": fresh, "games": len(own), "payoffs": len(gains)}
        rows.append(row | {"gain": gains.sum(), "error": error, "z": gains.sum() / error})
    return pd.DataFrame(rows)


def decided(zs: Mapping[str, float]) -> bool | Literal["mixed"] | None:
    """The rule, from the z of both models: it is NaN where there are no fresh games."""
    values = list(zs.values())
    if not all(map(math.isfinite, values)):
        return None
    if min(values) < -CRITICAL:
        return False
    better = [z > CRITICAL for z in values]
    if all(better):
        return True
    return "mixed" if any(better) else None


def judge(tables: Mapping[str, pd.DataFrame]) -> Verdict:
    """The verdict, by the rule in `text`."""
    whole = tables["totals"]
    fresh, seen = whole[whole["fresh"]], whole[~whole["fresh"]]
    zs = {model: _z(fresh, model) for model in MODELS}
    holds = decided(zs)
    claim = Claim(
        "With mellowmax both models predict what people do better than with logit",
        "mellowmax could potentially make a good replacement (section 8)",
        _in_words(fresh) if len(fresh) else "no game that had not been looked at",
        holds,
    )
    outcome = {
        True: "Supported on fresh data",
        False: "Refuted on fresh data",
        "mixed": "Supported for one of the two models on fresh data",
        None: "Not decided on fresh data",
    }[holds]
    why = "" if len(fresh) else ", of which there are none"
    summary = f"{outcome}{why}."
    if len(seen):
        summary += (
            f" Of the games that had been looked at this is a report only: {_in_words(seen)}."
        )
    in_short = f"{outcome}."
    if holds is None and len(seen):
        gains = [f"{MODELS[row['model']]} {row['gain']:+.0f}" for row in seen.to_dict("records")]
        in_short = f"{outcome}; games seen before: {', '.join(gains)} nats."
    return Verdict((claim,), summary, in_short=in_short)


def _z(rows: pd.DataFrame, model: str) -> float:
    own = rows.loc[rows["model"] == model, "z"]
    return float(own.iloc[0]) if len(own) else np.nan


def _in_words(rows: pd.DataFrame) -> str:
    return "; ".join(
        f"in {MODELS[row['model']]} mellowmax gains {row['gain']:.1f} nats over logit on "
        f"{row['games']} games left out ({row['payoffs']} different ones; z = {row['z']:.1f})"
        for row in rows.to_dict("records")
    )
