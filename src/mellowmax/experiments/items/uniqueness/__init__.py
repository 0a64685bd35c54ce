"""Uniqueness, beyond the paper: does mellowmax make the fixed points of games unique?

Section 9 of the paper asks for the fixed points of game-playing algorithms with mellowmax. In
planning there is one, since mellowmax's value is a non-expansion. In a game the policies of the
players answer each other, and one game is shown here that has several mellowmax equilibria.
Equilibria are also counted in random games, to see how often that happens.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ...._typing import Floats
from ....games import Game, equilibria
from ....softmax import SOFTMAXES, Softmax
from ...intervals import share_interval
from ...item import NAMES, Spec
from .figures import draw_answers, draw_shares
from .text import CAPTIONS, COLUMNS, DEVIATIONS, RULE, SETTINGS, SOURCE, TITLE
from .verdict import PAYOFFS, judge

__all__ = [*NAMES]

VERSION = 1
_CELL = 250  # games
_SHAPES = {"2 x 2": (2, 2), "3 x 3": (3, 3), "zero-sum 3 x 2": (3, 2)}
_PLACES = np.linspace(0, 1, 501)
"""Where the answers are computed: probabilities of the column player's first action."""


@dataclasses.dataclass(frozen=True)
class Config:
    """What is run."""

    games: int
    """Random games with two actions each."""
    larger: int
    """Random games of each larger kind."""
    betas: tuple[float, ...] = (5.0, 10.0, 20.0, 50.0)
    """The parameters of logit; payoffs are between 0 and 1."""
    omegas: tuple[float, ...] = (10.0, 20.0, 50.0, 100.0)
    """The parameters of mellowmax, whose equilibria need larger ones to be as near to Nash's."""
    seed: int = 3611
    """Game number i of kind number k has the seed [3611, k, i]."""


SCALES: Mapping[str, Config] = {"quick": Config(50, 10), "paper": Config(2000, 250)}
SECONDS = {"quick": 15.0, "paper": 400.0}


def cells(config: Config) -> dict[str, Spec]:
    """A cell for the game with several equilibria, and one for some random games of a kind."""
    common = {
        "seed": config.seed,
        "boltzmann": list(config.betas),
        "mellowmax": list(config.omegas),
    }
    counts = {kind: config.games if kind == "2 x 2" else config.larger for kind in _SHAPES}
    random = {
        f"{kind.replace(' ', '-')}-{first}": common
        | {"kind": kind, "first": first, "count": min(_CELL, count - first)}
        for kind, count in counts.items()
        for first in range(0, count, _CELL)
    }
    return {"game": {"kind": "game", "payoffs": [list(row) for row in PAYOFFS]}} | random


def run(spec: Spec) -> pd.DataFrame:
    """Make a cell: the answers and equilibria of the game, or counts in random games."""
    if spec["kind"] == "game":
        return _of_the_game(np.array(spec["payoffs"]))
    number = list(_SHAPES).index(spec["kind"])
    games = [
        _random_game(spec["kind"], [spec["seed"], number, i])
        for i in range(spec["first"], spec["first"] + spec["count"])
    ]
    rows = []
    for name in ("boltzmann", "mellowmax"):
        for parameter in spec[name]:
            counts = _counts(games, SOFTMAXES[name](parameter))  # type: ignore[call-arg]
            row = {"kind": spec["kind"], "softmax": name, "parameter": parameter}
            rows.append(row | {"games": len(games)} | counts)
    return pd.DataFrame(rows)


def _random_game(kind: str, seed: list[int]) -> Game:
    """A game with payoffs uniform on [0, 1]."""
    payoffs = np.random.default_rng(seed).random((2, *_SHAPES[kind]))
    return Game.zero_sum(payoffs[0]) if kind.startswith("zero-sum") else Game.from_arrays(*payoffs)


def _counts(games: list[Game], softmax: Softmax) -> dict[str, float]:
    """What is counted in some games under one softmax."""
    found = [equilibria(game, softmax) for game in games]
    points = [point for each in found for point in each]
    return {
        "several": sum(len(each) > 1 for each in found),
        "proved": sum(each.complete for each in found),
        "equilibria": len(points),
        "stable": sum(point.stable for point in points),
        "regret": float(sum(point.regret.mean() for point in points)),
    }


def _of_the_game(payoffs: Floats) -> pd.DataFrame:
    """The answers to each probability of left, and the equilibria, under both softmaxes at 1."""
    game, rows = Game.zero_sum(payoffs), []
    for name in ("boltzmann", "mellowmax"):
        softmax = SOFTMAXES[name](1.0)  # type: ignore[call-arg]
        for left in _PLACES:
            row = {"softmax": name, "left": left, "away": _answer(game, softmax, left) - left}
            rows.append(row | {"value": np.nan, "index": 0, "radius": np.nan})
        for point in equilibria(game, softmax):
            row = {"softmax": name, "left": point.profile[1][0], "away": 0.0}
            row |= {"value": point.values[0], "index": point.index}
            rows.append(row | {"radius": point.spectral_radius})
    return pd.DataFrame(rows)


def _answer(game: Game, softmax: Softmax, left: float) -> float:
    """How likely left is in the column player's answer to the row player's answer to it."""
    column = [left, 1 - left]
    uniform = np.full(game.shape[0], 1 / game.shape[0])
    row = softmax.policy(game.action_values([uniform, column])[0])
    return float(softmax.policy(game.action_values([row, column])[1])[0])


_KEYS = ["kind", "softmax", "parameter"]


def tables(config: Config, cells: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The answers and equilibria of the game, and the shares of random games with several."""
    game = cells["game"]
    answers = game[game["index"] == 0][list(COLUMNS["answers"])].reset_index(drop=True)
    points = game[game["index"] != 0][list(COLUMNS["equilibria"])].reset_index(drop=True)
    whole = pd.concat([cell for name, cell in cells.items() if name != "game"], ignore_index=True)
    counts = whole.groupby(_KEYS, sort=False).sum().reset_index()
    share, low, high = share_interval(counts["several"], counts["games"])
    counts = counts.assign(share=share, low=low, high=high)
    counts["regret"] /= counts["equilibria"]
    return {
        "answers": answers,
        "equilibria": points,
        "counts": counts[list(COLUMNS["counts"])],
    }


def plot(tables: Mapping[str, pd.DataFrame]) -> dict[str, Figure]:
    """Where the answers meet in the game, and how many random games have several equilibria."""
    return {
        "answers": draw_answers(tables["answers"], tables["equilibria"]),
        "shares": draw_shares(tables["counts"]),
    }
