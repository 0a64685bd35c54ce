"""Demonstrations and features from CSV files, with the states and actions of a model.

A state or an action is called by its label where the model has labels, and by its number otherwise.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .._common.shown import shown
from .._typing import Bools, Floats
from ..mdp import labels
from ..mdp.labels import Labels
from .csv_files import CsvTable, read_csv

if TYPE_CHECKING:
    from ..inverse import Demonstrations, Linear
    from ..mdp import MDP

__all__ = ["read_demonstrations", "read_features"]


def read_demonstrations(path: Path, mdp: MDP) -> Demonstrations:
    """A decision a line: the columns `state` and `action`, and perhaps `episode`.

    Raises:
        ValueError: for a file that is not as above; it names the line.
    """
    from ..inverse import Demonstrations

    table = read_csv("DEMONSTRATIONS", path)
    if sorted(table.names) not in (["action", "state"], ["action", "episode", "state"]):
        rule = "the columns state and action, and perhaps episode"
        raise table.error(f"it must have {rule}, got {_listed(table.names)}")
    states = table.numbers_of("state", _known(mdp.state_labels, mdp.n_states))
    actions = table.numbers_of("action", _known(mdp.action_labels, mdp.n_actions))
    if not states:
        raise table.error("it must have a decision at least")
    episodes = None
    if "episode" in table.names:
        episodes = _numbered(table.column("episode"))
    return Demonstrations.from_arrays(states, actions, episodes=episodes)


def read_features(path: Path, mdp: MDP) -> Linear:
    """The features of states, or of states and actions; the first line has their names.

    States that are terminal and actions that cannot be taken may be missing.

    Raises:
        ValueError: for a file that is not as above; it names the line.
    """
    from ..inverse import Linear

    table = read_csv("--features", path)
    names = [name for name in table.names if name not in ("state", "action")]
    if "state" not in table.names or not names:
        rule = "the column state, perhaps action, and a column for each feature"
        raise table.error(f"it must have {rule}, got {_listed(table.names)}")
    states = table.numbers_of("state", _known(mdp.state_labels, mdp.n_states))
    by = [states]
    needed: Bools = np.any(mdp.available, axis=1)
    if "action" in table.names:
        by.append(table.numbers_of("action", _known(mdp.action_labels, mdp.n_actions)))
        needed = mdp.available
    places = list(zip(*by, strict=True))
    found = np.zeros((*needed.shape, len(names)))
    there = np.zeros(needed.shape, np.bool_)
    for line, (place, row) in enumerate(zip(places, _features(table, names), strict=True)):
        if there[place]:
            raise table.error(f"line {table.lines[line]} is a second one for {_named(place, mdp)}")
        there[place], found[place] = True, row
    missing = np.argwhere(needed & ~there)
    if len(missing):
        raise table.error(f"it must have a line for {_named(tuple(missing[0]), mdp)}, got none")
    return Linear(found, names)


def _features(table: CsvTable, names: list[str]) -> list[Floats]:
    columns = [table.reals(name) for name in names]
    return [np.array(row) for row in zip(*columns, strict=True)]


def _numbered(texts: list[str]) -> list[int]:
    """The numbers of episodes; other texts than small numbers are counted."""
    if all(text.isdecimal() and text.isascii() and len(text) < 10 for text in texts):
        return [int(text) for text in texts]
    order = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    return [order[text] for text in texts]


def _known(of: Labels, n: int) -> dict[str, int]:
    """The numbers of states or actions by what a file calls them."""
    values = labels.values(of, n)
    known = {labels.text(label): number for number, label in enumerate(values)}
    return known | {str(label): number for number, label in enumerate(values)}


def _named(place: tuple[int, ...], mdp: MDP) -> str:
    of = (("state", mdp.state_labels), ("action", mdp.action_labels))
    parts = zip(of, place, strict=False)
    return " and ".join(labels.named(kind, int(number), known) for (kind, known), number in parts)


def _listed(names: list[str]) -> str:
    return shown(", ".join(names))
