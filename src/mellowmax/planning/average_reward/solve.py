"""The choice of a method, and what one sweep proves from where the method ended.

- Without a proof of convergence, without a matrix, and on other devices than one CPU: relative
  value iteration.
- Newton's method by a factorisation where that is quick: for a few states, or a banded matrix. By
  Gauss-Seidel sweeps where the numbers of the states have a meaning.
- For other sparse models relative value iteration, which is fast where the chain mixes quickly; if
  it takes long, Newton's method goes on.

If Newton's method does not converge, relative value iteration goes on by itself.
"""

from __future__ import annotations

import dataclasses
import time
from typing import NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from ...mdp import MDP
from ...softmax import Softmax
from ..bellman import action_values, best_values, values
from ..bounds import Margins, error_bound
from ..devices import STATES, largest, namespace, place_scalar, smallest
from ..linear import direct_form, is_numbered, swept_form
from ..loop import Run, StoppingRule, iterate
from ..problem import Model, Problem
from ..solution import NotConvergedError, Status
from .newton import Newton
from .solution import AverageSolution
from .sweeps import RelativeValueIteration
from .unichain import check_never_ends, check_one_closed_set, raise_several_gains

__all__ = ["solve_average"]

MOST_SWEEPS = 200
"""Sweeps after which Newton's method is tried."""
MOST_STEPS = 100
"""Newton's steps after which it is given up."""


def solve_average(
    mdp: MDP,
    softmax: Softmax,
    rule: StoppingRule,
    *,
    throw: bool,
    history: bool,
    mesh: Mesh,
    movable: bool,
) -> AverageSolution:
    """The gain and the bias: `solve(mdp, softmax, average=True)`, which has the details.

    With `movable`, the mesh is the default, one CPU, and main memory will do as well.
    """
    check_never_ends(mdp)
    check_one_closed_set(mdp)
    _check_moves_with_a_shift(mdp, softmax)
    with jax.enable_x64(True):
        solution = _solution(_choose(mdp, softmax, rule, mesh, movable), rule, history)
    if throw and not solution.converged:
        raise NotConvergedError(solution, rule.tolerance)
    return solution


class _Choice(NamedTuple):
    """A method, why it was chosen, and the run."""

    method: RelativeValueIteration | Newton
    reason: str
    run: Run
    problem: Problem  # where it has run


def _choose(mdp: MDP, softmax: Softmax, rule: StoppingRule, mesh: Mesh, movable: bool) -> _Choice:
    devices = _undiscounted(mdp, softmax, mesh)
    in_memory = movable and softmax.non_expansion
    sweeps, swept = RelativeValueIteration(), None
    form = direct_form(mdp) if in_memory else None
    if form is None:
        if not in_memory or mdp.successors is None:
            reason = "it needs products with the transitions alone"
            return _Choice(sweeps, reason, iterate(sweeps, devices, rule, 0.0), devices)
        if not is_numbered(mdp):
            swept = iterate(sweeps, devices, rule, 0.0, MOST_SWEEPS)
            if swept.status:
                enough = swept.status is not Status.OUT_OF_ITERATIONS
                end = "were enough" if enough else "were all there was time for"
                return _Choice(sweeps, f"{swept.iterations} sweeps {end}", swept, devices)
        form = swept_form(mdp)
    memory, newton = _undiscounted(mdp, softmax, None), Newton(form.undiscounted())
    start: float | Run = 0.0
    if swept is not None:
        start = swept._replace(state=newton.begun(memory, np.asarray(swept.state.x)))
    run = iterate(newton, memory, rule, start, MOST_STEPS)
    if run.status in (Status.CONVERGED, Status.STOPPED, Status.OUT_OF_ITERATIONS):
        return _Choice(newton, form.words, run, memory)
    run = iterate(sweeps, devices, rule, 0.0 if swept is None else swept)
    return _Choice(sweeps, "Newton's method did not converge", run, devices)


def _undiscounted(mdp: MDP, softmax: Softmax, mesh: Mesh | None) -> Problem:
    problem = Problem.of(mdp, softmax, mesh)
    discount = 1.0 if mesh is None else place_scalar(1.0, mesh)
    return dataclasses.replace(problem, model=dataclasses.replace(problem.model, discount=discount))


def _solution(choice: _Choice, rule: StoppingRule, history: bool) -> AverageSolution:
    method, reason, run, problem = choice
    mdp, softmax = problem.mdp, problem.softmax
    outputs = (problem.model.pairs, P(STATES), P(STATES), P())
    q, value, change, numbers = problem.call(_last_sweep, outputs, method.best(run.state))
    low, high, least_earned, most_possible, size = np.asarray(numbers).tolist()
    status = run.status if np.isfinite(size) else Status.OVERFLOW
    assert status is not None  # a run without a limit has ended
    if status is Status.LIMIT_CYCLE:  # a change that is at rest, see `sweeps.at_rest`
        raise_several_gains(mdp, problem.fetch(change))
    rounding = error_bound(Margins(0.0, 0.0, 0.0, 0.0, size), 1.0, mdp.n_branches)
    reference = float(problem.fetch(value)[0])
    by_pair = problem.fetch(q, -reference)
    return AverageSolution(
        gain=(low + high) / 2,
        bias=problem.fetch(value, -reference),
        q=by_pair if mdp.allowed is None else np.where(mdp.allowed, by_pair, -np.inf),
        converged=status is Status.CONVERGED,
        status=status,
        iterations=run.iterations,
        residual=(high - low) / 2,
        error_bound=(high - low) / 2 + rounding if softmax.non_expansion else None,
        suboptimality_bound=max(most_possible - min(low, least_earned), 0.0) + 2 * rounding,
        method=method.name,
        reason=reason,
        softmax=softmax,
        seconds=time.perf_counter() - rule.began,
        history=np.concatenate(run.changes) if history else None,
        allowed=mdp.allowed,
        state_labels=mdp.state_labels,
        action_labels=mdp.action_labels,
    )


def _last_sweep(
    model: Model, softmax: Softmax, x: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """`q`, its values, the change, and the numbers that the bounds follow from."""
    q = action_values(model, x)
    value = values(model, softmax, q)
    earned = value
    if not softmax.attained:
        earned = value - softmax.bonus(q, axis=model.axis, where=model.allowed)
    change = value - x
    low, high, least_earned = smallest(change), largest(change), smallest(earned - x)
    most_possible = largest(best_values(model, q) - x)
    size = largest(abs(q)) + largest(abs(x))
    return q, value, change, namespace(q).stack([low, high, least_earned, most_possible, size])


def _check_moves_with_a_shift(mdp: MDP, softmax: Softmax) -> None:
    """Raise unless the value moves with a shift of all actions, as far as the rewards show."""
    if softmax.non_expansion:
        return
    rewards = mdp.expected_rewards
    shift = 1.0 + float(np.abs(rewards).max())
    values = [softmax.value(rewards + by, where=mdp.allowed) for by in (0.0, shift)]
    moved = np.asarray(values[1] - values[0])
    wrong = ~(np.abs(moved - shift) <= 1e-9 * shift)
    if wrong.any():
        raise ValueError(
            "`softmax` must move with a shift of all action values for an average reward, "
            f"got {softmax}, which a shift of {shift:.6g} moves by {moved[wrong][0]:.6g}"
        )
