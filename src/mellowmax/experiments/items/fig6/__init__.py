"""Figure 6: the updates of planning under mellowmax all lead to its one fixed point.

Mellowmax is a non-expansion (section 5.1), so that a sweep brings any values nearer to the fixed
point, at least by the discount. The number of fixed points is not taken from that theorem here: the
search for them uses only a bound on mellowmax's second derivative.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ....mdp import two_state
from ....planning import fixed_points
from ....softmax import Mellowmax
from ... import style
from ...item import NAMES, Claim, Spec, Verdict
from .. import update_field
from .text import CAPTIONS, COLUMNS, DEVIATIONS, RULE, SETTINGS, SOURCE, TITLE

__all__ = [*NAMES]

VERSION = 1
_MARKS: update_field.Marks = (((0.45, 0.45), (0.40, 0.40)),)
"""The figure's mark, as ranges of Q(s1, b) and Q(s1, a)."""
_WITHIN = 0.01


@dataclasses.dataclass(frozen=True)
class Config:
    """What is computed."""

    omega: float = 16.55
    """Figure 6 (section 7)."""
    discount: float = 0.98
    """Figure 1 (section 2)."""
    low: float = 0.0
    """The lowest action value of the field; ours."""
    high: float = 1.0
    """The highest; ours."""
    resolution: int = 101
    """Points of the field along each axis; ours."""
    first: float = 1.0
    """The first omega of the range; ours."""
    last: float = 100.0
    """The last; ours."""
    omegas: int = 199
    """How many there are; ours."""


SCALES = {"quick": Config(resolution=41, omegas=34), "paper": Config()}
SECONDS = {"quick": 2.0, "paper": 2.0}


class _Unproved(Mellowmax):
    """Mellowmax as if it were not known to be a non-expansion."""

    non_expansion = False

    def curvature(self, width: float) -> float:
        """`|omega| / 4`: omega times the largest variance of numbers that differ by at most 1."""
        return float(abs(np.asarray(self.omega)).max()) / 4


def cells(config: Config) -> dict[str, Spec]:
    """The fixed point, the field, and the number of fixed points over a range of omega."""
    base = {"discount": config.discount, "printed": False}
    one = base | {"operator": "mellowmax", "parameter": config.omega}
    grid = {"low": config.low, "high": config.high, "resolution": config.resolution}
    span = {"first": config.first, "last": config.last, "count": config.omegas}
    return {
        "points": one | {"part": "points"},
        "field": one | grid | {"part": "field"},
        "range": base | span | {"part": "range"},
    }


def run(spec: Spec) -> pd.DataFrame:
    """The part that the specification names."""
    if spec["part"] == "range":
        return _range(spec)
    return update_field.points(spec) if spec["part"] == "points" else update_field.field(spec)


def _range(spec: Spec) -> pd.DataFrame:
    mdp = two_state(printed=spec["printed"], discount=spec["discount"])
    rows = []
    for omega in np.linspace(spec["first"], spec["last"], spec["count"]).tolist():
        found = fixed_points(mdp, _Unproved(omega))
        lowest = found[0]
        values = lowest.q[0, 1], lowest.q[0, 0], lowest.spectral_radius
        rows.append((omega, len(found), found.complete, *values))
    return pd.DataFrame(rows, columns=list(COLUMNS["range"]))


def tables(config: Config, cells: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The tables of the cells, unchanged."""
    return {name: cells[name] for name in COLUMNS}


def plot(tables: Mapping[str, pd.DataFrame]) -> dict[str, Figure]:
    """The field, and the one fixed point over omega."""
    colour = style.COLOURS["mellowmax"]["color"]
    figure, (left, right) = style.figure(2, height=4.6)
    update_field.draw(figure, left, tables["field"], tables["points"], colour)
    update_field.draw_marks(left, _MARKS)
    left.set_title(r"GVI under $\mathrm{mm}_{16.55}$")
    span = tables["range"]
    for action, dashes in (("b", "-"), ("a", "--")):
        label = f"$Q(s_1, {action})$"
        right.plot(span["omega"], span[f"q_{action}"], color=colour, ls=dashes, label=label)
    right.set(xlabel=r"$\omega$", ylabel="value at the fixed point", ylim=(0, 1))
    right.set_title(r"The one fixed point of each $\omega$")
    right.legend(loc="lower right")
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return {"field": figure}


def judge(tables: Mapping[str, pd.DataFrame]) -> Verdict:
    """The verdict by `text.RULE`."""
    points, field, span = tables["points"], tables["field"], tables["range"]
    # A grid point on the fixed point itself stays there.
    nearer = field["after"] / field["before"].clip(lower=1e-9)
    only = (span["fixed_points"] == 1) & span["complete"]
    claims = (
        Claim(
            "GVI has one fixed point, where the figure marks it",
            "near (Q(s1, b), Q(s1, a)) = (0.45, 0.40)",
            f"{len(points)}, at {update_field.in_words(points)}",
            update_field.are_near(points, _MARKS, _WITHIN),
        ),
        Claim(
            "The fixed point is unique",
            "proved for every omega in section 5.1, shown at 16.55",
            f"one, and proved to be the only one, at {only.sum()} of {len(span)} omegas from "
            f"{span['omega'].min():g} to {span['omega'].max():g}",
            bool(only.all()),
        ),
        Claim(
            "All updates move toward the fixed point",
            "a non-expansion brings them nearer by the discount, 0.98, at least",
            f"at most {nearer.max():.4f} times as far from it after an update, "
            f"{nearer.median():.4f} in the median, on a grid of {len(field)} points",
            bool(nearer.max() <= Config.discount),
        ),
    )
    if all(claim.holds for claim in claims):
        summary = "Under mellowmax there is one fixed point, and every update leads nearer to it."
    else:
        summary = "The field does not show all that the paper says of it."
    return Verdict(claims, summary, in_short=summary)
