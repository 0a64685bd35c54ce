"""Iterating by a method until it ends, with a word now and then to the caller."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as Spec

from ..mdp import MDP
from ..softmax import Softmax
from . import bounds, sweeps
from .backup import (
    STATES,
    on_every_device,
    place,
    place_pairs,
    place_states,
    specifications,
)
from .iteration import HISTORY, ROUNDING, Iteration, begin
from .newton import first, newton
from .solution import Progress

__all__ = ["Callback", "Drive"]

Callback = Callable[[Progress], Any]
WORK_OF_A_CALL, WORK_OF_A_CALL_ON_AN_ACCELERATOR = 100_000_000, 5_000_000_000
"""Branches to visit in one compiled loop: about a quarter of a second, before the caller is told.
It is not measured by the clock: processes that share a model must agree."""
WORK_OF_A_STEP = {"in-place": 200, "synchronous": 1, "shifted": 1, "newton": 1}
"""What a step costs, in sweeps: in place, an entry waits for the one before it."""


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
        self.iterations = 0
        self.changes: list[npt.NDArray[np.float64]] = []

    def take(self, method: str, start: Any, limit: int | None = None) -> jax.Array:
        """Iterate by a method until there is a status, or for `limit` steps.

        Args:
            method: one of `solve`'s.
            start: what to start from: a number, `q [S, A]`, or state values on the devices.
            limit: end here without a status.

        Returns:
            `q` for sweeps in place and synchronous ones, `v` for the others.
        """
        advance, state = self._method(method, start)
        end = self.max_iterations
        if limit is not None:
            end = min(end, self.iterations + limit)
        while not self.status and self.iterations < end:
            width = min(self._width(method), end - self.iterations)
            state = advance(state, width)
            taken, change, size, period = np.asarray(state.report).tolist()
            self.iterations += int(taken)
            self.changes.append(np.asarray(state.history)[: int(taken)])
            self.status = self._judge(method, change, size, period)
        x: jax.Array = state.x
        return x

    def _width(self, method: str) -> int:
        """How many steps one call takes."""
        on_cpu = self.mesh.devices.flat[0].platform == "cpu"
        work = WORK_OF_A_CALL if on_cpu else WORK_OF_A_CALL_ON_AN_ACCELERATOR
        step = WORK_OF_A_STEP[method] * self.mdp.probabilities.size
        return max(1, min(work // step, HISTORY))

    def _method(self, method: str, start: Any) -> tuple[Any, Iteration]:
        """A function that takes an iteration some steps further, and where it begins."""
        if method == "newton":
            step = newton(self.model, self.placed, self.mesh, self.tolerance, self.greedy)
            v, q = self._state_values(start)
            return lambda state, _: step(state), begin(v, first(self.model, q))
        if method == "shifted":
            sweep, state = sweeps.shifted, begin(*self._state_values(start))
        else:
            q = self._action_values(start)
            state = begin(place_pairs(q, self.model, self.mesh))
            if not self.softmax.non_expansion:  # a copy of its own: the other's memory is reused
                copy = place_pairs(q.copy(), self.model, self.mesh)
                state = state._replace(memory=sweeps.since(copy))
            sweep = sweeps.in_place if method == "in-place" else sweeps.synchronous
        call = on_every_device(sweep, self.mesh, specifications(state), reuse=2)

        def advance(state: Iteration, width: int) -> Any:
            return call(self.model, self.placed, state, self.tolerance, np.int32(width))

        return advance, state

    def _action_values(self, start: Any) -> Any:
        """`[S, A]`, and 0 where there is no action."""
        there = ~self.mdp.terminal[:, None]
        if self.mdp.allowed is not None:
            there = there & self.mdp.allowed
        return np.where(there, start, np.zeros(self.mdp.probabilities.shape[:2]))

    def _state_values(self, start: Any) -> tuple[jax.Array, jax.Array]:
        """`v` to start from, and an array like `q`."""
        if isinstance(start, jax.Array):
            return start, jnp.zeros_like(self.model.rewards)
        outputs = (Spec(STATES), self.model.pairs)
        if isinstance(start, float):
            call = on_every_device(sweeps.from_number, self.mesh, outputs)
        else:
            call = on_every_device(sweeps.from_action_values, self.mesh, outputs)
            start = place_pairs(self._action_values(start), self.model, self.mesh)
        v, q = call(self.model, self.placed, start)
        return v, q

    def _judge(self, method: str, change: float, size: float, period: float) -> str:
        if change <= self.tolerance:
            return "converged"
        if not math.isfinite(change):
            return "overflow"
        if change <= ROUNDING * size or period == 1:
            return "limited by rounding"
        if period:
            return f"limit cycle of period {period:.0f}"
        if self.iterations >= self.max_iterations:
            return "out of iterations"
        if self.callback is not None:
            seconds = time.perf_counter() - self.began
            progress = Progress(method, self.iterations, change, self.tolerance, seconds)
            if self.callback(progress):
                return "stopped"
        return ""

    def evidence(self, x: jax.Array) -> bounds.Evidence:
        """What is known about `q` or `v`, by one more sweep."""
        outputs = (self.model.pairs, Spec(STATES), Spec())
        function = bounds.of_action_values if x.ndim == 2 else bounds.of_state_values
        q, v, numbers = on_every_device(function, self.mesh, outputs)(self.model, self.placed, x)
        return bounds.Evidence(q, v, *np.asarray(numbers).tolist())

    def continuation(self) -> float:
        """The largest probability that an episode goes on, allowing for rounding."""
        if self.model.endless:
            return 1 + 1e-12
        call = on_every_device(bounds.largest_continuation, self.mesh, Spec())
        return min(1.0, float(call(self.model)) * (1 + 1e-12))
