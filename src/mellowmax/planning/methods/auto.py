"""The choice of a method: `method="auto"`.

- Without a proof of convergence, synchronous sweeps: they show what repeated sweeps come to.
- On a CPU, Newton's method in main memory where a matrix is quick to factorise (`linear`).
- Where episodes end, or where the softmax is the maximum, Newton's method.
- Otherwise a trial of some shifted sweeps. If at the rate of the last two the tolerance is near,
  they are resumed; if not, Newton's method resumes from where they stopped.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jax.sharding import Mesh

from ..._typing import Floats
from ...mdp import MDP
from ...softmax import Softmax
from ..linear import Form, form_of
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


class Choice(NamedTuple):
    """A method, why it was chosen, and what came of it."""

    method: Method
    reason: str
    run: Run
    problem: Problem  # where it has run


class Task(NamedTuple):
    """What to solve, and where that can be."""

    mdp: MDP
    softmax: Softmax
    mesh: Mesh
    movable: bool  # is the mesh one CPU that nobody asked for? Then main memory will do as well

    def on_mesh(self) -> Problem:
        """The problem on the devices."""
        return Problem.of(self.mdp, self.softmax, self.mesh)

    def form(self) -> Form | None:
        """The form of matrix for Newton's method in main memory, where that promises to be best."""
        return form_of(self.mdp) if self.movable else None


def newton_of(problem: Problem) -> CorrectedSweeps:
    """Newton's method where a problem is."""
    if problem.mesh is not None:
        return Newton()
    form = form_of(problem.mdp)
    assert form is not None
    return NewtonInMemory(form)


def as_asked(name: str, task: Task, rule: StoppingRule, start: float | Floats) -> Choice:
    """Solve by the method of that name."""
    form = task.form() if name == Newton.name else None
    if form is not None:
        return _in_memory(task, form, f"as asked; {form.words}", rule, start)
    method, problem = METHODS[name], task.on_mesh()
    return Choice(method, "as asked", iterate(method, problem, rule, start), problem)


def choose(task: Task, rule: StoppingRule, start: float | Floats) -> Choice:
    """Solve by the method that promises most."""
    if task.softmax.non_expansion and (form := task.form()):
        return _in_memory(task, form, form.words, rule, start)
    method: Method
    problem = task.on_mesh()
    if not task.softmax.non_expansion:
        method = Synchronous()
        reason = "no method is sure to converge here, and plain sweeps show what happens"
    elif not problem.model.endless:
        method = Newton()
        reason = "episodes end, so a shift of all values gains nothing"
    elif problem.greedy:
        method = Newton()
        reason = "one action a state makes up the derivative of a maximum, so its steps are cheap"
    else:
        return _after_a_trial(problem, rule, start)
    return Choice(method, reason, iterate(method, problem, rule, start), problem)


def _in_memory(
    task: Task, form: Form, reason: str, rule: StoppingRule, start: float | Floats
) -> Choice:
    """Newton's method in main memory."""
    problem, method = Problem.of(task.mdp, task.softmax, None), NewtonInMemory(form)
    return Choice(method, reason, iterate(method, problem, rule, start), problem)


def _after_a_trial(problem: Problem, rule: StoppingRule, start: float | Floats) -> Choice:
    shifted, newton = Shifted(), Newton()
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
    reason = f"{speed}: over {FEW_SWEEPS} more would be needed"
    return Choice(newton, reason, iterate(newton, problem, rule, trial), problem)
