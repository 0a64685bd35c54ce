"""Figure 4: the fixed points of planning under Boltzmann's softmax, over beta.

The branches are followed by their length, through the folds where two fixed points meet, so that
the unstable ones in the middle are found like the others. At every beta where the figure was read,
all fixed points are computed too, by a search that is complete.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ...._typing import Floats
from ....mdp import two_state
from ....planning import fixed_points, trace_fixed_points
from ....softmax import Boltzmann
from ...data import paper
from ...item import NAMES, Claim, Spec, Verdict
from .figures import draw_branches
from .text import CAPTIONS, COLUMNS, DEVIATIONS, RULE, SETTINGS, SOURCE, TITLE

__all__ = [*NAMES]

VERSION = 1
_WINDOW = (16.50, 16.78)
"""The figure's, where it has two curves."""
_ENDS, _WITHIN = 0.02, 0.006
_TICK = 0.005
"""Half a unit of the last digit of the figure's horizontal ticks."""


@dataclasses.dataclass(frozen=True)
class Config:
    """What is computed."""

    beta: float = 16.55
    """The paper's own (section 2 and figure 5)."""
    discount: float = 0.98
    """Figure 1 (section 2)."""
    first: float = 15.0
    """The lowest beta of the branches: figure 4 was read from 15.15 to 18.89 (section 4)."""
    last: float = 19.0
    """The highest."""
    step: float = 0.004
    """The longest step along a branch, as a share of the range; ours."""


SCALES = {"quick": Config(), "paper": Config()}
SECONDS = {"quick": 4.0, "paper": 4.0}
_LABELS = ("fitted", "printed")


def cells(config: Config) -> dict[str, Spec]:
    """The fitted values, and the printed labels."""
    read = {float(beta) for beta in paper("fig4_fixed_points")["beta"]}
    base = dataclasses.asdict(config) | {"at": sorted(read | {config.beta})}
    return {name: base | {"printed": name == "printed"} for name in _LABELS}


def run(spec: Spec) -> pd.DataFrame:
    """The branches, the folds, and the fixed points at each beta of `at`, one below the other."""
    mdp = two_state(printed=spec["printed"], discount=spec["discount"])
    trace = trace_fixed_points(mdp, Boltzmann, [spec["first"], spec["last"]], step=spec["step"])
    parts: list[tuple[str, int, float | Floats, Floats, Floats]] = [
        ("branch", number, branch.parameters, branch.q[:, 0], branch.spectral_radius)
        for number, branch in enumerate(trace.branches)
    ]
    parts += [("fold", 0, fold.parameter, fold.q[None, 0], np.ones(1)) for fold in trace.folds]
    for beta in spec["at"]:
        found = fixed_points(mdp, Boltzmann(beta))
        if not found.complete:
            raise RuntimeError(f"the fixed points at beta = {beta} are not proved to be all")
        radii = [point.spectral_radius for point in found]
        parts.append(("at", 0, beta, np.array([point.q[0] for point in found]), np.array(radii)))
    names = ("part", "branch", "beta", "q_a", "q_b", "spectral_radius")
    frames = [
        pd.DataFrame(dict(zip(names, (part, number, beta, *q.T, radii), strict=True)))
        for part, number, beta, q, radii in parts
    ]
    return pd.concat(frames, ignore_index=True)


def tables(config: Config, cells: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The parts of the cells, and how far the figure's points are from the fitted branches."""
    both = pd.concat([cells[name].assign(labels=name) for name in _LABELS], ignore_index=True)
    both["stable"] = both["spectral_radius"] < 1
    rows = both[both["part"] == "at"]
    groups = rows.groupby(["labels", "beta"])
    counts = groups["stable"].agg(["size", "sum"]).reset_index()
    counts.columns = list(COLUMNS["counts"])
    result = {
        part: both.loc[both["part"] == kind, list(COLUMNS[part])].reset_index(drop=True)
        for part, kind in (("branches", "branch"), ("folds", "fold"))
    }
    fitted = result["branches"].query("labels == 'fitted'")
    return result | {"counts": counts, "distances": _distances(fitted)}


def _distances(branches: pd.DataFrame) -> pd.DataFrame:
    """How far each point of the figure is from the branches at the betas near its own."""
    table = paper("fig4_fixed_points").rename(columns={"q": "paper"})
    table["distance"] = [
        min(
            _distance(rows["beta"].to_numpy(), rows[f"q_{point.action}"].to_numpy(), point)
            for _, rows in branches.groupby("branch")
        )
        for point in table.itertuples()
    ]
    return table[list(COLUMNS["distances"])]


def _distance(beta: Floats, q: Floats, point: Any) -> float:
    """From a point to what a curve of straight pieces is at the betas within `_TICK` of it."""
    ends = np.stack([beta[:-1], beta[1:]]), np.stack([q[:-1], q[1:]])
    (left, right), (first, last) = ends
    length = np.where(right == left, 1.0, right - left)
    near = np.clip((np.array([[-_TICK], [_TICK]]) + point.beta - left) / length, 0.0, 1.0)
    low, high = np.sort(first + near * (last - first), axis=0)
    there = (np.minimum(left, right) <= point.beta + _TICK) & (
        np.maximum(left, right) >= point.beta - _TICK
    )
    away = np.maximum(np.maximum(low - point.paper, point.paper - high), 0.0)
    return float(away[there].min(initial=np.inf))


def plot(tables: Mapping[str, pd.DataFrame]) -> dict[str, Figure]:
    """Q(s1, a) and Q(s1, b) at the fixed points, under the points of the paper's figure."""
    return {"branches": draw_branches(tables, Config.beta, sum(_WINDOW) / 2)}


def judge(tables: Mapping[str, pd.DataFrame]) -> Verdict:
    """The verdict by `text.RULE`."""
    windows = {
        labels: tables["folds"].query("labels == @labels")["beta"].agg(["min", "max"]).to_numpy()
        for labels in _LABELS
    }
    off = {labels: float(abs(ends - _WINDOW).max()) for labels, ends in windows.items()}
    words = {labels: f"{low:.4f} to {high:.4f}" for labels, (low, high) in windows.items()}
    here = tables["counts"].query(f"labels == 'fitted' and beta == {Config.beta}").iloc[0]
    points = tables["distances"]
    distance = points["distance"]
    low, high = windows["fitted"]
    theirs = f"{_WINDOW[0]:.2f} to {_WINDOW[1]:.2f}"
    claims = (
        Claim(
            "For a range of beta, with 16.55 in it, there is more than one fixed point",
            "two, in figures 4 and 5",
            f"{words['fitted']}; {here['fixed_points']} at {Config.beta:g}, {here['stable']} of "
            "them stable",
            bool(low < Config.beta < high and here["fixed_points"] > 1),
        ),
        Claim(
            "The range is the figure's, with the labels fitted to it (by construction)",
            theirs,
            f"{words['fitted']}, off by {off['fitted']:.4f} at most",
            off["fitted"] <= _ENDS,
        ),
        Claim(
            "The range is the figure's, with the labels that figure 1 prints",
            theirs,
            f"{words['printed']}, off by {off['printed']:.4f} at most",
            off["printed"] <= _ENDS,
        ),
        Claim(
            f"The figure's points lie on the fitted branches, to {_WITHIN:g} (by construction)",
            f"{len(points)} points",
            f"{(distance <= _WITHIN).sum()} of them within {_WITHIN:g}, at a beta within {_TICK:g} "
            f"of theirs; {distance.median():.4f} off in the median, {distance.max():.4f} at most",
            bool((distance <= _WITHIN).all()),
        ),
    )
    several = "several fixed points" if claims[0].holds else "one fixed point"
    printed = "gives" if claims[2].holds else "does not give"
    in_short = (
        f"{several.capitalize()} at beta {Config.beta:g}; the printed labels "
        f"{'' if claims[2].holds else 'do not '}give the figure's range."
    )
    summary = (
        f"Planning under Boltzmann's softmax has {several} at beta = {Config.beta:g}. The MDP was "
        "fitted to this figure, so that its curves agree by construction; the MDP with the labels "
        f"as figure 1 prints them {printed} the figure's range of beta."
    )
    return Verdict(claims, summary, in_short=in_short)
