"""Training many runs at once: runs in blocks, blocks spread over cores and devices."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as Spec

from .._common import checks
from .._common.runs import gather_settings, key_data, run_numbers, setting_of_each_run, settings_shape
from .._common.threads import on_all_cores
from ..environments import tabular
from ..mdp import MDP
from ..softmax import Softmax
from .functional import DRAWS, Lanes, Schedules, learn
from .learner import Learner
from .record import Bins, Episodes
from .result import Training

__all__ = ["recorder_of", "settings_of", "train"]

WIDTH = 64
"""How many runs a block has on a CPU: their tables stay in its cache."""
ACCELERATOR_WIDTH = 1024
"""A block has a multiple of this on an accelerator, which does all of its runs side by side..."""
MOST_ON_AN_ACCELERATOR = 1 << 17
"""... up to so many."""
NO_LIMIT = 2**31 - 2 * DRAWS


def train(
    learner: Learner,
    environment: tabular.Params | MDP,
    *,
    steps: int | None = None,
    episodes: int | None = None,
    runs: int | Sequence[int] = 1,
    seed: Any = 0,
    bins: int = 1,
    values: Sequence[int] = (),
    tables: bool = True,
    devices: Sequence[Any] | None = None,
) -> Training:
    """Run a learner in an environment many times, for every setting, as one compiled program.

    The learner's parameters and learning rates may be arrays: they broadcast to a grid of settings,
    and every setting has the same `runs`. What a run learns depends on its setting, its seed and
    its number alone, bit for bit: not on the settings and runs beside it, nor on the devices.

    Args:
        learner: from `sarsa`, `expected_sarsa` or `q_learning`.
        environment: `two_state.params()`, `taxi.params()` or `tabular.params(mdp, start=...)` of
            `mellowmax.environments`. An `MDP` begins its episodes in any state that is not
            terminal.
        steps: how long a run is; next to `episodes`, where it ends at the latest.
        episodes: how many episodes a run is.
        runs: how many, or their numbers.
        seed: a whole number, a JAX key, or keys that broadcast to the grid of settings.
        bins: into how many stretches of equal length the steps are cut, to record the mean reward
            of each. They must divide `steps`.
        values: the states whose values to record at the end of each episode.
        tables: record the final tables? They are `[S, A]` for every run.
        devices: those to use; None for all of this process.

    Returns:
        What was recorded: `q`, and `rewards` in bins, or for episodes `returns`, `lengths` and
        `values`.

    Raises:
        ValueError: for an argument that does not fit.

    Examples:
        Four runs of each of six settings:

        >>> import numpy as np
        >>> from mellowmax import Boltzmann
        >>> from mellowmax.environments import taxi
        >>> from mellowmax.learning import sarsa, train
        >>> learner = sarsa(Boltzmann(np.array([[1.5], [3.0], [5.0]])), np.array([0.1, 0.4]))
        >>> train(learner, taxi.params(), steps=1000, runs=4, bins=10)
        Training(q=(3, 2, 4, 264, 4), rewards=(3, 2, 4, 10))
    """
    if not isinstance(learner, Learner):
        raise ValueError(f"`learner` must be a Learner, such as `sarsa(...)`, got {learner!r}")
    if isinstance(environment, MDP):
        environment = tabular.params(environment)
    if not isinstance(environment, tabular.Params):
        rule = "`environment` must be an MDP or the parameters of an environment"
        raise ValueError(f"{rule} (`drive` takes Gymnasium's), got {environment!r}")
    n_states, n_actions = environment.n_states, environment.n_actions
    recorder = recorder_of(steps, episodes, bins, values, n_states, n_actions)
    if episodes is not None and steps is None and not np.any(environment.terminated):
        raise ValueError("`steps` must be given where no episode ends, got None")
    settings, numbers = settings_of(learner, (n_states, n_actions)), run_numbers(runs)
    lanes, schedules = _lanes(learner, settings, numbers, seed)
    devices = list(jax.local_devices() if devices is None else devices)
    of_each = _run_blocks(lanes, environment, devices, recorder, schedules, tables)
    shape = (*settings, len(numbers))
    return Training(**{name: x.reshape(*shape, *x.shape[1:]) for name, x in of_each.items()})


def recorder_of(
    steps: int | None,
    episodes: int | None,
    bins: int,
    values: Sequence[int],
    n_states: int,
    n_actions: int,
) -> Bins | Episodes:
    """The recorder that the arguments of `train` and `drive` ask for, once they are checked."""
    if steps is not None:
        steps = checks.whole("steps", steps, 1, NO_LIMIT)
    if episodes is not None:
        episodes = checks.whole("episodes", episodes, 1)
        states = tuple(checks.whole("values", state, 0, n_states - 1) for state in values)
        return Episodes(episodes, n_actions, NO_LIMIT if steps is None else steps, states)
    if steps is None:
        raise ValueError("`steps` or `episodes` must be given, got neither")
    if len(values):
        raise ValueError(f"`values` are recorded where `episodes` is given, got {values} without")
    bins = checks.whole("bins", bins, 1)
    if steps % bins:
        raise ValueError(f"`bins` must divide the {steps} `steps`, got {bins}")
    return Bins(bins, steps // bins)


def settings_of(learner: Learner, table: tuple[int, int]) -> tuple[int, ...]:
    """The shape of the grid of settings, for tables of a shape."""
    now = jax.eval_shape(learner.at, jnp.int32(0)) if _scheduled(learner) else learner
    shapes = [np.shape(leaf) for leaf in jax.tree.leaves((now.softmax, now.learning_rate))]
    initial = np.shape(learner.initial)
    if initial and initial[-2:] != table:
        rule = f"`initial` must be a number or have the shape (..., {table[0]}, {table[1]})"
        raise ValueError(f"{rule}, got {initial}")
    return settings_shape([*shapes, initial[:-2]])


def _scheduled(learner: Learner) -> bool:
    return callable(learner.learning_rate) or not isinstance(learner.softmax, Softmax)


def _lanes(
    learner: Learner, settings: tuple[int, ...], runs: Any, seed: Any
) -> tuple[Lanes, Schedules]:
    """Every run of every setting, the runs of a setting side by side."""
    setting = setting_of_each_run(settings, len(runs))

    def of_each(leaf: Any, inner: int = 0) -> Any:
        return gather_settings(leaf, settings, setting, inner)

    softmax = learner.softmax if isinstance(learner.softmax, Softmax) else None
    rate = None if callable(learner.learning_rate) else of_each(learner.learning_rate)
    constants = dataclasses.replace(
        learner,
        softmax=jax.tree.map(of_each, softmax),
        learning_rate=rate,
        initial=of_each(learner.initial, inner=2),
    )
    schedules = Schedules(
        None if softmax is not None else learner.softmax,
        learner.learning_rate if rate is None else None,
        settings,
    )
    numbers = np.tile(runs, len(setting) // len(runs))
    return Lanes(constants, setting, key_data(seed, settings)[setting], numbers), schedules


def _run_blocks(
    lanes: Lanes,
    params: tabular.Params,
    devices: list[Any],
    recorder: Bins | Episodes,
    schedules: Schedules,
    tables: bool,
) -> dict[str, Any]:
    """Run every lane, block by block; a block that is not full repeats its last lane."""
    total = lanes.setting.size
    on_cpu = devices[0].platform == "cpu"
    width = WIDTH if on_cpu else _accelerator_width(total, len(devices))
    mesh = Mesh(np.array(devices), ("runs",))
    over_runs = NamedSharding(mesh, Spec("runs"))
    params = jax.device_put(params, NamedSharding(mesh, Spec()))
    firsts = range(0, total, width * len(devices))

    def block(first: int) -> Any:
        chosen = np.minimum(first + np.arange(width * len(devices)), total - 1)
        return jax.device_put(jax.tree.map(lambda x: x[chosen], lanes), over_runs)

    leaves, tree = jax.tree.flatten((block(0), params))
    shapes = tuple(jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding) for x in leaves)
    program = _compiled(tree, shapes, mesh, recorder, schedules, tables)

    def run(first: int) -> dict[str, Any]:
        result = program(block(first), params)
        return {name: np.asarray(x)[: total - first] for name, x in result.items()}

    # XLA runs the small operations of a block on one core: blocks side by side use the others.
    results = on_all_cores(run, firsts) if on_cpu else [run(first) for first in firsts]
    return {name: np.concatenate([result[name] for result in results]) for name in results[0]}


@functools.lru_cache(maxsize=128)
def _compiled(tree: Any, shapes: Any, mesh: Mesh, *static: Any) -> Any:
    lanes, params = jax.tree.unflatten(tree, shapes)
    names = ("recorder", "schedules", "tables")
    options = dict(zip(names, static, strict=True))
    return learn.lower(lanes, params, mesh=mesh, **options).compile()


def _accelerator_width(total: int, n_devices: int) -> int:
    multiples = -(-total // (n_devices * ACCELERATOR_WIDTH))
    return min(MOST_ON_AN_ACCELERATOR, multiples * ACCELERATOR_WIDTH)
