"""What `evaluate` returns, of tabular policies and of networks: the episodes that were played."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

__all__ = ["Evaluation"]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """The episodes that a policy has played."""

    returns: Any
    """`[episodes]`: the sums of their rewards."""
    lengths: Any
    """`[episodes]`: how many steps they have."""

    @property
    def mean(self) -> float:
        """The mean return."""
        return float(np.mean(self.returns, dtype=np.float64))

    @property
    def standard_error(self) -> float:
        """Of the mean return; infinity for one episode."""
        n = len(self.returns)
        return float(np.std(self.returns, dtype=np.float64, ddof=1) / n**0.5) if n > 1 else np.inf

    def __repr__(self) -> str:
        return f"Evaluation(mean={self.mean:.4g}, episodes={len(self.returns)})"
