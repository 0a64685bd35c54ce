"""The branches of a game's equilibria as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._common.text import shortened, visible
from .pictures import save_picture

if TYPE_CHECKING:
    from ..games import Branch, Equilibria, Game

__all__ = ["draw_branches"]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def draw_branches(path: Path, game: Game, found: Equilibria) -> None:
    """Draw the branches through some equilibria, from the parameter 0 to twice theirs.

    Raises:
        ValueError: if the softmax has no single parameter other than 0.
    """
    from ..experiments import style
    from ..games import trace
    from ..games.family import family_of

    softmax, parameter = found[0].softmax, found[0].parameter
    if not np.isfinite(parameter) or parameter == 0:
        rule = "must be given only for a softmax with a parameter other than 0"
        raise ValueError(f"`--trace` {rule}, got {softmax}")
    family = family_of(softmax)
    ends = [0.0, 2 * parameter]
    branches = [trace(game, family, ends, step=0.1)]
    for point in found:
        if not any(_has(branch, point) for branch in branches):
            branches.append(trace(game, family, ends, start=point, step=0.1))
    with style.styled():
        figure, axes = style.figure(len(game.shape))
        for player, one in enumerate(axes):
            _draw_player(one, game, player, branches, found)
        axes[0].set_ylabel("probability")
        save_picture(figure, path)


def _has(branch: Branch, point: Any) -> bool:
    """Is an equilibrium one of a branch?"""
    own = np.concatenate(point.profile)
    return any(
        abs(np.concatenate(one.profile) - own).max() < 1e-7 for one in branch.at(point.parameter)
    )


def _draw_player(
    axes: Any, game: Game, player: int, branches: list[Branch], found: Equilibria
) -> None:
    for action, name in enumerate(game.actions[player]):
        colour = COLOURS[action % len(COLOURS)]
        for branch in branches:
            x = branch.parameters
            y = [point.profile[player][action] for point in branch.points]
            label = visible(shortened(name, 20)) if branch is branches[0] else None
            axes.plot(x, y, color=colour, label=label)
        for point in found:
            fill = colour if point.stable else "white"
            chance = point.profile[player][action]
            axes.plot(point.parameter, chance, "o", color=colour, markerfacecolor=fill)
    axes.set(title=f"player {visible(shortened(game.players[player], 20))}", ylim=(0, 1))
    axes.set_xlabel("parameter")
    axes.legend(title="action")
