"""How fits by mellowmax compare with fits by another softmax, world by world.

A world is one unit: the demonstrators in it are averaged, so that intervals do not take fits of one
world for independent ones. Differences are between fits to the same demonstrations.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pandas as pd

from ...._typing import Floats
from ...intervals import LEVEL, holm, share_interval

__all__ = [
    "BEST",
    "FAILED",
    "FEW",
    "GRIDS",
    "QUANTITIES",
    "RIVALS",
    "WITHIN",
    "at_best",
    "best_parameters",
    "compare",
    "curves_of",
]

FAILED = 1e-4
"""A fit fails if it ends while another step promises to gain more than this."""
WITHIN = 1e-3
"""A fit has reached the best known value when it is within this of it; it fails if it never is."""
BEST = "best"
"""What the tables have in place of a parameter for each softmax's own best one."""
RIVALS = ("boltzmann", "log-sum-exp")
GRIDS = "grids"
"""The name of grids of both sizes together."""
FEW = 10
"""With fewer worlds in which two softmaxes differ, no bootstrap can say how rarely they do."""
DRAWS = 10_000
"""Bootstrap samples of the worlds."""
QUANTITIES = {
    "stable": 0.02,
    "efficient": float(np.log(0.9)),
    "loss": 0.01,
    "likelihood": 0.01,
}
"""What is compared, with the margin of the rule; sweeps on a logarithmic scale."""
_OF_FIT = ["kind", "world", "demonstrator"]
_CHOSEN = ["kind", "demonstrator", "model"]


def best_parameters(fits: pd.DataFrame) -> pd.DataFrame:
    """The parameter of the best mean held-out likelihood, for each demonstrator and softmax."""
    means = fits.groupby([*_CHOSEN, "parameter"], sort=False)["held_out"].mean().reset_index()
    best = means.loc[means.groupby(_CHOSEN, sort=False)["held_out"].idxmax()]
    return best.reset_index(drop=True)


def at_best(fits: pd.DataFrame, chosen: pd.DataFrame) -> pd.DataFrame:
    """The fits at the parameters that were chosen."""
    return fits.merge(chosen[[*_CHOSEN, "parameter"]], on=[*_CHOSEN, "parameter"])


def curves_of(fits: pd.DataFrame, best: pd.DataFrame) -> pd.DataFrame:
    """How the fits of each softmax end, at each parameter and at its best one."""
    every = fits.assign(at=[f"{parameter:g}" for parameter in fits["parameter"]])
    whole = pd.concat([every, best.assign(at=BEST)])
    whole = whole.assign(failing=_failing(whole), log_sweeps=np.log(whole["sweeps"]))
    rows = []
    for (kind, model, at), own in whole.groupby(["kind", "model", "at"], sort=False):
        row = {"kind": kind, "model": model, "at": at, "fits": len(own)}
        row |= {name: int(own[name].sum()) for name in ("failing", *_WAYS)}
        row |= {name: own[name].mean() for name in _MEANS}
        row["sweeps"] = np.exp(own["log_sweeps"].mean())
        rows.append(row)
    return pd.DataFrame(rows)


_WAYS = ("unconverged", "unfinished", "short")
_MEANS = ("evaluations", "held_out", "loss", "correlation")


def _failing(fits: pd.DataFrame) -> pd.Series[bool]:
    return fits[[*_WAYS]].any(axis=1)


def compare(fits: pd.DataFrame, best: pd.DataFrame) -> pd.DataFrame:
    """Mellowmax against each other softmax: at each own best parameter, and at equal ones."""
    kinds = {kind: [kind] for kind in fits["kind"].unique()}
    grids = [kind for kind in kinds if kind.startswith("grid")]
    if grids:
        kinds[GRIDS] = grids
    settings = {BEST: best}
    settings |= {f"{at:g}": fits[fits["parameter"] == at] for at in fits["parameter"].unique()}
    rows = []
    for at, of_setting in settings.items():
        for rival in RIVALS:
            pairs = _pairs(of_setting, rival)
            for kind, members in kinds.items():
                own = pairs[pairs["kind"].isin(members)]
                for quantity in QUANTITIES:
                    worlds = own.groupby(["kind", "world"])[quantity].mean().dropna()
                    row = {"kind": kind, "at": at, "rival": rival, "quantity": quantity}
                    rows.append(row | _found(worlds.to_numpy(), quantity))
    table = pd.DataFrame(rows)
    return table.assign(corrected=_corrected(table))


def _pairs(fits: pd.DataFrame, rival: str) -> pd.DataFrame:
    """By how much the two differ on the same demonstrations."""
    columns = fits.assign(failing=_failing(fits).astype(float), log_sweeps=np.log(fits["sweeps"]))
    ours, theirs = (
        columns[columns["model"] == model].set_index(_OF_FIT) for model in ("mellowmax", rival)
    )
    theirs = theirs.reindex(ours.index)
    differences = {
        "stable": theirs["failing"] - ours["failing"],
        "efficient": ours["log_sweeps"] - theirs["log_sweeps"],
        "loss": ours["loss"] - theirs["loss"],
        "likelihood": theirs["held_out"] - ours["held_out"],
    }
    return pd.DataFrame(differences).reset_index()


def _found(worlds: Floats, quantity: str) -> dict[str, Any]:
    """The mean, its bootstrap interval, and how often chance alone is beyond the margin."""
    n = len(worlds)
    if n == 0:
        return {"worlds": 0, "differ": 0, **dict.fromkeys(("mean", "low", "high"), np.nan)} | {
            "p_value": 1.0
        }
    means = _weights(n, DRAWS) @ worlds
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    margin = QUANTITIES[quantity]
    wrong = means <= margin if quantity == "stable" else means >= margin
    p_value = (1 + wrong.sum()) / (1 + DRAWS)
    differ = int((worlds != 0).sum())
    if quantity == "stable" and differ < FEW:
        most = share_interval(differ, n)[2]
        low, high, p_value = min(low, -most), max(high, most), 1.0
    found = {"mean": worlds.mean(), "low": low, "high": high, "p_value": p_value}
    return {"worlds": n, "differ": differ, **found}


@functools.lru_cache(maxsize=4)
def _weights(n: int, draws: int) -> Floats:
    """`[draws, n]`, the weight of each of n worlds in bootstrap samples."""
    times = np.random.default_rng(n).multinomial(n, np.full(n, 1 / n), draws)
    return times / np.float64(n)


def _corrected(table: pd.DataFrame) -> pd.Series[float]:
    """Holm's correction among the claims: the best parameters against Boltzmann's softmax.

    To be no worse is one claim of two parts, both of which must hold: it has the larger of their p
    values.
    """
    mine = (table["at"] == BEST) & (table["rival"] == "boltzmann")
    mine &= table["kind"].isin(["random", GRIDS])
    claims = table[mine].copy()
    both = claims["quantity"].isin(["loss", "likelihood"])
    claims["claim"] = claims["quantity"].where(~both, "no worse")
    p_values = claims.groupby(["kind", "claim"], sort=False)["p_value"].max()
    holms = pd.Series(holm(p_values), index=p_values.index)
    result = pd.Series(np.nan, index=table.index)
    for index, row in claims.iterrows():
        result[index] = holms[row["kind"], row["claim"]]
    return result
