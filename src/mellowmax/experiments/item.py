"""An item of the paper: a figure or a table, cut into cells, with claims and a verdict.

An item is a folder of `items` whose `__init__` has the names of `Item`. Its work is cut into cells
that do not depend on each other. A cell is made from its specification alone, which is plain data
(its digest is a part of the cell's name on disk), and gives one table. From the cells' tables come
the item's own tables, its figures, and its verdict, by the rule that `RULE` states.

    __init__    what is run: `Config`, `cells`, `run`, `tables`, `plot` and `judge`
    text        what the report says of it: title, rule, deviations, captions, columns
    figures     how it is drawn
    verdict     `judge`, where it takes more than a screen
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = [
    "ITEMS",
    "NAMES",
    "SCALES",
    "Caption",
    "Claim",
    "Item",
    "LongItem",
    "Outcome",
    "Spec",
    "Stopped",
    "Verdict",
    "Work",
]

ITEMS = (
    "fig2",
    "fig3",
    "fig4",
    "fig5",
    "fig6",
    "fig7",
    "table1",
    "fig9",
    "fig11",
    "deepmellow",
    "averagers",
    "uniqueness",
    "human_play",
    "throughout",
    "irl",
)
"""The names of the items, in the order of the paper; the last six are beyond it."""
SCALES = ("quick", "paper")
"""Minutes on a laptop, or the paper's own counts."""

Spec = dict[str, Any]
"""What determines a cell's numbers: names to numbers, texts, and lists of them."""


class Outcome(enum.StrEnum):
    """Does what the paper claims hold here?"""

    REPRODUCED = "reproduced"
    PARTLY = "partly reproduced"
    NOT = "not reproduced"
    UNDECIDED = "undecided"
    """Too little was run to tell."""


@dataclasses.dataclass(frozen=True)
class Caption:
    """The words that go with a figure."""

    text: str
    """What is to be seen in it, and what each line and mark stands for."""
    alt: str
    """What it looks like, for readers who cannot see it."""


@dataclasses.dataclass(frozen=True)
class Claim:
    """One statement of the paper, its number, and ours."""

    statement: str
    paper: str
    """What the paper found, in words."""
    ours: str
    """What was measured here, with its interval."""
    holds: bool | Literal["mixed"] | None
    """Mixed where it holds in some of the cases that count; None where this scale cannot tell."""


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The claims of an item, and a few sentences on what they add up to."""

    claims: tuple[Claim, ...]
    summary: str
    beside: tuple[str, ...] = ()
    """Paragraphs that the report shows with the item: what else was found, and the evidence."""
    in_short: str = ""
    """One line, of some fifteen words at most, for the table of verdicts."""
    kept: str = ""
    """What the verdict rests on, if it was not measured in this directory but is kept."""

    @property
    def outcome(self) -> Outcome:
        """Undecided if a claim is; else reproduced if all hold, not reproduced if none does."""
        held = [claim.holds for claim in self.claims]
        if None in held:
            return Outcome.UNDECIDED
        if all(one is True for one in held):
            return Outcome.REPRODUCED
        return Outcome.PARTLY if any(held) else Outcome.NOT


class Stopped(Exception):  # noqa: N818 - no error
    """A cell was stopped before it was finished."""


@dataclasses.dataclass(frozen=True)
class Work:
    """What a long cell is given: a directory to resume from, and a callback to report to."""

    directory: Path | None = None
    """Where the cell keeps what it has done so far; None to keep nothing."""
    callback: Callable[[float], bool] = lambda share: False
    """Called with the share of the cell that is done; it returns True to stop."""


class Item(Protocol):
    """The names that an item has."""

    TITLE: str
    """What the report calls it, such as "Fixed points of Boltzmann planning"."""
    SOURCE: str
    """Where it is in the paper, such as "Figure 4, section 4"."""
    RULE: str
    """The rule of the verdict, in words."""
    VERSION: int
    """Raised when a cell of the same specification would have other numbers."""
    COLUMNS: Mapping[str, Mapping[str, str]]
    """What each column of each table holds."""
    CAPTIONS: Mapping[str, Caption]
    """The caption of each figure."""
    SETTINGS: Mapping[str, str]
    """What the fields of its `Config` are called, in words."""
    DEVIATIONS: tuple[str, ...]
    """What differs from the paper, or was chosen where the paper is silent."""
    SCALES: Mapping[str, Any]
    """The `Config` of each scale, `"quick"` and `"paper"`."""
    SECONDS: Mapping[str, float]
    """About how long each scale takes on two cores."""

    def cells(self, config: Any) -> dict[str, Spec]:
        """The specification of each cell, by a name that can be part of a file's name."""

    def run(self, spec: Spec) -> pd.DataFrame:
        """Make a cell: a pure function of its specification."""

    def tables(self, config: Any, cells: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
        """The item's tables from those of its cells, all of them."""

    def plot(self, tables: Mapping[str, pd.DataFrame]) -> dict[str, Figure]:
        """The item's figures, from its tables and the paper's numbers."""

    def judge(self, tables: Mapping[str, pd.DataFrame]) -> Verdict:
        """The verdict."""


@runtime_checkable
class LongItem(Item, Protocol):
    """An item whose cells take long: a cell that was stopped can be resumed."""

    def resume(self, spec: Spec, work: Work) -> pd.DataFrame:
        """Make a cell, starting from what its directory has.

        Raises:
            Stopped: when the callback stopped it; the directory has what was done.
        """


NAMES = (
    "CAPTIONS",
    "COLUMNS",
    "DEVIATIONS",
    "RULE",
    "SCALES",
    "SECONDS",
    "SETTINGS",
    "SOURCE",
    "TITLE",
    "VERSION",
    "Config",
    "cells",
    "judge",
    "plot",
    "run",
    "tables",
)
"""The public names of an item: those of `Item`, and its `Config`."""
