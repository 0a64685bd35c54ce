"""Records of what environments returned last, in the memory that their processes send.

An observation of a nested space has a nested field, whose arrays are views of the records.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

__all__ = ["Observations", "copied", "record_of", "view", "write"]

Observations: TypeAlias = Any
"""The observations of many environments: an array, or dicts and tuples of arrays, each with an axis
of environments first."""


def record_of(space: gymnasium.Space[Any]) -> np.dtype[Any]:
    """The dtype of a record, for environments with this space of observations."""
    return np.dtype(
        [
            _field("observation", space),
            ("reward", np.float64),
            ("terminated", np.bool_),
            ("truncated", np.bool_),
        ],
        align=True,
    )


def _field(name: str, space: gymnasium.Space[Any]) -> tuple[Any, ...]:
    parts = _parts(space)
    if parts is None:
        return name, space.dtype, space.shape
    fields = [_field(str(i), part) for i, part in enumerate(parts.values())]
    return name, np.dtype(fields, align=True)


def _parts(space: gymnasium.Space[Any]) -> dict[Any, gymnasium.Space[Any]] | None:
    """The parts of a nested space by their names or numbers; None for any other."""
    if isinstance(space, spaces.Dict):
        return dict(space.spaces)
    if isinstance(space, spaces.Tuple):
        return dict(enumerate(space.spaces))
    return None


def view(space: gymnasium.Space[Any], field: npt.NDArray[Any]) -> Observations:
    """The observations in a field of records: arrays that share its memory."""
    parts = _parts(space)
    if parts is None:
        return field
    views = {name: view(part, field[str(i)]) for i, (name, part) in enumerate(parts.items())}
    return views if isinstance(space, spaces.Dict) else tuple(views.values())


def write(views: Observations, at: int, observation: Observations) -> None:
    """Write the observation of one environment."""
    if isinstance(views, np.ndarray):
        views[at] = observation
        return
    for name, part in views.items() if isinstance(views, dict) else enumerate(views):
        write(part, at, observation[name])


def copied(views: Observations) -> Observations:
    """The observations as they are now, whatever is written later."""
    if isinstance(views, np.ndarray):
        return views.copy()
    if isinstance(views, dict):
        return {name: copied(part) for name, part in views.items()}
    return tuple(map(copied, views))
