"""Has a game several mellowmax equilibria?"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from ...item import Claim, Verdict

__all__ = ["MARGIN", "PAYOFFS", "changes", "judge"]

PAYOFFS = ((10.0, -10.0), (-12.0, 10.0), (88.0, -558.0))
"""What the row player wins from the column player."""
MARGIN = 1e-6
"""An answer that is nearer to what it answers counts for neither side: rounding is below 1e-10."""


def changes(answers: pd.DataFrame, softmax: str) -> int:
    """How often the answers change sides, without those that are near: there are as many zeros."""
    away = answers.loc[answers["softmax"] == softmax, "away"].to_numpy()
    signs = np.sign(away[abs(away) > MARGIN])
    return int((signs[1:] != signs[:-1]).sum())


def judge(tables: Mapping[str, pd.DataFrame]) -> Verdict:
    """The verdict, by the rule in `text`."""
    answers = tables["answers"]
    ours, logit = (changes(answers, name) for name in ("mellowmax", "boltzmann"))
    points = tables["equilibria"].query("softmax == 'mellowmax'")
    places = ", ".join(f"{left:.10f}" for left in points["left"])
    indices = ", ".join(f"{index:+d}" for index in points["index"])
    claim = Claim(
        "Under mellowmax every game has one equilibrium",
        "in planning there is one fixed point (section 5.1); those of game-playing algorithms are "
        "left to future work (section 9)",
        f"a zero-sum game of 3 x 2 actions has at least {ours} at omega 1: the answers change "
        f"sides {ours} times; the search finds them where left has the probability {places}, with "
        f"the indices {indices}",
        False if ours > 1 else None,
    )
    summary = (
        f"A zero-sum game of 3 x 2 actions has {ours} mellowmax equilibria at omega 1. Logit has "
        f"{logit} there, as in every zero-sum game."
        if ours > 1
        else "No game with several mellowmax equilibria is shown."
    )
    in_short = (
        f"Refuted: a zero-sum game has {ours} mellowmax equilibria, where logit has {logit}."
        if ours > 1
        else "No game with several mellowmax equilibria is shown."
    )
    return Verdict((claim,), summary, beside=_beside(tables["counts"]), in_short=in_short)


_NAMES = {"boltzmann": "logit at beta", "mellowmax": "mellowmax at omega"}


def _beside(counts: pd.DataFrame) -> tuple[str, ...]:
    """What is counted in random games."""
    paragraphs = []
    for kind, rows in counts.groupby("kind", sort=False):
        parts = [
            f"{_NAMES[row['softmax']]} {row['parameter']:g}: {row['several']} of {row['games']} "
            f"games ({100 * row['share']:.1f} %, mean regret {row['regret']:.4f})"
            for row in rows.to_dict("records")
        ]
        proved = "all" if (rows["proved"] == rows["games"]).all() else "not all"
        paragraphs.append(
            f"Several equilibria in random games, {kind} ({proved} counts are proved): "
            f"{'; '.join(parts)}."
        )
    return tuple(paragraphs)
