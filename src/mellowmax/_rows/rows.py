"""From what a caller passes to rows that a formula understands, and back.

Values of any shape and library become `[rows, actions]` in a floating dtype to compute in; the
result goes back to the caller's shape, dtype and device.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import numpy as np
from array_api_compat import array_namespace, device, is_array_api_obj

from .._common.checks import unmasked
from .._common.shown import shown
from .._typing import Array, ArrayT, Mask, Namespace, Numbers, Parameter, Prior, Shape
from .arguments import (
    Call,
    array_if_lists,
    beside,
    broadcast,
    check_axis,
    check_prior,
    in_one_library,
    truth_values,
)
from .libraries.tracing import truth
from .quick import host_arrays

if TYPE_CHECKING:
    from .row_function import RowFunction

__all__ = ["map_rows", "move_axis", "reduce_rows"]


def reduce_rows(
    function: RowFunction,
    q: ArrayT | Numbers,
    parameter: Parameter = 0.0,
    *,
    name: str = "",
    axis: int = -1,
    where: Mask = None,
    prior: Prior = None,
    keepdims: bool = False,
) -> ArrayT:
    """One number for each row: `function(xp, q, parameter, counted)` along `axis`.

    `name` is that of the parameter.
    """
    q, where, prior = array_if_lists(q), truth_values(where), _prior_array(prior)
    call = Call(q, parameter, name, axis, where, prior, keepdims)
    general = functools.partial(_reduced, function)
    result = host_arrays.answer(function.quick, call, general)
    if result is None:
        result = general(call)
    return cast(ArrayT, result if result.ndim else result[()])  # NumPy's own give a scalar here


def _reduced(function: RowFunction, call: Call) -> Array:
    """One number for each row, by the general path."""
    rows = _Rows(call)
    result = rows.xp.reshape(rows.apply(function), rows.shape)
    return rows.xp.expand_dims(result, axis=rows.axis) if call.keepdims else result


def map_rows(
    function: RowFunction,
    q: ArrayT | Numbers,
    parameter: Parameter = 0.0,
    *,
    name: str = "",
    axis: int = -1,
    where: Mask = None,
    prior: Prior = None,
) -> ArrayT:
    """One number for each action: `function(xp, q, parameter, counted)` along `axis`.

    `name` is that of the parameter.
    """
    q, where, prior = array_if_lists(q), truth_values(where), _prior_array(prior)
    call = Call(q, parameter, name, axis, where, prior)
    general = functools.partial(_mapped, function)
    result = host_arrays.answer(function.quick, call, general)
    return cast(ArrayT, general(call) if result is None else result)


def _mapped(function: RowFunction, call: Call) -> Array:
    """One number for each action, by the general path."""
    rows = _Rows(call)
    actions_last = rows.xp.reshape(rows.apply(function), (*rows.shape, rows.n_actions))
    return move_axis(rows.xp, actions_last, -1, rows.axis)


def move_axis(xp: Namespace, x: Array, source: int, target: int) -> Array:
    """`x` with one axis moved; `moveaxis` itself is not to be had under PyTorch's `vmap`."""
    order = list(range(x.ndim))
    order.insert(target % x.ndim, order.pop(source % x.ndim))
    return x if order == sorted(order) else xp.permute_dims(x, tuple(order))


def _prior_array(prior: Prior) -> Array | None:
    return None if prior is None else cast(Array, array_if_lists(prior, "prior"))


class _Rows:
    """A caller's arguments as rows, and the way back.

    Attributes:
        xp: the functions of the caller's library.
        shape: of the result without the actions: the axes of `q` but `axis`, broadcast against the
            parameter.
        axis: where the actions are, counted from the end.
        n_actions: how many there are.
        dtype: of the result; the rows themselves are in single precision at least.
        counted: the actions that count, as a mask or as the weights of a prior; None for all.
    """

    def __init__(self, call: Call) -> None:
        q, parameter, name, axis, where, prior, _ = call
        unmasked("q", q)
        unmasked("where", where)
        given = {"q": q, name: parameter, "where": where, "prior": prior}
        values, parameter, mask, prior = in_one_library(given)
        self.xp = xp = cast(Namespace, array_namespace(values))
        if xp.isdtype(values.dtype, ("bool", "integral")):
            kinds = xp.__array_namespace_info__().default_dtypes(device=device(values))
            values = xp.astype(values, kinds["real floating"])
        elif not xp.isdtype(values.dtype, "real floating"):
            raise TypeError(f"`q` must be real numbers, got an array of {values.dtype}")
        if xp.finfo(values.dtype).bits > 64:
            rule = "must be numbers of at most 64 bits"
            raise TypeError(f"`q` {rule}, got an array of {values.dtype}")
        self.dtype = values.dtype
        if xp.finfo(values.dtype).bits < 32:  # half precision is computed in single
            values = xp.astype(values, xp.float32)
        if values.ndim == 0:
            raise ValueError(f"`q` must have an axis of actions, got the number {q}")
        self.axis = check_axis(axis, values.ndim)  # from the end: a parameter may add axes in front
        if mask is not None:
            if not is_array_api_obj(mask):
                raise TypeError(f"`where` must be a boolean array, got {shown(where)}")
            if not xp.isdtype(mask.dtype, "bool"):
                rule = "must be boolean, or integers that are 0 or 1"
                raise TypeError(f"`where` {rule}, got an array of {mask.dtype}")
            shape = broadcast("where", tuple(mask.shape), "`q`", tuple(values.shape))
            values, mask = xp.broadcast_to(values, shape), xp.broadcast_to(mask, shape)
        if prior is not None:
            prior = check_prior(xp, prior, values, self.axis)
            shape = broadcast("prior", tuple(prior.shape), "`q`", tuple(values.shape))
            values = xp.broadcast_to(values, shape)
            mask = None if mask is None else xp.broadcast_to(mask, shape)
        shape = tuple(values.shape)
        self.n_actions = shape[self.axis]
        if self.n_actions == 0:
            raise ValueError(f"`q` must have at least one action, got the shape {shape}")
        rest = list(shape)
        del rest[self.axis]
        number = beside(xp, values, parameter)
        self.shape = _shape_of_rows(name, tuple(number.shape), tuple(rest), self.axis)
        self.q = self._actions_last(values)
        self.parameter = self._one_a_row(number)
        mask = None if mask is None else self._actions_last(mask)
        self.empty = None if mask is None else self._rows_without_actions("where", mask)
        self.counted = mask if prior is None else self._weights(prior, mask)

    def _weights(self, prior: Array, mask: Array | None) -> Array:
        """The prior of what the mask leaves, which adds up to 1; one row of it if it has just one.

        Weights so small that a library may take them for 0 are 0.
        """
        xp = self.xp
        if math.prod(prior.shape) == self.n_actions and mask is None:
            prior = xp.reshape(prior, (1, self.n_actions))
        else:
            prior = self._actions_last(prior)
        if mask is not None:
            prior = xp.where(mask, prior, 0.0)
        with np.errstate(invalid="ignore"):  # a row without a weight is an error, raised below
            prior = prior / xp.max(prior, axis=1, keepdims=True)
            prior = prior / xp.sum(prior, axis=1, keepdims=True)
        prior = xp.where(prior < xp.finfo(prior.dtype).smallest_normal, 0.0, prior)  # NaN stays
        some = self._rows_without_actions("prior", prior > 0)
        if some is not None:
            self.empty = some if self.empty is None else self.empty | some
        return prior

    def _actions_last(self, x: Array) -> Array:
        x = move_axis(self.xp, x, self.axis, -1)
        x = self.xp.broadcast_to(x, (*self.shape, self.n_actions))
        return self.xp.reshape(x, (math.prod(self.shape), self.n_actions))

    def _one_a_row(self, parameter: Array) -> Array:
        if parameter.ndim == 0:
            return self.xp.reshape(parameter, (1, 1))
        each = self.xp.broadcast_to(parameter, self.shape)
        return self.xp.reshape(each, (math.prod(self.shape), 1))

    def _rows_without_actions(self, name: str, counted: Array) -> Array | None:
        """Rows with no action left, while tracing; None if there is none, and an error if one."""
        empty = ~self.xp.any(counted, axis=1, keepdims=True)
        found = truth(self.xp.any(empty))
        if found:
            if name == "prior":
                rule = "must have a weight above 0 in every row"
                raise ValueError(f"`prior` {rule} for an action that `where` leaves, got none")
            row = int(self.xp.argmax(self.xp.astype(empty, self.xp.int8)))
            index = tuple(int(i) for i in np.unravel_index(row, self.shape))
            rule = "must leave an action in every row"
            raise ValueError(f"`where` {rule}, got none in {index}: pass the other rows alone")
        return empty if found is None else None

    def apply(self, function: Callable[..., Array]) -> Array:
        """The result of a function of rows, in the caller's dtype."""
        with np.errstate(all="ignore"):  # infinities on the way are meant, and NaN propagates
            result = function(self.xp, self.q, self.parameter, self.counted)
        if self.empty is not None:
            result = self.xp.where(self.empty, self.xp.nan, result)
        return result if result.dtype == self.dtype else self._in_half_precision(result)

    def _in_half_precision(self, result: Array) -> Array:
        """The result in the caller's dtype, in which a finite number stays finite."""
        xp, info = self.xp, self.xp.finfo(self.dtype)
        finite = xp.clip(result, float(info.min), float(info.max))
        return xp.astype(xp.where(xp.isinf(result), result, finite), self.dtype)


def _shape_of_rows(name: str, parameter: Shape, rows: Shape, axis: int) -> Shape:
    """The shape of the rows, broadcast against the parameter.

    A parameter that is laid out as the result with `keepdims` would be taken for another axis in
    front of the rows, and each row would meet the parameters of all others.
    """
    if not parameter:
        return rows
    shape = broadcast(name, parameter, "the rows of `q`", rows)
    if len(parameter) == len(rows) + 1 and math.prod(shape) > math.prod(rows) > 0:
        kept = list(rows)
        kept.insert(axis % len(parameter), 1)
        if all(n in (1, m) for n, m in zip(parameter, kept, strict=True)):
            rule = f"must have the shape {rows} of the rows of `q`, without the axis of the actions"
            raise ValueError(f"`{name}` {rule}, got {parameter}")
    return shape
