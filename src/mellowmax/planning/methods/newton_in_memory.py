"""Newton's method in main memory, by NumPy and SciPy, with the form of matrix that suits the MDP.

It is for one CPU. The steps are those of `newton`, but the linear system `(I - J) d = F` is solved
with the factorised matrix (`linear`), in double precision, and nothing is compiled: a small model
is solved in the time in which a program would be called.

With an exact solution Newton's method converges from anywhere if the operator is convex in all
states or concave in all, as all here are but Boltzmann's. In a game some states are convex and
others concave, and a step can lead away. So where it takes long, a step from `x` becomes the fixed
point of the lesser of two sweeps (`_lesser`), `T` itself and its linear model at `x`: the linear
one in convex states, `T` in concave ones. Newton's method finds it, as all are concave then. Where
no weight is negative it is never above the fixed point of `T`, and never below a sweep from the
step before, so that these steps converge. For maxima and minima that is the algorithm of Hoffman
and Karp (1966), where one player answers the other.

Where a solution is not exact a step can lead away all the same. So sweeps follow such steps: one
after the first, two after the second, and so on. Sweeps of a non-expansion converge, and so do
steps with enough of them.

Some sweeps come before the first factorisation, as long as they mend the actions of a few states:
in an inventory those at the edges, where each step would mend one more.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np
from jax import Array
from jax.typing import ArrayLike

from ..._typing import Floats, Integers
from ...softmax import Max, Softmax
from ..bellman import action_values, values
from ..greedy import greedy_weights
from ..linear import Form
from ..loop import Check, Report, State, Steps, repeat
from ..problem import Model, Problem
from .corrected_sweep import CorrectedSweeps, LastSweep, has_rounded, shifted, swept

__all__ = ["NewtonInMemory"]

PATIENCE = 20
"""Steps that are plain, and that no sweep follows. Few models under the maximum take as many."""
MOST_ANSWERS = 50
"""The most steps to the lesser fixed point."""
MOST_SWEEPS = 10
"""The most sweeps before the first step."""
FEW = 1 / 8
"""They go on where the best action has changed in no more than this part of the states."""


@dataclasses.dataclass(frozen=True)
class NewtonInMemory(CorrectedSweeps):
    """Newton's method with a matrix."""

    form: Form

    name = "newton"
    sweeps_of_a_step = 10

    def can_loop(self, model: Model) -> bool:
        """There are no programs here in which to loop."""
        return False

    def steps(self, problem: Problem, last: Report | None) -> Steps:
        """Newton's steps, whatever came before."""
        return functools.partial(_steps, self.form)


def _settled(model: Model, softmax: Softmax, state: State) -> State:
    """The state after sweeps while the best action changes in a few states, and not in more.

    A sweep costs less than a step, and a step with the wrong actions is worth no more.
    """
    best = _best_action(model, state)
    for _ in range(MOST_SWEEPS):
        x, before = shifted(model, state), best
        slow = state.memory.summary.slow
        state, _ = swept(model, softmax, state, x, action_values(model, x), np.inf, slow)
        best = _best_action(model, state)
        if not 0 < np.count_nonzero(best != before) <= FEW * len(best):
            break
    return state


def _best_action(model: Model, state: State) -> Integers:
    q: Any = state.memory.q
    if model.allowed is not None:
        q = np.where(model.allowed, q, -np.inf)
    return q.argmax(1)


def _weights(model: Model, softmax: Softmax, q: Any) -> Floats | Integers:
    """The weights in the derivative of the softmax, in the form that a matrix is made of."""
    if isinstance(softmax, Max):
        allowed: Any = model.allowed
        return greedy_weights(q, allowed)
    return np.asarray(softmax.gradient(q, axis=model.axis, where=model.allowed))


def _lesser(form: Form, model: Model, softmax: Softmax, state: State, tolerance: float) -> Any:
    """The fixed point of the lesser of the sweep `T` and of its linear model at `x`."""
    last: Any = state.memory
    x, of_linear = state.x, np.asarray(softmax.gradient(last.q, axis=1, where=model.allowed))
    for _ in range(MOST_ANSWERS):
        q: Any = action_values(model, x)
        linear = state.x + last.change + (of_linear * (q - last.q)).sum(1)
        exact: Any = values(model, softmax, q)
        change = np.minimum(linear, exact) - x
        if not np.abs(change).max() > tolerance:
            break
        weights = np.asarray(softmax.gradient(q, axis=1, where=model.allowed))
        chosen = np.where((linear < exact)[:, None], of_linear, weights)
        x = x + form.factors(chosen).solve(change)
    return x


def _steps(
    form: Form,
    model: Model,
    softmax: Softmax,
    state: State,
    tolerance: ArrayLike,
    limit: ArrayLike,
    taken: int = 0,
) -> State:
    def step(state: State) -> tuple[State, Array]:
        if form.exact and state.memory.summary.slow == (not model.endless):  # the first step
            state = _settled(model, softmax, state)
        last: LastSweep = state.memory
        steps = int(last.summary.slow) + 1
        change: Any = last.change  # a NumPy array, as all are here
        x: Any
        if steps <= PATIENCE:
            x = state.x + form.factors(_weights(model, softmax, last.q)).solve(change)
        else:
            x = _lesser(form, model, softmax, state, float(np.asarray(tolerance)))
        for _ in range(steps - PATIENCE):
            state, _ = swept(model, softmax, state, x, action_values(model, x), np.inf, 0.0)
            x = shifted(model, state)
        q = action_values(model, x)
        return swept(model, softmax, state, x, q, np.inf, float(steps))

    def check(state: State, change: Array) -> Check:
        return Check(stop=has_rounded(state, change))

    return repeat(step, state, tolerance, limit, large=False, check=check, taken=taken)
