"""Iterating by a method until it ends, with a word now and then to the caller."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import numpy.typing as npt
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as Spec

from ..mdp import MDP
from ..softmax import Softmax
from . import bounds
from .loop import HISTORY, ROUNDING, Iteration, Record, begin
from .methods import corrected
from .methods import plain as sweeps
from .solution import Progress
from .sweep import STATES, on_every_device, place, place_pairs, place_states, specifications

__all__ = ["Callback", "Drive"]

Callback = Callable[[Progress], Any]
WORK_OF_A_CALL, WORK_OF_A_CALL_ON_AN_ACCELERATOR = 100_000_000, 5_000_000_000
"""Branches to visit in one compiled loop: about a quarter of a second, before the caller is told.
It is not measured by the clock: processes that share a model must agree."""
WORK_OF_A_STEP = {"in-place": 200, "synchronous": 1, "shifted": 1, "newton": 1}
"""What a step costs, in sweeps: in place, an entry waits for the one before it."""

STEPS = {
    "in-place": sweeps.in_place,
    "synchronous": sweeps.synchronous,
    "shifted": corrected.shifted,
}
EVIDENCE = (Spec(STATES), Spec())
"""How the values and the numbers of an evidence are spread over devices."""
PLAIN = ("in-place", "synchronous")
"""The methods whose sweeps are of action values, and not corrected."""


class Drive:
    """An MDP on its devices, a softmax, and what has happened so far."""

    def __init__(
        self,
        mdp: MDP,
        softmax: Softmax,
        mesh: Mesh,
        tolerance: float,
        max_iterations: int,
        callback: Callback | None,
    ) -> None:
        self.mdp, self.softmax, self.mesh = mdp, softmax, mesh
        self.tolerance, self.max_iterations, self.callback = tolerance, max_iterations, callback
        self.greedy = softmax.gap(mdp.n_actions) == 0
        self.model = place(mdp, mesh)
        self.placed = jax.tree.map(
            lambda x: place_states(x, mesh) if np.ndim(x) else np.float64(x), softmax
        )
        self.began = time.perf_counter()
        self.status = ""
        self.signal = 0  # of the last call
        self.known: Any = None  # a state, and the evidence for it
        self.iterations = 0
        self.changes: list[npt.NDArray[np.float64]] = []

    def take(self, method: str, start: Any, limit: int | None = None) -> Iteration:
        """Iterate by a method until there is a status, or for `limit` steps.

        Args:
            method: one of `solve`'s.
            start: what to start from: a number, `q [S, A]`, or where another method has come to.
            limit: end here without a status.

        Returns:
            Where it has come to; what it was given is used up.
        """
        end = self.max_iterations
        if limit is not None:
            end = min(end, self.iterations + limit)
        if isinstance(start, Iteration):
            state = start
        elif method in PLAIN:
            state = self._before(start)
        else:
            state = self._first(method, start, end)
        while not self.status and self.iterations < end:
            call = on_every_device(self._steps(method), self.mesh, specifications(state), reuse=2)
            state = call(self.model, self.placed, state, self.tolerance, self._width(method, end))
            self._record(method, state)
        return state

    def _width(self, method: str, end: int) -> Any:
        """How many steps the next call may take."""
        on_cpu = self.mesh.devices.flat[0].platform == "cpu"
        work = WORK_OF_A_CALL if on_cpu else WORK_OF_A_CALL_ON_AN_ACCELERATOR
        step = WORK_OF_A_STEP[method] * self.mdp.probabilities.size
        return np.int32(max(1, min(work // step, HISTORY, end - self.iterations)))

    def _steps(self, method: str) -> Any:
        """A function that takes steps of a method."""
        if method == "newton":
            return corrected.newton(self.signal, self.greedy)
        return STEPS[method]

    def _before(self, start: Any) -> Iteration:
        """Before the first of plain sweeps."""
        q = self._action_values(start)
        state = begin(place_pairs(q, self.model, self.mesh))
        if not self.softmax.non_expansion:  # a copy of its own: the other's memory is reused
            copy = place_pairs(q.copy(), self.model, self.mesh)
            state = state._replace(memory=sweeps.since(copy))
        return state

    def _first(self, method: str, start: Any, end: int) -> Iteration:
        """The first sweep of a method with corrections.

        For a small model a loop of steps follows in the same program, but not where Newton's method
        chooses its correction at each step.
        """
        first: Any = corrected.from_number
        if not isinstance(start, float):
            first = corrected.from_action_values
            start = place_pairs(self._action_values(start), self.model, self.mesh)
        state: Iteration
        outputs = corrected.outputs(self.model)
        if self.model.large or (method == "newton" and not self.model.endless):
            state = on_every_device(first, self.mesh, outputs)(self.model, self.placed, start)
        else:
            whole = corrected.at_once(first, self._steps(method))
            call = on_every_device(whole, self.mesh, (outputs, EVIDENCE))
            width = self._width(method, end)
            self.known = call(self.model, self.placed, start, self.tolerance, width)
            state = self.known[0]
        self._record(method, state)
        return state

    def _action_values(self, start: Any) -> Any:
        """`[S, A]`, and 0 where there is no action."""
        there = ~self.mdp.terminal[:, None]
        if self.mdp.allowed is not None:
            there = there & self.mdp.allowed
        return np.where(there, start, np.zeros(self.mdp.probabilities.shape[:2]))

    def _record(self, method: str, state: Iteration) -> None:
        """What the last call has come to."""
        record = Record.of(state)
        self.iterations += record.taken
        self.changes.append(record.changes)
        self.signal = record.signal
        self.status = self._judge(method, record.change, record.size)

    def _judge(self, method: str, change: float, size: float) -> str:
        period = self.signal if method in PLAIN else 0
        if change <= self.tolerance:
            return "converged"
        if not math.isfinite(change):
            return "overflow"
        if change <= ROUNDING * size or period == 1:
            return "limited by rounding"
        if period:
            return f"limit cycle of period {period}"
        if self.iterations >= self.max_iterations:
            return "out of iterations"
        if self.callback is not None:
            seconds = time.perf_counter() - self.began
            progress = Progress(method, self.iterations, change, self.tolerance, seconds)
            if self.callback(progress):
                return "stopped"
        return ""

    def evidence(self, state: Iteration) -> bounds.Evidence:
        """What is known about where an iteration has come to."""
        by_sweep = isinstance(state.memory, corrected.Sweep)
        if self.known is None or self.known[0] is not state:
            function = corrected.evidence if by_sweep else sweeps.evidence
            call = on_every_device(function, self.mesh, EVIDENCE)
            self.known = state, call(self.model, self.placed, state)
        value, numbers = self.known[1]
        q = state.memory.q if by_sweep else state.x
        return bounds.Evidence(q, value, *np.asarray(numbers).tolist())

    def continuation(self) -> float:
        """The largest probability that an episode goes on, allowing for rounding."""
        if self.model.endless:
            return 1 + 1e-12
        call = on_every_device(bounds.largest_continuation, self.mesh, Spec())
        return min(1.0, float(call(self.model)) * (1 + 1e-12))
