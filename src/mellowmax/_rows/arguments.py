"""From what a caller passes to rows that a kernel understands, and back.

Values of any shape and library become `[rows, actions]` in a floating dtype to compute in; the
result goes back to the caller's shape, dtype and device. Arguments are checked here, once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from array_api_compat import (
    array_namespace,
    device,
    is_array_api_obj,
    is_jax_namespace,
    is_numpy_array,
    to_device,
)

from .._typing import Array, ArrayLike, ArrayT, Mask, Namespace, Numbers, Parameter
from .libraries import truth

__all__ = ["check_parameter", "map_rows", "move_axis", "reduce_rows"]


def reduce_rows(
    function: Callable[..., Array],
    q: ArrayT | Numbers,
    parameter: Parameter = 0.0,
    *,
    axis: int = -1,
    where: Mask = None,
    keepdims: bool = False,
) -> ArrayT:
    """One number for each row: `function(xp, q, parameter, where)` along `axis`."""
    rows = _Rows(q, parameter, axis, where)
    result = rows.xp.reshape(rows.apply(function), rows.shape)
    if keepdims:
        result = rows.xp.expand_dims(result, axis=rows.axis)
    elif not rows.shape:
        result = result[()]  # NumPy's own functions give a scalar here
    return cast(ArrayT, result)


def map_rows(
    function: Callable[..., Array],
    q: ArrayT | Numbers,
    parameter: Parameter = 0.0,
    *,
    axis: int = -1,
    where: Mask = None,
) -> ArrayT:
    """One number for each action: `function(xp, q, parameter, where)` along `axis`."""
    rows = _Rows(q, parameter, axis, where)
    actions_last = rows.xp.reshape(rows.apply(function), (*rows.shape, rows.n_actions))
    return cast(ArrayT, move_axis(rows.xp, actions_last, -1, rows.axis))


def move_axis(xp: Namespace, x: Array, source: int, target: int) -> Array:
    """`x` with one axis moved; `moveaxis` itself is not to be had under PyTorch's `vmap`."""
    order = list(range(x.ndim))
    order.insert(target % x.ndim, order.pop(source % x.ndim))
    return x if order == sorted(order) else xp.permute_dims(x, tuple(order))


def check_parameter(
    name: str, value: object, low: float = -math.inf, high: float = math.inf
) -> None:
    """Raise unless `value` is a number in [low, high]; a value that is only traced passes."""
    rule = "a number" if math.isinf(low) and math.isinf(high) else f"in [{low:g}, {high:g}]"
    if isinstance(value, list | tuple):
        value = np.asarray(value)
    if not (is_array_api_obj(value) or isinstance(value, int | float | np.generic)):
        raise TypeError(f"`{name}` must be {rule}, got {value!r}")
    number = cast(Array, value)  # or a scalar, which compares alike
    fits = number == number if rule == "a number" else (number >= low) & (number <= high)
    if is_array_api_obj(fits):
        fits = array_namespace(fits).all(fits)
    if truth(fits) is False:
        raise ValueError(f"`{name}` must be {rule}, got {value}")


class _Rows:
    """A caller's arguments as rows, and the way back.

    Attributes:
        xp: the functions of the caller's library.
        shape: of the result without the actions: the axes of `q` but `axis`, broadcast against the
            parameter.
        axis: where the actions are, counted from the end.
        n_actions: how many there are.
        dtype: of the result; the rows themselves are in single precision at least.
    """

    def __init__(self, q: ArrayLike, parameter: Parameter, axis: int, where: Mask) -> None:
        values, parameter, mask = _in_one_library(q, parameter, where)
        self.xp = xp = cast(Namespace, array_namespace(values))
        if xp.isdtype(values.dtype, ("bool", "integral")):
            kinds = xp.__array_namespace_info__().default_dtypes(device=device(values))
            values = xp.astype(values, kinds["real floating"])
        elif not xp.isdtype(values.dtype, "real floating"):
            raise TypeError(f"`q` must be real numbers, got an array of {values.dtype}")
        self.dtype = values.dtype
        if xp.finfo(values.dtype).bits < 32:  # half precision is computed in single
            values = xp.astype(values, xp.float32)
        if mask is not None:
            if not xp.isdtype(mask.dtype, "bool"):
                raise TypeError(f"`where` must be boolean, got an array of {mask.dtype}")
            shape = np.broadcast_shapes(tuple(values.shape), tuple(mask.shape))
            values, mask = xp.broadcast_to(values, shape), xp.broadcast_to(mask, shape)
        ndim, shape = values.ndim, tuple(values.shape)
        if not (isinstance(axis, int | np.integer) and -ndim <= axis < ndim):
            raise ValueError(f"`axis` must be one of the {ndim} axes of `q`, got {axis!r}")
        self.axis = int(axis) % ndim - ndim  # from the end: a parameter may add axes in front
        self.n_actions = shape[axis]
        if self.n_actions == 0:
            raise ValueError(f"`q` must have at least one action, got the shape {shape}")
        rest = list(shape)
        del rest[axis]
        number = _beside(xp, values, parameter)
        self.shape = np.broadcast_shapes(tuple(rest), tuple(number.shape))
        self.q = self._actions_last(values)
        self.parameter = self._one_a_row(number)
        self.where = None if mask is None else self._actions_last(mask)
        self.empty = None if self.where is None else self._rows_without_actions(self.where)

    def _actions_last(self, x: Array) -> Array:
        x = move_axis(self.xp, x, self.axis, -1)
        x = self.xp.broadcast_to(x, (*self.shape, self.n_actions))
        return self.xp.reshape(x, (math.prod(self.shape), self.n_actions))

    def _one_a_row(self, parameter: Array) -> Array:
        if parameter.ndim == 0:
            return self.xp.reshape(parameter, (1, 1))
        each = self.xp.broadcast_to(parameter, self.shape)
        return self.xp.reshape(each, (math.prod(self.shape), 1))

    def _rows_without_actions(self, where: Array) -> Array | None:
        """Rows with no action left, while tracing; None if there is none, and an error if one."""
        empty = ~self.xp.any(where, axis=1, keepdims=True)
        found = truth(self.xp.any(empty))
        if found:
            row = int(self.xp.argmax(self.xp.astype(empty, self.xp.int8)))
            index = tuple(int(i) for i in np.unravel_index(row, self.shape))
            raise ValueError(f"`where` must leave an action in every row, got none in {index}")
        return empty if found is None else None

    def apply(self, function: Callable[..., Array]) -> Array:
        """The result of a function of rows, in the caller's dtype."""
        with np.errstate(all="ignore"):  # infinities on the way are meant, and NaN propagates
            result = function(self.xp, self.q, self.parameter, self.where)
        if self.empty is not None:
            result = self.xp.where(self.empty, self.xp.nan, result)
        return result if result.dtype == self.dtype else self._in_half_precision(result)

    def _in_half_precision(self, result: Array) -> Array:
        """The result in the caller's dtype, in which a finite number stays finite."""
        xp, info = self.xp, self.xp.finfo(self.dtype)
        finite = xp.clip(result, float(info.min), float(info.max))
        return xp.astype(xp.where(xp.isinf(result), result, finite), self.dtype)


def _beside(xp: Namespace, q: Array, x: ArrayLike) -> Array:
    """A number or array in the dtype of `q` and on its device; JAX places its own."""
    place = None if is_jax_namespace(xp) else device(q)
    if not is_array_api_obj(x):
        return xp.asarray(x, dtype=q.dtype, device=place)
    array = xp.astype(cast(Array, x), q.dtype, copy=False)
    return array if place is None or device(array) == place else to_device(array, place)


def _in_one_library(*given: ArrayLike | None) -> list[Any]:
    """Lists become NumPy arrays, and NumPy arrays join the library of the others."""
    values = [np.asarray(x) if isinstance(x, list | tuple | np.generic) else x for x in given]
    others = [x for x in values if is_array_api_obj(x) and not is_numpy_array(x)]
    if not others:
        first = values[0]
        return [np.asarray(first) if not is_array_api_obj(first) else first, *values[1:]]
    xp = array_namespace(*others)
    place = None if is_jax_namespace(xp) else device(others[0])
    return [xp.asarray(x, device=place) if is_numpy_array(x) else x for x in values]
