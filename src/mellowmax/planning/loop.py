"""The loops of a solve: one that is compiled, and one around it.

`repeat` is the compiled loop. It takes steps of a method until a step changes no value by more than
the tolerance, the method asks to stop, or a limit is reached; it can resume from the state that it
returned, and then gives the same numbers as if it had never stopped.

`iterate` is the loop around it. After each call it reads what happened, reports progress and
decides whether the solve has ended, and how. Every `Method` goes through these two loops.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from .._typing import Floats
from ..softmax import Softmax
from .bounds import EVIDENCE_SPECS, Evidence
from .devices import largest, partition_specs
from .problem import Model, Problem
from .solution import SolveProgress, Status

__all__ = [
    "ROUNDING_OF_A_CHANGE",
    "Callback",
    "Check",
    "Iteration",
    "Method",
    "Report",
    "Run",
    "State",
    "Steps",
    "StoppingRule",
    "before_the_first_step",
    "evidence_of",
    "iterate",
    "repeat",
]

STEPS_OF_A_CALL = 1024
"""The most steps of one call of the compiled loop."""
WORK_OF_A_CALL, WORK_OF_A_CALL_ON_AN_ACCELERATOR = 100_000_000, 5_000_000_000
"""The branches that one call may visit: about a quarter of a second, and then progress is reported.
It is not measured by the clock: processes that share a model must agree."""
ROUNDING_OF_A_CHANGE = 16 * float(np.finfo(np.float64).eps)
"""Changes up to this, relative to the largest value, are rounding errors."""

Callback = Callable[[SolveProgress], Any]


# The compiled loop.


class State(NamedTuple):
    """Where an iteration stands, on the devices."""

    x: jax.Array  # q [S, A], or v [S]
    record: jax.Array  # the numbers of the last call's `Report`, then the change of each step
    memory: Any  # what the method needs from step to step
    evidence: Evidence | None = None  # for the bounds at this state, where it is known


class Check(NamedTuple):
    """What a method makes of its last step."""

    stop: ArrayLike = False  # leave the loop?
    period: ArrayLike = 0  # of the cycle that the sweeps have come to; 0 for none
    correction: ArrayLike = 0  # which correction Newton's method takes next


class Report(NamedTuple):
    """What a call of the compiled loop has done, read off its state."""

    steps: int
    change: float  # of the last step: the number that has to come down to the tolerance
    size: float  # the largest absolute value
    period: int  # as in `Check`
    correction: int  # as in `Check`
    changes: Floats  # [steps], the change of each

    @classmethod
    def of(cls, state: State) -> Self:
        """Wait for a state, and read its record."""
        record = np.asarray(state.record)
        steps, change, size, period, correction = record[:_NUMBERS].tolist()
        changes = record[_NUMBERS:][: int(steps)]
        return cls(int(steps), change, size, int(period), int(correction), changes)


_NUMBERS = len(Report._fields) - 1

Steps = Callable[..., State]
"""Steps of a method: `(model, softmax, state, tolerance, limit) -> state`, by `repeat`."""


_Carry = tuple[State, jax.Array, jax.Array]
"""What the compiled loop carries: the state, how many steps were taken, and the last change."""


def before_the_first_step(x: jax.Array, memory: Any = ()) -> State:
    """A state from which `repeat` can start."""
    record = np.zeros(_NUMBERS + STEPS_OF_A_CALL)
    return State(x, record, memory)  # type: ignore[arg-type]  # the first call places it


def repeat(
    step: Callable[[State], tuple[State, jax.Array]],
    state: State,
    tolerance: ArrayLike,
    limit: ArrayLike,
    *,
    large: bool,
    check: Callable[[State, jax.Array], Check],
    taken: int = 0,
) -> State:
    """Take steps until the change is within `tolerance`, `check` says stop, or `limit` are taken.

    Args:
        step: from a state to the next one, and the size of the change.
        state: where to start or resume.
        tolerance: a change that ends the loop.
        limit: the most steps to record.
        large: take one step and make no loop? XLA on a CPU runs that of a large model faster so.
        check: what the method makes of a step, from its two results.
        taken: steps that the record has already; if there are none, at least one is taken.
    """

    def unfinished(carry: _Carry) -> jax.Array:
        state, taken, change = carry
        stop = (change <= tolerance) | check(state, change).stop
        return (taken == 0) | ((taken < limit) & ~stop)

    def advance(carry: _Carry) -> _Carry:
        state, taken, _ = carry
        new, change = step(state)
        record = jnp.asarray(state.record).at[_NUMBERS + taken].set(change)
        return new._replace(record=record), taken + 1, change

    if isinstance(state.x, np.ndarray):
        return _repeat_in_memory(step, state, float(tolerance), int(limit), check, taken)
    carry = state, jnp.int32(taken), jnp.asarray(state.record[1])
    carry = advance(carry) if large else jax.lax.while_loop(unfinished, advance, carry)
    state, steps, change = carry
    _, period, correction = check(state, change)
    numbers = (steps, change, largest(jnp.abs(state.x)), period, correction)
    head = jnp.stack([jnp.asarray(x, jnp.float64) for x in numbers])
    return state._replace(record=state.record.at[:_NUMBERS].set(head))


def _repeat_in_memory(
    step: Callable[[State], tuple[State, Any]],
    state: State,
    tolerance: float,
    limit: int,
    check: Callable[[State, Any], Check],
    taken: int,
) -> State:
    """The same loop for NumPy's arrays; it also ends where a change is not a number."""
    record = np.array(state.record)
    change = record[1]
    while taken == 0 or (taken < limit and change > tolerance and not check(state, change).stop):
        state, change = step(state)
        record[_NUMBERS + taken] = change
        taken += 1
    _, period, correction = check(state, change)
    record[:_NUMBERS] = (taken, change, abs(state.x).max(), period, correction)
    return state._replace(record=record)  # type: ignore[arg-type]  # of NumPy, as all here


# The loop around it.


class Iteration(ABC):
    """What `iterate` can run: how it starts, and its steps."""

    name: ClassVar[str]
    sweeps_of_a_step: ClassVar[int] = 1
    """What a step costs, in the time of synchronous sweeps."""

    @abstractmethod
    def start(
        self, problem: Problem, initial: float | Floats, tolerance: float, limit: np.int32
    ) -> State:
        """The first steps, at least one and at most `limit`, from a number or from `q [S, A]`."""

    @abstractmethod
    def steps(self, problem: Problem, last: Report | None) -> Steps:
        """The function that takes the next steps, given the report on the last ones."""

    def advanced(
        self,
        problem: Problem,
        state: State,
        last: Report | None,
        tolerance: float,
        limit: np.int32,
    ) -> State:
        """The state after the next steps, at most `limit`; the memory of `state` is used up."""
        steps, specs = self.steps(problem, last), partition_specs(state)
        return problem.call(steps, specs, state, tolerance, limit, donate=True)


class Method(Iteration):
    """A method of `solve`, whose states prove something."""

    @staticmethod
    @abstractmethod
    def evidence(model: Model, softmax: Softmax, state: State) -> Evidence:
        """What a state proves about its action values; compiled."""

    @staticmethod
    @abstractmethod
    def action_values(state: State) -> jax.Array:
        """`q [S, A]` of a state, to which the evidence may add a shift."""


class StoppingRule(NamedTuple):
    """When a solve ends."""

    tolerance: float
    max_iterations: int
    callback: Callback | None = None
    began: float = 0.0  # on `time.perf_counter`


class Run(NamedTuple):
    """An iteration that was run: where it stands, and how it came there."""

    state: State
    report: Report  # on the last call
    iterations: int
    changes: list[Floats]  # those of each call
    status: Status | None  # how the solve has ended; None where it can resume


def iterate(
    method: Iteration,
    problem: Problem,
    rule: StoppingRule,
    start: float | Floats | Run,
    limit: int | None = None,
) -> Run:
    """Iterate by a method until the solve ends, or for about `limit` iterations.

    Args:
        method: how.
        problem: what to solve.
        rule: when the solve ends.
        start: a number, `q [S, A]`, or a run to resume, whose state is used up.
        limit: return here without a status.
    """
    before = start.iterations if isinstance(start, Run) else 0
    end = rule.max_iterations if limit is None else min(rule.max_iterations, before + limit)
    if isinstance(start, Run):
        run = start
    else:
        first = method.start(problem, start, rule.tolerance, _limit(method, problem, end))
        run = _advanced(method, rule, first, 0, [])
    while not run.status and run.iterations < end:
        state = run.state._replace(evidence=None)
        most = _limit(method, problem, end - run.iterations)
        state = method.advanced(problem, state, run.report, rule.tolerance, most)
        run = _advanced(method, rule, state, run.iterations, run.changes)
    return run


def evidence_of(method: Method, problem: Problem, state: State) -> Evidence:
    """The evidence that a state has with it, or computed now."""
    if state.evidence is not None:
        return state.evidence
    return problem.call(method.evidence, EVIDENCE_SPECS, state)


def _limit(method: Iteration, problem: Problem, left: int) -> np.int32:
    """How many steps one call may take, of those that are left."""
    on_cpu = problem.mesh is None or problem.mesh.devices.flat[0].platform == "cpu"
    work = WORK_OF_A_CALL if on_cpu else WORK_OF_A_CALL_ON_AN_ACCELERATOR
    step = method.sweeps_of_a_step * problem.mdp.probabilities.size
    return np.int32(max(1, min(work // step, STEPS_OF_A_CALL, left)))


def _advanced(
    method: Iteration, rule: StoppingRule, state: State, iterations: int, changes: list[Floats]
) -> Run:
    """The run after a call that has led to `state`."""
    report = Report.of(state)
    iterations += report.steps
    status = _status(method, rule, report, iterations)
    return Run(state, report, iterations, [*changes, report.changes], status)


def _status(
    method: Iteration, rule: StoppingRule, report: Report, iterations: int
) -> Status | None:
    """How the solve has ended, if it has; this is where progress is reported."""
    if report.change <= rule.tolerance:
        return Status.CONVERGED
    if not math.isfinite(report.change):
        return Status.OVERFLOW
    if report.change <= ROUNDING_OF_A_CHANGE * report.size or report.period == 1:
        return Status.LIMITED_BY_ROUNDING
    if report.period:
        return Status.LIMIT_CYCLE
    if iterations >= rule.max_iterations:
        return Status.OUT_OF_ITERATIONS
    if rule.callback is not None:
        seconds = time.perf_counter() - rule.began
        progress = SolveProgress(method.name, iterations, report.change, rule.tolerance, seconds)
        if rule.callback(progress):
            return Status.STOPPED
    return None
