"""Does an averager make Boltzmann's softmax fail more often, and does mellowmax ever fail?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from ...item import Claim, Verdict

__all__ = ["BETA", "COMPARED", "FALSE", "MARGIN", "WORDS", "judge"]

BETA = 16.55
"""The parameter that the verdict is about."""
FALSE = 0.05
"""How often one of the comparisons may be found to differ if none does."""
MARGIN = 0.01
"""A share that is larger by less than this is as good as equal."""
COMPARED = (
    ("gaussian", "random"),
    ("nearest", "random"),
    ("gaussian", "large"),
    ("nearest", "large"),
    ("coarse line", "fine line"),
)
"""The averagers, each with the problems that it is compared with."""
WORDS = {
    "random": "random MDPs of the same size",
    "large": "the random MDPs that are averaged",
    "gaussian": "Gaussian averages",
    "nearest": "nearest anchors",
    "fine line": "a fine grid on a line",
    "coarse line": "a coarse grid on a line",
}
"""What the kinds of problems are called in a sentence."""
_AVERAGED = ("gaussian", "nearest", "coarse line")


def judge(tables: Mapping[str, pd.DataFrame]) -> Verdict:
    """By the rule in `text`."""
    shares, compared = tables["shares"], tables["comparisons"].to_dict("records")
    ours = shares[(shares["operator"] == "boltzmann") & (shares["parameter"] == BETA)]
    ours = ours.set_index("problem")
    theirs = shares[shares["operator"] == "mellowmax"]
    failed, swept = int(theirs["failing"].sum()), int(theirs["problems"].sum())
    claims = (
        *(_more_often(row) for row in compared),
        Claim(
            "With an averager Boltzmann's softmax can fail",
            "a non-expansion is important with function approximation (section 9)",
            "; ".join(f"{WORDS[kind]}: {_share(ours.loc[kind])}" for kind in _AVERAGED),
            bool(ours.loc[[*_AVERAGED], "failing"].any()),
        ),
        Claim(
            "With an averager mellowmax never fails",
            "a non-expansion has one fixed point, and sweeps lead to it (section 5.1)",
            f"{failed} of {swept} times, over all parameters, with and without an averager",
            failed == 0,
        ),
    )
    return Verdict(claims, _summary(ours, failed), in_short=_in_short(claims, failed))


def _more_often(row: Mapping[str, Any]) -> Claim:
    """The claim that Boltzmann's softmax fails more often with an averager."""
    more, found = row["difference"] > 0, row["corrected"] < FALSE
    holds = None
    if found:
        holds = more
    elif row["high"] < MARGIN:
        holds = False
    low, difference, high = (100 * row[name] for name in ("low", "difference", "high"))
    return Claim(
        f"Boltzmann's softmax fails more often with {WORDS[row['averager']]} than with "
        f"{WORDS[row['baseline']]}",
        "a non-expansion is important with function approximation (section 9)",
        f"by {difference:.1f} percentage points (95 %: {low:.1f} to {high:.1f}; p = "
        f"{row['corrected']:.2g} by Holm's correction)",
        holds,
    )


def _share(row: pd.Series[Any]) -> str:
    """A share with its interval."""
    low, share, high = (100 * row[name] for name in ("low", "share", "high"))
    return f"{share:.1f} % (95 %: {low:.1f} to {high:.1f})"


def _summary(ours: pd.DataFrame, failed: int) -> str:
    """The shares that fail under Boltzmann's softmax, and how."""
    listed = "; ".join(f"{WORDS[kind]} {_share(row)}" for kind, row in ours.iterrows())
    unsettled, endless, several = (
        int(ours[name].sum()) for name in ("unsettled", "endless", "several")
    )
    never = "Mellowmax never fails" if failed == 0 else f"Mellowmax fails {failed} times"
    return (
        f"Under Boltzmann's softmax at beta {BETA:g} these shares fail: {listed}. In all, "
        f"{unsettled} problems do not settle: {endless} have no stable fixed point to settle at, "
        f"and the others are slow or go round one. {several} have several stable fixed points. "
        f"{never}."
    )


def _in_short(claims: tuple[Claim, ...], failed: int) -> str:
    """The finding in a line."""
    more = [claim.holds for claim in claims[: len(COMPARED)]].count(True)
    never = "never does" if failed == 0 else "fails too"
    return (
        f"Boltzmann fails more often with an averager in {more} of {len(COMPARED)} comparisons; "
        f"mellowmax {never}."
    )
