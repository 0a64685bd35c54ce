"""A solution as a table: a row for each state and action, and for each step where it has several.

A label that is a tuple stays one: in a table of text it is as Python writes it.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from .._common.extras import needed_by
from .._typing import Bools, Floats
from ..mdp import labels
from ..mdp.labels import Labels

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["Solved", "called", "columns", "frame"]


class Solved(Protocol):
    """What every solution has."""

    @property
    def q(self) -> Floats:
        """`[S, A]` or `[T, S, A]`, action values."""

    @property
    def policy(self) -> Floats:
        """The probability of each action."""

    @property
    def allowed(self) -> Bools | None:
        """The actions there are; None for all."""

    @property
    def state_labels(self) -> Labels:
        """What the states are called."""

    @property
    def action_labels(self) -> Labels:
        """What the actions are called."""


def columns(solution: Solved, name: str, value: Floats) -> dict[str, npt.NDArray[Any]]:
    """The columns by name.

    Args:
        solution: a solution.
        name: what the value of a state is called.
        value: `[S]` or `[T, S]`, that of each.
    """
    shape = solution.q.shape
    indices: list[npt.NDArray[Any]] = list(np.indices(shape))
    *time, state, action = indices
    allowed = np.ones(shape, np.bool_) if solution.allowed is None else solution.allowed
    result: dict[str, npt.NDArray[Any]] = {
        "state": called(solution.state_labels, state),
        "action": called(solution.action_labels, action),
        "allowed": allowed,
        "q": solution.q,
        "policy": solution.policy,
        name: np.broadcast_to(value[..., None], shape),
    }
    if time:
        result = {"time": time[0]} | result
    return {name: one.ravel() for name, one in result.items()}


def frame(columns: Mapping[str, npt.NDArray[Any]]) -> DataFrame:
    """The columns as a data frame."""
    with needed_by("to_frame", "experiments"):
        pandas = importlib.import_module("pandas")
    return pandas.DataFrame(columns)


def called(of: Labels, numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The labels of states or actions, where a tuple is one object."""
    if of is None or of.ndim == 1:
        return numbers if of is None else of[numbers]
    tuples = np.empty(len(of), object)
    tuples[:] = labels.values(of, len(of))
    return tuples[numbers]
