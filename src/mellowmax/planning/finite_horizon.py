"""A finite horizon: the values of every step, by backward induction.

After the last step a state is worth what `final` says. Before it, a sweep gives the action values
and the softmax the state values, and so on back to the first step:

    q_t = r_t + discount_t * P_t v_(t + 1),    v_t = f_t(q_t),    v_T = final.

Nothing has to converge, and the discount may be 1. Rewards, transitions, actions, discounts and
softmaxes may differ from step to step.

**The bounds** add up in the same way: what a step adds, and the discount times the bound of the
steps after it. A step adds its gap, how far `f_t` is below the maximum at `q_t`, to how far the
values are below the optimum; its largest bonus to how far the policy's earnings are below the
values; and the rounding of a sweep to how far rounding has moved the values.

References:
    Puterman (2005), Markov decision processes, chapter 4.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Sequence
from typing import Any, ClassVar

import jax
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from .._common import checks
from .._typing import ArrayLike, Bools, Floats
from ..mdp import MDP
from ..mdp.labels import Labels
from ..mdp.operator import Operator
from ..softmax import Max, Softmax
from .any_solution import BY_TIME, AnySolution
from .arguments import check_callback, check_softmax, mesh_of, of_each_step
from .bellman import action_values, values, worth
from .bounds import Margins, error_bound
from .devices import STATES, largest, namespace, place_array
from .loop import Callback
from .problem import Model, Problem
from .solution import SolveProgress

__all__ = ["FiniteHorizonSolution", "backward_induction"]

NAME = "backward induction"
SECONDS_BETWEEN_REPORTS = 0.25


@dataclasses.dataclass(frozen=True, eq=False)
class FiniteHorizonSolution(AnySolution):
    """The values and policies of every step, and what is known about them.

    Time runs from 0, before the first step, to the horizon `T`, after the last.
    """

    KIND: ClassVar[str] = BY_TIME

    q: Floats = dataclasses.field(repr=False)
    """`[T, S, A]`, the action values of each step; -inf for an action that is not allowed."""
    value: Floats = dataclasses.field(repr=False)
    """`[T + 1, S]`, the value of each state at each time; the last row is what it is worth at the
    end."""
    error_bound: float | None
    """A bound on how far rounding has moved `q` and `value`; None for Boltzmann."""
    suboptimality_bound: float
    """A bound on how far `q`, `value` and the exact value of `policy` are below the optimum."""
    softmax: Softmax | Sequence[Softmax]
    """The softmax that was asked for, or that of each step."""
    seconds: float
    """Wall-clock time of the whole solve, compiling included."""
    allowed: Bools | None = dataclasses.field(default=None, repr=False)
    """`[T, S, A]`, the actions of each state at each step; None for all."""
    state_labels: Labels = dataclasses.field(default=None, repr=False)
    """What the states are called; None for their numbers."""
    action_labels: Labels = dataclasses.field(default=None, repr=False)
    """What the actions are called; None for their numbers."""

    @property
    def horizon(self) -> int:
        """The number of steps."""
        return len(self.q)

    @functools.cached_property
    def policy(self) -> Floats:
        """`[T, S, A]`, the softmax's own policy at each step; computed when first asked for."""
        if isinstance(self.softmax, Softmax):
            policy = self.softmax.policy(self.q, where=self.allowed)
            return np.broadcast_to(policy, self.q.shape)  # a fixed policy is the same at each step
        masks = [None] * self.horizon if self.allowed is None else self.allowed
        steps = zip(self.softmax, self.q, masks, strict=True)
        return np.stack([softmax.policy(q, where=mask) for softmax, q, mask in steps])

    def _known(self) -> dict[str, Any]:
        return {}

    def _values(self) -> tuple[str, Floats]:
        return "value", self.value


def backward_induction(
    mdp: MDP | Sequence[MDP],
    softmax: Softmax | Sequence[Softmax],
    horizon: int,
    *,
    final: ArrayLike = 0.0,
    callback: Callback | None = None,
    mesh: Mesh | None = None,
) -> FiniteHorizonSolution:
    """The values of `horizon` steps: `solve(mdp, softmax, horizon=horizon)`, which has the details.

    Examples:
        An asset is sold or kept, and its price rises from 1 to 3, the next price with probability
        0.5. At the end it is worth its price:

        >>> from mellowmax import Max
        >>> prices = [1.0, 2.0, 3.0]
        >>> keep = [[0.5, 0.5, 0.0, 0.0], [0.0, 0.5, 0.5, 0.0], [0.0, 0.0, 1.0, 0.0]]
        >>> sold = [0.0, 0.0, 0.0, 1.0]
        >>> transitions = [[row, sold] for row in [*keep, sold]]
        >>> rewards = [[0.0, price] for price in [*prices, 0.0]]
        >>> mdp = MDP.from_arrays(transitions, rewards, 0.9)
        >>> solution = backward_induction(mdp, Max(), 2, final=[*prices, 0.0])
        >>> print(solution.value[0].round(2), solution.policy[0].argmax(1))
        [1.62 2.36 3.   0.  ] [0 0 1 0]
    """
    began = time.perf_counter()
    horizon = checks.whole("horizon", horizon, 1)
    mdps: list[MDP] = of_each_step("mdp", mdp, MDP, "an MDP", horizon)
    rule = "a Softmax such as Mellowmax(5.0)"
    softmaxes: list[Softmax] = of_each_step("softmax", softmax, Softmax, rule, horizon)
    check_callback(callback)
    shape = mdps[0].probabilities.shape[:2]
    q, value = np.empty((horizon, *shape)), np.empty((horizon + 1, shape[0]))
    margins = np.zeros((horizon, 2))
    reported = began
    with jax.enable_x64(True), np.errstate(all="ignore"):
        problems = _problems(mdps, softmaxes, mesh)
        value[horizon] = _final(final, mdps[-1])
        devices = problems[-1].mesh
        v: Any = value[horizon] if devices is None else place_array(value[horizon], devices)
        for t in reversed(range(horizon)):
            problem = problems[t]
            if devices is None:
                q[t], v, numbers = _step(problem.model, problem.placed_softmax, v)
                value[t] = v
            else:
                outputs = (problem.model.pairs, P(STATES), P())
                of_pairs, v, numbers = problem.call(_step, outputs, v)
                q[t], value[t] = problem.fetch(of_pairs), problem.fetch(v)
            if numbers is not None:
                margins[t] = numbers
            if callback is None:
                continue
            now = time.perf_counter()
            if now >= reported + SECONDS_BETWEEN_REPORTS:
                reported = now
                change = float(np.abs(value[t] - value[t + 1]).max())
                if callback(SolveProgress(NAME, horizon - t, change, 0.0, now - began)):
                    break
    error, loss = _bounds(mdps[t:], margins[t:], value[t + 1 :])
    allowed = _allowed(mdps)
    proved = all(pair.non_expansion for pair in softmaxes)
    return FiniteHorizonSolution(
        q=q[t:] if allowed is None else np.where(allowed[t:], q[t:], -np.inf),
        value=value[t:],
        error_bound=error if proved else None,
        suboptimality_bound=loss,
        softmax=softmax if isinstance(softmax, Softmax) else softmaxes[t:],
        seconds=time.perf_counter() - began,
        allowed=None if allowed is None else allowed[t:],
        state_labels=mdps[0].state_labels,
        action_labels=mdps[0].action_labels,
    )


def _problems(
    mdps: Sequence[MDP], softmaxes: Sequence[Softmax], mesh: Mesh | None
) -> list[Problem]:
    """The problem of each step, checked; on one CPU in main memory, where nothing is compiled."""
    shape = mdps[0].probabilities.shape[:2]
    devices: Mesh | None = mesh_of(mesh)
    assert devices is not None
    operators = any(isinstance(mdp.probabilities, Operator) for mdp in mdps)
    if mesh is None and not operators and devices.devices.flat[0].platform == "cpu":
        devices = None
    known: dict[tuple[int, int], Problem] = {}
    result = []
    for t, (mdp, softmax) in enumerate(zip(mdps, softmaxes, strict=True)):
        pair = id(mdp), id(softmax)
        if pair not in known:
            if mdp.probabilities.shape[:2] != shape:
                rule = f"`mdp` must have {shape[0]} states and {shape[1]} actions at every step"
                raise ValueError(f"{rule}, got {mdp.n_states} and {mdp.n_actions} at step {t}")
            check_softmax(softmax, mdp)
            known[pair] = Problem.of(mdp, softmax, devices)
        result.append(known[pair])
    return result


def _step(
    model: Model, softmax: Softmax, after: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array | None]:
    """`q` and `v` from the values after a step, the gap and the largest bonus; None for 0 and 0."""
    q = action_values(model, after)
    v = values(model, softmax, q)
    if isinstance(softmax, Max):
        return q, v, None
    xp = namespace(after)
    best = q if model.allowed is None else xp.where(model.allowed, q, -xp.inf)
    gap = xp.maximum(largest(best.max(axis=model.axis) - v), 0.0)
    bonus = xp.zeros_like(gap)
    if not softmax.attained:
        paid = softmax.bonus(q, axis=model.axis, where=model.allowed)
        bonus = xp.maximum(largest(worth(softmax, paid, model.terminal)), 0.0)
    return q, v, xp.stack([gap, bonus])


def _bounds(mdps: Sequence[MDP], margins: Floats, after: Floats) -> tuple[float, float]:
    """How far rounding can have moved values, and how far values and policies are below the best.

    Args:
        mdps: that of each step.
        margins: `[T, 2]`, the gap and the largest bonus of each.
        after: `[T, S]`, the values after each.
    """
    most = max(float(np.abs(mdp.expected_rewards).max()) for mdp in {*mdps})
    size = most + 2 * float(np.abs(after).max())  # the values, and a bound on `abs(q)`
    branches = max(mdp.n_branches for mdp in mdps)
    rounded = error_bound(Margins(0.0, 0.0, 0.0, 0.0, size), 1.0, branches)
    below = unearned = rounding = loss = error = 0.0
    for mdp, (gap, bonus) in zip(reversed(mdps), reversed(margins.tolist()), strict=True):
        rounding = rounded + mdp.discount * rounding
        below = gap + mdp.discount * below
        unearned = bonus + mdp.discount * unearned
        error, loss = max(error, rounding), max(loss, below + unearned + 2 * rounding)
    return error, loss


def _final(final: ArrayLike, mdp: MDP) -> Floats:
    """`[S]`, what each state is worth at the end; a terminal state is worth 0."""
    array = checks.numbers("final", final)
    if array.shape not in ((), (mdp.n_states,)):
        raise ValueError(
            f"`final` must be a number or have the shape ({mdp.n_states},), got {array.shape}"
        )
    if array.ndim == 0:
        checks.real("final", float(array))
    else:
        checks.finite("final", array)
        wrong = np.flatnonzero(mdp.terminal & (array != 0))
        if wrong.size:
            got, state = array[wrong[0]], mdp.name_of_state(int(wrong[0]))
            raise ValueError(f"`final` must be 0 where terminal, got {got:.10g} in {state}")
    return np.where(mdp.terminal, 0.0, array)


def _allowed(mdps: Sequence[MDP]) -> Bools | None:
    """`[T, S, A]`, the actions at each step; None where all are allowed."""
    shape = (len(mdps), *mdps[0].probabilities.shape[:2])
    if all(mdp.allowed is mdps[0].allowed for mdp in mdps):
        return None if mdps[0].allowed is None else np.broadcast_to(mdps[0].allowed, shape)
    return np.stack(
        [np.ones(shape[1:], np.bool_) if mdp.allowed is None else mdp.allowed for mdp in mdps]
    )
