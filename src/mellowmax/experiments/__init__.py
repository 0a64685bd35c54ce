"""Layer 6: the paper's figures and tables, made again."""

from .item import Claim, Item, Outcome, Verdict
from .runner import ITEMS, Finished, Plan, Progress, assemble, load, plan, run

__all__ = [
    "ITEMS",
    "Claim",
    "Finished",
    "Item",
    "Outcome",
    "Plan",
    "Progress",
    "Verdict",
    "assemble",
    "load",
    "plan",
    "run",
]
