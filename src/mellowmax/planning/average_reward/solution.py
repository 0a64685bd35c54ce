"""The result: the gain, the bias, and what is known about them."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, ClassVar

from ..._typing import Bools, Floats
from ...mdp.labels import Labels
from ...softmax import Softmax
from ..any_solution import AVERAGE, AnySolution
from ..solution import Status, known_of

__all__ = ["AverageSolution"]


@dataclasses.dataclass(frozen=True, eq=False)
class AverageSolution(AnySolution):
    """The average reward under a softmax, and what is known about it."""

    KIND: ClassVar[str] = AVERAGE

    gain: float
    """The average reward of a step, whatever the first state."""
    bias: Floats = dataclasses.field(repr=False)
    """`[S]`, how much more a start in each state earns in total than the gain of each step,
    relative to state 0."""
    q: Floats = dataclasses.field(repr=False)
    """`[S, A]`, the same for each first action; -inf for an action that is not allowed."""
    converged: bool
    """Is the gain known to within the tolerance?"""
    status: Status
    """How the solve has ended."""
    iterations: int
    """Sweeps, or Newton's steps."""
    residual: float
    """Half the range of the change of a sweep."""
    error_bound: float | None
    """A bound on the distance of `gain` to the exact gain; None for Boltzmann."""
    suboptimality_bound: float
    """A bound on how far `gain` and the exact gain of `policy` are below the optimum."""
    method: str
    """The method used."""
    reason: str
    """Why this method."""
    softmax: Softmax
    """The softmax that was asked for."""
    seconds: float
    """Wall-clock time of the whole solve, compiling included."""
    history: Floats | None = dataclasses.field(default=None, repr=False)
    """Half the range of the change of each sweep, where it was asked for."""
    allowed: Bools | None = dataclasses.field(default=None, repr=False)
    """`[S, A]`, the actions of each state; None for all."""
    state_labels: Labels = dataclasses.field(default=None, repr=False)
    """What the states are called; None for their numbers."""
    action_labels: Labels = dataclasses.field(default=None, repr=False)
    """What the actions are called; None for their numbers."""

    cycle_period: ClassVar[None] = None

    @functools.cached_property
    def policy(self) -> Floats:
        """`[S, A]`, the softmax's own policy at `q`; computed when first asked for."""
        return self.softmax.policy(self.q, where=self.allowed)

    def _known(self) -> dict[str, Any]:
        return {"gain": self.gain, **known_of(self)}

    def _values(self) -> tuple[str, Floats]:
        return "bias", self.bias
