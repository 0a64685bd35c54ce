"""The figures and tables of the paper, each an item that is run, drawn and judged.

`plan` cuts items into cells, `run` makes the cells that are missing, `assemble` turns them into
tables, figures and a verdict. `mellowmax reproduce` does all three. What an item consists of is in
`item`; the items themselves are the modules of `items`, imported when they are planned.

    >>> from mellowmax.experiments import plan
    >>> [fig6] = plan(["fig6"], "quick", "reproduction")
    >>> fig6.item.TITLE
    'Updates of planning under mellowmax'

A name below is imported when it is first used, so that `style` and `item` can be had without JAX
and pandas.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .._common.extras import needed_by

if TYPE_CHECKING:
    from .item import ITEMS, SCALES, Claim, Item, Outcome, Verdict
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
    "load",
    "plan",
    "run",
]

_OF_ITEM = {"ITEMS", "SCALES", "Claim", "Item", "Outcome", "Verdict"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needed_by(f"{__name__}.{name}", "experiments"):
        module = importlib.import_module(".item" if name in _OF_ITEM else ".runner", __name__)
    return getattr(module, name)
