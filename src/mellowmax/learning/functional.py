"""Training in functional environments: blocks of runs, each one compiled program.

`_advance` is one step of one run. It is mapped over the runs of a block, repeated `BLOCK` times
with random numbers that were drawn for all these steps at once, and that is repeated until every
run has ended. A run's random numbers come from its own key and the number of the step alone.

Vectorised exponentials and sums round differently at different widths, so all blocks have one
width, and a block that is not full repeats its last run: what a run learns does not depend on the
runs that it shares a block with. The blocks themselves go to the cores and devices there are.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from jax.tree_util import PyTreeDef

from .._common.runs import run_keys
from .._common.threads import on_all_cores
from .._typing import PyTree
from ..environments.tabular import Params, move, start
from .learner import Learner
from .record import BLOCK, Recorder
from .runs import Runs, Schedules

__all__ = ["learn"]

WIDTH = 64
"""How many runs a block has on a CPU: their tables stay in its cache."""
ACCELERATOR_WIDTH = 1024
"""A block has a multiple of this on an accelerator, which does all its runs side by side."""
LARGEST_WIDTH = 1 << 17
"""How many runs a block has on an accelerator at most."""


def learn(
    runs: Runs,
    schedules: Schedules,
    recorder: Recorder,
    *,
    tables: bool,
    params: Params,
    devices: list[jax.Device],
) -> dict[str, npt.NDArray[Any]]:
    """Carry out every run, block by block.

    Args:
        runs: all of them.
        schedules: of the learner.
        recorder: what to record.
        tables: record the final tables?
        params: the environment.
        devices: those to use.

    Returns:
        The arrays of a `TabularResult` by name, each with an axis of the runs in front.
    """
    total = runs.setting.size
    on_cpu = devices[0].platform == "cpu"
    width = WIDTH if on_cpu else _accelerator_width(total, len(devices))
    mesh = Mesh(np.array(devices), ("runs",))
    over_runs = NamedSharding(mesh, P("runs"))
    params = jax.device_put(params, NamedSharding(mesh, P()))
    firsts = range(0, total, width * len(devices))

    def block(first: int) -> Runs:
        chosen = np.minimum(first + np.arange(width * len(devices)), total - 1)
        return jax.device_put(jax.tree.map(lambda x: x[chosen], runs), over_runs)

    leaves, tree = jax.tree.flatten((block(0), params))
    shapes = tuple(jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding) for x in leaves)
    program = _compiled(tree, shapes, mesh, recorder, schedules, tables)

    def carry_out(first: int) -> dict[str, npt.NDArray[Any]]:
        result = program(block(first), params)
        return {name: np.asarray(x)[: total - first] for name, x in result.items()}

    # XLA runs the small operations of a block on one core: blocks side by side use the others.
    results = on_all_cores(carry_out, firsts) if on_cpu else [carry_out(first) for first in firsts]
    return {name: np.concatenate([result[name] for result in results]) for name in results[0]}


def _accelerator_width(total: int, n_devices: int) -> int:
    multiples = -(-total // (n_devices * ACCELERATOR_WIDTH))
    return min(LARGEST_WIDTH, multiples * ACCELERATOR_WIDTH)


@functools.lru_cache(maxsize=128)
def _compiled(
    tree: PyTreeDef, shapes: tuple[jax.ShapeDtypeStruct, ...], mesh: Mesh, *static: object
) -> jax.stages.Compiled:
    runs, params = jax.tree.unflatten(tree, shapes)
    names = ("recorder", "schedules", "tables")
    options = dict(zip(names, static, strict=True))
    return _learn_blocks.lower(runs, params, mesh=mesh, **options).compile()


@functools.partial(jax.jit, static_argnames=("mesh", "recorder", "schedules", "tables"))
def _learn_blocks(
    runs: Runs,
    params: Params,
    *,
    mesh: Mesh,
    recorder: Recorder,
    schedules: Schedules,
    tables: bool,
) -> dict[str, jax.Array]:
    """Carry out a block of runs on each device; what is recorded, with the runs first."""
    block = functools.partial(_learn_block, recorder=recorder, schedules=schedules, tables=tables)
    over_runs = P(mesh.axis_names[0])
    return jax.shard_map(
        block, mesh=mesh, in_specs=(over_runs, P()), out_specs=over_runs, check_vma=False
    )(runs, params)


class _State(NamedTuple):
    """Where a run is."""

    q: jax.Array
    state: jax.Array
    action: jax.Array


def _learn_block(
    runs: Runs, params: Params, *, recorder: Recorder, schedules: Schedules, tables: bool
) -> dict[str, jax.Array]:
    keys = run_keys(runs.key, runs.number)

    def begin(learner: Learner, key: jax.Array) -> tuple[_State, PyTree]:
        uniforms = _draw(key, 0, params)[0]
        q = learner.init(params.n_states, params.n_actions)
        state = start(uniforms[-1], params)
        action = learner.act(uniforms[1], q[state], where=_allowed(params, state))
        return _State(q, state, action), recorder.begin()

    def one_step(
        learner: Learner, state: _State, record: PyTree, step: jax.Array, uniforms: jax.Array
    ) -> tuple[_State, PyTree, PyTree]:
        live = recorder.live(record, step)
        rate = jnp.where(live, jnp.asarray(learner.learning_rate), jnp.float32(0))
        learner = dataclasses.replace(learner, learning_rate=rate)
        state, reward, terminated = _advance(learner, state, uniforms, params)
        record, emitted = recorder.observe(record, state.q, reward, terminated, live)
        return state, record, emitted

    def block_of_steps(carry: tuple[_State, PyTree, jax.Array]) -> tuple[_State, PyTree, jax.Array]:
        states, records, first = carry
        number = 1 + first // BLOCK
        uniforms = jax.vmap(lambda key: _draw(key, number, params), out_axes=1)(keys)

        def steps(
            carry: tuple[_State, PyTree], x: tuple[jax.Array, jax.Array]
        ) -> tuple[tuple[_State, PyTree], PyTree]:
            step, uniforms = x
            learners = schedules.apply(runs, step)
            mapped = jax.vmap(one_step, in_axes=(0, 0, 0, None, 0))
            states, records, emitted = mapped(learners, *carry, step, uniforms)
            return (states, records), emitted

        numbers = first + jnp.arange(BLOCK, dtype=jnp.int32)
        (states, records), emitted = lax.scan(steps, (states, records), (numbers, uniforms))
        records = jax.vmap(recorder.absorb, in_axes=(0, None, 1))(records, first, emitted)
        return states, records, first + BLOCK

    def any_live(carry: tuple[_State, PyTree, jax.Array]) -> jax.Array:
        _, records, first = carry
        return jax.vmap(recorder.live, in_axes=(0, None))(records, first).any()

    learners = schedules.apply(runs, jnp.int32(0))
    states, records = jax.vmap(begin)(learners, keys)
    states, records, _ = lax.while_loop(any_live, block_of_steps, (states, records, jnp.int32(0)))
    recorded: dict[str, jax.Array] = jax.vmap(recorder.result)(records)
    return ({"q": states.q} if tables else {}) | recorded


def _advance(
    learner: Learner, state: _State, uniforms: jax.Array, params: Params
) -> tuple[_State, jax.Array, jax.Array]:
    """One step of one run: act, learn, and choose the next action; after an end, begin again.

    Args:
        learner: without schedules.
        state: where the run is.
        uniforms: `[2 or 3]` random numbers: for the transition, for the next action, and where
            episodes can begin in several states, for the state to begin in.
        params: the environment.

    Returns:
        Where the run is then, the reward, and whether an episode has ended.
    """
    next_state, reward, terminated = move(uniforms[0], state.state, state.action, params)
    next_state = jnp.where(terminated, start(uniforms[-1], params), next_state)
    assert learner.discount is not None
    discount = jnp.where(terminated, jnp.float32(0), jnp.asarray(learner.discount))
    transition = (state.state, state.action, reward, discount, next_state)
    where = _allowed(params, next_state)
    learned = learner.learn(state.q, *transition, uniforms[1], where=where)
    return _State(learned.q, next_state, learned.action), reward, terminated


def _draw(key: jax.Array, number: jax.Array | int, params: Params) -> jax.Array:
    """`[BLOCK, 2 or 3]` uniform numbers for a block of steps."""
    each = 2 if len(params.starts) == 1 else 3
    return jax.random.uniform(jax.random.fold_in(key, number), (BLOCK, each), jnp.float32)


def _allowed(params: Params, state: jax.Array) -> jax.Array | None:
    return None if params.allowed is None else jnp.asarray(params.allowed)[state]
