"""Newton's method for the gain and the bias; for the maximum it is Howard's policy iteration.

At `h` the sweep `T h = f(r + P h)` has the derivative `W P`, where `W` is the gradient of the
operator: weights of the actions, which add up to 1 where `f` moves with a shift. So `W P` is a
stochastic matrix, and Newton's step `d` and the gain `g` solve, with the change `F = T h - h`,

    (I - W P) d + g = F,

where `d` is determined up to a constant, and `I - W P` has no inverse. With an end in each step, of
a small probability `e`, it has one, and that solves for both at once:

    (I - (1 - e) W P) d = F - c    has    d = g / e + (the d from above) + O(e),

for any constant `c`, by which `g` gets smaller. The first term is the same for all states, and does
not matter: no state has to be singled out to have the value 0, a bad choice if the weights hardly
ever lead there. The last term makes the next step necessary, unless `e` is small compared with the
rate at which the chain forgets where it began.

The first steps have a larger `e`. If weights come to several sets of states for good, `g` is
different in each, and `d` is larger the smaller `e` is. Then the next weights leave the sets that
earn less, if they can; a very large `d` would drown the other differences of the values. So `e`
gets smaller only when the steps have come to what is best with those ends. Where a reward is far
away, weights take many steps to find it.

For convex operators, such as the maximum and mellowmax, and for concave ones the steps converge if
the systems are solved well enough. Whatever comes out, its bounds follow from one sweep, as
everywhere here; where the steps do not converge, relative value iteration is used.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.typing import ArrayLike

from ..._typing import Floats
from ...softmax import Softmax
from ..bellman import action_values, values
from ..linear import Form
from ..loop import Check, Iteration, Report, State, Steps, before_the_first_step, repeat
from ..problem import Model, Problem
from .sweeps import half_range

__all__ = ["Newton"]

FIRST_END, LAST_END = 1e-2, 1e-10
"""The probability `e` of an end in the first step, and the least one. It becomes a tenth of what it
was when the steps have settled. With the last one, rounding leaves 6 digits of `d`."""
SETTLED = 2.0
"""Values that are exact but for the ends change by `e` times half their range. Steps have settled
if the change is no more than this many times that."""
LEFT = 1e-4
"""What a solution may leave of the right side: more than that grows with `1 / e`."""
ASTRAY = 1e6
"""A step has gone astray if it makes the change this many times as large as the smallest so far."""


class _LastSweep(NamedTuple):
    """The sweep from `x`, and the best so far."""

    q: Any  # [S, A], r + P x
    change: Any  # [S], F = f(q) - x
    best: Any  # [S], the `x` whose change has the smallest range
    least: float  # half of that
    end: float  # `e` of the next step


@dataclasses.dataclass(frozen=True)
class Newton(Iteration):
    """Newton's method in main memory, by NumPy and SciPy."""

    form: Form
    """The form of the undiscounted matrix."""

    name = "newton"
    sweeps_of_a_step = 10

    def start(
        self, problem: Problem, initial: float | Floats, tolerance: float, limit: np.int32
    ) -> State:
        """The first sweep, from equal values."""
        return self.begun(problem, np.full(problem.mdp.n_states, initial))

    def begun(self, problem: Problem, x: ArrayLike) -> State:
        """The state after the first sweep, from the values `x [S]`."""
        state: State = problem.call(_first, None, np.asarray(x))
        return state

    def best(self, state: State) -> Any:
        """The best values so far, `[S]`."""
        return state.memory.best

    def steps(self, problem: Problem, last: Report | None) -> Steps:
        """Newton's steps, whatever came before."""
        return functools.partial(_steps, self.form)


def _first(model: Model, softmax: Softmax, x: jax.Array) -> State:
    def step(state: State) -> tuple[State, Any]:
        return _swept(model, softmax, state, x, np.inf, FIRST_END)

    state = before_the_first_step(x)
    return repeat(step, state, 0.0, 1, large=False, check=_no_check)


def _steps(
    form: Form,
    model: Model,
    softmax: Softmax,
    state: State,
    tolerance: ArrayLike,
    limit: ArrayLike,
) -> State:
    def step(state: State) -> tuple[State, Any]:
        last: _LastSweep = state.memory
        weights = softmax.gradient(last.q, axis=model.axis, where=model.allowed)
        change = last.change - (last.change.max() + last.change.min()) / 2
        system = form.factors((1 - last.end) * np.asarray(weights))
        x = state.x + system.solve(change, left=LEFT)
        return _swept(model, softmax, state, x - (x.max() + x.min()) / 2, last.least, last.end)

    return repeat(step, state, tolerance, limit, large=False, check=_no_check)


def _swept(
    model: Model, softmax: Softmax, state: State, x: jax.Array, least: float, end: float
) -> tuple[State, Any]:
    """The state after a sweep from `x`, and half the range of its change."""
    q: Any = action_values(model, x)
    change: Any = values(model, softmax, q) - x
    left = float(half_range(x, change))
    best = x if left < least else state.memory.best
    if left <= SETTLED * end * np.ptp(x) / 2:
        end = max(end / 10, LAST_END)
    memory = _LastSweep(q, change, best, min(left, least), end)
    return state._replace(x=x, memory=memory), left if left < ASTRAY * least else np.inf


def _no_check(state: State, change: jax.Array) -> Check:
    return Check()
