"""One sweep of planning, for a model that lies on a device or is spread over several.

In state values a sweep is `v <- f(r + discount * P v)`, where `f` is the softmax's operator (the
update of section 4, equation 8). `Model` holds `r` and `P` as JAX arrays. The states may be spread
over the devices of a mesh: the functions here see the states of one device and gather the values
of the others, and `on_every_device` compiles them for all.

On a CPU the arrays are `[branch, state, action]`, and they are the MDP's own memory. An accelerator
gets `[branch, action, state]`, so that neighbouring threads read neighbouring numbers.
"""

from __future__ import annotations

import dataclasses
import functools
import weakref
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as Spec

from ..mdp import MDP
from ..softmax import Softmax

__all__ = [
    "STATES",
    "Model",
    "action_values",
    "dot",
    "entries",
    "everywhere",
    "fetch",
    "largest",
    "mean",
    "on_every_device",
    "place",
    "place_pairs",
    "place_states",
    "smallest",
    "specifications",
    "values",
]

STATES = "states"
"""The axis of the mesh along which states are spread."""
LARGE = 4_000_000
"""Branches from which a model on a CPU is large: sweeps of 5 ms and more, called one by one."""
UNROLLED = 32
"""Up to this many branches are added up in one fused operation."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Model:
    """An MDP as devices hold it; `[S, A]` stands for `[A, S]` where `axis` is 0."""

    probabilities: jax.Array  # [K, S, A], or dense [S, A, S]
    successors: jax.Array | None  # [K, S, A]
    rewards: jax.Array  # [S, A]
    allowed: jax.Array | None  # [S, A]
    terminal: jax.Array  # [S]
    discount: Any  # a number
    axis: int = dataclasses.field(metadata={"static": True})  # the axis of the actions
    ends: bool = dataclasses.field(metadata={"static": True})  # does a branch end the episode?
    endless: bool = dataclasses.field(metadata={"static": True})  # is there no end at all?
    large: bool = dataclasses.field(metadata={"static": True})  # is a sweep long beside a call?

    @property
    def pairs(self) -> Spec:
        """How an array `[S, A]` is spread over devices."""
        return Spec(STATES) if self.axis == 1 else Spec(None, STATES)


def action_values(model: Model, v: jax.Array) -> jax.Array:
    """`q = r + discount * P v`."""
    everything = everywhere(v)
    if model.ends:
        everything = jnp.append(everything, jnp.zeros(1, v.dtype))
    return model.rewards + model.discount * _expected(model, everything)


def _expected(model: Model, v: jax.Array) -> jax.Array:
    if model.successors is None:
        return model.probabilities @ v
    return dot(model, model.probabilities, model.successors, v)


def dot(model: Model, weights: Any, indices: Any, v: jax.Array) -> jax.Array:
    """`sum_k weights[k] * v[indices[k]]`."""

    def branch(k: Any) -> jax.Array:
        return weights[k] * entries(v, indices[k], model.large)

    if isinstance(weights, tuple) or len(weights) <= UNROLLED:
        return functools.reduce(jnp.add, map(branch, range(len(weights))))
    return jax.lax.fori_loop(1, len(weights), lambda k, total: total + branch(k), branch(0))


def entries(x: jax.Array, indices: jax.Array, large: bool = False) -> jax.Array:
    """`x[indices]`, all of which are known to be there.

    To allow for negative ones takes a copy of them all, in a loop; but with it XLA on a CPU makes
    a faster program of the sweep of a large model.
    """
    return x.at[indices].get(mode="promise_in_bounds", wrap_negative_indices=large)


def values(model: Model, softmax: Softmax, q: jax.Array) -> jax.Array:
    """`v = f(q)`."""
    v: jax.Array = softmax.value(q, axis=model.axis, where=model.allowed)
    return v


def everywhere(v: jax.Array) -> jax.Array:
    """The values of all states, from those of each device."""
    return v if _alone() else jax.lax.all_gather(v, STATES, tiled=True)


def _alone() -> bool:
    """Is there one device only? To ask the others would take time then too."""
    return bool(jax.lax.axis_size(STATES) == 1)


def largest(x: jax.Array) -> jax.Array:
    """The maximum over all devices."""
    return jnp.max(x) if _alone() else jax.lax.pmax(jnp.max(x), STATES)


def smallest(x: jax.Array) -> jax.Array:
    """The minimum over all devices."""
    return jnp.min(x) if _alone() else jax.lax.pmin(jnp.min(x), STATES)


def mean(x: jax.Array) -> jax.Array:
    """The mean over all devices, which hold equally many."""
    return jnp.mean(x) if _alone() else jax.lax.pmean(jnp.mean(x), STATES)


def on_every_device(
    function: Callable[..., Any], mesh: Mesh, outputs: Any, reuse: int | None = None
) -> Any:
    """`function`, written for the states of one device, compiled for those of a mesh.

    What its arguments spread over devices is read off the arrays; `outputs` has the specification
    of each result: `Spec(STATES)` for one number a state, `Spec()` for one that all devices share.
    The memory of the argument number `reuse` is used again for the results: for large arrays that
    saves the time to get new pages from the system.
    """
    if mesh.size == 1:
        return _compiled(function, mesh, None, Spec(), Spec(), reuse)

    def call(*arguments: Any) -> Any:
        leaves, tree = jax.tree.flatten(specifications(arguments))
        return _compiled(function, mesh, tree, tuple(leaves), outputs, reuse)(*arguments)

    return call


def specifications(tree: Any) -> Any:
    """How each array of a tree is spread over devices; whatever is not belongs to all."""
    return jax.tree.map(_spec, tree)


@functools.lru_cache(maxsize=512)
def _compiled(
    function: Any, mesh: Mesh, tree: Any, specs: Any, outputs: Any, reuse: int | None
) -> Any:
    inputs = specs if tree is None else jax.tree.unflatten(tree, specs)
    mapped = jax.shard_map(function, mesh=mesh, in_specs=inputs, out_specs=outputs, check_vma=False)
    return jax.jit(mapped, donate_argnums=reuse, keep_unused=True)


def _spec(leaf: Any) -> Spec:
    sharding = getattr(leaf, "sharding", None)
    return sharding.spec if isinstance(sharding, NamedSharding) else Spec()


def place(mdp: MDP, mesh: Mesh) -> Model:
    """An MDP on the devices of a mesh; it stays there as long as the MDP is alive."""
    models = _placed.setdefault(mdp, {})
    if mesh not in models:
        models[mesh] = _place(mdp, mesh)
    return models[mesh]


_placed: weakref.WeakKeyDictionary[MDP, dict[Mesh, Model]] = weakref.WeakKeyDictionary()


def _place(mdp: MDP, mesh: Mesh) -> Model:
    """On one CPU device it is the MDP's own memory."""
    on_cpu = mesh.devices.flat[0].platform == "cpu"
    flip = mdp.successors is not None and not on_cpu

    def by_pair(array: Any) -> jax.Array | None:
        if array is None:
            return None
        placed = _spread(array, 0, Spec(STATES), mesh)
        return _flipped(placed, mesh, Spec(None, STATES)) if flip else placed

    def by_branch(array: Any) -> jax.Array:
        placed = _spread(np.moveaxis(array, -1, 0), 1, Spec(None, STATES), mesh)
        return _flipped(placed, mesh, Spec(None, None, STATES)) if flip else placed

    if mdp.successors is not None:
        probabilities, successors = by_branch(mdp.probabilities), by_branch(mdp.successors)
        ends = bool(np.any(mdp.successors == mdp.n_states))
        if ends and mesh.size > 1:
            # The end stays behind the last of the states that `_padded` adds.
            extra = -mdp.n_states % mesh.size
            end = jnp.int32(mdp.n_states)
            successors = jnp.where(successors == end, end + jnp.int32(extra), successors)
    else:
        padding = [(0, 0), (0, 0), (0, -mdp.n_states % mesh.size)]
        dense = np.pad(mdp.probabilities, padding) if mesh.size > 1 else mdp.probabilities
        probabilities, successors, ends = _spread(dense, 0, Spec(STATES), mesh), None, False
    return Model(
        probabilities,
        successors,
        by_pair(mdp.expected_rewards),
        by_pair(mdp.allowed),
        _spread(mdp.terminal, 0, Spec(STATES), mesh),
        jax.make_array_from_callback(
            (), _sharding(mesh, Spec()), lambda _: np.float64(mdp.discount)
        ),
        axis=0 if flip else 1,
        ends=ends,
        endless=not ends and not mdp.terminal.any(),
        large=on_cpu and mdp.probabilities.size >= LARGE,
    )


def place_states(array: Any, mesh: Mesh) -> jax.Array:
    """An array with one entry or row for each state, spread over the devices."""
    return _spread(np.asarray(array), 0, Spec(STATES), mesh)


def place_pairs(array: Any, model: Model, mesh: Mesh) -> jax.Array:
    """An array `[S, A]`, spread over the devices as the model's are."""
    placed = place_states(array, mesh)
    return placed if model.axis == 1 else _flipped(placed, mesh, model.pairs)


def fetch(array: jax.Array, model: Model, n_states: int, shift: float = 0.0) -> Any:
    """A result with one entry or row for each state, as a NumPy array, without the padding.

    All of it is shifted by a number on the way, which costs no more than the copy.
    """
    if array.ndim == 2 and model.axis == 0:
        array = jnp.swapaxes(array, 0, 1)
    if not array.is_fully_addressable:
        whole = NamedSharding(array.sharding.mesh, Spec())  # every process gets all
        array = jax.jit(lambda x: x, out_shardings=whole)(array).addressable_data(0)
    return np.asarray(array)[:n_states] + shift


def _spread(array: Any, axis: int, spec: Spec, mesh: Mesh) -> jax.Array:
    """Each device of this process gets its states; on one CPU device nothing is copied."""
    array = _padded(array, axis, -array.shape[axis] % mesh.size)
    sharding = _sharding(mesh, spec)
    pieces = [
        jax.device_put(array[index], device, may_alias=True)
        for device, index in sharding.addressable_devices_indices_map(array.shape).items()
    ]
    return jax.make_array_from_single_device_arrays(array.shape, sharding, pieces)


def _padded(array: Any, axis: int, extra: int) -> Any:
    """The last state is repeated: no branch leads to a copy, and its values are not new."""
    if extra == 0:
        return array
    padding = [(0, 0)] * array.ndim
    padding[axis] = (0, extra)
    return np.pad(array, padding, mode="edge")


def _flipped(array: jax.Array, mesh: Mesh, spec: Spec) -> jax.Array:
    """States last."""
    return jax.jit(lambda x: jnp.swapaxes(x, -1, -2), out_shardings=_sharding(mesh, spec))(array)


def _sharding(mesh: Mesh, spec: Spec) -> NamedSharding:
    """One device has all of everything, and JAX forgets any other word for it."""
    return NamedSharding(mesh, spec if mesh.size > 1 else Spec())
