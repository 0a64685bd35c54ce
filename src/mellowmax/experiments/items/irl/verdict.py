"""Is mellowmax a more stable and efficient choice, and no worse? And is that mellowmax's doing?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ....softmax import Boltzmann, LogSumExp, Mellowmax
from ...item import Claim, Verdict
from .comparisons import BEST, GRIDS, QUANTITIES

__all__ = ["FALSE", "MODELS", "NOT_EFFICIENT", "NOT_STABLE", "WORDS", "judge"]

MODELS = {"boltzmann": Boltzmann, "mellowmax": Mellowmax, "log-sum-exp": LogSumExp}
"""The softmaxes that are fitted."""
FALSE = 0.05
"""How often any claim may be found to hold if none does."""
NOT_STABLE = 0.01
"""A difference of rates that is certainly smaller than this counts as none."""
NOT_EFFICIENT = np.log(1 / 1.1)
"""A ratio of sweeps that is certainly larger than this counts as no gain."""
WORDS = {"random": "random MDPs", GRIDS: "grids"}
"""The kinds of worlds that the claims are about."""
_SIZES = {"grid 5x5": "grids of 5x5 cells", "grid 10x10": "grids of 10x10 cells"}
_NAMES = {"boltzmann": "Boltzmann's softmax", "log-sum-exp": "log-sum-exp"}
_PAPER = "a more stable and efficient choice (section 8)"


def judge(tables: Mapping[str, pd.DataFrame]) -> Verdict:
    """The verdict, by the rule in `text`."""
    compared, curves = tables["comparisons"], tables["curves"]
    at_best = compared[compared["at"] == BEST].set_index(["rival", "kind", "quantity"])
    kinds = [kind for kind in WORDS if kind in set(compared["kind"])]
    claims = tuple(
        claim for kind in kinds for claim in _claims(at_best.loc["boltzmann"], "boltzmann", kind)
    )
    other = tuple(
        claim
        for kind in kinds
        for claim in _claims(at_best.loc["log-sum-exp"], "log-sum-exp", kind)
    )
    beside = (
        "Is it mellowmax's doing? Log-sum-exp is a non-expansion as well. The same comparisons "
        "with it, by the same rule without the correction: " + "; ".join(map(_said, other)) + ".",
        *_by_size(at_best.loc["boltzmann"]),
        _by_parameter(compared, kinds),
    )
    return Verdict(claims, _summary(curves), beside, _in_short(claims))


def _claims(rows: pd.DataFrame, rival: str, kind: str) -> list[Claim]:
    """Stable, efficient and no worse, in one kind of worlds."""
    stable, efficient, loss, likelihood = (
        rows.loc[kind, quantity] for quantity in ("stable", "efficient", "loss", "likelihood")
    )
    where, name = (WORDS | _SIZES)[kind], _NAMES[rival]
    low, mean, high = (100 * stable[of] for of in ("low", "mean", "high"))
    ratio = [float(np.exp(efficient[of])) for of in ("low", "mean", "high")]
    none = efficient["worlds"] == 0
    return [
        Claim(
            f"In {where} fits by mellowmax fail less often than by {name}",
            _PAPER,
            f"a difference of {mean:.1f} percentage points (95 %: {low:.1f} to {high:.1f}"
            f"{_p(stable)})",
            _holds(stable, stable["low"] > -NOT_STABLE and stable["high"] < NOT_STABLE),
        ),
        Claim(
            f"In {where} they take fewer sweeps",
            _PAPER,
            "no fit came to the best value"
            if none
            else f"{ratio[1]:.2f} times as many (95 %: {ratio[0]:.2f} to {ratio[2]:.2f}"
            f"{_p(efficient)})",
            None if none else _holds(efficient, efficient["low"] > NOT_EFFICIENT),
        ),
        Claim(
            f"In {where} they are no worse",
            "could be used instead (section 8)",
            f"a loss of the greedy policy that is larger by {_gap(loss)}, and a held-out decision "
            f"that is less probable by {_gap(likelihood)} nats{_p(loss, likelihood)}",
            _no_worse(loss, likelihood),
        ),
    ]


def _holds(row: pd.Series[Any], denied: bool) -> bool | None:
    """Found by the corrected p value, denied by the interval, or undecided."""
    p_value = row["p_value"] if np.isnan(row["corrected"]) else row["corrected"]
    if p_value < FALSE / 2:
        return True
    return False if denied else None


def _no_worse(loss: pd.Series[Any], likelihood: pd.Series[Any]) -> bool | None:
    parts = [
        _holds(row, row["low"] > QUANTITIES[name])
        for name, row in (("loss", loss), ("likelihood", likelihood))
    ]
    if False in parts:
        return False
    return None if None in parts else True


def _gap(row: pd.Series[Any]) -> str:
    return f"{row['mean']:.3f} ({row['low']:.3f} to {row['high']:.3f})"


def _p(*rows: pd.Series[Any]) -> str:
    """The corrected p value, where there is one."""
    p_value = max(float(row["corrected"]) for row in rows)
    return "" if np.isnan(p_value) else f"; p = {p_value:.2g} by Holm's correction"


def _said(claim: Claim) -> str:
    words = {True: "yes", False: "no", None: "undecided"}
    assert claim.holds != "mixed"
    statement = claim.statement[0].lower() + claim.statement[1:]
    return f"{statement}: {words[claim.holds]}, {claim.ours}"


def _by_size(at_best: pd.DataFrame) -> list[str]:
    """The comparisons with Boltzmann's softmax in grids of each size, if there is more than one."""
    sizes = [kind for kind in _SIZES if kind in at_best.index]
    if len(sizes) < 2:
        return []
    claims = [claim for kind in sizes for claim in _claims(at_best, "boltzmann", kind)]
    return [
        "The grids by their size, by the same rule without the correction: "
        + "; ".join(map(_said, claims))
        + "."
    ]


def _by_parameter(compared: pd.DataFrame, kinds: list[str]) -> str:
    """The comparisons with Boltzmann's softmax at equal parameters."""
    ours = compared[(compared["rival"] == "boltzmann") & (compared["at"] != BEST)]
    ours = ours.set_index(["quantity", "kind", "at"]).sort_index()
    parts = []
    for kind in kinds:
        stable, ratio = (ours.loc[quantity, kind]["mean"] for quantity in ("stable", "efficient"))
        listed = ", ".join(
            f"{100 * stable[at]:.1f} points and {np.exp(ratio[at]):.2f} times the sweeps at {at}"
            for at in sorted(stable.index, key=float)
        )
        parts.append(f"in {WORDS[kind]} {listed}")
    return (
        "At equal parameters, the rate of failures of Boltzmann's softmax minus that of mellowmax, "
        "and the sweeps of mellowmax relative to Boltzmann's: " + "; ".join(parts) + "."
    )


def _summary(curves: pd.DataFrame) -> str:
    """How often fits fail, at each softmax's own best parameter and at all."""
    best = curves[curves["at"] == BEST]
    listed = []
    for model in MODELS:
        own = best[best["model"] == model]
        rates = ", ".join(f"{row.failing} of {row.fits} ({row.kind})" for row in own.itertuples())
        listed.append(f"{model} {rates}")
    every = curves[curves["at"] != BEST].groupby("model")[["unconverged", "fits"]].sum()
    met = "; ".join(
        f"{model} in {every.loc[model, 'unconverged']} of {every.loc[model, 'fits']}"
        for model in MODELS
    )
    return (
        f"Fits that fail at each softmax's own best parameter: {'; '.join(listed)}. Fits that meet "
        f"a plan that does not settle, at any parameter: {met}."
    )


def _in_short(claims: tuple[Claim, ...]) -> str:
    """The finding in a line."""
    words = {True: "yes", False: "no", None: "undecided", "mixed": "mixed"}
    parts = []
    for name, of in (("stable", claims[::3]), ("efficient", claims[1::3])):
        found = "/".join(words[claim.holds] for claim in of)
        parts.append(f"{name} {found}")
    return f"Mellowmax against Boltzmann in random MDPs/grids: {', '.join(parts)}."
