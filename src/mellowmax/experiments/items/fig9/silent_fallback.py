"""A hypothesis about figure 9: mellowmax's policy by a root finder that fails silently.

The inverse temperature of the policy is the root of an equation (section 6). A root finder needs a
bracket, and may return its initial guess where it fails: where the root lies outside, or where an
exponential at an end of the bracket overflows. Here that guess is omega itself, so that the policy
is Boltzmann's at omega. `mellowmax.policies` never does this.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from ...._typing import ArrayT, Floats, Mask, Numbers
from ....operators import mellowmax, mellowmax_gradient
from ....policies import boltzmann_log_policy, boltzmann_policy, mellowmax_temperature
from ....softmax import Softmax
from ...item import Spec

__all__ = [
    "LARGE",
    "SilentFallback",
    "best_rates",
    "distances",
    "overflows",
    "root_mean_square",
    "softmaxes",
    "tabulate",
]

LARGE = 2.0
"""From this omega on, the paper's mellowmax is near what a silent fallback earns."""

_COLUMNS = ["parameter", "low", "high", "learning_rate", "mean_reward", "standard_error"]


@dataclasses.dataclass(frozen=True)
class SilentFallback(Softmax):
    """Mellowmax, with a policy that is right where a search with a bracket does not fail.

    Examples:
        The root is 1.84 for omega = 5, and a bracket that ends at 1 does not hold it:

        >>> from mellowmax import Mellowmax
        >>> q = jnp.array([0.0, 1.0])
        >>> print(Mellowmax(5.0).policy(q).round(3))
        [0.137 0.863]
        >>> print(SilentFallback(5.0, 0.0, 1.0).policy(q).round(3))
        [0.007 0.993]

        A bracket from -500 to 500 holds it, but in a row that is spread the search overflows:

        >>> print(SilentFallback(5.0, -500.0, 500.0).policy(q).round(3))
        [0.137 0.863]
        >>> print(SilentFallback(5.0, -500.0, 500.0).policy(2 * q).round(3))
        [0. 1.]
    """

    attained: ClassVar[bool] = True  # not where it fails, but such a program pays no bonus there

    omega: Any
    """Mellowmax's parameter: a number, or an array of them."""
    low: Any
    """Where the bracket begins: a number, or an array of them."""
    high: Any
    """Where it ends."""

    def value(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """Mellowmax."""
        return mellowmax(q, self.omega, axis=axis, where=where)

    def gradient(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """The gradient of mellowmax."""
        return mellowmax_gradient(q, self.omega, axis=axis, where=where)

    def policy(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """Boltzmann's at the root, or at omega where the search fails."""
        return boltzmann_policy(q, self._temperature(q, axis, where), axis=axis, where=where)

    def log_policy(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """The logarithm of the policy."""
        return boltzmann_log_policy(q, self._temperature(q, axis, where), axis=axis, where=where)

    def _temperature(self, q: ArrayT | Numbers, axis: int, where: Mask) -> jax.Array:
        root = jnp.asarray(mellowmax_temperature(q, self.omega, axis=axis, where=where))
        spread = mellowmax(q, self.omega, axis=axis, where=where) - jnp.min(
            jnp.asarray(q), axis=axis
        )
        finds = (
            (self.low <= root) & (root <= self.high) & (spread <= overflows(self.low, self.high))
        )
        return jnp.where(finds, root, self.omega)


def overflows(low: Any, high: Any) -> Any:
    """How far mellowmax is above the least value where an exponential at an end overflows."""
    return math.log(sys.float_info.max) / jnp.maximum(abs(low), abs(high))


def softmaxes(spec: Spec) -> SilentFallback:
    """One for each bracket of a cell of figure 9, `[brackets, 1]`."""
    low, high = np.array(spec["brackets"]).T[:, :, None]
    return SilentFallback(spec["parameter"], low, high)


def tabulate(spec: Spec, rewards: Floats) -> pd.DataFrame:
    """The mean reward for each bracket and learning rate.

    Args:
        spec: of a cell of figure 9, with `brackets`.
        rewards: what SARSA earned, `[brackets, rates, runs, bins]`.
    """
    low, high = np.array(spec["brackets"]).T[:, :, None]
    rates = np.array(spec["learning_rates"])
    means = rewards.mean(-1)
    every = np.broadcast_to(rates, means.shape[:2])
    columns = {
        "parameter": spec["parameter"],
        "low": np.broadcast_to(low, every.shape).ravel(),
        "high": np.broadcast_to(high, every.shape).ravel(),
        "learning_rate": every.ravel(),
        "mean_reward": means.mean(-1).ravel(),
        "standard_error": (means.std(-1, ddof=1) / np.sqrt(spec["runs"])).ravel(),
    }
    return pd.DataFrame(columns)


def best_rates(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The best learning rate of each omega and bracket, from the tables of cells."""
    if not parts:
        return pd.DataFrame(columns=_COLUMNS, dtype=np.float64)
    whole = pd.concat(parts, ignore_index=True)
    best = whole.groupby(["parameter", "low", "high"], sort=False)["mean_reward"].idxmax()
    return whole.loc[best].reset_index(drop=True)


def distances(fit: pd.DataFrame) -> pd.DataFrame:
    """How far each bracket is from the paper's curve, the nearest first."""
    squares = fit.assign(square=(fit["mean_reward"] - fit["paper"]) ** 2)
    rows = {"distance": squares, "large": squares[squares["parameter"] >= LARGE]}
    means = {x: part.groupby(["low", "high"])["square"].mean() ** 0.5 for x, part in rows.items()}
    return pd.DataFrame(means).reset_index().sort_values("distance", ignore_index=True)


def root_mean_square(rows: pd.DataFrame) -> float:
    """The root mean square distance of points from the paper's."""
    return float(np.sqrt(((rows["mean_reward"] - rows["paper"]) ** 2).mean()))
