"""What the adapters of other packages' environments share.

Each package has an environment object whose functions take a state. An adapter has the functions
that a `FunctionalEnvironment` takes, and asks that object. Nothing is imported from the package.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from .shown import shown

__all__ = ["Adapter", "AdapterParams", "n_actions_of"]


class AdapterParams(NamedTuple):
    """The number of actions; all else is in the environment."""

    n_actions: int


@dataclasses.dataclass(frozen=True, eq=False)
class Adapter:
    """The functions of an environment; two are equal if they are of the same environment object."""

    env: Any

    def __hash__(self) -> int:
        return hash((type(self), id(self.env)))

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)


def n_actions_of(env: object, actions: object, number: str, package: str) -> int:
    """How many actions there are.

    Args:
        env: the environment.
        actions: what it says of its actions.
        number: the attribute of that which has the number, if actions are discrete.
        package: whose environment it is.

    Raises:
        ValueError: for an environment whose actions are not discrete.
    """
    count = getattr(actions, number, None)
    if count is None or np.ndim(count) or getattr(actions, "shape", ()) != ():
        rule = f"`env` must be an environment of {package}'s with discrete actions"
        raise ValueError(f"{rule}, got {type(env).__name__} with {shown(actions)}")
    return int(count)
