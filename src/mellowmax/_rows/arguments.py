"""From what a caller passes to rows that a kernel understands, and back.

Values of any shape and library become `[rows, actions]` in a floating dtype to compute in; the
result goes back to the caller's shape, dtype and device. Arguments are checked here, once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from array_api_compat import (
    array_namespace,
    device,
    is_array_api_obj,
    is_jax_namespace,
    is_numpy_array,
    to_device,
)

from .libraries import truth

__all__ = ["check_parameter", "map_rows", "moved", "reduce_rows"]


def reduce_rows(
    function: Callable[..., Any],
    q: Any,
    parameter: Any = 0.0,
    *,
    axis: int = -1,
    where: Any = None,
    keepdims: bool = False,
) -> Any:
    """One number for each row: `function` along `axis`."""
    rows = _Rows(q, parameter, axis, where)
    result = rows.xp.reshape(rows.apply(function), rows.shape)
    if keepdims:
        return rows.xp.expand_dims(result, axis=rows.axis)
    return result if rows.shape else result[()]  # NumPy's own functions give a scalar here


def map_rows(
    function: Callable[..., Any], q: Any, parameter: Any = 0.0, *, axis: int = -1, where: Any = None
) -> Any:
    """One number for each action: `function` along `axis`."""
    rows = _Rows(q, parameter, axis, where)
    xp = rows.xp
    actions_last = xp.reshape(rows.apply(function), (*rows.shape, rows.actions))
    return moved(xp, actions_last, -1, rows.axis)


def moved(xp: Any, x: Any, source: int, target: int) -> Any:
    """`x` with one axis moved; `moveaxis` itself is not to be had under PyTorch's `vmap`."""
    order = list(range(x.ndim))
    order.insert(target % x.ndim, order.pop(source % x.ndim))
    return x if order == sorted(order) else xp.permute_dims(x, tuple(order))


def check_parameter(name: str, value: Any, low: float = -math.inf, high: float = math.inf) -> None:
    """Raise unless `value` is a number in [low, high]; a value that is only traced passes."""
    rule = "a number" if math.isinf(low) and math.isinf(high) else f"in [{low:g}, {high:g}]"
    if isinstance(value, list | tuple):
        value = np.asarray(value)
    if not (is_array_api_obj(value) or isinstance(value, int | float | np.generic)):
        raise TypeError(f"`{name}` must be {rule}, got {value!r}")
    fits = value == value if rule == "a number" else (value >= low) & (value <= high)
    if is_array_api_obj(fits):
        fits = array_namespace(fits).all(fits)
    if truth(fits) is False:
        raise ValueError(f"`{name}` must be {rule}, got {value}")


class _Rows:
    """A caller's arguments as rows, and the way back."""

    def __init__(self, q: Any, parameter: Any, axis: int, where: Any) -> None:
        q, parameter, where = _one_library(q, parameter, where)
        self.xp = xp = array_namespace(q)
        if xp.isdtype(q.dtype, ("bool", "integral")):
            kinds = xp.__array_namespace_info__().default_dtypes(device=device(q))
            q = xp.astype(q, kinds["real floating"])
        elif not xp.isdtype(q.dtype, "real floating"):
            raise TypeError(f"`q` must be real numbers, got an array of {q.dtype}")
        self.dtype = q.dtype
        if xp.finfo(q.dtype).bits < 32:  # half precision is computed in single
            q = xp.astype(q, xp.float32)
        if where is not None:
            if not xp.isdtype(where.dtype, "bool"):
                raise TypeError(f"`where` must be boolean, got an array of {where.dtype}")
            shape = np.broadcast_shapes(tuple(q.shape), tuple(where.shape))
            q, where = xp.broadcast_to(q, shape), xp.broadcast_to(where, shape)
        if not (isinstance(axis, int | np.integer) and -q.ndim <= axis < q.ndim):
            raise ValueError(f"`axis` must be one of the {q.ndim} axes of `q`, got {axis!r}")
        self.axis = int(axis) % q.ndim - q.ndim  # from the end: a parameter may add axes in front
        self.actions = q.shape[axis]
        if self.actions == 0:
            raise ValueError(f"`q` must have at least one action, got the shape {tuple(q.shape)}")
        rest = list(q.shape)
        del rest[axis]
        parameter = _like(xp, parameter, q)
        self.shape = np.broadcast_shapes(tuple(rest), tuple(parameter.shape))
        self.q = self._actions_last(q)
        self.parameter = self._parameter_of_each(parameter)
        self.where = None if where is None else self._actions_last(where)
        self.empty = None if where is None else self._rows_without_actions()

    def _actions_last(self, x: Any) -> Any:
        x = moved(self.xp, x, self.axis, -1)
        x = self.xp.broadcast_to(x, (*self.shape, self.actions))
        return self.xp.reshape(x, (math.prod(self.shape), self.actions))

    def _parameter_of_each(self, parameter: Any) -> Any:
        if parameter.ndim == 0:
            return self.xp.reshape(parameter, (1, 1))
        return self.xp.reshape(
            self.xp.broadcast_to(parameter, self.shape), (math.prod(self.shape), 1)
        )

    def _rows_without_actions(self) -> Any:
        """Rows with no action left, while tracing; None if there is none, and an error if one."""
        empty = ~self.xp.any(self.where, axis=1, keepdims=True)
        found = truth(self.xp.any(empty))
        if found:
            row = int(self.xp.argmax(self.xp.astype(empty, self.xp.int8)))
            index = tuple(int(i) for i in np.unravel_index(row, self.shape))
            raise ValueError(f"`where` must leave an action in every row, got none in {index}")
        return empty if found is None else None

    def apply(self, function: Callable[..., Any]) -> Any:
        """The result of a function of rows, in the caller's dtype."""
        with np.errstate(all="ignore"):  # infinities on the way are meant, and NaN propagates
            result = function(self.xp, self.q, self.parameter, self.where)
        if self.empty is not None:
            result = self.xp.where(self.empty, self.xp.nan, result)
        return result if result.dtype == self.dtype else self._in_range(result)

    def _in_range(self, result: Any) -> Any:
        """The result in half precision; a finite number stays finite."""
        xp, info = self.xp, self.xp.finfo(self.dtype)
        finite = xp.clip(result, float(info.min), float(info.max))
        return xp.astype(xp.where(xp.isinf(result), result, finite), self.dtype)


def _like(xp: Any, x: Any, q: Any) -> Any:
    """A number or array in the dtype of `q`, and beside it; JAX places its own."""
    place = None if is_jax_namespace(xp) else device(q)
    if not is_array_api_obj(x):
        return xp.asarray(x, dtype=q.dtype, device=place)
    x = xp.astype(x, q.dtype, copy=False)
    return x if place is None or device(x) == place else to_device(x, place)


def _one_library(*given: Any) -> list[Any]:
    """Lists become NumPy arrays, and NumPy arrays join the library of the others."""
    values = [np.asarray(x) if isinstance(x, list | tuple | np.generic) else x for x in given]
    others = [x for x in values if is_array_api_obj(x) and not is_numpy_array(x)]
    if not others:
        first = values[0]
        return [np.asarray(first) if not is_array_api_obj(first) else first, *values[1:]]
    xp = array_namespace(*others)
    place = None if is_jax_namespace(xp) else device(others[0])
    return [xp.asarray(x, device=place) if is_numpy_array(x) else x for x in values]
