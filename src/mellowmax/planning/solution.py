"""The result of a solve, its progress, and its error."""

from __future__ import annotations

import dataclasses
import enum
import functools
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._common import npz
from .._common.schema import Field
from .._typing import ArrayLike, Bools, Floats
from ..mdp.labels import Labels
from ..softmax import Softmax
from .picture import picture
from .table import columns, frame

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from .average_reward import AverageSolution
    from .sensitivity import Sensitivity

__all__ = ["NotConvergedError", "Solution", "SolveProgress", "Status", "read_fields", "rows_of"]

SCHEMA = {
    "q": Field("number", "S A"),
    "value": Field("number", "S"),
    "policy": Field("number", "S A"),
    "allowed": Field("boolean", "S A", optional=True),  # not in files of 0.1
    "converged": Field("boolean"),
    "status": Field("text"),
    "iterations": Field("whole number", least=0),
    "residual": Field("number"),
    "error_bound": Field("number", optional=True),
    "method": Field("text"),
    "reason": Field("text"),
    "suboptimality_bound": Field("number"),
    "softmax": Field("text"),
    "state_labels": Field("value", "S or S D", optional=True),
    "action_labels": Field("value", "A or A E", optional=True),
}
"""The fields of a solution in a file."""


class Status(enum.StrEnum):
    """How a solve has ended. A status equals its text.

    Examples:
        >>> Status.CONVERGED == "converged"
        True
        >>> print(Status.LIMIT_CYCLE)
        limit cycle
    """

    CONVERGED = "converged"
    """The change came down to the tolerance."""
    LIMIT_CYCLE = "limit cycle"
    """The sweeps repeat themselves; `Solution.cycle_period` says after how many."""
    LIMITED_BY_ROUNDING = "limited by rounding"
    """The change is no more than rounding, and the tolerance is finer than that."""
    OUT_OF_ITERATIONS = "out of iterations"
    """`max_iterations` were taken."""
    OVERFLOW = "overflow"
    """Values are no longer finite."""
    AT_A_FOLD = "at a fold"
    """Two fixed points meet here, so that values have no derivative (`fixed_point`)."""
    STOPPED = "stopped"
    """The callback asked for it."""


@dataclasses.dataclass(frozen=True)
class SolveProgress:
    """The progress of a solve, passed to its callback."""

    method: str
    """The method at work; `auto` reports the one that it is trying or has chosen."""
    iterations: int
    """The number of iterations so far."""
    change: float
    """The change of the last iteration, which has to come down to the tolerance."""
    tolerance: float
    """The tolerance of the solve."""
    seconds: float
    """Wall-clock time since the solve began."""


@dataclasses.dataclass(frozen=True, eq=False)
class Solution:
    """Values under a softmax, and what is known about them."""

    q: Floats = dataclasses.field(repr=False)
    """`[S, A]`, the action values; -inf for an action that is not allowed."""
    value: Floats = dataclasses.field(repr=False)
    """`[S]`, the softmax's value of each state, with its bonus; 0 for a terminal one."""
    converged: bool
    """Did the change come down to the tolerance?"""
    status: Status
    """How the solve has ended."""
    iterations: int
    """Sweeps, or Newton's steps."""
    residual: float
    """A bound on `max |T q - q|`, where `T` is a sweep."""
    error_bound: float | None
    """A bound on the distance of `q` and `value` to the fixed point; None for Boltzmann."""
    suboptimality_bound: float
    """A bound on how far `q`, `value` and the exact value of `policy` are below the optimum."""
    method: str
    """The method used."""
    reason: str
    """Why this method."""
    softmax: Softmax
    """The softmax that was asked for."""
    seconds: float
    """Wall-clock time of the whole solve, compiling included."""
    history: Floats | None = dataclasses.field(default=None, repr=False)
    """The change of each iteration, where it was asked for."""
    allowed: Bools | None = dataclasses.field(default=None, repr=False)
    """`[S, A]`, the actions of each state; None for all."""
    state_labels: Labels = dataclasses.field(default=None, repr=False)
    """What the states are called; None for their numbers."""
    action_labels: Labels = dataclasses.field(default=None, repr=False)
    """What the actions are called; None for their numbers."""
    cycle_period: int | None = None
    """After how many sweeps the values repeat, where they do; otherwise None."""
    _sensitivity: Callable[[ArrayLike], Sensitivity] | None = dataclasses.field(
        default=None, repr=False
    )

    def vjp(self, q_bar: ArrayLike) -> Sensitivity:
        """The derivatives of `sum(q_bar * q)` with respect to all that `q` depends on.

        These are what `jax.grad` of `planning.fixed_point` gives, in NumPy's arrays, at the cost of
        one linear system. Their error is that of `q` times the curvature of the softmax, so that a
        finer `tolerance` makes them more exact. They are NaN where the solve has not converged.

        Args:
            q_bar: `[S, A]`, the weight of each action value; those of actions that cannot be taken
                do not count.

        Examples:
            How the value of the first action of the first state moves with each reward:

            >>> from mellowmax import Mellowmax
            >>> from mellowmax.mdp import two_state
            >>> from mellowmax.planning import solve
            >>> moved = solve(two_state(), Mellowmax(16.55)).vjp([[1, 0], [0, 0]])
            >>> print(moved.rewards.round(4), moved.softmax.omega.round(6))
            [[2.5288 3.5618]
             [0.     0.    ]] 0.001524
        """
        assert self._sensitivity is not None  # that of `solve` has it
        return self._sensitivity(q_bar)

    @functools.cached_property
    def policy(self) -> Floats:
        """`[S, A]`, the softmax's own policy at `q`; computed when first asked for."""
        return self.softmax.policy(self.q, where=self.allowed)

    def rows(self) -> list[tuple[str, str]]:
        """The solution in words: pairs of a name and a text, as `print` shows them."""
        return [*rows_of(self._known()), ("time", f"{self.seconds:.3g} s")]

    def __str__(self) -> str:
        return "\n".join(f"{name:14s} {text}" for name, text in self.rows())

    def fields(self) -> dict[str, Any]:
        """What `save` writes, by name: values, policy and what is known about them."""
        allowed = np.ones(self.q.shape, np.bool_) if self.allowed is None else self.allowed
        arrays = {"q": self.q, "value": self.value, "policy": self.policy, "allowed": allowed}
        labels = {"state_labels": self.state_labels, "action_labels": self.action_labels}
        arrays |= {name: given for name, given in labels.items() if given is not None}
        return arrays | self._known()

    def to_frame(self) -> DataFrame:
        """A pandas table with a row for each state and action.

        Examples:
            >>> from mellowmax import Max
            >>> from mellowmax.mdp import chain
            >>> from mellowmax.planning import solve
            >>> mdp = chain(2).with_labels(actions=["back", "on"])
            >>> print(solve(mdp, Max()).to_frame().round(2))
               state action  allowed      q  policy  value
            0      0   back     True  88.32     0.0   89.1
            1      0     on     True  89.10     1.0   89.1
            2      1   back     True  88.31     0.0   90.1
            3      1     on     True  90.10     1.0   90.1
        """
        return frame(columns(self, "value", self.value))

    def plot(self) -> Figure:
        """A Matplotlib figure: the values, the policy, and the history where it was kept."""
        return picture(self, "value", self.value, self.history)

    def _known(self) -> dict[str, Any]:
        names = ["converged", "status", "iterations", "residual", "error_bound", "method"]
        names += ["reason", "suboptimality_bound"]
        known = {name: getattr(self, name) for name in names}
        return known | {"status": _in_words(self), "softmax": str(self.softmax)}

    def save(self, path: str | Path) -> None:
        """Write values, policy and what is known about them to an `.npz` file."""
        npz.write(path, "solution", self.fields())


def read_fields(path: str | Path) -> dict[str, Any]:
    """What `Solution.save` wrote, by name.

    Raises:
        ValueError: for a file that is truncated, of another kind, or of a newer version.
    """
    with npz.reading(path, "solution", SCHEMA) as fields:
        return fields


def rows_of(fields: Mapping[str, Any]) -> list[tuple[str, str]]:
    """A solution in words, from the fields that `Solution.save` writes."""
    error = "not proved for this operator"
    if fields.get("error_bound") is not None:
        error = _at_most(fields["error_bound"])
    return [
        ("operator", fields["softmax"]),
        ("method", f"{fields['method']}: {fields['reason']}"),
        ("status", f"{fields['status']} after {fields['iterations']} iterations"),
        ("residual", f"{fields['residual']:.3g}"),
        ("error", error),
        ("below optimum", _at_most(fields["suboptimality_bound"])),
    ]


class NotConvergedError(RuntimeError):
    """A solve that did not converge; `solution` is where it stopped."""

    def __init__(self, solution: Solution | AverageSolution, tolerance: float) -> None:
        self.solution = solution
        super().__init__(
            f"{solution.method} under {solution.softmax} did not converge: "
            f"{_in_words(solution)} after {solution.iterations} iterations, "
            f"with a residual of {solution.residual:.3g} "
            f"(tolerance {tolerance:g}); `throw=False` returns it as it is"
        )


def _in_words(solution: Solution | AverageSolution) -> str:
    """The status as files and people get it, with the period of a cycle."""
    period = "" if solution.cycle_period is None else f" of period {solution.cycle_period}"
    return f"{solution.status}{period}"


def _at_most(bound: float) -> str:
    return f"{bound:.3g} at most" if math.isfinite(bound) else "unknown"
