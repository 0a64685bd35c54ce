"""Runs of REINFORCE on Lunar Lander: tables of settings, and a row for each run.

A training takes as long as the slowest of its runs, and few runs leave an accelerator idle. So all
settings that are trained in one environment are one table, whichever parts they belong to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
import pandas as pd

from ...._common.runs import KEYS
from ...._typing import Floats, Key
from ....deep import DeepResult
from .readings import Reading

__all__ = ["BIN", "KEPT_RUNS", "keys_of", "mean_curves", "mean_returns", "run_rows", "setting_rows"]

BIN = 500
"""How many episodes a point of a learning curve stands for, here and in the paper's figure."""
KEPT_RUNS = 20
"""How many runs of each setting keep their weights."""


def setting_rows(
    part: str,
    reading: Reading,
    parameters: Mapping[str, Sequence[float]],
    *,
    repeats: int = 1,
) -> list[dict[str, Any]]:
    """A row for each parameter of each policy, and for each repeat of it.

    Args:
        part: the part that they belong to.
        reading: of what the paper leaves open.
        parameters: those of each policy.
        repeats: how many rows a setting has; each has runs of its own.
    """
    return [
        {
            "part": part,
            **reading.identity,
            "policy": policy,
            "parameter": parameter,
            "through_temperature": float(reading.temperature == "moves"),
            "falls_back": float(reading.fallback == "overflow"),
            "repeat": repeat,
            **reading.weighing._asdict(),
        }
        for policy, several in parameters.items()
        for parameter in several
        for repeat in range(repeats)
    ]


def keys_of(settings: pd.DataFrame, seed: int) -> Key:
    """A key for each row of a table of settings: repeats of a setting have different keys."""
    repeats = settings["repeat"].to_numpy(np.uint32)
    return jax.vmap(jax.random.fold_in, (None, 0))(jax.random.key(seed, impl=KEYS), repeats)


def run_rows(settings: pd.DataFrame, result: DeepResult) -> pd.DataFrame:
    """A row for each run: its setting and number, and what it earned and learned.

    Args:
        settings: made of `setting_rows`.
        result: of their training, in bins.

    Returns:
        A table with the columns `part`, `policy`, `parameter`, `run`, `solved` (after how many
        episodes; 0 if it has not), `returns` and `lengths` (the mean of each bin), and `weights`
        (those of the network, for the first runs of a setting, else None).
    """
    n_settings, runs = result.returns.shape[:2]
    table = settings.loc[settings.index.repeat(runs), ["part", "policy", "parameter"]]
    table = table.reset_index(drop=True)
    repeats = settings["repeat"].to_numpy(np.int64)
    table["run"] = np.repeat(repeats * runs, runs) + np.tile(np.arange(runs), n_settings)
    assert result.solved is not None
    table["solved"] = result.solved.ravel()
    for name in ("returns", "lengths"):
        table[name] = list(getattr(result, name).astype(np.float32).reshape(len(table), -1))
    leaves = [np.asarray(leaf, np.float32) for leaf in jax.tree.leaves(result.policies.network)]
    weights = np.concatenate([leaf.reshape(len(table), -1) for leaf in leaves], axis=1)
    kept = table["run"] < KEPT_RUNS
    table["weights"] = [row if keep else None for row, keep in zip(weights, kept, strict=True)]
    return table


def mean_curves(runs: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """The mean return and length by setting and bin, with the standard error over the runs.

    Args:
        runs: a table of `run_rows`.
        keys: the columns that identify a setting.
    """
    parts = []
    for setting, group in runs.groupby(keys, sort=False):
        returns, lengths = _stacked(group["returns"]), _stacked(group["lengths"])
        count, bins = returns.shape
        part = pd.DataFrame(dict(zip(keys, setting, strict=True)), index=range(bins))
        part["episode"] = (np.arange(bins) + 0.5) * BIN
        part["mean_return"], part["mean_length"] = returns.mean(0), lengths.mean(0)
        part["standard_error"] = returns.std(0, ddof=1) / count**0.5 if count > 1 else np.inf
        part["runs"] = count
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def mean_returns(runs: pd.DataFrame) -> pd.DataFrame:
    """What each run earned: its setting and number, the mean return, and when it has solved.

    Args:
        runs: a table of `run_rows`.
    """
    result = runs[["part", "policy", "parameter", "run", "solved"]].copy()
    result["mean_return"] = _stacked(runs["returns"]).mean(1)
    return result


def _stacked(rows: pd.Series[Any]) -> Floats:
    return np.stack(rows.to_list()).astype(np.float64)
