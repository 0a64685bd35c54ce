"""What callers of the array functions pass: checked, and in one library.

Arguments are checked here, once. An error says the argument, the rule, and what came.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
from array_api_compat import (
    array_namespace,
    device,
    is_array_api_obj,
    is_jax_namespace,
    is_numpy_array,
    is_torch_namespace,
    to_device,
)

from .._common.checks import unmasked
from .._common.shown import shown
from .._typing import Array, ArrayLike, ArrayT, Key, Mask, Namespace, Numbers, Shape
from .libraries.tracing import as_number, is_symbol, truth

__all__ = [
    "Call",
    "array_if_lists",
    "beside",
    "broadcast",
    "check_axis",
    "check_key",
    "check_parameter",
    "check_prior",
    "check_probabilities",
    "check_uniform",
    "in_one_library",
    "truth_values",
]


class Call(NamedTuple):
    """The arguments of an operator or a policy, nearly as its caller passed them."""

    q: Any
    parameter: Any
    name: str
    """What the parameter is called."""
    axis: Any
    where: Any
    prior: Any
    keepdims: bool = False


def check_parameter(
    name: str, value: object, low: float = -math.inf, high: float = math.inf
) -> None:
    """Raise unless `value` is a number in [low, high]; a value that is only traced passes."""
    number = as_number(value)
    if is_symbol(value) or (number is not None and low <= number <= high):
        return
    rule = "a number" if math.isinf(low) and math.isinf(high) else f"in [{low:g}, {high:g}]"
    unmasked(name, value)
    if isinstance(value, list | tuple):
        value = _of_lists(name, value)
    known = is_array_api_obj(value) or isinstance(value, int | float | np.generic)
    if not known or getattr(getattr(value, "dtype", None), "kind", "f") not in "fiubV":
        raise TypeError(f"`{name}` must be {rule}, got {shown(value)}")
    if type(value) is int and number is None:
        raise ValueError(f"`{name}` must be {rule} of at most 64 bits, got {shown(value)}")
    array = cast(Array, value)  # or a scalar, which compares alike
    fits = array == array if rule == "a number" else (array >= low) & (array <= high)
    if is_array_api_obj(fits):
        fits = array_namespace(fits).all(fits)
    if truth(fits) is False:
        raise ValueError(f"`{name}` must be {rule}, got {shown(value)}")


def check_axis(axis: object, ndim: int, name: str = "q") -> int:
    """One of the axes of the array with this name, counted from the end."""
    if not isinstance(axis, int | np.integer):
        raise TypeError(f"`axis` must be a whole number, got {shown(axis)}")
    if not -ndim <= axis < ndim:
        raise ValueError(f"`axis` must be one of the {ndim} axes of `{name}`, got {shown(axis)}")
    return int(axis) % ndim - ndim


def check_probabilities(name: str, value: object, axis: object) -> int:
    """Where an array of floating-point numbers has its actions, counted from the end.

    Raises:
        TypeError: for what is no such array, or no axis.
        ValueError: for one without that axis, or without an action.
    """
    unmasked(name, value)
    if not is_array_api_obj(value):
        raise TypeError(f"`{name}` must be an array, got {shown(value)}")
    array = cast(Array, value)
    xp: Namespace = array_namespace(array)
    if not xp.isdtype(array.dtype, "real floating"):
        raise TypeError(f"`{name}` must be floating-point numbers, got an array of {array.dtype}")
    if array.ndim == 0:
        raise ValueError(f"`{name}` must have an axis of actions, got the number {array}")
    along = check_axis(axis, array.ndim, name)
    if array.shape[along] == 0:
        got = f"the shape {tuple(array.shape)}"
        raise ValueError(f"`{name}` must have at least one action, got {got}")
    return along


def check_uniform(policy: Array, uniform: object, axis: int) -> tuple[Array, Array]:
    """Probabilities and the uniform numbers of their rows, in one library.

    Raises:
        TypeError: for what is no array of floating-point numbers.
        ValueError: for numbers that do not fit the rows, or are not in [0, 1].
    """
    unmasked("uniform", uniform)
    if not is_array_api_obj(uniform) and not isinstance(uniform, np.generic):
        raise TypeError(f"`uniform` must be an array of numbers, got {shown(uniform)}")
    numbers = cast(Array, uniform)
    if type(numbers) is not type(policy):
        policy, numbers = in_one_library({"policy": policy, "uniform": numbers})
    xp: Namespace = array_namespace(policy)
    if not xp.isdtype(numbers.dtype, "real floating"):
        got = f"an array of {numbers.dtype}"
        raise TypeError(f"`uniform` must be floating-point numbers, got {got}")
    rows = [*policy.shape]
    del rows[axis]
    if tuple(numbers.shape) != tuple(rows):
        broadcast("uniform", tuple(numbers.shape), "the rows of `policy`", tuple(rows))
    if truth(xp.all((numbers >= 0) & (numbers <= 1))) is False:
        raise ValueError(f"`uniform` must be in [0, 1], got {shown(numbers)}")
    return policy, numbers


def check_prior(xp: Namespace, prior: object, q: Array, axis: int) -> Array:
    """Weights of actions in the dtype and on the device of `q`, with the actions along `axis`.

    Raises:
        TypeError: for what is no array of real numbers.
        ValueError: for weights that are negative or not finite, or not one for each action.
    """
    unmasked("prior", prior)
    if not is_array_api_obj(prior):
        raise TypeError(f"`prior` must be an array, got {shown(prior)}")
    given = cast(Array, prior)
    if not xp.isdtype(given.dtype, ("bool", "integral", "real floating")):
        raise TypeError(f"`prior` must be real numbers, got an array of {given.dtype}")
    n_actions, shape = q.shape[axis], tuple(given.shape)
    if given.ndim == 1:  # one for all rows, wherever the actions are
        given = xp.reshape(given, shape + (1,) * (-axis - 1))
    if given.ndim < -axis or given.shape[axis] != n_actions:
        rule = f"must have the {n_actions} actions of `q` along its axis {axis}, or be one row of"
        raise ValueError(f"`prior` {rule} {n_actions}, got the shape {shape}")
    given = beside(xp, q, given)
    if truth(xp.all((given >= 0) & (given < xp.inf))) is False:
        raise ValueError(f"`prior` must be finite and at least 0, got {shown(prior)}")
    return given


def check_key(xp: Namespace, key: Key) -> None:
    """Raise unless `key` is what the library draws random numbers from."""
    seed = isinstance(key, int | np.integer)
    if is_jax_namespace(xp):
        import jax

        dtype = key.dtype if isinstance(key, jax.Array | np.ndarray) else np.float64
        typed = jax.numpy.issubdtype(dtype, jax.dtypes.prng_key)
        fits, rule = typed or (dtype == np.uint32 and not seed), "a JAX key"
    elif is_torch_namespace(xp):
        import torch

        fits, rule = seed or isinstance(key, torch.Generator), "a torch.Generator or a seed"
    else:
        kinds = np.random.Generator | np.random.BitGenerator | np.random.SeedSequence
        fits, rule = seed or isinstance(key, kinds), "a numpy.random.Generator or a seed"
    if not fits:
        raise TypeError(f"`key` must be {rule}, got {shown(key)}")
    if seed and key < 0:
        raise ValueError(f"`key` must be at least 0 where it is a seed, got {key}")


def truth_values(where: Mask) -> Mask:
    """A mask as truth values, for which integers that are 0 or 1 stand too.

    While tracing, one with another integer leaves no action in any row.
    """
    if where is None or str(getattr(where, "dtype", "")).endswith("bool"):
        return where
    unmasked("where", where)
    if isinstance(where, list | tuple):
        where = cast(Array, _of_lists("where", where))
    if not is_array_api_obj(where):
        return where
    mask = cast(Array, where)
    xp: Namespace = array_namespace(mask)
    if not xp.isdtype(mask.dtype, "integral"):
        return mask
    others = xp.any((mask != 0) & (mask != 1))
    if truth(others):
        rule = "must be boolean, or integers that are 0 or 1"
        raise ValueError(f"`where` {rule}, got {shown(where)}")
    return (mask == 1) & ~others


def array_if_lists(q: ArrayT | Numbers, name: str = "q") -> ArrayT | Numbers:
    """An argument, as an array if it is in lists."""
    if not isinstance(q, list | tuple):
        return q
    unmasked(name, q)
    return cast(ArrayT, _of_lists(name, q))


def broadcast(name: str, given: Shape, against: str, shape: Shape) -> Shape:
    """The shape that an argument and another shape broadcast to, or an error that names both."""
    try:
        return _broadcast_shapes(given, shape)
    except ValueError as error:
        rule = f"must broadcast against {against}, of shape {shape}"
        raise ValueError(f"`{name}` {rule}, got {given}") from error


def _broadcast_shapes(*shapes: Shape) -> Shape:
    """The shape that all broadcast to; of JAX or PyTorch, where a size is only a symbol."""
    kinds = {type(size).__name__ for shape in shapes for size in shape}
    if kinds <= {"int"}:
        return np.broadcast_shapes(*shapes)
    if "SymInt" in kinds:
        import torch

        return tuple(torch.broadcast_shapes(*shapes))
    import jax.numpy as jnp

    return jnp.broadcast_shapes(*shapes)


def _of_lists(name: str, values: object) -> npt.NDArray[Any]:
    """Nested lists as an array."""
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ValueError(f"`{name}` must be an array of numbers, got a ragged list") from error


def beside(xp: Namespace, q: Array, x: ArrayLike) -> Array:
    """A number or array in the dtype of `q` and on its device; JAX places its own."""
    place = None if is_jax_namespace(xp) else device(q)
    if is_symbol(x):
        return cast(Array, cast(Any, xp).full((), x, dtype=q.dtype, device=place))
    if not is_array_api_obj(x):
        return xp.asarray(x, dtype=q.dtype, device=place)
    array = xp.astype(cast(Array, x), q.dtype, copy=False)
    return array if place is None or device(array) == place else to_device(array, place)


def in_one_library(given: dict[str, ArrayLike | None]) -> list[Any]:
    """Lists become NumPy arrays, and NumPy arrays join the library of the others."""
    values = [
        _of_lists(name, x) if isinstance(x, list | tuple | np.generic) else x
        for name, x in given.items()
    ]
    others = [x for x in values if is_array_api_obj(x) and not is_numpy_array(x)]
    if not others:
        first = values[0]
        return [np.asarray(first) if not is_array_api_obj(first) else first, *values[1:]]
    try:
        xp = array_namespace(*others)
    except TypeError as error:
        names = " and ".join(f"`{name}`" for name, x in given.items() if x is not None)
        kinds = " and ".join(sorted({type(x).__module__.partition(".")[0] for x in others}))
        rule = f"{names} must be arrays of one library, or NumPy's"
        raise TypeError(f"{rule}, got {kinds}") from error
    place = None if is_jax_namespace(xp) else device(others[0])
    return [xp.asarray(x, device=place) if is_numpy_array(x) else x for x in values]
