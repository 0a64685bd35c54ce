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
from . import bounds, sweeps
from .backup import (
    STATES,
    on_every_device,
    place,
    place_pairs,
    place_states,
    specifications,
    values,
)
from .iteration import HISTORY, Iteration, begin
from .newton import newton, no_forecast, policy_iteration
from .solution import Progress

__all__ = ["Callback", "Drive"]

Callback = Callable[[Progress], Any]
WORK_OF_A_CALL = {"cpu": 100_000_000}
WORK_OF_A_CALL_ELSEWHERE = 5_000_000_000
"""Branches to visit in one compiled loop: about a quarter of a second, before the caller is told.
It is not measured by the clock: processes that share a model must agree."""
WORK_OF_A_STEP = {"in-place": 200, "synchronous": 1, "shifted": 1, "newton": 5}
"""What a step costs, in sweeps: in place, an entry waits for the one before it."""
ROUNDING = 16 * float(np.finfo(np.float64).eps)
"""Changes of this size, relative to the values, are rounding."""


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
        step, state = self._method(method, start)
        call = on_every_device(step, self.mesh, specifications(state))
        while not self.status:
            width = min(limit or self._width(method), self.max_iterations - self.iterations)
            state = call(self.model, self.placed, state, self.tolerance, np.int32(width))
            taken = int(state.taken)
            self.iterations += taken
            self.changes.append(np.asarray(state.history)[:taken])
            self.status = self._judge(method, state)
            if limit:
                break
        x: jax.Array = state.x
        return x

    def _width(self, method: str) -> int:
        """How many steps one call takes."""
        platform = self.mesh.devices.flat[0].platform
        work = WORK_OF_A_CALL.get(platform, WORK_OF_A_CALL_ELSEWHERE)
        step = WORK_OF_A_STEP[method] * self.mdp.probabilities.size
        return max(1, min(work // step, HISTORY))

    def _method(self, method: str, start: Any) -> tuple[Any, Iteration]:
        if method in ("in-place", "synchronous"):
            q = place_pairs(self._action_values(start), self.model, self.mesh)
            memory = () if self.softmax.non_expansion else sweeps.since(q)
            return sweeps.in_place if method == "in-place" else sweeps.synchronous, begin(q, memory)
        v = start if isinstance(start, jax.Array) else self._state_values(start)
        if method == "shifted":
            return sweeps.shifted, begin(v)
        return policy_iteration if self.greedy else newton, begin(v, no_forecast())

    def _action_values(self, start: Any) -> Any:
        """`[S, A]`, and 0 where there is no action."""
        there = ~self.mdp.terminal[:, None]
        if self.mdp.allowed is not None:
            there = there & self.mdp.allowed
        return np.where(there, start, np.zeros(self.mdp.probabilities.shape[:2]))

    def _state_values(self, start: Any) -> jax.Array:
        if isinstance(start, float):
            return place_states(np.where(self.mdp.terminal, 0.0, start), self.mesh)
        q = place_pairs(self._action_values(start), self.model, self.mesh)
        call = on_every_device(values, self.mesh, Spec(STATES))
        v: jax.Array = call(self.model, self.placed, q)
        return v

    def _judge(self, method: str, state: Iteration) -> str:
        change, size = float(state.change), float(state.size)
        if change <= self.tolerance:
            return "converged"
        if int(state.period):
            return f"limit cycle of period {int(state.period)}"
        if not math.isfinite(change):
            return "overflow"
        if change <= ROUNDING * size:
            return "limited by rounding"
        if self.iterations >= self.max_iterations:
            return "out of iterations"
        if self.callback is not None:
            seconds = time.perf_counter() - self.began
            progress = Progress(method, self.iterations, change, self.tolerance, seconds)
            if self.callback(progress):
                return "stopped by the callback"
        return ""

    def evidence(self, x: jax.Array) -> bounds.Evidence:
        """What is known about `q` or `v`, by one more sweep."""
        pairs = Spec(None, STATES) if self.model.axis == 0 else Spec(STATES)
        outputs = bounds.Evidence(pairs, Spec(STATES), *[Spec()] * 4)
        function = bounds.of_action_values if x.ndim == 2 else bounds.of_state_values
        evidence: bounds.Evidence = on_every_device(function, self.mesh, outputs)(
            self.model, self.placed, x
        )
        return evidence

    def continuation(self) -> float:
        """The largest probability that an episode goes on, allowing for rounding."""
        if self.model.endless:
            return 1 + 1e-12
        call = on_every_device(bounds.largest_continuation, self.mesh, Spec())
        return min(1.0, float(call(self.model)) * (1 + 1e-12))
