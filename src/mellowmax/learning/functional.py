"""The training loop of one block of runs, compiled as one program.

`advance` is one step of one run. It is mapped over the runs of a block, repeated `DRAWS` times with
random numbers that were drawn for all these steps at once, and that is repeated until every run has
ended. A run's random numbers come from its own key and the number of the step alone.

Vectorised exponentials and sums round differently at different widths, so blocks have one width,
and a block that is not full repeats its last run: what a run learns does not depend on what it is
batched with.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as Spec

from .._common.runs import run_keys
from ..environments.tabular import Params, move, start
from .learner import Learner
from .record import Bins, Episodes

__all__ = ["DRAWS", "Lanes", "Run", "Schedules", "advance", "learn"]

DRAWS = 128
"""For how many steps random numbers are drawn at once."""


class Run(NamedTuple):
    """Where a run is."""

    q: Any
    state: Any
    action: Any


class Lanes(NamedTuple):
    """A block of runs, one to a lane."""

    learner: Learner
    """Its constants, one for each lane; None where there is a schedule."""
    setting: Any
    """`[lanes]`, which setting each has, counted along the flattened grid of settings."""
    key: Any
    """`[lanes, 2]`, the data of its setting's key."""
    run: Any
    """`[lanes]`, the number of the run, which is folded into the key."""


class Schedules(NamedTuple):
    """Functions of the step that give a softmax and a learning rate; None for a constant."""

    softmax: Callable[[Any], Any] | None
    learning_rate: Callable[[Any], Any] | None
    settings: tuple[int, ...]
    """The shape of the grid of settings, against which they broadcast."""

    def apply(self, lanes: Lanes, step: Any) -> Learner:
        """The learner of each lane at a step."""

        def of_each_lane(leaf: Any) -> Any:
            grid = jnp.broadcast_to(jnp.asarray(leaf, jnp.float32), self.settings)
            return grid.reshape(-1)[lanes.setting]

        given = {
            name: jax.tree.map(of_each_lane, schedule(step))
            for name, schedule in (("softmax", self.softmax), ("learning_rate", self.learning_rate))
            if schedule is not None
        }
        return dataclasses.replace(lanes.learner, **given)


@functools.partial(jax.jit, static_argnames=("mesh", "recorder", "schedules", "tables"))
def learn(
    lanes: Lanes,
    params: Params,
    *,
    mesh: Mesh,
    recorder: Bins | Episodes,
    schedules: Schedules,
    tables: bool,
) -> dict[str, Any]:
    """Run a block of runs on each device to their ends; what is recorded, with the lanes first."""
    block = functools.partial(_learn, recorder=recorder, schedules=schedules, tables=tables)
    over_runs = Spec(mesh.axis_names[0])
    result: dict[str, Any] = jax.shard_map(
        block, mesh=mesh, in_specs=(over_runs, Spec()), out_specs=over_runs, check_vma=False
    )(lanes, params)
    return result


def _learn(
    lanes: Lanes, params: Params, *, recorder: Bins | Episodes, schedules: Schedules, tables: bool
) -> dict[str, Any]:
    keys = run_keys(lanes.key, lanes.run)

    def begin(learner: Learner, key: Any) -> tuple[Run, Any]:
        uniforms = _draw(key, 0, params)[0]
        q = learner.init(params.n_states, params.n_actions)
        state = start(uniforms[-1], params)
        action = learner.act(uniforms[1], q[state], where=_allowed(params, state))
        return Run(q, state, action), recorder.begin()

    def one_step(
        learner: Learner, run: Run, record: Any, step: Any, uniforms: Any
    ) -> tuple[Run, Any, Any]:
        live = recorder.live(record, step)
        rate = jnp.where(live, learner.learning_rate, jnp.float32(0))
        learner = dataclasses.replace(learner, learning_rate=rate)
        run, reward, terminated = advance(learner, run, uniforms, params)
        record, emitted = recorder.observe(record, run.q, reward, terminated, live)
        return run, record, emitted

    def block(carry: tuple[Run, Any, Any]) -> tuple[Run, Any, Any]:
        runs, records, first = carry
        number = 1 + first // DRAWS
        uniforms = jax.vmap(lambda key: _draw(key, number, params), out_axes=1)(keys)

        def steps(carry: tuple[Run, Any], x: tuple[Any, Any]) -> tuple[tuple[Run, Any], Any]:
            step, uniforms = x
            learners = schedules.apply(lanes, step)
            mapped = jax.vmap(one_step, in_axes=(0, 0, 0, None, 0))
            runs, records, emitted = mapped(learners, *carry, step, uniforms)
            return (runs, records), emitted

        numbers = first + jnp.arange(DRAWS, dtype=jnp.int32)
        (runs, records), emitted = lax.scan(steps, (runs, records), (numbers, uniforms))
        records = jax.vmap(recorder.absorb, in_axes=(0, None, 1))(records, first, emitted)
        return runs, records, first + DRAWS

    def goes_on(carry: tuple[Run, Any, Any]) -> Any:
        _, records, first = carry
        return jax.vmap(recorder.live, in_axes=(0, None))(records, first).any()

    learners = schedules.apply(lanes, jnp.int32(0))
    runs, records = jax.vmap(begin)(learners, keys)
    runs, records, _ = lax.while_loop(goes_on, block, (runs, records, jnp.int32(0)))
    recorded: dict[str, Any] = jax.vmap(recorder.result)(records)
    return ({"q": runs.q} if tables else {}) | recorded


def advance(learner: Learner, run: Run, uniforms: Any, params: Params) -> tuple[Run, Any, Any]:
    """One step of one run: act, learn, and choose the next action; after an end, begin again.

    Args:
        learner: without schedules.
        run: where the run is.
        uniforms: `[2 or 3]` random numbers: where the action leads, the next action, and where
            episodes have several beginnings, which.
        params: the environment.

    Returns:
        The run, the reward, and whether an episode has ended.
    """
    next_state, reward, terminated = move(uniforms[0], run.state, run.action, params)
    next_state = jnp.where(terminated, start(uniforms[-1], params), next_state)
    discount = jnp.where(terminated, jnp.float32(0), params.discount)
    transition = (run.state, run.action, reward, discount, next_state)
    where = _allowed(params, next_state)
    learned = learner.learn(run.q, *transition, uniforms[1], where=where)
    return Run(learned.q, next_state, learned.action), reward, terminated


def _draw(key: Any, number: Any, params: Params) -> Any:
    """`[DRAWS, 2 or 3]` uniform numbers for the steps of a block."""
    each = 2 if len(params.starts) == 1 else 3
    return jax.random.uniform(jax.random.fold_in(key, number), (DRAWS, each), jnp.float32)


def _allowed(params: Params, state: Any) -> Any:
    return None if params.allowed is None else jnp.asarray(params.allowed)[state]
