"""Arrays whose states are spread over devices, and programs that run on all of these.

The devices form a mesh (`jax.sharding.Mesh`) with the one axis `"states"`, and each holds the rows
of its own states. A function of the planning code is written for the rows of one device; where it
needs those of the others it asks by `gather`, `largest`, `smallest` or `mean`. `on_every_device`
compiles it for the whole mesh. On a mesh of one device all of this costs nothing. The arrays can
also be NumPy's, of all states: then the function runs as it is, and nothing is compiled.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from jax.tree_util import PyTreeDef
from jax.typing import ArrayLike

from .._common.compiled_programs import keep_compiled_programs

__all__ = [
    "STATES",
    "fetch",
    "gather",
    "largest",
    "mean",
    "mesh_of_one",
    "namespace",
    "on_every_device",
    "partition_specs",
    "place_array",
    "place_scalar",
    "smallest",
    "stacked",
    "states_last",
]

STATES = "states"
"""The axis of the mesh along which states are spread."""


@functools.cache
def mesh_of_one(device: jax.Device) -> Mesh:
    """The mesh of a single device."""
    return Mesh(np.array([device]), (STATES,))


# Inside of a compiled program, or with NumPy's arrays.


def namespace(x: object) -> Any:
    """The functions for an array: NumPy's own for one of NumPy, otherwise those of JAX."""
    return np if isinstance(x, np.ndarray) else jnp


def stacked(numbers: Sequence[ArrayLike], like: jax.Array) -> jax.Array:
    """Numbers in one array, of the library and the dtype of another one."""
    if isinstance(like, np.ndarray):
        return np.array(numbers, like.dtype)
    return jnp.stack([jnp.asarray(number, like.dtype) for number in numbers])


def gather(v: jax.Array) -> jax.Array:
    """The values of all states, from those of each device."""
    return v if _alone(v) else jax.lax.all_gather(v, STATES, tiled=True)


def largest(x: jax.Array) -> jax.Array:
    """The maximum over all devices."""
    return x.max() if _alone(x) else jax.lax.pmax(x.max(), STATES)


def smallest(x: jax.Array) -> jax.Array:
    """The minimum over all devices."""
    return x.min() if _alone(x) else jax.lax.pmin(x.min(), STATES)


def mean(x: jax.Array) -> jax.Array:
    """The mean over all devices, which hold equally many."""
    return x.mean() if _alone(x) else jax.lax.pmean(x.mean(), STATES)


def _alone(x: object) -> bool:
    """Are the states all here? A collective operation would take time then too."""
    if isinstance(x, np.ndarray):
        return True
    try:
        return bool(jax.lax.axis_size(STATES) == 1)
    except NameError:  # the program is not one of a mesh
        return True


# Compiling.


def on_every_device(
    function: Callable[..., Any], mesh: Mesh, outputs: Any, donate: int | None = None
) -> Callable[..., Any]:
    """Compile a function that is written for the states of one device for those of a mesh.

    Args:
        function: the same object at each call, since its program is kept for it.
        mesh: the devices.
        outputs: how each result is spread: `P(STATES)` for one entry a state, `P()` for a result
            that is the same on all devices. How the arguments are spread is read off them.
        donate: the number of an argument whose memory the results may take: for large arrays that
            saves the time to get new pages from the system.
    """
    if mesh.size == 1:
        return _compiled(function, mesh, None, (), P(), donate)

    def call(*arguments: object) -> Any:
        leaves, tree = jax.tree.flatten(partition_specs(arguments))
        return _compiled(function, mesh, tree, tuple(leaves), outputs, donate)(*arguments)

    return call


def partition_specs(tree: object) -> Any:
    """How each array of a tree is spread over devices; what is not spread is on all of them."""
    return jax.tree.map(_spec, tree)


@functools.lru_cache(maxsize=512)
def _compiled(
    function: Callable[..., Any],
    mesh: Mesh,
    tree: PyTreeDef | None,
    specs: tuple[P, ...],
    outputs: Any,
    donate: int | None,
) -> Callable[..., Any]:
    keep_compiled_programs()
    inputs = P() if tree is None else jax.tree.unflatten(tree, specs)
    mapped = jax.shard_map(function, mesh=mesh, in_specs=inputs, out_specs=outputs, check_vma=False)
    return jax.jit(mapped, donate_argnums=donate, keep_unused=True)


def _spec(leaf: object) -> P:
    sharding = getattr(leaf, "sharding", None)
    return sharding.spec if isinstance(sharding, NamedSharding) else P()


# Moving arrays to the devices and back.


def place_array(array: npt.NDArray[Any], mesh: Mesh, axis: int = 0) -> jax.Array:
    """An array on the devices, its states along `axis`; on one CPU device nothing is copied.

    Every device holds equally many states: the last one is repeated as often as is needed. No
    transition leads to such a copy, and its values are those of the state itself.
    """
    extra = -array.shape[axis] % mesh.size
    if extra:
        padding = [(0, 0)] * array.ndim
        padding[axis] = (0, extra)
        array = np.pad(array, padding, mode="edge")
    sharding = _sharding(mesh, P(*[None] * axis, STATES))
    pieces = [
        jax.device_put(array[index], device, may_alias=True)
        for device, index in sharding.addressable_devices_indices_map(array.shape).items()
    ]
    return jax.make_array_from_single_device_arrays(array.shape, sharding, pieces)


def place_scalar(number: float, mesh: Mesh) -> jax.Array:
    """A number that all devices hold, in float64."""
    return jax.make_array_from_callback((), _sharding(mesh, P()), lambda _: np.float64(number))


def states_last(array: jax.Array, mesh: Mesh) -> jax.Array:
    """An array `[..., S, A]` of the devices as `[..., A, S]`."""
    sharding = _sharding(mesh, P(*[None] * (array.ndim - 1), STATES))
    return jax.jit(lambda x: jnp.swapaxes(x, -1, -2), out_shardings=sharding)(array)


def fetch(array: jax.Array, n_states: int) -> npt.NDArray[Any]:
    """An array `[S, ...]` as one of NumPy, without the states that were repeated."""
    if not array.is_fully_addressable:
        assert isinstance(array.sharding, NamedSharding)
        whole = NamedSharding(array.sharding.mesh, P())  # every process gets all
        array = jax.jit(lambda x: x, out_shardings=whole)(array).addressable_data(0)
    return np.asarray(array)[:n_states]


def _sharding(mesh: Mesh, spec: P) -> NamedSharding:
    """On one device the empty specification, which is what JAX gives the results there."""
    return NamedSharding(mesh, spec if mesh.size > 1 else P())
