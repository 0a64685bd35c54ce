"""Figure 5: the updates of planning under Boltzmann's softmax, between its fixed points.

A sweep takes all action values to a line, since s1 is the only state that is not terminal. Sweeps
that start near a stable fixed point lead to it. But a sweep can also lead away from every fixed
point, and between the outer two there is hardly any movement.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ... import style
from ...item import NAMES, Claim, Spec, Verdict
from .. import update_field
from .text import CAPTIONS, COLUMNS, DEVIATIONS, RULE, SETTINGS, SOURCE, TITLE

__all__ = [*NAMES]

VERSION = 1
_MARKS: update_field.Marks = (((0.59, 0.59), (0.49, 0.49)), ((0.84, 0.88), (0.66, 0.69)))
"""The figure's marks, as ranges of Q(s1, b) and Q(s1, a)."""
_WITHIN = 0.01
_SLOW = 0.01


@dataclasses.dataclass(frozen=True)
class Config:
    """What is computed."""

    beta: float = 16.55
    """Figure 5 (section 4)."""
    discount: float = 0.98
    """Figure 1 (section 2)."""
    low: float = 0.0
    """The lowest action value of the field; ours."""
    high: float = 1.0
    """The highest; ours."""
    resolution: int = 101
    """Points of the field along each axis; ours."""
    between: int = 1001
    """Points on the segment between the fixed points; ours."""


SCALES = {"quick": Config(resolution=41, between=101), "paper": Config()}
SECONDS = {"quick": 1.0, "paper": 1.0}


def cells(config: Config) -> dict[str, Spec]:
    """The fixed points and the field, for both labels, and the segment between the fixed points."""
    base = {
        "operator": "boltzmann",
        "parameter": config.beta,
        "discount": config.discount,
        "printed": False,
    }
    grid = {"low": config.low, "high": config.high, "resolution": config.resolution}
    return {
        "points": base | {"part": "points"},
        "field": base | grid | {"part": "field"},
        "between": base | {"part": "between", "count": config.between},
        "printed_points": base | {"part": "points", "printed": True},
        "printed_field": base | grid | {"part": "field", "printed": True},
    }


def run(spec: Spec) -> pd.DataFrame:
    """The part that the specification names."""
    if spec["part"] == "between":
        return _between(spec)
    return update_field.points(spec) if spec["part"] == "points" else update_field.field(spec)


def _between(spec: Spec) -> pd.DataFrame:
    """What a sweep changes along the segment between the outer fixed points."""
    ends = update_field.points(spec)[["q_b", "q_a"]].to_numpy()
    share = np.linspace(0, 1, spec["count"])
    q = ends[0] + share[:, None] * (ends[-1] - ends[0])
    change = abs(update_field.sweep(spec, q) - q).max(-1)
    return pd.DataFrame({"share": share, "q_b": q[:, 0], "q_a": q[:, 1], "change": change})


def tables(config: Config, cells: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The tables of the cells, unchanged."""
    return {name: cells[name] for name in COLUMNS}


def plot(tables: Mapping[str, pd.DataFrame]) -> dict[str, Figure]:
    """The field, and how slow sweeps are between the fixed points."""
    colour = style.COLOURS["boltzmann"]["color"]
    figure, (left, right) = style.figure(2, height=4.6)
    update_field.draw(figure, left, tables["field"], tables["points"], colour)
    update_field.draw_marks(left, _MARKS)
    left.set_title(r"GVI under $\mathrm{boltz}_{16.55}$")
    between = tables["between"]
    right.plot(between["q_b"], 1e4 * between["change"], color=colour)
    for point in tables["points"].itertuples():
        fill = colour if point.stable else "white"
        right.plot(point.q_b, 0, "o", mfc=fill, mec="black", ms=9, clip_on=False, zorder=3)
    right.set(xlabel="$Q(s_1, b)$", ylabel="larger change by a sweep ($10^{-4}$)", ylim=(0, None))
    right.set_title("A sweep on the segment between them")
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return {"field": figure}


def judge(tables: Mapping[str, pd.DataFrame]) -> Verdict:
    """The verdict by `text.RULE`."""
    points, field, between = tables["points"], tables["field"], tables["between"]
    printed, printed_field = tables["printed_points"], tables["printed_field"]
    ends = printed[printed["stable"]]
    stable, unstable = points[points["stable"]], points[~points["stable"]]
    more = ""
    if len(unstable):
        more = f"; {len(unstable)} unstable, at {update_field.in_words(unstable)}"
    grown = field["after"] / field["before"].clip(lower=1e-9)
    worst = field.loc[grown.idxmax()]
    outer = points[["q_b", "q_a"]].to_numpy()
    apart = float(abs(outer[-1] - outer[0]).max())
    claims = (
        Claim(
            "GVI can end at two fixed points, where the figure marks them (by construction)",
            "near (Q(s1, b), Q(s1, a)) = (0.59, 0.49) and (0.84 to 0.88, 0.66 to 0.69)",
            f"{len(stable)} stable, at {update_field.in_words(stable)}{more}",
            update_field.are_near(stable, _MARKS, _WITHIN),
        ),
        Claim(
            "GVI can end at two fixed points, with the labels that figure 1 prints",
            "two, at the same marks",
            f"{len(ends)} stable, at {update_field.in_words(ends)}",
            update_field.are_near(ends, _MARKS, _WITHIN),
        ),
        Claim(
            "Updates can move values farther from the fixed points, with either set of labels",
            "one such point is marked in the figure",
            f"farther from every fixed point at {field['farther'].mean():.1%} of the grid, from "
            f"the nearest at {(grown > 1).mean():.1%}; at worst {grown.max():.3f} times as far, at "
            f"({worst['q_b']:.2f}, {worst['q_a']:.2f}); with the printed labels at "
            f"{printed_field['farther'].mean():.1%}",
            bool(field["farther"].any() and printed_field["farther"].any()),
        ),
        Claim(
            "Between the fixed points progress is extremely slow",
            "said in the caption, without a number",
            f"a sweep changes no value by more than {between['change'].max():.1e}, which is "
            f"{between['change'].max() / max(apart, 1e-9):.2%} of the {apart:.3f} between them",
            bool(len(points) > 1 and between["change"].max() <= _SLOW * apart),
        ),
    )
    found = [claim.holds for claim in claims]
    if found[0] and all(found[2:]):
        summary = (
            "Under Boltzmann's softmax a sweep can lead away from every fixed point, and between "
            "the two that the figure marks it hardly moves. The labels were fitted to figure 4, so "
            "that the two fixed points are there by construction"
        )
        summary += "." if found[1] else "; with the labels as figure 1 prints them they are not."
        in_short = "A sweep can lead away from every fixed point; between them it hardly moves."
    else:
        summary = in_short = "The field does not show all that the paper says of it."
    third = " Another fixed point is unstable, and not marked in the figure."
    return Verdict(claims, summary + (third if len(unstable) else ""), in_short=in_short)
