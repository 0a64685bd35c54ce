"""A solution as a picture: its values, its policy, and how it converged.

The states are on a line, by their labels if these are numbers. States whose labels are pairs of
numbers are on a grid, with the first number downwards as in a matrix. With a horizon, time is on
one axis and the states on the other. On a line there is room for the probability of each action,
elsewhere for the most probable one, with a blank where there are several.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from .._common.extras import needed_by
from .._typing import Floats
from ..mdp import labels
from ..mdp.labels import Labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colorbar import Colorbar
    from matplotlib.figure import Figure

    from .table import Solved

__all__ = ["picture"]

Indices: TypeAlias = npt.NDArray[np.integer[Any]]

MOST_NAMES = 10
"""The most names on an axis."""
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
"""The colours of Okabe and Ito, which colour-blind readers can tell apart: one for each action."""
PROBABILITY: dict[str, Any] = {"cmap": "Blues", "vmin": 0, "vmax": 1}
"""How probabilities look: 0 is white."""
WIDTH, HEIGHT = 4.8, 3.8
"""The size of a panel in inches."""


def picture(solution: Solved, name: str, value: Floats, history: Floats | None = None) -> Figure:
    """The figure of a solution.

    Args:
        solution: a solution.
        name: what the value of a state is called.
        value: `[S]` or `[T, S]`, that of each.
        history: the change of each iteration; None to leave its panel out.
    """
    with needed_by("plot", "experiments"):
        figures = importlib.import_module("matplotlib.figure")
    panels = 2 + (history is not None)
    figure: Figure = figures.Figure(figsize=(WIDTH * panels, HEIGHT), layout="constrained")
    of_value, of_policy, *of_history = figure.subplots(1, panels)
    n_states, n_actions = solution.q.shape[-2:]
    states = _Scale.of("state", solution.state_labels, n_states)
    actions = _Scale.of("action", solution.action_labels, n_actions)
    if solution.q.ndim == 3:
        times, steps = (_Scale.of("time", None, n) for n in (len(value), len(value) - 1))
        _mesh(of_value, times, states, value.T, name)
        _best(of_policy, steps, states, _most_probable(solution.policy).T, actions)
    elif (grid := _Grid.of(solution.state_labels)) is not None:
        _mesh(of_value, grid.columns, grid.rows, grid.filled(value), name)
        best = grid.filled(_most_probable(solution.policy))
        _best(of_policy, grid.columns, grid.rows, best, actions)
        for axes in (of_value, of_policy):
            axes.invert_yaxis()
            axes.set_aspect("equal")
    else:
        marker = "." if n_states <= 100 else ""
        of_value.plot(states.places[states.order], value[states.order], marker=marker)
        of_value.set(ylabel=name)
        states.tick(of_value.xaxis)
        _mesh(of_policy, states, actions, solution.policy.T, "probability", **PROBABILITY)
    for axes in of_history:
        assert history is not None
        axes.plot(np.arange(1, len(history) + 1), history, marker="." if len(history) < 40 else "")
        axes.set(xlabel="iteration", ylabel="change", yscale="log")
        axes.xaxis.get_major_locator().set_params(integer=True)
    return figure


class _Scale(NamedTuple):
    """Where states, actions or times are on an axis."""

    name: str
    places: Floats  # [n]
    names: list[str] | None  # [n]; None where the places say it

    @classmethod
    def of(cls, name: str, known: Labels, n: int) -> _Scale:
        """By the labels if they are numbers, or else one after the other."""
        if known is not None and known.ndim == 1 and known.dtype.kind in "fiu":
            return cls(name, known.astype(np.float64), None)
        names = None if known is None else [labels.text(label) for label in known]
        return cls(name, np.arange(float(n)), names)

    @property
    def order(self) -> Indices:
        """`[n]`, from the first place to the last."""
        return np.argsort(self.places)

    def tick(self, axis: Any) -> None:
        """Label a Matplotlib axis."""
        axis.set_label_text(self.name)
        step = -(-len(self.places) // MOST_NAMES)
        if self.names is not None:
            axis.set_ticks(self.places[::step], self.names[::step])
        elif step == 1:
            axis.set_ticks(self.places, [f"{place:g}" for place in self.places])
        elif (self.places % 1 == 0).all():
            axis.get_major_locator().set_params(integer=True)


class _Grid(NamedTuple):
    """States that are on a grid."""

    rows: _Scale
    columns: _Scale
    place: tuple[Indices, Indices]  # [S] each, the row and column of each state

    @classmethod
    def of(cls, known: Labels) -> _Grid | None:
        """The grid of pairs of numbers; None for other labels."""
        if known is None or known.shape[1:] != (2,) or known.dtype.kind not in "fiu":
            return None
        scales, places = [], []
        for name, numbers in zip(("row", "column"), known.T, strict=True):
            there, place = np.unique(numbers, return_inverse=True)
            scales.append(_Scale(name, there.astype(np.float64), None))
            places.append(place)
        return cls(scales[0], scales[1], (places[0], places[1]))

    def filled(self, numbers: Floats) -> Floats:
        """`[rows, columns]`, with NaN where there is no state."""
        result = np.full((len(self.rows.places), len(self.columns.places)), np.nan)
        result[self.place] = numbers
        return result


def _most_probable(policy: Floats) -> Floats:
    """The most probable action of each state; NaN where there are several."""
    most = policy.max(-1, keepdims=True)
    several = (policy >= most * (1 - 1e-9)).sum(-1) > 1
    return np.where(several, np.nan, policy.argmax(-1))


def _mesh(axes: Axes, x: _Scale, y: _Scale, numbers: Floats, title: str, **look: Any) -> Colorbar:
    """Numbers `[y, x]` in colours."""
    in_order = numbers[y.order][:, x.order]
    drawn = axes.pcolormesh(_edges(x), _edges(y), in_order, rasterized=True, **look)
    x.tick(axes.xaxis)
    y.tick(axes.yaxis)
    return axes.get_figure().colorbar(drawn, ax=axes, label=title)  # type: ignore[union-attr]


def _best(axes: Axes, x: _Scale, y: _Scale, best: Floats, actions: _Scale) -> None:
    """The most probable action `[y, x]`: one colour for each, or a range of colours for many."""
    n = len(actions.places)
    if n > len(COLOURS):
        known = ~np.isnan(best)
        best = best.copy()
        best[known] = actions.places[best[known].astype(np.int64)]
        _mesh(axes, x, y, best, "most probable action")
        return
    colors = importlib.import_module("matplotlib.colors")
    look = {"cmap": colors.ListedColormap(COLOURS[:n]), "vmin": -0.5, "vmax": n - 0.5}
    bar = _mesh(axes, x, y, best, "most probable action", **look)
    bar.set_ticks(range(n), labels=actions.names or [f"{place:g}" for place in actions.places])


def _edges(scale: _Scale) -> Floats:
    """`[n + 1]`, half way between the places, and as far beyond the outer ones."""
    places = scale.places[scale.order]
    middle = (places[1:] + places[:-1]) / 2
    first = middle[0] if len(middle) else places[0] + 0.5
    last = middle[-1] if len(middle) else places[0] - 0.5
    return np.concatenate([[2 * places[0] - first], middle, [2 * places[-1] - last]])
