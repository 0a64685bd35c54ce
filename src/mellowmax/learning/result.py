"""What training returns."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

__all__ = ["TabularResult"]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class TabularResult:
    """The records of all runs; None for what was not recorded.

    The leading axes of every array, `...` below, are those of the grid of settings and then that of
    the runs.
    """

    q: npt.NDArray[np.float32] | None = None
    """`[..., S, A]`, the action values at the end."""
    rewards: npt.NDArray[np.float32] | None = None
    """`[..., bins]`, the mean reward of a step in each bin, for runs of a number of steps."""
    returns: npt.NDArray[np.float32] | None = None
    """`[..., episodes]`, the sum of the rewards of each episode; NaN for one that did not end."""
    lengths: npt.NDArray[np.int32] | None = None
    """`[..., episodes]`, its steps; 0 for one that did not end."""
    values: npt.NDArray[np.float32] | None = None
    """`[..., episodes, states, A]`, the action values of chosen states at the end of each."""

    def __repr__(self) -> str:
        arrays = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        shapes = (f"{name}={array.shape}" for name, array in arrays.items() if array is not None)
        return f"TabularResult({', '.join(shapes)})"
