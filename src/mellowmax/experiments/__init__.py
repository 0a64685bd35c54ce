"""The figures and tables of the paper, each an item that is run, drawn and judged.

`reproduce` does it all, as `mellowmax reproduce` does, and `mellowmax.report.write` makes a report
of what it returns. It takes three steps: `plan` cuts items into cells, `run` makes the cells that
are missing, `assemble` turns them into tables, figures and a verdict. What an item consists of is
in `item`. The items themselves are the folders of `items`, imported when they are planned.

    >>> from mellowmax.experiments import plan
    >>> [fig6] = plan(["fig6"], "quick", "reproduction")
    >>> fig6.item.TITLE
    'Updates of planning under mellowmax'

A name below is imported when it is first used, so that `style` and `item` do not import JAX and
pandas.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .._common.extras import needed_by

if TYPE_CHECKING:
    from .item import ITEMS, SCALES, Claim, Item, Outcome, Verdict
    from .reproduction import assemble_all, reproduce
    from .runner import CellProgress, Finished, Plan, assemble, load, plan, run

__all__ = [
    "ITEMS",
    "SCALES",
    "CellProgress",
    "Claim",
    "Finished",
    "Item",
    "Outcome",
    "Plan",
    "Verdict",
    "assemble",
    "assemble_all",
    "load",
    "plan",
    "reproduce",
    "run",
]

_MODULES = {
    "item": {"ITEMS", "SCALES", "Claim", "Item", "Outcome", "Verdict"},
    "reproduction": {"assemble_all", "reproduce"},
    "runner": {"CellProgress", "Finished", "Plan", "assemble", "load", "plan", "run"},
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needed_by(f"{__name__}.{name}", "experiments"):
        [home] = (home for home, names in _MODULES.items() if name in names)
        module = importlib.import_module(f".{home}", __name__)
    return getattr(module, name)
