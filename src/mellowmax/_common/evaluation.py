"""What the functions named `evaluate` share: a check of policies, and what they return."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from .._typing import ArrayLike, Bools, Floats
from . import checks

__all__ = ["MAX_STEPS", "Evaluation", "check_policy"]

MAX_STEPS = 1000
"""Where an episode is cut off if nothing else is said."""

SUM_TOLERANCE = 1e-6
"""How far from 1 the sum of a state's probabilities may be; in float32 rounding alone moves it."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """The episodes that a policy has played."""

    returns: npt.NDArray[np.float32]
    """`[episodes]`: the sums of their rewards."""
    lengths: npt.NDArray[np.int32]
    """`[episodes]`: how many steps they have."""

    @property
    def mean(self) -> float:
        """The mean return."""
        return float(np.mean(self.returns, dtype=np.float64))

    @property
    def standard_error(self) -> float:
        """The standard error of the mean return; infinity for one episode."""
        n = len(self.returns)
        return float(np.std(self.returns, dtype=np.float64, ddof=1) / n**0.5) if n > 1 else np.inf

    def __repr__(self) -> str:
        return f"Evaluation(mean={self.mean:.4g}, episodes={len(self.returns)})"


def check_policy(
    policy: ArrayLike,
    shape: tuple[int, int],
    allowed: Bools | None = None,
    named: Callable[[int], str] = "state {}".format,
) -> Floats:
    """A tabular policy in float64, `[S, A]`, whose rows add up to 1.

    Args:
        policy: the probability of each action in each state.
        shape: the number of states and of actions.
        allowed: `[S, A]`, the actions there are; None for all.
        named: what a state is called in an error.

    Raises:
        TypeError: for what is no array of numbers.
        ValueError: for numbers that are no policy.
    """
    given = checks.array("policy", policy)
    if given.dtype.kind not in "fiub":
        rule = "`policy` must be an array of probabilities, one for each action in each state"
        raise TypeError(f"{rule}, got {policy!r}")
    weights = checks.numbers("policy", given)
    if weights.shape != shape:
        raise ValueError(f"`policy` must have the shape {shape}, got {weights.shape}")
    sums = np.where(weights >= 0, weights, np.nan).sum(1)
    bad = ~(abs(sums - 1) <= SUM_TOLERANCE)
    if bad.any():
        state = int(bad.argmax())
        rule = "`policy` must be a distribution"
        raise ValueError(f"{rule}, got {weights[state]} in {named(state)}")
    if allowed is not None and weights[~allowed].any():
        state = int((weights * ~allowed).any(1).argmax())
        raise ValueError(
            f"`policy` must take allowed actions, got {weights[state]} in {named(state)}"
        )
    return weights / sums[:, None]
