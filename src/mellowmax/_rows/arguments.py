"""From what a caller passes to rows that a kernel understands, and back.

Values of any shape and library become `[rows, actions]` in a floating dtype to compute in; the
result goes back to the caller's shape, dtype and device. Arguments are checked here, once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

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

from .._typing import Array, ArrayLike, ArrayT, Key, Mask, Namespace, Numbers, Parameter, Shape
from . import small
from .libraries import as_number, is_symbol, truth
from .shown import shown

if TYPE_CHECKING:
    from .row_function import RowFunction

__all__ = [
    "check_axis",
    "check_key",
    "check_parameter",
    "check_probabilities",
    "check_uniform",
    "check_unmasked",
    "map_rows",
    "move_axis",
    "reduce_rows",
]


def reduce_rows(
    function: RowFunction,
    q: ArrayT | Numbers,
    parameter: Parameter = 0.0,
    *,
    name: str = "",
    axis: int = -1,
    where: Mask = None,
    keepdims: bool = False,
) -> ArrayT:
    """One number for each row: `function(xp, q, parameter, where)` along `axis`.

    `name` is that of the parameter.
    """

    def of_any(q: ArrayLike, parameter: Parameter) -> Array:
        rows = _Rows(q, parameter, name, axis, where)
        result = rows.xp.reshape(rows.apply(function), rows.shape)
        return rows.xp.expand_dims(result, axis=rows.axis) if keepdims else result

    q, where = _no_list(q), _truths(where)
    result = small.answer(function.ordinary, q, parameter, axis, where, of_any, keepdims)
    if result is None:
        result = of_any(q, parameter)
    return cast(ArrayT, result if result.ndim else result[()])  # NumPy's own give a scalar here


def map_rows(
    function: RowFunction,
    q: ArrayT | Numbers,
    parameter: Parameter = 0.0,
    *,
    name: str = "",
    axis: int = -1,
    where: Mask = None,
) -> ArrayT:
    """One number for each action: `function(xp, q, parameter, where)` along `axis`.

    `name` is that of the parameter.
    """

    def of_any(q: ArrayLike, parameter: Parameter) -> Array:
        rows = _Rows(q, parameter, name, axis, where)
        actions_last = rows.xp.reshape(rows.apply(function), (*rows.shape, rows.n_actions))
        return move_axis(rows.xp, actions_last, -1, rows.axis)

    q, where = _no_list(q), _truths(where)
    result = small.answer(function.ordinary, q, parameter, axis, where, of_any)
    return cast(ArrayT, of_any(q, parameter) if result is None else result)


def move_axis(xp: Namespace, x: Array, source: int, target: int) -> Array:
    """`x` with one axis moved; `moveaxis` itself is not to be had under PyTorch's `vmap`."""
    order = list(range(x.ndim))
    order.insert(target % x.ndim, order.pop(source % x.ndim))
    return x if order == sorted(order) else xp.permute_dims(x, tuple(order))


def check_parameter(
    name: str, value: object, low: float = -math.inf, high: float = math.inf
) -> None:
    """Raise unless `value` is a number in [low, high]; a value that is only traced passes."""
    number = as_number(value)
    if is_symbol(value) or (number is not None and low <= number <= high):
        return
    rule = "a number" if math.isinf(low) and math.isinf(high) else f"in [{low:g}, {high:g}]"
    check_unmasked(name, value)
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


def check_unmasked(name: str, *values: object) -> None:
    """Raise for a masked array of NumPy's, or a list with one: its mask would be lost."""
    for value in values:
        if isinstance(value, np.ma.MaskedArray):
            instead = ": say by `where` which actions count" if name == "q" else ""
            rule = "must be an array without a mask of its own"
            raise TypeError(f"`{name}` {rule}, got a numpy.ma.MaskedArray{instead}")
        if isinstance(value, list | tuple):
            check_unmasked(name, *value)


def check_probabilities(name: str, value: object, axis: object) -> int:
    """Where an array of floating-point numbers has its actions, counted from the end.

    Raises:
        TypeError: for what is no such array, or no axis.
        ValueError: for one without that axis, or without an action.
    """
    check_unmasked(name, value)
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
    check_unmasked("uniform", uniform)
    if not is_array_api_obj(uniform) and not isinstance(uniform, np.generic):
        raise TypeError(f"`uniform` must be an array of numbers, got {shown(uniform)}")
    numbers = cast(Array, uniform)
    if type(numbers) is not type(policy):
        policy, numbers = _in_one_library({"policy": policy, "uniform": numbers})
    xp: Namespace = array_namespace(policy)
    if not xp.isdtype(numbers.dtype, "real floating"):
        got = f"an array of {numbers.dtype}"
        raise TypeError(f"`uniform` must be floating-point numbers, got {got}")
    rows = [*policy.shape]
    del rows[axis]
    if tuple(numbers.shape) != tuple(rows):
        _broadcast("uniform", tuple(numbers.shape), "the rows of `policy`", tuple(rows))
    if truth(xp.all((numbers >= 0) & (numbers <= 1))) is False:
        raise ValueError(f"`uniform` must be in [0, 1], got {shown(numbers)}")
    return policy, numbers


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


def _truths(where: Mask) -> Mask:
    """A mask as truth values, for which integers that are 0 or 1 stand too.

    While tracing, one with another integer leaves no action in any row.
    """
    if where is None or str(getattr(where, "dtype", "")).endswith("bool"):
        return where
    check_unmasked("where", where)
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


def _no_list(q: ArrayT | Numbers) -> ArrayT | Numbers:
    """The values, as an array if they are in lists."""
    if not isinstance(q, list | tuple):
        return q
    check_unmasked("q", q)
    return cast(ArrayT, _of_lists("q", q))


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

    def __init__(
        self, q: ArrayLike, parameter: Parameter, name: str, axis: int, where: Mask
    ) -> None:
        check_unmasked("q", q)
        check_unmasked("where", where)
        values, parameter, mask = _in_one_library({"q": q, name: parameter, "where": where})
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
        if mask is not None:
            if not is_array_api_obj(mask):
                raise TypeError(f"`where` must be a boolean array, got {shown(where)}")
            if not xp.isdtype(mask.dtype, "bool"):
                rule = "must be boolean, or integers that are 0 or 1"
                raise TypeError(f"`where` {rule}, got an array of {mask.dtype}")
            shape = _broadcast("where", tuple(mask.shape), "`q`", tuple(values.shape))
            values, mask = xp.broadcast_to(values, shape), xp.broadcast_to(mask, shape)
        ndim, shape = values.ndim, tuple(values.shape)
        if ndim == 0:
            raise ValueError(f"`q` must have an axis of actions, got the number {q}")
        self.axis = check_axis(axis, ndim)  # from the end: a parameter may add axes in front
        self.n_actions = shape[axis]
        if self.n_actions == 0:
            raise ValueError(f"`q` must have at least one action, got the shape {shape}")
        rest = list(shape)
        del rest[axis]
        number = _beside(xp, values, parameter)
        self.shape = _shape_of_rows(name, tuple(number.shape), tuple(rest), self.axis)
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
            rule = "must leave an action in every row"
            raise ValueError(f"`where` {rule}, got none in {index}: pass the other rows alone")
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


def _shape_of_rows(name: str, parameter: Shape, rows: Shape, axis: int) -> Shape:
    """That of the rows, broadcast against the parameter.

    A parameter that is laid out as the result with `keepdims` would be taken for another axis in
    front of the rows, and each row would meet the parameters of all others.
    """
    if not parameter:
        return rows
    shape = _broadcast(name, parameter, "the rows of `q`", rows)
    if len(parameter) == len(rows) + 1 and math.prod(shape) > math.prod(rows) > 0:
        kept = list(rows)
        kept.insert(axis % len(parameter), 1)
        if all(n in (1, m) for n, m in zip(parameter, kept, strict=True)):
            rule = f"must have the shape {rows} of the rows of `q`, without the axis of the actions"
            raise ValueError(f"`{name}` {rule}, got {parameter}")
    return shape


def _broadcast(name: str, given: Shape, against: str, shape: Shape) -> Shape:
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


def _beside(xp: Namespace, q: Array, x: ArrayLike) -> Array:
    """A number or array in the dtype of `q` and on its device; JAX places its own."""
    place = None if is_jax_namespace(xp) else device(q)
    if is_symbol(x):
        return cast(Array, cast(Any, xp).full((), x, dtype=q.dtype, device=place))
    if not is_array_api_obj(x):
        return xp.asarray(x, dtype=q.dtype, device=place)
    array = xp.astype(cast(Array, x), q.dtype, copy=False)
    return array if place is None or device(array) == place else to_device(array, place)


def _in_one_library(given: dict[str, ArrayLike | None]) -> list[Any]:
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
