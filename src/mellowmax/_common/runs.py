"""Many runs at once: a lane for each run of each setting, the runs of a setting side by side.

What a run does depends on its setting, its seed and its number, never on the lanes beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from . import checks

__all__ = ["KEYS", "fold", "grid", "key_data", "run_numbers", "setting_of_lane", "spread"]

KEYS = "threefry2x32"
"""Whatever JAX's default is: a run keeps its numbers."""


def grid(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape of the grid of settings that arrays of some shapes broadcast to."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError as error:
        listed = ", ".join(map(str, shapes))
        rule = "the parameters and learning rates of a learner must broadcast"
        raise ValueError(f"{rule} against each other, got the shapes {listed}") from error


def run_numbers(runs: int | Sequence[int]) -> npt.NDArray[np.uint32]:
    """The numbers of `runs` runs, or those given."""
    if np.ndim(runs) == 0:
        return np.arange(checks.whole("runs", runs, 1), dtype=np.uint32)
    if len(runs) == 0:  # type: ignore[arg-type]
        raise ValueError(f"`runs` must have a number, got {runs}")
    numbers = [checks.whole("runs", run, 0, 2**32 - 1) for run in runs]  # type: ignore[union-attr]
    return np.array(numbers, np.uint32)


def setting_of_lane(settings: tuple[int, ...], n_runs: int) -> npt.NDArray[np.int32]:
    """The number of the setting of each lane."""
    return np.repeat(np.arange(int(np.prod(settings)), dtype=np.int32), n_runs)


def spread(
    value: Any, settings: tuple[int, ...], setting: npt.NDArray[np.int32], inner: int = 0
) -> npt.NDArray[np.float32]:
    """A value for each lane, from an array that broadcasts to the grid of settings.

    Args:
        value: a number, or an array.
        settings: the shape of the grid.
        setting: of each lane.
        inner: how many axes behind those of the grid an array has.
    """
    value = np.asarray(value, np.float32)
    own = value.shape[value.ndim - inner :] if value.ndim else ()
    result: npt.NDArray[np.float32] = np.broadcast_to(value, settings + own)
    return result.reshape(-1, *own)[setting]


def key_data(seed: Any, settings: tuple[int, ...]) -> npt.NDArray[np.uint32]:
    """The data of a key for each setting, `[settings, 2]`.

    Args:
        seed: a whole number, a JAX key, or keys that broadcast to the grid of settings.
        settings: the shape of that grid.

    Raises:
        ValueError: for anything else.
    """
    if not isinstance(seed, jax.Array):
        seed = jax.random.key(checks.whole("seed", seed, 0, 2**32 - 1), impl=KEYS)
    typed = jnp.issubdtype(seed.dtype, jax.dtypes.prng_key)
    if not typed or str(jax.random.key_impl(seed)) != KEYS:
        raise ValueError(f"`seed` must be a whole number or JAX's {KEYS} keys, got {seed!r}")
    data = np.asarray(jax.random.key_data(seed))
    return np.broadcast_to(data, (*settings, 2)).reshape(-1, 2)


def fold(data: Any, runs: Any) -> Any:
    """The key of each lane, from the data of its setting's key and the number of its run."""
    one = jax.vmap(lambda d, run: jax.random.fold_in(jax.random.wrap_key_data(d, impl=KEYS), run))
    return one(data, runs)
