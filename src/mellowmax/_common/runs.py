"""The numbering of runs: a grid of settings, with the same runs for each.

A learner's parameters may be arrays. They broadcast to a grid of settings, and each setting has the
same numbered runs. In a batch the runs stand in a row: all of the first setting, all of the second,
and so on. A run's random numbers come from the key of its setting, folded with the number of the
run, so what a run does never depends on other runs.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from .._typing import ArrayLike, Key, Shape
from . import checks

__all__ = [
    "KEYS",
    "LAST_NUMBER",
    "devices_of",
    "evaluation_keys",
    "gather_settings",
    "key_data",
    "run_keys",
    "run_numbers",
    "setting_of_each_run",
    "settings_shape",
]

KEYS = "threefry2x32"
"""The kind of JAX key, whatever JAX's default is: a run keeps its random numbers."""
LAST_NUMBER = 2**32 - 1
"""The largest number of a run."""


def settings_shape(shapes: Sequence[Shape]) -> Shape:
    """The shape of the grid of settings that arrays of these shapes broadcast to."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError as error:
        listed = ", ".join(map(str, shapes))
        rule = "the parameters, learning rates and discounts of a learner must broadcast"
        raise ValueError(f"{rule} against each other, got the shapes {listed}") from error


def run_numbers(runs: int | Sequence[int]) -> npt.NDArray[np.uint32]:
    """The numbers of the runs: those given, or those from 0 on for a count of runs."""
    given = checks.array("runs", runs)
    if given.ndim == 0:
        return np.arange(checks.whole("runs", runs, 1, LAST_NUMBER), dtype=np.uint32)
    if not given.size:
        raise ValueError(f"`runs` must have a number, got {runs}")
    return np.array(
        [checks.whole("runs", run, 0, LAST_NUMBER) for run in given.tolist()], np.uint32
    )


def devices_of(devices: Sequence[jax.Device] | None) -> list[jax.Device]:
    """The devices that runs are shared by: those given, or all of this process."""
    if devices is None:
        return list(jax.local_devices())
    result = checks.instances("devices", devices, jax.Device, "a list of JAX devices")
    if not result:
        raise ValueError(f"`devices` must have a device, got {devices!r}")
    return result


def setting_of_each_run(settings: Shape, n_runs: int) -> npt.NDArray[np.int32]:
    """Which setting each run of a batch has, counted along the flattened grid.

    Args:
        settings: the shape of the grid.
        n_runs: how many runs each setting has.
    """
    return np.repeat(np.arange(int(np.prod(settings)), dtype=np.int32), n_runs)


def gather_settings(
    value: ArrayLike, settings: Shape, setting: npt.NDArray[np.int32], inner: int = 0
) -> npt.NDArray[np.float32]:
    """The value that each run of a batch has, `[runs, ...]` in float32.

    Args:
        value: a number, or an array that broadcasts to the grid of settings.
        settings: the shape of the grid.
        setting: of each run.
        inner: how many axes an array has behind those of the grid.
    """
    value = np.asarray(value, np.float32)
    own = value.shape[value.ndim - inner :] if value.ndim else ()
    result: npt.NDArray[np.float32] = np.broadcast_to(value, settings + own)
    return result.reshape(-1, *own)[setting]


def key_data(seed: int | Key, settings: Shape) -> npt.NDArray[np.uint32]:
    """The data of a key for each setting, `[settings, 2]`.

    Args:
        seed: a whole number, a JAX key, or keys that broadcast to the grid of settings.
        settings: the shape of that grid.

    Raises:
        TypeError: for anything else.
        ValueError: for a number or keys that do not fit.
    """
    if not isinstance(seed, jax.Array):
        seed = jax.random.key(checks.whole("seed", seed, 0, 2**32 - 1), impl=KEYS)
    typed = jnp.issubdtype(seed.dtype, jax.dtypes.prng_key)
    if not typed or str(jax.random.key_impl(seed)) != KEYS:
        raise TypeError(f"`seed` must be a whole number or JAX's {KEYS} keys, got {seed!r}")
    data = np.asarray(jax.random.key_data(seed))
    try:
        return np.broadcast_to(data, (*settings, 2)).reshape(-1, 2)
    except ValueError as error:
        rule = f"`seed` must be one key, or keys that broadcast to the {settings} settings"
        raise ValueError(f"{rule}, got keys of shape {seed.shape}") from error


def run_keys(
    data: jax.Array | npt.NDArray[np.uint32], numbers: jax.Array | npt.NDArray[np.uint32]
) -> jax.Array:
    """The key of each run, from the data of its setting's key and its number."""

    def one(data: jax.Array, number: jax.Array) -> jax.Array:
        return jax.random.fold_in(jax.random.wrap_key_data(data, impl=KEYS), number)

    return jax.vmap(one)(jnp.asarray(data), jnp.asarray(numbers))


def evaluation_keys(seed: int | Key, first: int, count: int) -> jax.Array:
    """Keys for evaluations, from the number `first` on; no training has them.

    The runs of a training are numbered from 0 up, evaluations from the largest number down.
    """
    numbers = np.uint32(LAST_NUMBER - first) - np.arange(count, dtype=np.uint32)
    return run_keys(np.tile(key_data(seed, ()), (count, 1)), numbers)
