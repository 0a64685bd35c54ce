"""What was observed in games: how often each action was chosen, checked and in arrays."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from .._common import checks
from .._common.shown import shown
from .._common.text import shortened, visible
from .._typing import Floats, Integers
from .game import Game, Profile
from .responses import Payoffs

__all__ = ["Block", "Observations"]


@dataclasses.dataclass(frozen=True, eq=False)
class Block:
    """The games of one shape."""

    which: Integers
    """Their numbers."""
    payoffs: Payoffs
    counts: Floats
    """`[G, N, A]`: how often each action was chosen; 0 for a player who is pooled with another."""


@dataclasses.dataclass(frozen=True, eq=False)
class Observations:
    """Games, and how often people chose each action of them."""

    games: tuple[Game, ...]
    counts: tuple[Profile, ...]
    blocks: tuple[Block, ...]
    notes: tuple[str, ...]

    @classmethod
    def of(cls, games: Game | Sequence[Game], counts: Sequence[Any]) -> Self:
        """Checked observations.

        Raises:
            ValueError: for counts that are not those of the games; it names the player and the
                action.
        """
        one = isinstance(games, Game)
        listed = checks.instances("games", [games] if one else games, Game, "a Game or several")
        given = [counts] if one else list(counts)
        if not listed:
            raise ValueError("`games` must have at least one game, got none")
        if len(given) != len(listed):
            raise ValueError(f"`counts` must be of {len(listed)} games, got {len(given)}")
        checked = tuple(
            _checked(f"counts[{k}]" if len(listed) > 1 else "counts", game, own)
            for k, (game, own) in enumerate(zip(listed, given, strict=True))
        )
        fractions = sum(any((own % 1 != 0).any() for own in each) for each in checked)
        whose = "the game" if len(listed) == 1 else f"{fractions} of {len(listed)} games"
        note = f"The counts of {whose} are not all whole, as where they come from percentages."
        shapes = dict.fromkeys(game.shape for game in listed)
        blocks = tuple(
            _block([k for k, game in enumerate(listed) if game.shape == shape], listed, checked)
            for shape in shapes
        )
        return cls(tuple(listed), checked, blocks, (note,) if fractions else ())

    def __len__(self) -> int:
        return len(self.games)

    def without(self, game: int) -> Self:
        """All but one of the games."""
        rest = [k for k in range(len(self)) if k != game]
        return type(self).of([self.games[k] for k in rest], [self.counts[k] for k in rest])

    @property
    def uniform(self) -> Floats:
        """`[G]`, the log-likelihood of each game if all choose at random."""
        return np.array(
            [-sum(own.sum() * np.log(len(own)) for own in counts) for counts in self.counts]
        )


def _block(which: list[int], games: list[Game], counts: tuple[Profile, ...]) -> Block:
    stacked = zip(*(games[k].payoffs for k in which), strict=True)
    payoffs = Payoffs.padded(tuple(np.stack(own) for own in stacked))
    shape = games[which[0]].shape
    table = np.zeros((len(which), len(shape), max(shape)))
    for row, k in zip(table, which, strict=True):
        for own, given in zip(row, counts[k], strict=False):
            own[: len(given)] = given
    return Block(np.array(which, np.int32), payoffs, table)


def _checked(name: str, game: Game, counts: Sequence[Any]) -> Profile:
    """The counts of a game: an array for each player, or one if the players are pooled."""
    try:
        pooled = np.ndim(counts[0]) == 0
        rows = [counts] if pooled else list(counts)
    except (TypeError, IndexError, KeyError):
        raise TypeError(f"`{name}` must be lists of counts, got {shown(counts)}") from None
    arrays = [checks.numbers(name, row) for row in rows]
    if len(arrays) == 1 and not game.is_symmetric:
        raise ValueError(
            f"`{name}` must be counts of each of {len(game.shape)} players, since the game is not "
            f"symmetric, got one list"
        )
    if len(arrays) not in (1, len(game.shape)):
        raise ValueError(
            f"`{name}` must be counts of each of {len(game.shape)} players, got {len(arrays)} lists"
        )
    for player, labels, own in zip(game.players, game.actions, arrays, strict=False):
        of = f"of player {visible(shortened(player))}"
        if own.shape != (len(labels),):
            raise ValueError(
                f"`{name}` must be of the {len(labels)} actions {of}, got {shown(own.tolist())}"
            )
        wrong = np.flatnonzero(~(np.isfinite(own) & (own >= 0)))
        if len(wrong):
            raise ValueError(
                f"`{name}` must be numbers of at least 0, got {own[wrong[0]]:g} for action "
                f"{visible(shortened(labels[wrong[0]]))} {of}"
            )
    if not any(own.any() for own in arrays):
        raise ValueError(f"`{name}` must have a choice at least, got 0 for every action")
    return tuple(arrays)
