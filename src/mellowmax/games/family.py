"""A softmax as one of a family: those with other parameters."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, TypeAlias

from ..softmax import Softmax

__all__ = ["Family", "family_of", "parameter_of"]

Family: TypeAlias = Callable[[float], Softmax]
"""From a parameter to a softmax, such as the class `Boltzmann`."""


def parameter_of(softmax: Softmax) -> float:
    """The parameter of a softmax: its first field, if that is one number; else NaN."""
    fields = dataclasses.fields(softmax) if dataclasses.is_dataclass(softmax) else ()
    value = getattr(softmax, fields[0].name) if fields else None
    return value if isinstance(value, float) else math.nan


def family_of(softmax: Softmax) -> Family:
    """From a parameter to the same softmax with that parameter.

    Raises:
        ValueError: if its first field is not one number.
    """
    if math.isnan(parameter_of(softmax)):
        raise ValueError(f"`softmax` must have one number as its parameter, got {softmax}")
    kind: Any = softmax
    name = dataclasses.fields(kind)[0].name
    return lambda parameter: dataclasses.replace(kind, **{name: parameter})
