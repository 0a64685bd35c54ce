"""What a file must hold, stated once: its fields, their kinds, shapes and values.

A schema is a dictionary of `Field`s by name. A name may end in `*`: the field stands for all names
that begin like that. What no name stands for is not read. Every reader of files has a schema, for
the arrays of an archive (`npz`) and for the JSON in a file (`json_object`).
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .._typing import Shape
from .shown import shown

__all__ = ["Field", "Schema", "json_object", "matching"]

KINDS = {"number": "fiu", "whole number": "iu", "boolean": "b", "text": "U", "value": "fiubU"}
"""The kinds of fields, with the kinds of NumPy's dtypes that each can have."""
LARGEST = 8
"""The most bytes of a number."""


@dataclasses.dataclass(frozen=True)
class Field:
    """A field of a file: of which kind, of which shape, with which values.

    Examples:
        >>> sizes = {}
        >>> Field("number", "S A").check_form("q", np.dtype(float), (3, 2), sizes)
        >>> sizes
        {'S': 3, 'A': 2}
        >>> Field("number", "S").check_form("value", np.dtype(float), (4,), sizes)
        Traceback (most recent call last):
        ...
        ValueError: field 'value' must be an array [S = 3] of numbers, got float64 [4]
    """

    kind: str
    """One of `KINDS`; a `value` is of any of them."""
    axes: str = ""
    """The names of its axes, such as `"S A"`: equal names are equal sizes in all of a file, and a
    number is a size. Several shapes are separated by `or`; a last `...` is any further axes. None
    for a single value."""
    optional: bool = False
    least: float | None = None
    """The smallest number that it may have, and then neither NaN nor infinity; None for any."""
    among: Collection[str] = ()
    """The texts that it may be; none for any text."""

    def check_form(
        self, name: str, dtype: np.dtype[Any], shape: Shape, sizes: dict[str, int]
    ) -> None:
        """Raise unless a dtype and a shape are the field's; `sizes` learns those of its axes."""
        right = dtype.kind in KINDS[self.kind] and (dtype.kind == "U" or dtype.itemsize <= LARGEST)
        axes = next((one for one in self._shapes() if _fits(one, shape, sizes)), None)
        if not right or axes is None:
            raise self.error(name, f"{dtype} {_brackets(shape)}" if shape else f"{dtype}", sizes)
        sizes.update(zip(axes, shape, strict=False))

    def check_values(self, name: str, values: npt.NDArray[Any]) -> None:
        """Raise unless all values are allowed."""
        bad = np.zeros(values.shape, np.bool_)
        if self.least is not None:
            bad = ~((values >= self.least) & (values < np.inf))
        if self.among:
            bad = ~np.isin(values, [*self.among])
        if bad.any():
            raise self.error(name, shown(values[bad][0].item()))

    def error(self, name: str, got: str, sizes: Mapping[str, int] | None = None) -> ValueError:
        """The error for a field that is not as it must be."""
        rule = f"a {self.kind}"
        if self.axes:
            known = {axis: f"{axis} = {size}" for axis, size in (sizes or {}).items()}
            shapes = (_brackets(known.get(x, x) for x in axes) for axes in self._shapes())
            rule = f"an array {' or '.join(shapes)} of {self.kind}s"
        if self.least is not None:
            rule += f" of at least {self.least:g}"
        if self.among:
            rule = f"one of {', '.join(self.among)}"
        return ValueError(f"field {shown(name)} must be {rule}, got {got}")

    def _shapes(self) -> list[list[str]]:
        return [shape.split() for shape in self.axes.split(" or ")]


Schema: TypeAlias = Mapping[str, Field]


def matching(schema: Schema, names: Iterable[str]) -> Iterator[tuple[str, Field]]:
    """The fields of a schema, each with every name in a file that it stands for.

    Raises:
        ValueError: for a field that must be there and is not.
    """
    there = dict.fromkeys(names)
    for pattern, field in schema.items():
        if pattern.endswith("*"):
            begin = pattern.removesuffix("*")
            yield from ((x, field) for x in there if x.startswith(begin) and x not in schema)
        elif pattern in there:
            yield pattern, field
        elif not field.optional:
            raise field.error(pattern, "none")


def json_object(name: str, text: str | bytes, schema: Schema) -> dict[str, Any]:
    """The fields of a JSON object by a schema; null is the same as no field.

    Args:
        name: what the text is called in errors.
        text: the object.
        schema: its fields.

    Raises:
        ValueError: for what is no such object.

    Examples:
        >>> json_object("settings", '{"hidden": 16, "target": null}', {"*": Field("number")})
        {'hidden': 16}
        >>> json_object("settings", '{"hidden": 0}', {"hidden": Field("number", least=1)})
        Traceback (most recent call last):
        ...
        ValueError: field 'settings.hidden' must be a number of at least 1, got 0
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):  # the second where it is nested too deeply
        raise ValueError(f"field {name!r} must be a JSON object, got {shown(text)}") from None
    if not isinstance(found, dict):
        raise ValueError(f"field {name!r} must be a JSON object, got {shown(found)}")
    found = {key: value for key, value in found.items() if value is not None}
    result: dict[str, Any] = {}
    sizes: dict[str, int] = {}
    for key, field in matching(schema, found):
        path, value = f"{name}.{key}", found[key]
        values = _as_array(value)
        if values is None or values.dtype.kind not in KINDS[field.kind]:
            raise field.error(path, shown(value), sizes)
        field.check_form(path, values.dtype, values.shape, sizes)
        field.check_values(path, values)
        result[key] = value
    return result


def _as_array(value: object) -> npt.NDArray[Any] | None:
    """A JSON value, or a list of texts, as a NumPy array; None for any other."""
    texts = isinstance(value, list) and all(isinstance(one, str) for one in value)
    if not texts and not isinstance(value, str | int | float):
        return None
    return np.asarray(value, np.str_ if texts else None)


def _fits(axes: list[str], shape: Shape, sizes: Mapping[str, int]) -> bool:
    """Has a shape these axes, whose sizes may be known already?"""
    if axes[-1:] == ["..."]:
        axes = axes[:-1]
        shape = shape[: len(axes)]
    return len(axes) == len(shape) and all(
        (int(axis) if axis.isdecimal() else sizes.get(axis, size)) == size
        for axis, size in zip(axes, shape, strict=True)
    )


def _brackets(parts: Iterable[object]) -> str:
    return f"[{', '.join(map(str, parts))}]"
