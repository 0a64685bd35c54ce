"""Training: a learner in an environment, for many runs.

`train` is the front door. A functional environment (`functional.py`) is compiled together with the
learner, and thousands of runs go at once. A Gymnasium environment (`gymnasium.py`) is stepped in
Python, one run after another. Arguments and results are the same.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import numpy.typing as npt

from .._common import checks
from .._common.compiled_programs import keep_compiled_programs
from .._common.runs import devices_of, run_numbers
from .._typing import Key, Scalar
from ..environments import tabular
from ..mdp import MDP
from . import functional, gymnasium
from .learner import Learner
from .record import recorder_of
from .result import TabularResult
from .runs import runs_of, settings_of

__all__ = ["train"]


def train(
    learner: Learner,
    environment: tabular.Params | MDP | gymnasium.Environment,
    *,
    steps: int | None = None,
    episodes: int | None = None,
    runs: int | Sequence[int] = 1,
    seed: int | Key = 0,
    bins: int = 1,
    values: Sequence[int] = (),
    tables: bool = True,
    action_mask: bool = False,
    devices: Sequence[jax.Device] | None = None,
) -> TabularResult:
    """Train a learner in an environment, with many runs of every setting.

    The learner's parameters, learning rates and discounts may be arrays: they broadcast to a grid
    of settings, and every setting has the same `runs`. The numbers of a run depend only on its
    setting, its seed and its number, bit for bit: not on other settings and runs, nor on the
    devices.

    Functional environments are compiled together with the learner. Those of Gymnasium are stepped
    one run after another. A truncated episode has not ended: the learner bootstraps from its last
    state.

    Args:
        learner: from `sarsa`, `expected_sarsa` or `q_learning`.
        environment: `two_state.params()`, `taxi.params()` or `tabular.params(mdp, start=...)` of
            `mellowmax.environments`. An `MDP`, whose episodes begin in any state that is not
            terminal. Or a Gymnasium environment with discrete states and actions: its id, a
            function without arguments that makes it, or the environment itself.
        steps: the number of steps of a run; together with `episodes`, the step at which it ends at
            the latest.
        episodes: the number of episodes of a run.
        runs: how many, or their numbers.
        seed: a whole number, a JAX key, or keys that broadcast to the grid of settings.
        bins: into how many stretches of equal length the steps are cut, to record the mean reward
            of each. They must divide `steps`.
        values: the states whose values to record at the end of each episode.
        tables: record the final tables? They are `[S, A]` for every run.
        action_mask: keep to the actions that a Gymnasium environment allows in
            `info["action_mask"]`? The actions that an MDP does not allow are never taken.
        devices: those to use for a functional environment; None for all of this process.

    Returns:
        What was recorded: `q`, and `rewards` in bins, or for episodes `returns`, `lengths` and
        `values`.

    Raises:
        TypeError: for an argument of the wrong kind.
        ValueError: for one that does not fit.
        RuntimeError: when a Gymnasium environment fails, or returns what it has not declared.

    Examples:
        Four runs of each of six settings:

        >>> import numpy as np
        >>> from mellowmax import Boltzmann
        >>> from mellowmax.environments import taxi
        >>> from mellowmax.learning import sarsa, train
        >>> learner = sarsa(Boltzmann(np.array([[1.5], [3.0], [5.0]])), np.array([0.1, 0.4]))
        >>> train(learner, taxi.params(), steps=1000, runs=4, bins=10)
        TabularResult(q=(3, 2, 4, 264, 4), rewards=(3, 2, 4, 10))

        Two runs in a Gymnasium environment:

        >>> learner = sarsa(Boltzmann(20.0), 0.2, discount=0.95)
        >>> train(learner, "FrozenLake-v1", episodes=20, runs=2)
        TabularResult(q=(2, 16, 4), returns=(2, 20), lengths=(2, 20))
    """
    keep_compiled_programs()
    checks.instance("learner", learner, Learner, "a Learner, such as `sarsa(...)`")
    if isinstance(environment, MDP):
        environment = tabular.params(environment)
    learn: Callable[..., dict[str, npt.NDArray[Any]]]
    discount: Scalar
    if isinstance(environment, tabular.Params):
        if episodes is not None and steps is None and not np.any(environment.terminated):
            raise ValueError("`steps` must be given where no episode ends, got None")
        table, discount = (environment.n_states, environment.n_actions), environment.discount
        learn = functools.partial(functional.learn, params=environment, devices=devices_of(devices))
    else:
        if devices is not None:
            raise ValueError(f"`devices` must be None for a Gymnasium environment, got {devices!r}")
        table, discount = gymnasium.describe(environment)
        learn = functools.partial(
            gymnasium.learn, environment=environment, table=table, action_mask=action_mask
        )
    recorder = recorder_of(steps, episodes, bins, values, *table)
    if learner.discount is None:
        learner = dataclasses.replace(learner, discount=discount)
    settings, numbers = settings_of(learner, *table), run_numbers(runs)
    every_run, schedules = runs_of(learner, settings, numbers, seed)
    recorded = learn(every_run, schedules, recorder, tables=tables)
    shape = (*settings, len(numbers))
    return TabularResult(**{name: x.reshape(*shape, *x.shape[1:]) for name, x in recorded.items()})
