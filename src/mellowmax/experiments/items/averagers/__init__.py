"""Averagers, beyond the paper: does function approximation make Boltzmann's softmax fail?

Section 9 of the paper names function approximation as future work, and says that a non-expansion is
important there. Here values are swept under Boltzmann's softmax and under mellowmax in thousands of
problems, with an averager and without one. Fixed points are counted by a search for all of them
(`planning.batch`): the count is a lower bound.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ...._typing import Bools
from ....planning.batch import Batch, find_fixed_points, value_iteration
from ....softmax import SOFTMAXES, Softmax
from ...intervals import holm, share_difference, share_interval
from ...item import NAMES, Spec
from .figures import draw_shares, draw_ways
from .problems import DISCOUNT, FINE, LARGEST, PROBLEMS
from .text import CAPTIONS, COLUMNS, DEVIATIONS, RULE, SETTINGS, SOURCE, TITLE
from .verdict import BETA, COMPARED, judge

__all__ = [*NAMES]

VERSION = 1
_CELL = 1000  # problems
_STARTS = (0.0, 0.5 / (1 - DISCOUNT))
"""The initial values: 0, and what the largest reward for ever is worth."""
_STATES = {"large": LARGEST, "fine line": FINE}
"""The states of an array of problems, if that is not 10."""
_ACTIONS = 5


@dataclasses.dataclass(frozen=True)
class Config:
    """What is run."""

    problems: int
    """Problems of each kind."""
    parameters: tuple[float, ...] = (5.0, BETA, 50.0)
    """beta = omega; the verdict is about 16.55, that of figures 5 and 6."""
    limit: int = 1000
    """Sweeps after which values have not settled (section 7.1)."""
    tolerance: float = 1e-6
    """Values have settled when a sweep changes none of them by this much."""
    seed: int = 1996
    """Problem number i of kind number k has the seed [1996, k, i]."""


SCALES: Mapping[str, Config] = {"quick": Config(100), "paper": Config(8000)}
SECONDS = {"quick": 20.0, "paper": 900.0}


def cells(config: Config) -> dict[str, Spec]:
    """A cell for some problems of a kind."""
    common = {
        "seed": config.seed,
        "parameters": list(config.parameters),
        "limit": config.limit,
        "tolerance": config.tolerance,
    }
    return {
        f"{kind.replace(' ', '-')}-{first}": common
        | {"problem": kind, "first": first, "count": min(_CELL, config.problems - first)}
        for kind in PROBLEMS
        for first in range(0, config.problems, _CELL)
    }


def run(spec: Spec) -> pd.DataFrame:
    """Make a cell: how many of its problems fail, for each operator and parameter."""
    kind = spec["problem"]
    number = list(PROBLEMS).index(kind)
    span = range(spec["first"], spec["first"] + spec["count"])
    problems = [PROBLEMS[kind]([spec["seed"], number, i]) for i in span]
    batch = Batch.of(problems, n_states=_STATES.get(kind, 10), n_actions=_ACTIONS)
    rows = []
    for operator in ("boltzmann", "mellowmax"):
        for parameter in spec["parameters"]:
            softmax = SOFTMAXES[operator](parameter)  # type: ignore[call-arg]
            unsettled = _unsettled(batch, softmax, spec["limit"], spec["tolerance"])
            several, endless = _limits(batch, softmax)
            counts = {
                "failing": unsettled | several,
                "unsettled": unsettled,
                "endless": unsettled & endless,
                "several": several,
            }
            row = {"problem": kind, "operator": operator, "parameter": parameter}
            row |= {"problems": len(batch)}
            rows.append(row | {name: int(which.sum()) for name, which in counts.items()})
    return pd.DataFrame(rows)


def _unsettled(batch: Batch, softmax: Softmax, limit: int, tolerance: float) -> Bools:
    """In which problems do sweeps from some initial values not settle?"""
    n = len(batch)
    swept = value_iteration(
        batch[np.tile(np.arange(n), len(_STARTS))],
        softmax,
        tolerances=[tolerance],
        initial=np.repeat(_STARTS, n),
        max_iterations=limit,
        method="synchronous",
    )
    return ~swept.converged[-1].reshape(len(_STARTS), n).all(0)


def _limits(batch: Batch, softmax: Softmax) -> tuple[Bools, Bools]:
    """In which problems are there several stable fixed points, and in which is there none?"""
    found = find_fixed_points(batch, softmax)
    stable = np.bincount(found.mdp, found.stable, minlength=len(batch))
    return stable > 1, stable == 0


_KEYS = ["problem", "operator", "parameter"]


def tables(config: Config, cells: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """How many problems of each kind fail, and how these shares compare."""
    whole = pd.concat(cells.values(), ignore_index=True)
    shares = whole.groupby(_KEYS, sort=False).sum().reset_index()
    share, low, high = share_interval(shares["failing"], shares["problems"])
    shares = shares.assign(share=share, low=low, high=high)
    return {"shares": shares, "comparisons": _comparisons(shares)}


def _comparisons(shares: pd.DataFrame) -> pd.DataFrame:
    """Each averager against what it is compared with, for Boltzmann's softmax."""
    ours = shares[(shares["operator"] == "boltzmann") & (shares["parameter"] == BETA)]
    ours = ours.set_index("problem")
    counts = [
        [int(ours.loc[kind, name]) for kind in pair for name in ("failing", "problems")]
        for pair in COMPARED
    ]
    found = pd.DataFrame([share_difference(*each) for each in counts])
    found["corrected"] = holm(found["p_value"])
    pairs = pd.DataFrame(COMPARED, columns=["averager", "baseline"])
    return pd.concat([pairs, found], axis=1)


def plot(tables: Mapping[str, pd.DataFrame]) -> dict[str, Figure]:
    """The shares of problems that fail, and how they fail."""
    shares = tables["shares"]
    return {"shares": draw_shares(shares, BETA), "ways": draw_ways(shares, BETA)}
