"""Which numbers of the table hold at the setting that comes nearest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ...item import Claim, Verdict
from .printed import CRITICAL_Z, PRINTED, SAMPLE, SETTING, z_of_numbers, z_of_settings

__all__ = ["judge"]

_LIMIT = 1000
"""Iterations after which an MDP does not terminate (section 7.1)."""
_LARGEST_REWARD = 0.5
"""In random MDPs (section 7.1): the most that the first sweep changes, from values of 0."""


def _nearest(
    tables: Mapping[str, pd.DataFrame], sweeps: str = "in place"
) -> tuple[pd.Series, dict[str, dict[str, Any]]]:
    """The nearest setting, and its row of the rates for each operator."""
    settings, rates = tables["settings"], tables["rates"]
    settings = settings[settings.sweeps == sweeps]
    best = settings.loc[settings.distance.idxmin()]
    for name in SETTING:
        rates = rates[rates[name] == best[name]]
    return best, {row["operator"]: row for row in rates.to_dict("records")}


def _by_theorem(setting: pd.Series) -> set[tuple[str, str]]:
    """The numbers that are 0 by theorem: mm is a contraction, with one fixed point.

    Each sweep changes the values by at most the discount times what the last one changed.
    """
    sweeps = 1 + np.log(setting.delta / _LARGEST_REWARD) / np.log(setting.discount)
    terminates = {("mm", "unterminated")} if sweeps < _LIMIT else set()
    return terminates | {("mm", "several")}


def _words(setting: pd.Series) -> str:
    counted = "left out of" if setting.left_out else "as 1000 in"
    return (
        f"beta = omega = {setting.beta:g}, discount {setting.discount:g}, delta "
        f"{setting.delta:.2g}, with MDPs that did not terminate {counted} the mean"
    )


def judge(tables: Mapping[str, pd.DataFrame]) -> Verdict:
    """By `RULE`."""
    settings = tables["settings"]
    settings = settings[settings.sweeps == "in place"]
    best, own = _nearest(tables)
    prefix, zs = "terminated_" if best.left_out else "", z_of_numbers(own, bool(best.left_out))
    words = {
        "unterminated": "MDPs that did not terminate in 1000 iterations",
        "several": "MDPs with more than one fixed point",
        "iterations": "Iterations on average",
    }
    proved = _by_theorem(best)
    claims, never = [], []
    for (operator, name), printed in PRINTED.items():
        mine, z = own[operator], zs[operator, name]
        if name == "iterations":
            theirs = f"{printed:.2f}"
            ours = f"{mine[prefix + name]:.2f} +- {CRITICAL_Z * mine[prefix + 'error']:.2f}"
        else:
            theirs = f"{printed:.0f} of {SAMPLE} ({printed / SAMPLE:.1%})"
            low, high = mine[f"{name}_low"], mine[f"{name}_high"]
            share = mine[name] / mine["mdps"]
            ours = f"{mine[name]} of {mine['mdps']} ({share:.2%}, {low:.2%} to {high:.2%})"
        theorem = " (0 by theorem)" if (operator, name) in proved else ""
        statement = f"{words[name]}, {operator}{theorem}."
        claims.append(Claim(statement, theirs, f"{ours}; z = {z:.2f}", bool(abs(z) <= CRITICAL_Z)))
        if not (settings[f"z_{operator}_{name}"].abs() <= CRITICAL_Z).any():
            never.append(f"{words[name]}, {operator}")
    held = sum(claim.holds is True for claim in claims)
    boltz, mm = own["boltz"], own["mm"]
    names = ("unterminated", "several", prefix + "iterations")
    better = [bool(mm[name] < boltz[name]) for name in names]
    claims.append(
        Claim(
            "mm is better than boltz in all three respects.",
            "in all three",
            f"in {sum(better)} of 3 at the nearest setting",
            all(better),
        )
    )
    lost = "Each of the six is reproduced at some setting."
    if never:
        lost = f"No setting reproduces: {', '.join(never)}."
    most = int(settings.reproduced.max())
    other, beside = _nearest(tables, "synchronous")
    summary = (
        f"{held} of the six numbers are reproduced at the setting that comes nearest, "
        f"{len(proved)} of which are 0 by theorem, and no setting reproduces more than {most} "
        f"together; mm is better than boltz there in {sum(better)} of three respects. The setting "
        f"is {_words(best)}. {_of_sample(tables, best)} {lost} "
        f"Synchronous sweeps, which are not Algorithm 2, reproduce "
        f"{int(other.reproduced)} at their nearest setting, {_words(other)}: "
        f"{beside['boltz']['unterminated']} of {beside['boltz']['mdps']} do not terminate under "
        f"boltz there, {beside['boltz']['unstable']} have no fixed point that is stable under such "
        "sweeps."
    )
    in_short = f"{held} of six numbers at the nearest setting, {len(proved)} of them 0 by theorem."
    return Verdict(tuple(claims), summary, in_short=in_short)


def _of_sample(tables: Mapping[str, pd.DataFrame], best: pd.Series) -> str:
    """Which setting comes nearest with as many MDPs as the paper has."""
    sample = tables["sample"]
    settings = z_of_settings(sample[sample.sweeps == "in place"])
    own = settings.loc[settings.distance.idxmin()]
    same = (own[[*SETTING, "left_out"]] == best[[*SETTING, "left_out"]]).all()
    if same:
        return f"It is the same with the first {SAMPLE} MDPs alone."
    return (
        f"It changes with the number of MDPs: with the first {SAMPLE} alone, as many as the paper "
        f"has, it is {_words(own)}."
    )
