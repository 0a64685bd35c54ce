"""The result of a solve, its progress, and its error."""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from .._typing import ArrayLike, Bools, Floats
from ..mdp.labels import Labels
from ..softmax import Softmax
from .any_solution import DISCOUNTED, AnySolution

if TYPE_CHECKING:
    from .average_reward import AverageSolution
    from .sensitivity import Sensitivity

__all__ = ["NotConvergedError", "Solution", "SolveProgress", "Status", "known_of"]


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
class Solution(AnySolution):
    """Values under a softmax, and what is known about them."""

    KIND: ClassVar[str] = DISCOUNTED

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
        After a solve over several devices these find them together.

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

    def _known(self) -> dict[str, Any]:
        return known_of(self)

    def _values(self) -> tuple[str, Floats]:
        return "value", self.value


def known_of(solution: Solution | AverageSolution) -> dict[str, Any]:
    """How an iteration has come to its end, by the names of fields."""
    names = ["converged", "iterations", "residual", "method", "reason"]
    return {name: getattr(solution, name) for name in names} | {"status": _in_words(solution)}


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
