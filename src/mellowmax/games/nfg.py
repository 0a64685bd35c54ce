"""Gambit's files of games in strategic form: the text of a `.nfg` file, read and written.

The file begins with a title, the names of the players and their actions (or how many there are).
Then come the payoffs, in one of two formats. In both, profiles of actions are in the order in which
the action of the first player changes fastest.

- The payoff format lists the payoff of each player at each profile.
- The outcome format lists outcomes, each with a payoff for each player, and then the number of the
  outcome at each profile; outcome 0 pays nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .._common.shown import shown
from .._typing import Floats

__all__ = ["GameText", "read", "written"]

_TOKEN = re.compile(r'\s*(?:("(?:\\.|[^"\\])*")|([{},])|([^\s{},"]+)|(\S))', re.DOTALL)
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?:/\d+)?")
_LONGEST = 300
"""The most characters of a number."""


class GameText(NamedTuple):
    """What a file says of a game."""

    title: str
    comment: str
    players: tuple[str, ...]
    actions: tuple[tuple[str, ...], ...]
    payoffs: tuple[Floats, ...]
    """One array for each player, with an axis for the actions of each player."""


def read(text: str) -> GameText:
    """What the text of a file says.

    Raises:
        ValueError: for text that is no such file; it says what was expected, and where.
    """
    return _Reader(text).game()


def written(game: GameText) -> str:
    """The text of a file, in the payoff format."""
    players = " ".join(map(_quoted, game.players))
    actions = "\n".join(f"{{ {' '.join(map(_quoted, names))} }}" for names in game.actions)
    columns = np.stack([payoff.ravel(order="F") for payoff in game.payoffs], axis=1)
    rows = "\n".join(" ".join(map(repr, row)) for row in columns.tolist())
    head = f"NFG 1 R {_quoted(game.title)} {{ {players} }}"
    return f"{head}\n\n{{ {actions}\n}}\n{_quoted(game.comment)}\n\n{rows}\n"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


class _Reader:
    """The tokens of a file, taken one by one."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.line = text, 0, 1
        self.token = self._next()

    def _next(self) -> str:
        """The token that follows; nothing at the end."""
        found = _TOKEN.match(self.text, self.at)
        if found is None:
            return ""
        self.line += self.text.count("\n", self.at, found.end())
        self.at = found.end()
        return found[0].strip()

    def taken(self) -> str:
        """The token, and go on to the next."""
        token, self.token = self.token, self._next()
        return token

    def error(self, rule: str) -> ValueError:
        """The error for a token that cannot stand there."""
        got = shown(self.token) if self.token else "the end of the file"
        return ValueError(f"line {self.line} must have {rule}, got {got}")

    def symbol(self, symbol: str) -> None:
        """Take a symbol or a word."""
        if self.token != symbol:
            raise self.error(shown(symbol))
        self.taken()

    def name(self, what: str) -> str:
        """Take a text in double quotes."""
        if not (len(self.token) >= 2 and self.token.startswith('"') and self.token.endswith('"')):
            raise self.error(f"{what} in double quotes")
        return re.sub(r"\\(.)", r"\1", self.taken()[1:-1], flags=re.DOTALL)

    def number(self, what: str) -> float:
        """Take a number: whole, decimal or a fraction such as 1/3."""
        if not _NUMBER.fullmatch(self.token) or len(self.token) > _LONGEST:
            raise self.error(what)
        above, _, below = self.token.partition("/")
        value = float(above) / (float(below) or math.nan) if below else float(above)
        if not math.isfinite(value):
            raise self.error(f"{what} that is finite")
        self.taken()
        return value

    def whole(self, what: str, least: int) -> int:
        """Take a whole number."""
        if not re.fullmatch(r"\d{1,9}", self.token) or int(self.token) < least:
            raise self.error(what)
        return int(self.taken())

    def names(self, what: str) -> tuple[str, ...]:
        """Take a list of names in braces."""
        self.symbol("{")
        result = []
        while self.token != "}":
            result.append(self.name(what))
        self.taken()
        return tuple(result)

    def game(self) -> GameText:
        self.symbol("NFG")
        self.symbol("1")
        if self.token not in ("R", "D"):
            raise self.error("'R' or 'D', the kind of its numbers,")
        self.taken()
        title = self.name("a title")
        players = self.names("the name of a player")
        if not players:
            raise ValueError("the file must name a player at least, got none")
        actions = self.actions(players)
        comment = self.name("a comment") if self.token.startswith('"') else ""
        shape = tuple(len(names) for names in actions)
        rows = self.outcomes(players) if self.token == "{" else None
        table: list[Sequence[float]] = []
        while self.token:
            table.append(
                [self.number(f"a payoff of {shown(player)}") for player in players]
                if rows is None
                else rows[self.outcome(len(rows))]
            )
        if len(table) != math.prod(shape):
            sizes = " * ".join(map(str, shape))
            raise ValueError(
                f"the file must have payoffs for {math.prod(shape)} profiles of actions ({sizes}), "
                f"got {len(table)}"
            )
        columns = np.array(table, np.float64).T
        payoffs = tuple(column.reshape(shape, order="F") for column in columns)
        return GameText(title, comment, players, actions, payoffs)

    def actions(self, players: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
        """Take the names of each player's actions, or how many there are."""
        self.symbol("{")
        result = []
        for player in players:
            if self.token == "{":
                result.append(self.names(f"the name of an action of {shown(player)}"))
            else:
                count = self.whole(f"the number of actions of {shown(player)}", 1)
                if count > len(self.text):  # for which the file cannot have the payoffs
                    raise ValueError(f"the file must have payoffs for {count} actions, got fewer")
                result.append(tuple(str(number + 1) for number in range(count)))
        self.symbol("}")
        return tuple(result)

    def outcomes(self, players: tuple[str, ...]) -> list[list[float]]:
        """Take the list of outcomes: the payoffs of each, the first of all 0."""
        rows = [[0.0] * len(players)]
        self.symbol("{")
        while self.token != "}":
            self.symbol("{")
            self.name("the name of an outcome")
            row = []
            for player in players:
                row.append(self.number(f"a payoff of {shown(player)}"))
                if self.token == ",":
                    self.taken()
            self.symbol("}")
            rows.append(row)
        self.taken()
        return rows

    def outcome(self, count: int) -> int:
        """Take the number of an outcome."""
        rule = f"the number of an outcome, from 0 to {count - 1}"
        if re.fullmatch(r"\d{1,9}", self.token) and int(self.token) >= count:
            raise self.error(rule)
        return self.whole(rule, 0)
