"""What the page and the Markdown of the report say in the same words."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..experiments import Finished
from ..experiments.item import Outcome

__all__ = [
    "CLAIMS",
    "HOLDS",
    "MEANINGS",
    "PAPER",
    "WHOLE",
    "at_scale",
    "command",
    "count",
    "in_words",
    "scales",
    "settings",
    "unfinished",
    "verdict_row",
]

PAPER = "https://arxiv.org/abs/1612.05628"
CLAIMS = ("Claim", "The paper", "Here", "Holds")
"""The head of an item's table of claims."""
HOLDS = {
    True: (Outcome.REPRODUCED, "yes"),
    False: (Outcome.NOT, "no"),
    "mixed": (Outcome.PARTLY, "mixed"),
    None: (Outcome.UNDECIDED, "undecided"),
}
"""For each value of a claim: the outcome whose sign it gets, and the word in the last column."""
MEANINGS = (
    "An item is reproduced if every claim of the paper holds here, partly reproduced if some do, "
    "not reproduced if none does, and undecided if what was run is too little to tell of one of "
    "them. A claim is mixed if it holds in some of the cases that it is about and not in others; "
    "its item is partly reproduced."
)
"""What the verdicts mean."""
OF_SCALE = {
    "quick": "which takes minutes on a laptop",
    "paper": "the paper's own counts where it has any",
}
"""What the scales are."""
WHOLE = 80
"""The most rows of a table that is shown whole."""


def at_scale(entry: Finished) -> str:
    """The scale of an item, and what its verdict rests on if that was measured elsewhere."""
    kept = f", with {entry.verdict.kept}" if entry.verdict.kept else ""
    return f"at the {entry.plan.scale} scale{kept}"


def scales(entries: Sequence[Finished]) -> str:
    """Which scale the items are at, as a sentence; nothing if there are none."""
    found: dict[str, list[str]] = {}
    for entry in entries:
        kept = f" (with {entry.verdict.kept})" if entry.verdict.kept else ""
        found.setdefault(entry.plan.scale, []).append(f"{entry.plan.name}{kept}")
    parts = [
        f"at the {scale} scale, {OF_SCALE.get(scale, 'as it is configured')}: {', '.join(names)}"
        for scale, names in found.items()
    ]
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def command(entry: Finished, out: Path) -> str:
    """The command that makes an item alone again.

    Args:
        entry: the item.
        out: the directory of the reproduction.
    """
    plan = entry.plan
    return f"mellowmax reproduce {plan.name} --scale {plan.scale} --out {shlex.quote(str(out))}"


def settings(entry: Finished) -> dict[str, Any]:
    """The values of an item's `Config`, by their names in words."""
    values = dataclasses.asdict(entry.plan.config)
    return {entry.plan.item.SETTINGS[name]: value for name, value in values.items()}


def count(entries: Sequence[Finished]) -> str:
    """How many items there are of each outcome, as a sentence."""
    found = [entry.verdict.outcome for entry in entries]
    counts = ", ".join(f"{found.count(o)} {o}" for o in Outcome if o in found or not found)
    return f"Of {len(found)} finished item{'s' * (len(found) != 1)}: {counts}."


def unfinished(names: Iterable[str]) -> str:
    """The items that are not finished, as a sentence; nothing if there are none."""
    listed = ", ".join(names)
    return f"Missing or not finished: {listed}." if listed else ""


def verdict_row(entry: Finished) -> tuple[Outcome, str, str]:
    """What is said of an item: its outcome, how many of its claims hold, and a line."""
    verdict = entry.verdict
    held = sum(claim.holds is True for claim in verdict.claims)
    claims = f"{held} of {len(verdict.claims)} claim{'s' * (len(verdict.claims) != 1)}"
    return verdict.outcome, claims, verdict.in_short


def in_words(value: object) -> str:
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
