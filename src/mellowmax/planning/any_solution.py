"""What all solutions have in common: words, tables, pictures and files.

Each kind of solution is a kind of file, with a schema of its own. What is printed of a solution
follows from the fields that are saved, so that a file says what the solution did.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from .._common import npz
from .._common.schema import Field, Schema
from .._typing import Bools, Floats
from ..mdp.labels import Labels
from .picture import picture
from .table import columns, frame

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

__all__ = ["AVERAGE", "BY_TIME", "DISCOUNTED", "KINDS", "AnySolution", "read_fields", "rows_of"]

DISCOUNTED, BY_TIME, AVERAGE = "solution", "finite-horizon solution", "average-reward solution"
"""The kinds of files."""
OF_ALL: Schema = {
    "error_bound": Field("number", optional=True),
    "suboptimality_bound": Field("number"),
    "softmax": Field("text"),
    "state_labels": Field("value", "S or S D", optional=True),
    "action_labels": Field("value", "A or A E", optional=True),
}
BY_PAIR: Schema = {
    "q": Field("number", "S A"),
    "policy": Field("number", "S A"),
    "allowed": Field("boolean", "S A", optional=True),  # not in files of 0.1
}
OF_ITERATION: Schema = {
    "converged": Field("boolean"),
    "status": Field("text"),
    "iterations": Field("whole number", least=0),
    "residual": Field("number"),
    "method": Field("text"),
    "reason": Field("text"),
}
KINDS: Mapping[str, Schema] = {
    DISCOUNTED: {**BY_PAIR, "value": Field("number", "S"), **OF_ITERATION, **OF_ALL},
    BY_TIME: {
        "q": Field("number", "T S A"),
        "value": Field("number", "N S"),
        "policy": Field("number", "T S A"),
        "allowed": Field("boolean", "T S A"),
        **OF_ALL,
    },
    AVERAGE: {
        **BY_PAIR,
        "gain": Field("number"),
        "bias": Field("number", "S"),
        **OF_ITERATION,
        **OF_ALL,
    },
}
"""The fields of each kind of file."""


class AnySolution(ABC):
    """What every solution can say of itself."""

    KIND: ClassVar[str]
    q: Floats
    allowed: Bools | None
    error_bound: float | None
    suboptimality_bound: float
    softmax: Any
    seconds: float
    history: Floats | None = None
    state_labels: Labels
    action_labels: Labels

    @property
    @abstractmethod
    def policy(self) -> Floats:
        """The probability of each action."""

    @abstractmethod
    def _known(self) -> dict[str, Any]:
        """What is known about it: single numbers and texts, by name."""

    @abstractmethod
    def _values(self) -> tuple[str, Floats]:
        """What the values of states are called, and these."""

    def rows(self) -> list[tuple[str, str]]:
        """The solution in words: pairs of a name and a text, as `print` shows them."""
        known = {**self._bounds(), "q": self.q}
        return [*rows_of(known), ("time", f"{self.seconds:.3g} s")]

    def __str__(self) -> str:
        return "\n".join(f"{name:14s} {text}" for name, text in self.rows())

    def fields(self) -> dict[str, Any]:
        """What `save` writes, by name: values, policy and what is known about them."""
        name, values = self._values()
        allowed = np.ones(self.q.shape, np.bool_) if self.allowed is None else self.allowed
        arrays = {"q": self.q, name: values, "policy": self.policy, "allowed": allowed}
        labels = {"state_labels": self.state_labels, "action_labels": self.action_labels}
        arrays |= {name: given for name, given in labels.items() if given is not None}
        return arrays | self._bounds()

    def _bounds(self) -> dict[str, Any]:
        bounds = {name: getattr(self, name) for name in ("error_bound", "suboptimality_bound")}
        return self._known() | bounds | {"softmax": str(self.softmax)}

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """The columns of a table with a row for each state and action, and for each step."""
        name, values = self._values()
        return columns(self, name, values[: len(self.q)])

    def to_frame(self) -> DataFrame:
        """A pandas table with a row for each state and action, and for each step.

        Examples:
            >>> from mellowmax import Max
            >>> from mellowmax.mdp import chain
            >>> from mellowmax.planning import solve
            >>> mdp = chain(2).with_labels(actions=["back", "on"])
            >>> print(solve(mdp, Max()).to_frame().round(2))
               state action  allowed      q  policy  value
            0      0   back     True  88.32     0.0   89.1
            1      0     on     True  89.10     1.0   89.1
            2      1   back     True  88.31     0.0   90.1
            3      1     on     True  90.10     1.0   90.1
        """
        return frame(self.columns())

    def plot(self) -> Figure:
        """A Matplotlib figure: the values, the policy, and the history where it was kept."""
        return picture(self, *self._values(), self.history)

    def save(self, path: str | Path) -> None:
        """Write values, policy and what is known about them to an `.npz` file."""
        npz.write(path, self.KIND, self.fields())


def read_fields(path: str | Path) -> dict[str, Any]:
    """What `save` of any solution wrote, by name.

    Raises:
        ValueError: for a file that is truncated, of another kind, or of a newer version.
    """
    found = npz.kind_of(path) if Path(path).is_file() else None
    kind = found if found is not None and found in KINDS else DISCOUNTED
    with npz.reading(path, kind, KINDS[kind]) as fields:
        if kind == BY_TIME and len(fields["value"]) != len(fields["q"]) + 1:
            n, got = len(fields["q"]) + 1, len(fields["value"])
            raise ValueError(f"field 'value' must be of {n} times, got {got}")
        return fields


def rows_of(fields: Mapping[str, Any]) -> list[tuple[str, str]]:
    """A solution in words, from the fields that are saved."""
    error = "not proved for this operator"
    if fields.get("error_bound") is not None:
        error = _at_most(fields["error_bound"])
    rows = [("operator", fields["softmax"])]
    if "gain" in fields:
        rows.append(("gain", f"{fields['gain']:.8g}"))
    if "method" in fields:
        rows += [
            ("method", f"{fields['method']}: {fields['reason']}"),
            ("status", f"{fields['status']} after {fields['iterations']} iterations"),
            ("residual", f"{fields['residual']:.3g}"),
        ]
    else:
        rows.append(("horizon", f"{len(fields['q'])} steps, by backward induction"))
    return [*rows, ("error", error), ("below optimum", _at_most(fields["suboptimality_bound"]))]


def _at_most(bound: float) -> str:
    return f"{bound:.3g} at most" if math.isfinite(bound) else "unknown"
