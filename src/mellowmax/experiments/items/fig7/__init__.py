"""Figure 7: how many iterations value iteration takes on the two-state MDP, by parameter.

The paper states neither the initial values nor delta. One cell has the curves for choices that are
stated here: initial values 0, and several deltas. The others search a grid of initial
values and deltas, with the labels as printed and as fitted, for what comes nearest to the figure:
by the rule of Algorithm 2, on which the verdict rests, and also by another rule for the end of a
run and with synchronous sweeps (`sweeps`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ...._typing import Floats
from ....mdp import two_state
from ...data import OPERATORS, paper
from ...item import NAMES, Spec
from .choices import STATED, chosen, nearest, of_a_rule
from .figures import draw_distances, draw_iterations, title
from .sweeps import RULES, SWEEPS, count_sweeps
from .text import CAPTIONS, COLUMNS, DEVIATIONS, RULE, SETTINGS, SOURCE, TITLE
from .verdict import judge

__all__ = [*NAMES]

VERSION = 1
_WORDS = ("change of a sweep (Algorithm 2)", "distance from the limits")
"""The names of the rules, in the figure."""


@dataclasses.dataclass(frozen=True)
class Config:
    """What is run."""

    initial: tuple[float, float, float]
    """The grid of initial values of each action: first, last, step (section 7 states none)."""
    deltas: tuple[float, float, float]
    """The grid of deltas, as logarithms to base 10: first, last, step (section 7 states none)."""
    stated_initial: float = 0.0
    """The initial value of the curves that are shown (section 7 states none)."""
    stated_deltas: tuple[float, ...] = (1e-2, 1e-3, 1e-4, 1e-5)
    """Their deltas (section 7 states none)."""
    limit: int = 8000
    """The most sweeps; the figure goes up to 3322."""
    discount: float = 0.98
    """Figure 1."""


SCALES: Mapping[str, Config] = {
    "quick": Config((-1.0, 2.0, 0.2), (-2.0, -6.0, -0.25), limit=4000),
    "paper": Config((-1.0, 2.0, 0.1), (-2.0, -6.0, -0.05)),
}
SECONDS = {"quick": 40.0, "paper": 200.0}


def cells(config: Config) -> dict[str, Spec]:
    """The stated curves, and a search for each form of the labels, rule and kind of sweeps."""
    common = {"limit": config.limit, "discount": config.discount}
    stated = {"initial": config.stated_initial, "deltas": list(config.stated_deltas)}
    searched = {"initial": list(config.initial), "deltas": list(config.deltas)}
    return {"stated": {"kind": "stated", **stated, **common}} | {
        f"search-{labels}-{rule}-{sweeps}": {
            "kind": "search",
            "labels": labels,
            "rule": rule,
            "sweeps": sweeps,
            **searched,
            **common,
        }
        for labels in ("printed", "fitted")
        for rule in RULES
        for sweeps in SWEEPS
    }


def run(spec: Spec) -> pd.DataFrame:
    """Make a cell."""
    return _stated(spec) if spec["kind"] == "stated" else _search(spec)


def _stated(spec: Spec) -> pd.DataFrame:
    close = np.arange(1600, 1750, 2) / 100
    parameters = np.unique(np.concatenate([np.arange(2, 121) / 2, close]))
    rows = []
    for labels in ("printed", "fitted"):
        mdp = two_state(printed=labels == "printed", discount=spec["discount"])
        for operator in OPERATORS:
            chosen = parameters if operator != "max" else np.zeros(1)
            start = np.full((len(chosen), 2), spec["initial"])
            counts = count_sweeps(
                mdp, operator, chosen, start, tolerances=spec["deltas"], limit=spec["limit"]
            )
            for delta, row in zip(spec["deltas"], counts, strict=True):
                rows.append(
                    pd.DataFrame(
                        {
                            "labels": labels,
                            "initial": spec["initial"],
                            "delta": delta,
                            "operator": operator,
                            "parameter": chosen,
                            "iterations": row,
                        }
                    )
                )
    return pd.concat(rows, ignore_index=True)


def _grid(first: float, last: float, step: float) -> Floats:
    return first + step * np.arange(round((last - first) / step) + 1, dtype=np.float64)


def _points() -> pd.DataFrame:
    """The points of the figure; max is flat, and counts once."""
    return paper("fig7_iterations").drop_duplicates(["operator", "iterations"])


def _search(spec: Spec) -> pd.DataFrame:
    points = _points()
    mdp = two_state(printed=spec["labels"] == "printed", discount=spec["discount"])
    single, deltas = _grid(*spec["initial"]), 10 ** _grid(*spec["deltas"])
    pairs = np.stack(np.meshgrid(single, single, indexing="ij"), -1).reshape(-1, 2)
    ours = np.empty((len(deltas), len(pairs), len(points)))
    for operator in OPERATORS:
        chosen = np.flatnonzero(points.operator == operator)
        parameters = np.tile(points.parameter.to_numpy()[chosen], len(pairs))
        counts = count_sweeps(
            mdp,
            operator,
            parameters,
            np.repeat(pairs, len(chosen), axis=0),
            tolerances=deltas.tolist(),
            limit=spec["limit"],
            rule=spec["rule"],
            sweeps=spec["sweeps"],
        )
        ours[:, :, chosen] = counts.reshape(len(deltas), len(pairs), -1)
    theirs = points.iterations.to_numpy()
    counted = {last: np.maximum(ours - (not last), 1) for last in (True, False)}
    distances = {last: abs(np.log(x / theirs)).mean(-1) for last, x in counted.items()}
    found = []
    for i, delta in enumerate(deltas):
        last = bool(distances[True][i].min() <= distances[False][i].min())
        best = int(distances[last][i].argmin())
        columns = {
            "rule": spec["rule"],
            "sweeps": spec["sweeps"],
            "labels": spec["labels"],
            "delta": delta,
            "initial_a": pairs[best, 0],
            "initial_b": pairs[best, 1],
            "last": last,
            "distance": distances[last][i, best],
            "operator": points.operator.to_numpy(),
            "parameter": points.parameter.to_numpy(),
            "iterations": counted[last][i, best],
            "paper": theirs,
        }
        found.append(pd.DataFrame(columns))
    return pd.concat(found, ignore_index=True)


def tables(config: Config, cells: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The stated curves, what is nearest by each rule, and by each rule for each delta."""
    found = [cells[name] for name in cells if name.startswith("search")]
    choices = pd.concat(found, ignore_index=True)[list(COLUMNS["nearest"])]
    rules = [of_a_rule(nearest(choices, rule, kind)) for rule in RULES for kind in SWEEPS]
    return {
        "stated": cells["stated"],
        "rules": pd.DataFrame(rules)[list(COLUMNS["rules"])],
        "nearest": choices,
    }


def plot(tables: Mapping[str, pd.DataFrame]) -> dict[str, Figure]:
    """The curves of both choices and of the other rule over the figure's, and the distances."""
    stated, best = chosen(tables)
    ends = {kind: nearest(tables["nearest"], "distance", kind) for kind in SWEEPS}
    shown = [
        (
            f"Algorithm 2, stated choice:\nall values {stated.initial.iloc[0]:g} at first, "
            f"delta {stated.delta.iloc[0]:g}, {STATED['labels']} labels",
            stated,
        ),
        (title("Algorithm 2, nearest choice", best), best),
        *((title(f"Near the limits, {kind} sweeps", rows), rows) for kind, rows in ends.items()),
    ]
    return {
        "iterations": draw_iterations(shown),
        "distance": draw_distances(tables["nearest"], dict(zip(RULES, _WORDS, strict=True))),
    }
