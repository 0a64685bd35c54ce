"""`mellowmax play`: the equilibria of a game under a softmax, and their branches."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .._common.text import shortened, visible
from .branches import draw_branches
from .console import (
    KINDS,
    SOFTMAX_NAMES,
    choose_softmax,
    errors_in_one_sentence,
)
from .options import AsJson, Force, Parameter, Quiet, completion, paths
from .pictures import ENDINGS, check_picture
from .result import Result, print_result
from .table import Table, column

if TYPE_CHECKING:
    from ..games import Equilibria, Game
    from ..softmax import Softmax

__all__ = ["play"]


def play(
    game: Annotated[
        str,
        typer.Argument(
            metavar="GAME", help="A .nfg file of Gambit's.", autocompletion=paths(".nfg")
        ),
    ],
    softmax: Annotated[
        str,
        typer.Option(help=f"The softmax: {SOFTMAX_NAMES}.", autocompletion=completion(KINDS)),
    ] = "mellowmax",
    parameter: Parameter = None,
    prior: Annotated[
        str | None,
        typer.Option(metavar="WEIGHTS", help="The prior of the actions, such as 0.5,0.25,0.25."),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            help="Draw the branches of the equilibria into this file, .svg or .png.",
            autocompletion=paths(*ENDINGS),
        ),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Find the quantal response equilibria of a game.

    Example: mellowmax play game.nfg --softmax mellowmax --parameter 1

    Example: mellowmax play game.nfg --softmax boltzmann --parameter 3 --trace branches.svg

    Every player plays the softmax's policy against what the others play. A column for each
    equilibrium has the probability of each action, what the players get on average, and whether
    players come back to it who respond to each other again and again. With `--trace`, the picture
    has the branches from the parameter 0 to twice the one given. The exit code is 0, and 2 for a
    wrong argument.
    """
    with errors_in_one_sentence():
        pair = choose_softmax(softmax, parameter, prior)
        if trace is not None:
            check_picture("--trace", trace, force=force)
        if not Path(game).is_file():
            raise ValueError(f"`GAME` must be a .nfg file that exists, got {game!r}")
        from ..games import Game, equilibria

        played = Game.load(game)
        found = equilibria(played, pair)
        if trace is not None:
            draw_branches(trace, played, found)
    print_result(_result(game, played, pair, found, trace), as_json=as_json, quiet=quiet)


def _result(
    path: str, game: Game, softmax: Softmax, found: Equilibria, picture: Path | None
) -> Result:
    sizes = " x ".join(map(str, game.shape))
    title = f", {shortened(game.title)}" if game.title else ""
    count = "1 equilibrium" if len(found) == 1 else f"{len(found)} equilibria"
    rows = [
        ("game", f"{path}: {sizes}{title}"),
        ("softmax", str(softmax)),
        ("found", count),
        ("complete", f"{'yes' if found.complete else 'no'}: {found.reason}"),
    ]
    data: dict[str, object] = {
        "kind": "equilibria",
        "game": path,
        "title": game.title,
        "players": game.players,
        "actions": game.actions,
        "softmax": str(softmax),
        "complete": found.complete,
        "reason": found.reason,
        "equilibria": [
            {
                "profile": point.profile,
                "action_values": point.action_values,
                "values": point.values,
                "regret": point.regret,
                "residual": point.residual,
                "spectral_radius": point.spectral_radius,
                "stable": point.stable,
                "index": point.index,
            }
            for point in found
        ],
    }
    if picture is not None:
        rows.append(("written", str(picture)))
        data["written"] = str(picture)
    return Result(rows, data, _table(game, found))


def _table(game: Game, found: Equilibria) -> Table:
    """A line for each action, for what each player gets, and for the equilibrium."""
    names = [_name(player) for player in game.players]
    lines = [
        *(
            f"{name}: {_name(action)}"
            for name, own in zip(names, game.actions, strict=True)
            for action in own
        ),
        *(f"value of {name}" for name in names),
        *(f"regret of {name}" for name in names),
        "stable",
        "index",
    ]
    columns = []
    for number, point in enumerate(found):
        cells = [f"{chance:.4f}" for own in point.profile for chance in own]
        cells += [f"{value:.5g}" for value in (*point.values, *point.regret)]
        cells += ["yes" if point.stable else "no", f"{point.index:+d}"]
        columns.append(column(str(number + 1), cells, 11))
    width = max(map(len, lines))
    return Table("equilibrium", [f"{one:<{width}}" for one in ["", *lines]], columns)


def _name(text: str) -> str:
    """A name from a file, as a table shows it."""
    return visible(shortened(text, 20))
