"""What training gives."""

from __future__ import annotations

import dataclasses
from typing import Any

from .network import Policy

__all__ = ["Progress", "Training"]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Training:
    """The episodes and the policies of every run of every setting."""

    returns: Any
    """`[settings..., runs, episodes]`: the sum of the rewards of each episode."""
    lengths: Any
    """`[settings..., runs, episodes]`: how many steps each episode has."""
    policies: Policy
    """What has been learned: a `Policy` whose arrays have the axes `[settings..., runs]` first."""

    def __repr__(self) -> str:
        return f"Training(returns={self.returns.shape}, lengths={self.lengths.shape})"


@dataclasses.dataclass(frozen=True)
class Progress:
    """How far training has come."""

    episodes: int
    """Done in all runs together, with those of a checkpoint that was gone on with."""
    total: int
    """To be done."""
    mean_return: float
    """Of the last batch of each run that has played one."""
    seconds: float
    """Since the start."""
    played: int
    """Episodes since the start."""
