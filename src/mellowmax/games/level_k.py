"""Players who think a few steps ahead: level 0 plays at random, level k answers level k - 1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._common import checks
from .._fixed_points.maps import read_only
from ..softmax import Softmax
from .game import Game, Profile

__all__ = ["level_k"]


def level_k(game: Game, softmax: Softmax | Sequence[Softmax], k: int | None = None) -> Profile:
    """The profile in which every player is of level k.

    Args:
        game: the game.
        softmax: how a player answers what the other players do: any softmax, or one for each level
            from 1 on. With an array of parameters, each player has one.
        k: the level, from 0 on; None for as many levels as there are softmaxes.

    Returns:
        The probabilities of each player's actions.

    Raises:
        ValueError: if `k` is out of range, or there is not one softmax for each level.

    Examples:
        >>> from mellowmax import Max, Mellowmax
        >>> game = Game.symmetric([[4, 0], [3, 3]])
        >>> level_k(game, Mellowmax(0.3), 2)[0].round(4)
        array([0.4571, 0.5429])
        >>> level_k(game, [Mellowmax(0.3), Max()])[0]
        array([0., 1.])

    References:
        Asadi and Littman (2017), section 8; Wright and Leyton-Brown (2010) for the model.
    """
    checks.instance("game", game, Game, "a Game")
    rule = "a Softmax such as Mellowmax(5.0), or a list of one for each level"
    given = [softmax] if isinstance(softmax, Softmax) else softmax
    levels = checks.instances("softmax", given, Softmax, rule)
    if not levels:
        raise ValueError(f"`softmax` must be {rule}, got none")
    if isinstance(softmax, Softmax):
        levels = levels * checks.whole("k", 1 if k is None else k, 0)
    elif k is not None and checks.whole("k", k, 0) != len(levels):
        raise ValueError(f"`softmax` must have one for each of {k} levels, got {len(levels)}")
    most = max(game.shape)
    rows = np.zeros((len(game.shape), most))
    allowed = np.arange(most) < np.array(game.shape)[:, None]
    profile: Profile = tuple(np.full(count, 1 / count) for count in game.shape)
    for level in levels:
        for row, values in zip(rows, game.action_values(profile), strict=True):
            row[: len(values)] = values
        policy = np.asarray(level.policy(rows, where=allowed), np.float64)
        profile = tuple(row[:count] for row, count in zip(policy, game.shape, strict=True))
    return tuple(map(read_only, profile))
