"""The table of section 7.1: value iteration on random MDPs, under boltz and under mm.

The paper made 200 random MDPs and states neither beta and omega, nor delta, nor the discount, nor
the initial values. Here every setting of a grid gets the same MDPs, and some settings very many of
them, for rates. Fixed points are counted by a search for all of them (`planning.batch`): the count
is a lower bound.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.figure import Figure

from ...._typing import Floats
from ....mdp import random_mdp
from ....planning.batch import Batch, find_fixed_points, value_iteration
from ....softmax import SOFTMAXES, Softmax
from ...data import OPERATORS
from ...intervals import share_interval
from ...item import NAMES, Spec
from .figures import draw_rates
from .printed import KEYS, SAMPLE, z_of_settings
from .text import CAPTIONS, COLUMNS, DEVIATIONS, RULE, SETTINGS, SOURCE, TITLE
from .verdict import judge

__all__ = [*NAMES]

VERSION = 1


@dataclasses.dataclass(frozen=True)
class Config:
    """What is run."""

    grid: int
    """MDPs of every setting of the grid, the 200 of the sample among them (section 7.1: 200)."""
    rates: int
    """MDPs of the settings in `rated` (section 7.1: 200)."""
    parameters: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0, 16.55, 30.0)
    """beta = omega of the grid: section 7.1 states none; 16.55 is that of figure 5."""
    discounts: tuple[float, ...] = (0.9, 0.95, 0.98, 0.99)
    """Section 7.1 states none; 0.98 is that of figure 1."""
    exponents: tuple[float, ...] = tuple(-k / 4 for k in range(4, 37))
    """The deltas, as powers of 10: section 7.1 states none."""
    rated: tuple[tuple[float, float], ...] = ((7.0, 0.98), (10.0, 0.98), (7.0, 0.99), (10.0, 0.99))
    """beta = omega and discount of the rates. They were chosen beforehand: these came nearest to
    the table on the same grid with 2,000 other MDPs (seed 5)."""
    rated_exponents: tuple[float, ...] = tuple(-k / 4 for k in range(4, 21))
    """Deltas of the rates, as powers of 10."""
    limit: int = 1000
    """Iterations after which an MDP does not terminate (section 7.1)."""
    seed: int = 71
    """MDP number i is `random_mdp([seed, i])`."""


SCALES: Mapping[str, Config] = {
    "quick": Config(grid=SAMPLE, rates=2_000),
    "paper": Config(grid=2_000, rates=100_000),
}
SECONDS = {"quick": 60.0, "paper": 430.0}
_OPERATORS = ("boltz", "mm")
_METHODS = {"in place": "in-place", "synchronous": "synchronous"}
_STATES, _ACTIONS = 10, 5  # the most that a random MDP has (section 7.1)
_CELL = {"grid": 600, "rate": 10_000}


def _spans(first: int, total: int, most: int) -> list[tuple[int, int]]:
    """`(first, count)` of the parts that `first` to `total` is cut into."""
    return [(i, min(most, total - i)) for i in range(first, total, most)]


def cells(config: Config) -> dict[str, Spec]:
    """The grid by discount, the sample first; the rates by parameter; some MDPs at a time."""
    common = {"seed": config.seed, "limit": config.limit}
    result: dict[str, Spec] = {}
    parts = [(0, SAMPLE), *_spans(SAMPLE, config.grid, _CELL["grid"])]
    for discount in config.discounts:
        for first, count in parts:
            result[f"grid-{discount:g}-{first}"] = common | {
                "first": first,
                "count": count,
                "discount": discount,
                "parameters": list(config.parameters),
                "sweeps": list(_METHODS),
                "exponents": list(config.exponents),
            }
    for first, count in _spans(0, config.rates, _CELL["rate"]):
        for parameter, discount in config.rated:
            result[f"rate-{parameter:g}-{discount:g}-{first}"] = common | {
                "first": first,
                "count": count,
                "discount": discount,
                "parameters": [parameter],
                "sweeps": ["in place"],
                "exponents": list(config.rated_exponents),
            }
    return result


@functools.lru_cache(maxsize=1)
def _batch(seed: int, first: int, count: int) -> Batch:
    """The MDPs of a cell, kept for the next, which often has the same."""
    mdps = [random_mdp([seed, number]) for number in range(first, first + count)]
    return Batch.of(mdps, n_states=_STATES, n_actions=_ACTIONS)


def run(spec: Spec) -> pd.DataFrame:
    """Make a cell: sums over its MDPs, for each parameter, operator and delta."""
    batch = _batch(spec["seed"], spec["first"], spec["count"])
    n, parameters = len(batch), spec["parameters"]
    deltas = [10.0**exponent for exponent in spec["exponents"]]
    every = batch[np.tile(np.arange(n), len(parameters))]
    rows = []
    for operator in _OPERATORS:
        kind = SOFTMAXES[OPERATORS[operator]]
        softmax = kind(np.repeat(parameters, n))  # type: ignore[call-arg]
        points = _points(every, softmax, spec["discount"]).reshape(-1, len(parameters), n)
        for sweeps in spec["sweeps"]:
            counts = value_iteration(
                every,
                softmax,
                tolerances=deltas,
                discount=spec["discount"],
                max_iterations=spec["limit"],
                method=_METHODS[sweeps],
            ).iterations.reshape(len(deltas), len(parameters), n)
            for d, i in np.ndindex(*counts.shape[:2]):
                key = (sweeps, parameters[i], spec["discount"], deltas[d], operator)
                found = zip(_FOUND, points[:, i].sum(-1).tolist(), strict=True)
                own = _sums(counts[d, i].astype(np.float64), spec["limit"])
                rows.append(dict(zip(KEYS, key, strict=True)) | {"mdps": n, **dict(found), **own})
    return pd.DataFrame(rows)


def _sums(counts: Floats, limit: int) -> dict[str, float]:
    """Sums over the iterations of some MDPs, which are 0 where one did not terminate."""
    capped = np.where(counts == 0, limit, counts)
    return {
        "unterminated": int((counts == 0).sum()),
        "sum": capped.sum(),
        "squares": (capped**2).sum(),
        "terminated_sum": counts.sum(),
        "terminated_squares": (counts**2).sum(),
    }


_FOUND = ("several", "unstable", "doubtful")


def _points(batch: Batch, softmax: Softmax, discount: float) -> npt.NDArray[np.int64]:
    """For each MDP: are there several fixed points, no stable one, or is one missing?"""
    if softmax.non_expansion:  # one fixed point, a stable one: the paper's theorem
        return np.zeros((len(_FOUND), len(batch)), np.int64)
    found = find_fixed_points(batch, softmax, discount=discount)
    stable = np.bincount(found.mdp, found.stable, minlength=len(batch))
    return np.stack([found.counts > 1, stable == 0, found.index_sums != 1]).astype(np.int64)


def _summed(parts: list[pd.DataFrame]) -> pd.DataFrame:
    """The sums of several cells, with means and standard errors in their place."""
    table = pd.concat(parts, ignore_index=True).groupby(KEYS, sort=False).sum().reset_index()
    done = table.mdps - table.unterminated
    for name, n in (("", table.mdps), ("terminated_", done)):
        total, squares = table.pop(f"{name}sum"), table.pop(f"{name}squares")
        mean = total / n.where(n > 0)
        variance = (squares / n.where(n > 0) - mean**2).clip(lower=0)
        table[f"{name}iterations"] = mean
        table[f"{name}error"] = (variance / (n - 1).where(n > 1)) ** 0.5
    return table


def tables(config: Config, cells: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The sample of 200, the rates from all MDPs of a setting, and how near each setting comes."""
    grid = [table for name, table in cells.items() if name.startswith("grid")]
    sample = [table for table in grid if table.mdps.iloc[0] == SAMPLE]
    rated = [table for name, table in cells.items() if name.startswith("rate")]
    rates = pd.concat([_summed(rated), _summed(grid)], ignore_index=True)
    rates = rates.sort_values("mdps", ascending=False, kind="stable").drop_duplicates(KEYS)
    rates = rates.sort_values(KEYS, kind="stable", ignore_index=True)
    for name in ("unterminated", "several"):
        _, rates[f"{name}_low"], rates[f"{name}_high"] = share_interval(rates[name], rates.mdps)
    return {"sample": _summed(sample), "rates": rates, "settings": z_of_settings(_summed(grid))}


def plot(tables: Mapping[str, pd.DataFrame]) -> dict[str, Figure]:
    """Mean iterations and shares against beta, for each discount and some deltas."""
    rates = tables["rates"]
    return draw_rates(rates[rates.sweeps == "in place"])
