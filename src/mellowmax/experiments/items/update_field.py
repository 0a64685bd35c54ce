"""What figures 5 and 6 share: the updates on the two-state MDP, and its fixed points.

A sweep takes the pair of action values `(Q(s1, b), Q(s1, a))` to another one. The field has the
change of the pair at each point of a grid, and how far the pair is from the fixed points before and
after it, in the maximum norm: the norm in which a non-expansion is one (section 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from ..._typing import Floats
from ...mdp import MDP, two_state
from ...planning import fixed_points, vector_field
from ...softmax import SOFTMAXES, Softmax
from .. import style
from ..item import Spec

__all__ = [
    "FIELD",
    "POINTS",
    "Marks",
    "are_near",
    "draw",
    "draw_marks",
    "field",
    "in_words",
    "model",
    "points",
    "sweep",
]

Marks: TypeAlias = Sequence[tuple[tuple[float, float], tuple[float, float]]]
"""Where a figure marks fixed points: the range of Q(s1, b) and that of Q(s1, a) of each."""

POINTS = {
    "q_b": "Q(s1, b)",
    "q_a": "Q(s1, a)",
    "spectral_radius": "spectral radius of a sweep's Jacobian, below 1 where it attracts",
    "stable": "is the spectral radius below 1?",
    "complete": "is it proved that these are all the fixed points?",
}
"""The columns of the table of fixed points."""
FIELD = {
    "q_b": "Q(s1, b) before a sweep",
    "q_a": "Q(s1, a) before a sweep",
    "change_b": "what the sweep adds to Q(s1, b)",
    "change_a": "what the sweep adds to Q(s1, a)",
    "before": "distance to the nearest fixed point, in the maximum norm, before the sweep",
    "after": "distance to the fixed point that is nearest after it",
    "farther": "is it farther from every fixed point after the sweep?",
}
"""The columns of the table of the field."""

_EQUAL = 1e-12  # distances that differ by less are equal
_ARROWS = 21  # along each axis, at most
_SIZES = (1e-4, 1.0)  # the range of colours for the size of an update, in both figures


def model(spec: Spec) -> tuple[MDP, Softmax]:
    """The two-state MDP and the softmax of a specification."""
    mdp = two_state(printed=spec["printed"], discount=spec["discount"])
    return mdp, SOFTMAXES[spec["operator"]](spec["parameter"])  # type: ignore[call-arg]


def points(spec: Spec) -> pd.DataFrame:
    """Every fixed point, from the lowest."""
    found = fixed_points(*model(spec))
    rows = [
        (p.q[0, 1], p.q[0, 0], p.spectral_radius, p.stable, found.complete) for p in found.points
    ]
    return pd.DataFrame(rows, columns=list(POINTS))


def sweep(spec: Spec, q: Floats) -> Floats:
    """One synchronous sweep of the pairs `(Q(s1, b), Q(s1, a))`, `[..., 2]`."""
    mdp, softmax = model(spec)
    transitions, rewards = mdp.to_numpy()
    value = np.asarray(softmax.value(q))[..., None]
    new = rewards[0] + mdp.discount * transitions[0, :, 0] * value
    return np.asarray(new[..., ::-1])


def field(spec: Spec) -> pd.DataFrame:
    """The updates on a grid, and what they do to the distance to the fixed points."""
    mdp, softmax = model(spec)
    ends = (spec["low"], spec["high"])
    grid = vector_field(mdp, softmax, ranges=(ends, ends), resolution=spec["resolution"])
    old = np.stack(np.meshgrid(grid.x, grid.y), axis=-1).reshape(-1, 2)
    change = np.stack([grid.dx, grid.dy], axis=-1).reshape(-1, 2)
    marks = points(spec)[["q_b", "q_a"]].to_numpy()
    before, after = (abs(q[:, None] - marks).max(-1) for q in (old, old + change))
    frame = {
        "q_b": old[:, 0],
        "q_a": old[:, 1],
        "change_b": change[:, 0],
        "change_a": change[:, 1],
        "before": before.min(-1),
        "after": after.min(-1),
        "farther": (after > before + _EQUAL).all(-1),
    }
    return pd.DataFrame(frame)


def are_near(table: pd.DataFrame, marks: Marks, within: float) -> bool:
    """Does each mark have its fixed point, no farther than `within` from its ranges?"""
    found = table[["q_b", "q_a"]].to_numpy()
    if len(found) != len(marks):
        return False
    boxes = np.asarray(marks, np.float64)
    low, high = boxes[..., 0] - within, boxes[..., 1] + within
    return bool(((low <= found) & (found <= high)).all())


def in_words(table: pd.DataFrame) -> str:
    """The pairs of the fixed points as text."""
    pairs = table[["q_b", "q_a"]].itertuples(index=False)
    return " and ".join(f"({b:.3f}, {a:.3f})" for b, a in pairs) or "none"


def draw(
    figure: Figure, axes: Axes, field: pd.DataFrame, points: pd.DataFrame, colour: str
) -> None:
    """Arrows of one length with the size of the update as their colour, and the fixed points."""
    x, y = np.unique(field["q_b"]), np.unique(field["q_a"])
    grown = (field["after"] > field["before"] + _EQUAL).to_numpy().reshape(len(y), len(x))
    if grown.any():
        axes.contourf(x, y, grown, levels=[0.5, 1.5], colors=[colour], alpha=0.2)
        axes.fill_between([], [], color=colour, alpha=0.2, lw=0, label="farther from the nearest")
    every = max(1, -(-(len(x) - 1) // (_ARROWS - 1)))
    shown = field[field["q_b"].isin(x[::every]) & field["q_a"].isin(y[::every])]
    change = shown[["change_b", "change_a"]].to_numpy()
    length = np.maximum(np.hypot(*change.T), 1e-300)
    b, a = (change / length[:, None]).T
    arrows = axes.quiver(
        shown["q_b"],
        shown["q_a"],
        b,
        a,
        abs(change).max(-1),
        scale=26,  # arrows as long as they can be without reaching the next one
        pivot="mid",
        width=0.0045,
        cmap="viridis_r",
        norm=LogNorm(*_SIZES),
    )
    figure.colorbar(arrows, ax=axes, label="larger change by a sweep", shrink=0.8)
    for stable, fill, name in ((True, colour, "stable"), (False, "white", "unstable")):
        rows = points[points["stable"] == stable]
        if len(rows):
            look: dict[str, Any] = {"mfc": fill, "mec": "black", "ms": 9, "ls": "none"}
            axes.plot(rows["q_b"], rows["q_a"], "o", **look, label=f"fixed point, {name}")
    axes.set(xlabel="$Q(s_1, b)$", ylabel="$Q(s_1, a)$", aspect="equal")
    axes.set(xlim=(x[0] - 0.03, x[-1] + 0.03), ylim=(y[0] - 0.03, y[-1] + 0.03))


def draw_marks(axes: Axes, marks: Marks) -> None:
    """Where the paper's figure marks fixed points, with bars for those read as a range."""
    boxes = np.asarray(marks, np.float64)
    middle, half = boxes.mean(-1), np.ptp(boxes, axis=-1) / 2
    colour = style.PAPER["color"]
    for (b, a), (db, da) in zip(middle, half, strict=True):
        if db or da:
            axes.errorbar(b, a, xerr=db, yerr=da, color=colour, fmt="none", lw=1.5)
    look = {"color": colour, "ms": 11, "mew": 2, "ls": "none", "label": "the paper's mark"}
    axes.plot(*middle.T, style.PAPER["marker"], **look)
