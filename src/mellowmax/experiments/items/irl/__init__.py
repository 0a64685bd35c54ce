"""Inverse reinforcement learning, beyond the paper: does its last sentence on it hold?

Section 8 names three methods of inverse reinforcement learning with a Boltzmann operator in a
recursion, and says that mellowmax could be a more stable and efficient choice. Here demonstrators
of four kinds act in worlds of three kinds, and rewards are fitted to what they did by Boltzmann's
softmax, by mellowmax, and by log-sum-exp, which is a non-expansion as mellowmax is, and is what
this field uses. Fits whose plans do not settle are data.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ...item import NAMES, Spec
from .comparisons import FAILED, WITHIN, at_best, best_parameters, compare, curves_of
from .figures import draw_curves, draw_differences
from .fits import Task, fit_all
from .text import CAPTIONS, COLUMNS, DEVIATIONS, RULE, SETTINGS, SOURCE, TITLE
from .verdict import MODELS, judge
from .worlds import DEMONSTRATORS, KINDS, losses, make, watch

__all__ = [*NAMES]

VERSION = 1


@dataclasses.dataclass(frozen=True)
class Config:
    """What is run."""

    worlds: tuple[int, ...]
    """How many worlds of each kind there are: random, grid 5x5 and grid 10x10."""
    choosing: tuple[int, ...]
    """How many of these, the first ones, only choose the parameters."""
    parameters: tuple[float, ...] = (1.0, 3.0, 10.0, 30.0)
    """The parameters of the softmaxes that are fitted."""
    seed: int = 2007
    """World number i of kind number k has the seed [2007, k, i]."""


SCALES: Mapping[str, Config] = {
    "quick": Config(worlds=(24, 8, 0), choosing=(8, 4, 0)),
    "paper": Config(worlds=(480, 480, 60), choosing=(80, 80, 10)),
}
SECONDS = {"quick": 60.0, "paper": 1700.0}
_CELL = {"random": 120, "grid 5x5": 60, "grid 10x10": 10}  # worlds


def cells(config: Config) -> dict[str, Spec]:
    """A cell for some worlds of a kind."""
    common = {"seed": config.seed, "parameters": list(config.parameters)}
    return {
        f"{kind.replace(' ', '-')}-{first}": common
        | {"kind": kind, "first": first, "count": min(_CELL[kind], total - first)}
        for kind, total in zip(KINDS, config.worlds, strict=True)
        for first in range(0, total, _CELL[kind])
    }


def run(spec: Spec) -> pd.DataFrame:
    """Make a cell: a row for each world, demonstrator, softmax that is fitted, and parameter."""
    kind = spec["kind"]
    seed = [spec["seed"], [*KINDS].index(kind)]
    numbers = range(spec["first"], spec["first"] + spec["count"])
    worlds = make(kind, seed, numbers)
    seen = {name: watch(worlds, name, seed, numbers) for name in DEMONSTRATORS}
    shape = (len(seen), len(numbers), len(spec["parameters"]))
    who, world, which = (index.ravel() for index in np.indices(shape))
    counts, held_out = (
        np.stack([getattr(each, name) for each in seen.values()])[who, world]
        for name in ("counts", "held_out")
    )
    parameters = np.asarray(spec["parameters"])[which]
    truth = worlds.rewards[world]
    scale = (worlds.strengths[world] / parameters)[:, None]
    tables = []
    for model, softmax in MODELS.items():
        task = Task(worlds.transitions, worlds.discount, world, counts, softmax(parameters))
        found = fit_all(task, np.zeros_like(truth))
        other = fit_all(task, truth * scale)
        best = np.maximum(found.value, other.value)
        columns = {
            "kind": kind,
            "world": np.asarray(numbers)[world],
            "demonstrator": np.array([*seen])[who],
            "strength": worlds.strengths[world],
            "model": model,
            "parameter": parameters,
            "unconverged": found.unconverged > 0,
            "unfinished": ~(found.decrement <= FAILED),
            "short": found.value < best - WITHIN,
            "evaluations": found.evaluations,
            "sweeps": found.sweeps_to(best - WITHIN),
            "held_out": found.likelihood(task, held_out),
            "loss": losses(worlds, world, found.q),
            "correlation": _correlations(found.rewards, truth),
        }
        tables.append(pd.DataFrame(columns))
    return pd.concat(tables, ignore_index=True)


def _correlations(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The correlation of each row with the same row of the other; 0 where one does not vary."""
    one, other = (x - x.mean(1, keepdims=True) for x in (one, other))
    size = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    return (one * other).sum(1) / np.where(size > 0, size, 1.0)


def tables(config: Config, cells: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The results of each softmax at each parameter, the best parameters, and the comparisons."""
    fits = pd.concat(cells.values(), ignore_index=True)
    choosing = fits["kind"].map(dict(zip(KINDS, config.choosing, strict=True))) > fits["world"]
    chosen = best_parameters(fits[choosing])
    rest = fits[~choosing]
    best = at_best(rest, chosen)
    return {
        "curves": curves_of(rest, best),
        "chosen": chosen,
        "comparisons": compare(rest, best),
    }


def plot(tables: Mapping[str, pd.DataFrame]) -> dict[str, Figure]:
    """The curves over the parameter, and the differences that the verdict is about."""
    return {
        "curves": draw_curves(tables["curves"]),
        "differences": draw_differences(tables["comparisons"]),
    }
