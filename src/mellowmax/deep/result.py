"""The result of training."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from .network import Policy

__all__ = ["DeepResult"]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class DeepResult:
    """The episodes and the policies of every run of every setting."""

    returns: npt.NDArray[np.float32]
    """`[settings..., runs, episodes]`: the sum of the rewards of each episode; NaN where it has not
    been played. In bins of several episodes: `[settings..., runs, bins]`, the mean of each."""
    lengths: npt.NDArray[np.int32] | npt.NDArray[np.float64]
    """`[settings..., runs, episodes]`: the number of steps of each episode; 0 where it has not been
    played. In bins the mean of each."""
    solved: npt.NDArray[np.int64] | None
    """`[settings..., runs]`: after how many episodes a run had solved the environment, 0 if it has
    not; None without a `solved_return`."""
    policies: Policy
    """The policies learned: a `Policy` whose arrays have the axes `[settings..., runs]` first."""

    def __repr__(self) -> str:
        return f"DeepResult(returns={self.returns.shape}, lengths={self.lengths.shape})"
