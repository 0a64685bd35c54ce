"""What the report has on an item, and what its page and its Markdown say in the same words."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..experiments.item import Caption, Outcome, Verdict

__all__ = [
    "CLAIMS",
    "HOLDS",
    "PAPER",
    "VERDICTS",
    "WHOLE",
    "Entry",
    "count",
    "in_words",
    "unfinished",
    "verdict_row",
]

PAPER = "https://arxiv.org/abs/1612.05628"
VERDICTS = ("Item", "What", "Verdict", "In short")
"""The head of the table of verdicts."""
CLAIMS = ("Claim", "The paper", "Here", "Holds")
"""The head of an item's table of claims."""
HOLDS = {
    True: (Outcome.REPRODUCED, "yes"),
    False: (Outcome.NOT, "no"),
    None: (Outcome.UNDECIDED, "undecided"),
}
"""What the last column of that table says, and the outcome it looks like."""
WHOLE = 80
"""A table of at most so many rows is shown whole."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """One finished item, as the report shows it."""

    name: str
    """Of its module, such as `"fig9"`."""
    title: str
    source: str
    rule: str
    scale: str
    config: Mapping[str, Any]
    """The settings of its `Config`, by their names in words."""
    verdict: Verdict
    figures: Mapping[str, Path]
    """The SVG file of each figure; a PNG of the same stem lies beside it."""
    captions: Mapping[str, Caption]
    """The words that go with each figure."""
    tables: Mapping[str, Path]
    """The Parquet file of each table."""
    columns: Mapping[str, Mapping[str, str]]
    """Of each table, what each column holds."""
    deviations: tuple[str, ...]
    seconds: float
    """The time that its cells took."""
    device: str
    """Where they were made."""
    command: str
    """That makes this item alone again."""


def count(entries: Sequence[Entry]) -> str:
    """How many items there are of each outcome, as a sentence."""
    found = [entry.verdict.outcome for entry in entries]
    counts = ", ".join(f"{found.count(o)} {o}" for o in Outcome if o in found or not found)
    return f"Of {len(found)} finished item{'s' * (len(found) != 1)}: {counts}."


def unfinished(names: Iterable[str]) -> str:
    """The items that are not finished, as a sentence; nothing if there are none."""
    listed = ", ".join(names)
    return f"Missing or not finished: {listed}." if listed else ""


def verdict_row(entry: Entry) -> tuple[str, str, str]:
    """What stands beside the name of an item in the table of verdicts."""
    return f"{entry.title} ({entry.source})", entry.verdict.outcome, entry.verdict.summary


def in_words(value: Any) -> str:
    """A setting, or a cell of a table."""
    if isinstance(value, float):
        return f"{value:.5g}"
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {in_words(inner)}" for name, inner in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        shown = [in_words(inner) for inner in value]
        if len(shown) > 12:
            shown = [*shown[:5], "…", f"{shown[-1]} ({len(shown)} values)"]
        return ", ".join(shown)
    return "none" if value is None else str(value)
