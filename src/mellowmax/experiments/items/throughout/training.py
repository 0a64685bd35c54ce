"""The training of a cell: all settings on some runs, and what scored best there on others."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import jax
import numpy as np
import numpy.typing as npt
import pandas as pd

from ...._common.runs import KEYS
from ....deep import DivergedError
from ...cell_training import train_in_cell
from ...item import Spec, Work
from .learners import REFERENCES, environment_of, learner_of

__all__ = ["CHOOSING", "JUDGING", "last_tenth", "trained"]

CHOOSING, JUDGING = "choosing", "judging"
"""What runs are for."""
SECONDS_BETWEEN = 300.0
"""How often a checkpoint is written; the replay buffers of one take up to two gigabytes."""
LAST = 0.1
"""The part of the steps, at the end, whose returns count."""


def trained(spec: Spec, work: Work) -> pd.DataFrame:
    """A row for each run of the cell, first those that choose, then those that judge."""
    count = len(spec["parameters"]) * len(spec["learning_rates"])
    every = list(range(count))
    first, second = spec["choosing"], spec["judging"]
    share = first * count / (first * count + second)
    choosing = _stage(spec, _part(work, CHOOSING, 0.0, share), CHOOSING, every, range(first))
    fit = choosing[~choosing["diverged"]]  # a score of 0 is more than some of these have
    best = int((choosing if fit.empty else fit).groupby("setting")["score"].mean().idxmax())
    numbers = range(first, first + second)
    judging = _stage(spec, _part(work, JUDGING, share, 1.0), JUDGING, [best], numbers)
    whole = pd.concat([choosing, judging], ignore_index=True)
    names = {name: spec[name] for name in ("algorithm", "environment", "softmax")}
    return whole.drop(columns="setting").assign(**names)


def _part(work: Work, name: str, begin: float, end: float) -> Work:
    """The part of a cell's work that goes from one share of it to another."""
    directory = None if work.directory is None else Path(work.directory) / name
    return Work(directory, lambda share: work.callback(begin + share * (end - begin)))


def _stage(spec: Spec, work: Work, stage: str, settings: list[int], runs: range) -> pd.DataFrame:
    """Train some settings; one in which a run diverges is left out of the training.

    All runs of such a setting score 0.
    """
    rates = spec["learning_rates"]
    parameter = np.repeat(spec["parameters"], len(rates))
    rate = np.tile(rates, len(spec["parameters"]))
    keys = jax.random.split(jax.random.key(spec["seed"], impl=KEYS), len(rate))
    left, returns = list(settings), {}
    while left:
        kept = np.array(left)
        names = (spec["algorithm"], spec["softmax"], parameter[kept], rate[kept])
        learner = learner_of(*names, spec["environment"])
        directory = None if work.directory is None else work.directory / f"{len(left)}-settings"
        try:
            result = train_in_cell(
                dataclasses.replace(work, directory=directory),
                learner,
                environment_of(spec["environment"]),
                steps=spec["steps"],
                runs=runs,
                seed=keys[kept],
                seconds_between_checkpoints=SECONDS_BETWEEN,
            )
        except DivergedError as error:
            del left[error.lane // len(runs)]
            continue
        ends = last_tenth(result.returns, result.lengths, spec["steps"])
        returns = dict(zip(left, ends, strict=True))
        break
    zero, one = REFERENCES[spec["environment"]]
    rows = []
    for setting in settings:
        earned = returns.get(setting, np.full(len(runs), np.nan))
        scores = np.where(np.isfinite(earned), (earned - zero) / (one - zero), 0.0)
        part = {"stage": stage, "setting": setting, "parameter": parameter[setting]}
        part |= {"learning_rate": rate[setting], "run": list(runs), "last_return": earned}
        rows.append(pd.DataFrame(part | {"score": scores, "diverged": setting not in returns}))
    return pd.concat(rows, ignore_index=True)


def last_tenth(
    returns: npt.NDArray[Any], lengths: npt.NDArray[Any], steps: int
) -> npt.NDArray[np.float64]:
    """The mean return of the episodes that ended in the last tenth of the steps.

    It is the return of the last episode where none did, and NaN where no episode has ended at all.

    Args:
        returns: `[..., episodes]`, NaN after the last.
        lengths: `[..., episodes]`, 0 after the last.
        steps: the steps of a run.

    Examples:
        >>> last_tenth(np.array([[1.0, 2.0, 4.0], [1.0, 2.0, np.nan]]),
        ...            np.array([[80, 15, 5], [60, 20, 0]]), 100).tolist()
        [3.0, 2.0]
    """
    ends = np.cumsum(lengths, axis=-1)
    played = lengths > 0
    last = played & (ends == ends[..., -1:])
    late = played & ((ends > (1 - LAST) * steps) | last)
    count = late.sum(-1)
    total = np.where(late, np.nan_to_num(returns.astype(np.float64)), 0.0).sum(-1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
