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
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from .._common import checks
from .._typing import ArrayLike, Bools, Floats
from ..mdp import MDP
from ..mdp.labels import Labels
from ..softmax import Softmax
from .arguments import check_callback, check_softmax, mesh_of, of_each_step
from .bellman import action_values, values, worth
from .bounds import Margins, error_bound
from .devices import STATES, largest, place_array
from .loop import Callback
from .picture import picture
from .problem import Model, Problem
from .solution import SolveProgress
from .table import columns, frame

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

__all__ = ["FiniteHorizonSolution", "backward_induction"]

NAME = "backward induction"
SECONDS_BETWEEN_REPORTS = 0.25


@dataclasses.dataclass(frozen=True, eq=False)
class FiniteHorizonSolution:
    """The values and policies of every step, and what is known about them.

    Time runs from 0, before the first step, to the horizon `T`, after the last.
    """

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

    def to_frame(self) -> DataFrame:
        """A pandas table with a row for each step, state and action."""
        return frame(columns(self, "value", self.value[:-1]))

    def plot(self) -> Figure:
        """A Matplotlib figure: the values and the policy by time."""
        return picture(self, "value", self.value)


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
    shape = mdps[0].probabilities.shape[:2]
    for t, (one, pair) in enumerate(zip(mdps, softmaxes, strict=True)):
        if one.probabilities.shape[:2] != shape:
            rule = f"`mdp` must have {shape[0]} states and {shape[1]} actions at every step"
            raise ValueError(f"{rule}, got {one.n_states} and {one.n_actions} at step {t}")
        check_softmax(pair, one)
    check_callback(callback)

    q, value = np.empty((horizon, *shape)), np.empty((horizon + 1, shape[0]))
    value[horizon] = _final(final, mdps[-1])
    below = unearned = rounding = loss = error = 0.0
    reported = began
    with jax.enable_x64(True):
        mesh = mesh_of(mesh)
        v = place_array(value[horizon], mesh)
        for t in reversed(range(horizon)):
            problem = Problem.of(mdps[t], softmaxes[t], mesh)
            outputs = (problem.model.pairs, P(STATES), P())
            of_pairs, v, numbers = problem.call(_step, outputs, v)
            q[t], value[t] = problem.fetch(of_pairs), problem.fetch(v)
            gap, bonus, size = np.asarray(numbers).tolist()
            margins, discount = Margins(0.0, 0.0, 0.0, gap, size), mdps[t].discount
            rounding = error_bound(margins, 1.0, mdps[t].n_branches) + discount * rounding
            below = max(gap, 0.0) + discount * below
            unearned = bonus + discount * unearned
            error, loss = max(error, rounding), max(loss, below + unearned + 2 * rounding)
            now = time.perf_counter()
            if callback is not None and now >= reported + SECONDS_BETWEEN_REPORTS:
                reported = now
                change = float(np.abs(value[t] - value[t + 1]).max())
                progress = SolveProgress(NAME, horizon - t, change, 0.0, now - began)
                if callback(progress):
                    break
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


def _step(
    model: Model, softmax: Softmax, after: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """`q` and `v` from the values after a step, and the numbers that the bounds follow from."""
    q = action_values(model, after)
    v = values(model, softmax, q)
    best = q if model.allowed is None else jnp.where(model.allowed, q, -jnp.inf)
    gap = largest(jnp.max(best, axis=model.axis) - v)
    bonus = jnp.zeros_like(gap)
    if not softmax.attained:
        paid = softmax.bonus(q, axis=model.axis, where=model.allowed)
        bonus = largest(worth(softmax, paid, model.terminal))
    size = largest(jnp.abs(q)) + largest(jnp.abs(after))
    return q, v, jnp.stack([gap, jnp.maximum(bonus, 0.0), size])


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
