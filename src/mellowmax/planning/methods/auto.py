"""The choice of a method: `method="auto"`.

- Without a proof of convergence, synchronous sweeps: they show what repeated sweeps come to.
- Where no episode ends and the softmax is not the maximum, a trial of some shifted sweeps. If at
  the rate of the last two the tolerance is near, they are resumed; if not, Newton's method resumes
  from where they stopped. No trial is made where Newton's method is known to suit.
- Otherwise Newton's method.

On a CPU, and unless a mesh was asked for, Newton's method runs in main memory (`linear`):

- for a few states, or a banded matrix, by a factorisation;
- for other sparse models by Gauss-Seidel sweeps, and under the maximum only if a sweep is nearly
  exact. One action a state makes up the derivative of a maximum, so that the steps of the compiled
  method are cheap there; if those do not converge, sweeps take over.
"""

from __future__ import annotations

import contextlib
import math
from typing import NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh

from ..._typing import Floats
from ...mdp import MDP
from ...softmax import Max, Softmax
from ..linear import Form, SlowError, direct_form, is_numbered, swept_form
from ..loop import Method, Run, StoppingRule, iterate
from ..problem import Problem
from ..solution import Status
from .corrected_sweep import CorrectedSweeps
from .in_place import InPlace
from .newton import Newton
from .newton_in_memory import NewtonInMemory
from .shifted import Shifted
from .synchronous import Synchronous

__all__ = ["METHODS", "Choice", "Task", "as_asked", "choose", "newton_of"]

METHODS: dict[str, Method] = {
    method.name: method for method in (InPlace(), Synchronous(), Shifted(), Newton())
}
"""The methods by name, but for `auto`."""

TRIAL, TRIAL_OF_A_LARGE_MODEL = 12, 4
"""Shifted sweeps after which the choice is made."""
FEW_SWEEPS = 40
"""Shifted sweeps are resumed if no more than these are expected."""
TRIAL_OF_SWEEPS = 3
"""Iterations that show whether Gauss-Seidel sweeps are nearly exact: with two linear systems."""
MOST_COMPILED = 100
"""Steps of the compiled method under the maximum, after which others take over."""


class Choice(NamedTuple):
    """A method, why it was chosen, and the run."""

    method: Method
    reason: str
    run: Run
    problem: Problem  # where it has run


class Task(NamedTuple):
    """What to solve, and where that can be."""

    mdp: MDP
    softmax: Softmax
    mesh: Mesh
    movable: bool  # is the mesh the default, one CPU? Then main memory will do as well

    def on_mesh(self) -> Problem:
        """The problem on the devices."""
        return Problem.of(self.mdp, self.softmax, self.mesh)

    @property
    def has_sparse_matrix(self) -> bool:
        """Can Newton's method run in main memory with a sparse matrix?"""
        return self.movable and self.mdp.successors is not None


def newton_of(problem: Problem) -> CorrectedSweeps:
    """Newton's method where a problem is."""
    if problem.mesh is not None:
        return Newton()
    return NewtonInMemory(direct_form(problem.mdp) or swept_form(problem.mdp))


def as_asked(name: str, task: Task, rule: StoppingRule, start: float | Floats) -> Choice:
    """Solve by the method of that name."""
    if name == Newton.name:
        return _newton(task, "as asked", rule, start)
    method, problem = METHODS[name], task.on_mesh()
    return Choice(method, "as asked", iterate(method, problem, rule, start), problem)


def choose(task: Task, rule: StoppingRule, start: float | Floats) -> Choice:
    """Solve by the method that promises most."""
    if task.movable and task.softmax.non_expansion and (form := direct_form(task.mdp)):
        return _in_memory(task, form, form.words, rule, start)
    problem = task.on_mesh()
    if not task.softmax.non_expansion:
        method = Synchronous()
        reason = "no method is sure to converge here, and plain sweeps show what happens"
        return Choice(method, reason, iterate(method, problem, rule, start), problem)
    if not problem.model.endless:
        reason = "episodes end, so a shift of all values gains nothing"
        return _newton(task, reason, rule, start)
    if problem.greedy:
        reason = "one action a state makes up the derivative of a maximum, so its steps are cheap"
        return _newton(task, reason, rule, start)
    if task.has_sparse_matrix and is_numbered(task.mdp):
        reason = "the numbers of the states show which of them are near"
        return _newton(task, reason, rule, start)
    return _after_a_trial(task, rule, start)


def _newton(task: Task, why: str, rule: StoppingRule, start: float | Floats | Run) -> Choice:
    """Newton's method, where and how it suits the model."""
    form = direct_form(task.mdp) if task.movable else None
    if form is None and task.has_sparse_matrix:
        if isinstance(task.softmax, Max):
            return _newton_for_the_maximum(task, why, rule, start)
        form = swept_form(task.mdp)
    if form is not None:
        return _in_memory(task, form, f"{why}; {form.words}", rule, start)
    method, problem = Newton(), task.on_mesh()
    return Choice(method, why, iterate(method, problem, rule, start), problem)


def _newton_for_the_maximum(
    task: Task, why: str, rule: StoppingRule, start: float | Floats | Run
) -> Choice:
    """By sweeps where they are nearly exact, and where the compiled method does not converge."""
    if is_numbered(task.mdp):
        form = swept_form(task.mdp)
        with contextlib.suppress(SlowError):
            trial = _in_memory(task, form.if_nearly_exact(), "", rule, start, TRIAL_OF_SWEEPS)
            reason = f"{why}; {form.words}, of which a few are enough"
            if trial.run.status:
                return trial._replace(reason=reason)
            return _in_memory(task, form, reason, rule, trial.run)
    method, problem = Newton(), task.on_mesh()
    run = iterate(method, problem, rule, start, MOST_COMPILED)
    if run.status not in (None, Status.OVERFLOW):
        return Choice(method, why, run, problem)
    form = swept_form(task.mdp)
    reason = f"{why}; its rough solutions do not suffice, so {form.words}"
    return _in_memory(task, form, reason, rule, start if run.status else run)


def _in_memory(
    task: Task,
    form: Form,
    reason: str,
    rule: StoppingRule,
    start: float | Floats | Run,
    limit: int | None = None,
) -> Choice:
    """Newton's method in main memory, for about `limit` iterations."""
    if isinstance(start, Run):
        start = start._replace(state=jax.tree.map(np.asarray, start.state))
    problem, method = Problem.of(task.mdp, task.softmax, None), NewtonInMemory(form)
    return Choice(method, reason, iterate(method, problem, rule, start, limit), problem)


def _after_a_trial(task: Task, rule: StoppingRule, start: float | Floats) -> Choice:
    shifted, problem = Shifted(), task.on_mesh()
    limit = TRIAL_OF_A_LARGE_MODEL if problem.model.large else TRIAL
    trial = iterate(shifted, problem, rule, start, limit)
    if trial.status:
        end = "were enough" if trial.status is Status.CONVERGED else "were all there was time for"
        return Choice(shifted, f"the first {trial.iterations} sweeps {end}", trial, problem)
    before, last = np.concatenate(trial.changes)[-2:]
    rate = min(last / before, 1 - 1e-9)
    more = math.ceil(math.log(max(rule.tolerance, 1e-300) / last) / math.log(rate))
    speed = f"a shifted sweep leaves {rate:.2g} of the change"
    if more <= FEW_SWEEPS:
        reason = f"{speed}: about {more} more to go"
        return Choice(shifted, reason, iterate(shifted, problem, rule, trial), problem)
    return _newton(task, f"{speed}: over {FEW_SWEEPS} more would be needed", rule, trial)
