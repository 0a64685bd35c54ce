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
    """The verdict, by the rule in `text`."""
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
            "With an averager mellowmax never fails (by theorem)",
            "a non-expansion has one fixed point, and sweeps lead to it (section 5.1)",
            f"{failed} of {swept} times, over all parameters, with and without an averager",
            failed == 0,
        ),
    )
    counts = _found(compared)
    return Verdict(claims, _summary(ours, counts, failed), in_short=_in_short(counts, failed))


def _more_often(row: Mapping[str, Any]) -> Claim:
    """The claim that Boltzmann's softmax fails more often with an averager."""
    holds = None
    if _differs(row):
        holds = row["difference"] > 0
    elif row["high"] < MARGIN:
        holds = False
    low, difference, high = (100 * row[name] for name in ("low", "difference", "high"))
    return Claim(
        f"Boltzmann's softmax fails more often with {WORDS[row['averager']]} than with "
        f"{WORDS[row['baseline']]}",
        "a non-expansion is important with function approximation (section 9)",
        f"a difference of {difference:.1f} percentage points (95 %: {low:.1f} to {high:.1f}; p = "
        f"{row['corrected']:.2g} by Holm's correction)",
        holds,
    )


def _differs(row: Mapping[str, Any]) -> bool:
    """Is there a difference in this comparison, beyond chance?"""
    return bool(row["corrected"] < FALSE)


def _found(compared: list[dict[str, Any]]) -> tuple[int, int]:
    """In how many comparisons Boltzmann's softmax fails more often, and in how many less often."""
    signs = [row["difference"] > 0 for row in compared if _differs(row)]
    return signs.count(True), signs.count(False)


def _share(row: pd.Series[Any]) -> str:
    """A share with its interval."""
    low, share, high = (100 * row[name] for name in ("low", "share", "high"))
    return f"{share:.1f} % (95 %: {low:.1f} to {high:.1f})"


def _summary(ours: pd.DataFrame, counts: tuple[int, int], failed: int) -> str:
    """The shares that fail under Boltzmann's softmax, and how."""
    listed = "; ".join(f"{WORDS[kind]} {_share(row)}" for kind, row in ours.iterrows())
    unsettled, endless, several = (
        int(ours[name].sum()) for name in ("unsettled", "endless", "several")
    )
    never = "Mellowmax never fails" if failed == 0 else f"Mellowmax fails {failed} times"
    return (
        f"With an averager Boltzmann's softmax fails more often in {counts[0]} of {len(COMPARED)} "
        f"comparisons and less often in {counts[1]}. {never}. Under Boltzmann's softmax at beta "
        f"{BETA:g} these shares fail: {listed}. In all, {unsettled} problems do not settle: "
        f"{endless} have no stable fixed point to settle at, as far as the search finds them, and "
        f"the others are slow or go round one. {several} have several stable fixed points."
    )


def _in_short(counts: tuple[int, int], failed: int) -> str:
    """The finding in a line."""
    more, less = counts
    return (
        f"With averagers Boltzmann fails more in {more} of {len(COMPARED)} comparisons, less in "
        f"{less}; mellowmax {'never' if failed == 0 else 'too'}."
    )
