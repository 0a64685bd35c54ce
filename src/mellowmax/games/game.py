"""Games in normal form: players who choose at once, and what each profile of actions pays."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self, cast

import numpy as np

from .._common import checks
from .._common.files import replacing
from .._common.shown import shown
from .._common.text import shortened, visible
from .._fixed_points.maps import read_only
from .._typing import ArrayLike, Floats, Shape
from . import nfg

__all__ = ["Game", "Profile", "of_each_player"]

Profile = tuple[Floats, ...]
"""The probabilities of each player's actions."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False, init=False)
class Game:
    """A game in normal form (section 8), with two players or more.

    Most games come through `from_arrays`, `symmetric`, `zero_sum` or `load`.

    Args:
        payoffs: an array for each player, all of one shape, with an axis for the actions of each
            player: `payoffs[1][0, 2]` is what player 2 gets where player 1 takes the first action
            and player 2 the third.
        title: what the game is called.
        players: a name for each player; None for "1", "2" and so on.
        actions: the names of each player's actions; None for "1", "2" and so on.

    Raises:
        ValueError: if there are fewer than two players or a player has fewer than two actions, if
            shapes disagree, or if a payoff is not finite. The sentence names player and action.

    Examples:
        >>> game = Game.from_arrays([[1, 1], [0, 1]], [[1, 1], [2, 1]])
        >>> game
        Game(2 x 2)
        >>> [values.tolist() for values in game.action_values([[0.5, 0.5], [0.5, 0.5]])]
        [[1.0, 0.5], [1.5, 1.0]]
        >>> Game.zero_sum([[0, -1, 1], [1, 0, float("nan")]])
        Traceback (most recent call last):
        ...
        ValueError: `payoffs` must be finite, got nan for player 1 at the actions 2 and 3
    """

    payoffs: tuple[Floats, ...]
    title: str
    players: tuple[str, ...]
    actions: tuple[tuple[str, ...], ...]

    def __init__(
        self,
        payoffs: Sequence[ArrayLike],
        *,
        title: str = "",
        players: Sequence[str] | None = None,
        actions: Sequence[Sequence[str]] | None = None,
    ) -> None:
        arrays = of_each_player("payoffs", payoffs)
        n, shape = len(arrays), arrays[0].shape if arrays else ()
        if n < 2:
            raise ValueError(f"`payoffs` must be arrays of two players or more, got {n}")
        named = [str(i + 1) for i in range(n)] if players is None else players
        names = tuple(checks.instances("players", named, str, "a name for each player"))
        if len(names) != n:
            raise ValueError(f"`players` must be a name for each of {n} players, got {players!r}")
        called = tuple(map(_called, names))
        for name, array in zip(called, arrays, strict=True):
            if array.ndim != n or array.shape != shape:
                raise ValueError(
                    f"`payoffs` must have one shape with {n} axes, one for each player, got "
                    f"{shape} for player {called[0]} and {array.shape} for player {name}"
                )
        for name, count in zip(called, shape, strict=True):
            if count < 2:
                raise ValueError(f"player {name} must have at least two actions, got {count}")
        if actions is None:
            labels = tuple(tuple(str(a + 1) for a in range(count)) for count in shape)
        else:
            labels = _labels(actions)
            if tuple(map(len, labels)) != shape:
                got = " and ".join(str(len(own)) for own in labels)
                raise ValueError(
                    f"`actions` must have a name for each action, "
                    f"{' and '.join(map(str, shape))} of them, got {got}"
                )
        for name, array in zip(called, arrays, strict=True):
            bad = np.argwhere(~np.isfinite(array))
            if len(bad):
                at = " and ".join(_called(own[a]) for own, a in zip(labels, bad[0], strict=True))
                raise ValueError(
                    f"`payoffs` must be finite, got {array[tuple(bad[0])]:g} for player {name} "
                    f"at the actions {at}"
                )
        object.__setattr__(self, "payoffs", tuple(read_only(array) for array in arrays))
        object.__setattr__(self, "title", checks.text("title", title))
        object.__setattr__(self, "players", names)
        object.__setattr__(self, "actions", labels)

    @classmethod
    def from_arrays(cls, *payoffs: ArrayLike, title: str = "") -> Self:
        """A game from one array of payoffs for each player.

        Examples:
            >>> Game.from_arrays([[4, 0], [3, 3]], [[4, 3], [0, 3]], title="stag hunt")
            Game(2 x 2, 'stag hunt')
        """
        return cls(payoffs, title=title)

    @classmethod
    def symmetric(cls, payoffs: ArrayLike, *, title: str = "") -> Self:
        """A game of two players who both get `payoffs[own action, the other's action]`."""
        array = checks.numbers("payoffs", payoffs)
        if array.ndim != 2 or array.shape[0] != array.shape[1]:
            rule = "`payoffs` of a symmetric game must have as many rows as columns"
            raise ValueError(f"{rule}, got {array.shape}")
        return cls((array, array.T), title=title)

    @classmethod
    def zero_sum(cls, payoffs: ArrayLike, *, title: str = "") -> Self:
        """A game of two players, the second of whom pays what the first one gets."""
        array = checks.numbers("payoffs", payoffs)
        return cls((array, -array), title=title)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a `.nfg` file of Gambit, in its payoff or its outcome format.

        Raises:
            ValueError: for a file that is not one, with its name and the line.
        """
        path = checks.file_path("path", path)
        try:
            text = nfg.read(path.read_bytes().decode())
            return cls(text.payoffs, title=text.title, players=text.players, actions=text.actions)
        except UnicodeDecodeError:
            raise ValueError(f"{shown(str(path))} must be a .nfg file, got no text") from None
        except ValueError as error:
            raise ValueError(f"{shown(str(path))} must be a .nfg file: {error}") from None

    def save(self, path: str | Path) -> None:
        """Write a `.nfg` file in the payoff format; numbers are read back exactly."""
        text = nfg.GameText(self.title, "", self.players, self.actions, self.payoffs)
        with replacing(checks.file_path("path", path)) as file:
            file.write(nfg.written(text).encode())

    @property
    def shape(self) -> Shape:
        """The number of actions of each player."""
        return self.payoffs[0].shape

    @functools.cached_property
    def is_symmetric(self) -> bool:
        """Are there two players, in the same place?"""
        return (
            len(self.payoffs) == 2
            and self.shape[0] == self.shape[1]
            and bool((self.payoffs[0] == self.payoffs[1].T).all())
        )

    def action_values(self, profile: Sequence[ArrayLike]) -> Profile:
        """What each action of each player pays on average, if the others play a profile."""
        mixed = self.checked(profile)
        result = []
        for i, payoff in enumerate(self.payoffs):
            expected = np.moveaxis(payoff, i, 0)
            for own in reversed([one for j, one in enumerate(mixed) if j != i]):
                expected = expected @ own
            result.append(expected)
        return tuple(result)

    def checked(self, profile: Sequence[ArrayLike]) -> Profile:
        """A profile, as arrays.

        Raises:
            ValueError: if it is not a profile of this game.
        """
        mixed = tuple(of_each_player("profile", profile))
        if tuple(own.shape for own in mixed) != tuple((count,) for count in self.shape):
            got = " and ".join(str(own.shape) for own in mixed)
            raise ValueError(
                f"`profile` must have a probability for each action, "
                f"{' and '.join(map(str, self.shape))} of them, got {got}"
            )
        for player, labels, own in zip(self.players, self.actions, mixed, strict=True):
            name = _called(player)
            wrong = np.flatnonzero(~((own >= 0) & (own <= 1)))
            if len(wrong):
                raise ValueError(
                    f"`profile` must be probabilities, got {own[wrong[0]]:g} for action "
                    f"{_called(labels[wrong[0]])} of player {name}"
                )
            if abs(own.sum() - 1) > 1e-6:
                raise ValueError(
                    f"`profile` must be probabilities, got a sum of {own.sum():g} for player {name}"
                )
        return mixed

    def __repr__(self) -> str:
        title = f", {self.title!r}" if self.title else ""
        return f"Game({' x '.join(map(str, self.shape))}{title})"


def of_each_player(name: str, values: object) -> list[Floats]:
    """An array of numbers for each player."""
    rule = "an array of numbers for each player"
    if isinstance(values, str | dict) or not np.iterable(values):
        raise TypeError(f"`{name}` must be {rule}, got {shown(values)}")
    return [checks.numbers(name, one) for one in cast(Iterable[object], values)]


def _labels(actions: object) -> tuple[tuple[str, ...], ...]:
    """The names of each player's actions."""
    try:
        labels = tuple(tuple(own) for own in cast(Iterable[Iterable[str]], actions))
    except TypeError:
        labels = ((),)
    if not all(labels) or not all(isinstance(name, str) for own in labels for name in own):
        rule = "`actions` must be names of the actions for each player"
        raise TypeError(f"{rule}, got {shown(actions)}")
    return labels


def _called(name: str) -> str:
    """A name from a file, as a message shows it."""
    return visible(shortened(name))
