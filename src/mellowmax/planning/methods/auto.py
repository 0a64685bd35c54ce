"""The choice of a method: `method="auto"`.

- Without a proof of convergence, synchronous sweeps: they show what repeated sweeps come to.
- Where episodes end, or where the softmax is the maximum, Newton's method.
- Otherwise a trial of some shifted sweeps. If at the rate of the last two the tolerance is near,
  they are resumed; if not, Newton's method resumes from where they stopped.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..._typing import Floats
from ..loop import Method, Run, StoppingRule, iterate
from ..problem import Problem
from ..solution import Status
from .newton import Newton
from .shifted import Shifted
from .synchronous import Synchronous

__all__ = ["Choice", "choose"]

TRIAL, TRIAL_OF_A_LARGE_MODEL = 12, 4
"""Shifted sweeps after which the choice is made."""
FEW_SWEEPS = 40
"""Shifted sweeps are resumed if no more than these are expected."""


class Choice(NamedTuple):
    """A method, why it was chosen, and what came of it."""

    method: Method
    reason: str
    run: Run


def choose(problem: Problem, rule: StoppingRule, start: float | Floats) -> Choice:
    """Solve by the method that promises most."""
    method: Method
    if not problem.softmax.non_expansion:
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
    return Choice(method, reason, iterate(method, problem, rule, start))


def _after_a_trial(problem: Problem, rule: StoppingRule, start: float | Floats) -> Choice:
    shifted, newton = Shifted(), Newton()
    limit = TRIAL_OF_A_LARGE_MODEL if problem.model.large else TRIAL
    trial = iterate(shifted, problem, rule, start, limit)
    if trial.status:
        end = "were enough" if trial.status is Status.CONVERGED else "were all there was time for"
        return Choice(shifted, f"the first {trial.iterations} sweeps {end}", trial)
    before, last = np.concatenate(trial.changes)[-2:]
    rate = min(last / before, 1 - 1e-9)
    more = math.ceil(math.log(max(rule.tolerance, 1e-300) / last) / math.log(rate))
    speed = f"a shifted sweep leaves {rate:.2g} of the change"
    if more <= FEW_SWEEPS:
        reason = f"{speed}: about {more} more to go"
        return Choice(shifted, reason, iterate(shifted, problem, rule, trial))
    reason = f"{speed}: over {FEW_SWEEPS} more would be needed"
    return Choice(newton, reason, iterate(newton, problem, rule, trial))
