"""The commands as one Typer application.

Each is a module. They import JAX and what else they need when they run, so that `--help` comes at
once.
"""

from __future__ import annotations

from typing import Annotated

import typer

from .. import __version__
from . import evaluate, explore, infer, play, report, reproduce, show, solve, train
from .usage import Command, Commands

__all__ = ["app", "mellowmax"]


app = typer.Typer(
    cls=Commands,
    context_settings={"help_option_names": ["--help", "-h"]},
    subcommand_metavar="<COMMAND> [ARGS]...",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"mellowmax {__version__}")
        raise typer.Exit


@app.callback()
def mellowmax(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Softmax operators for reinforcement learning (Asadi and Littman, ICML 2017).

    Example: mellowmax solve FrozenLake-v1 --parameter 16.55
    """


app.command(cls=Command, no_args_is_help=True)(solve.solve)
app.command(cls=Command, no_args_is_help=True)(play.play)
app.command(cls=Command, no_args_is_help=True)(infer.infer)
app.command(cls=Command, no_args_is_help=True)(train.train)
app.command(cls=Command, no_args_is_help=True)(evaluate.evaluate)
app.command(cls=Command, no_args_is_help=True)(show.show)
app.command(cls=Command)(explore.explore)
app.command(cls=Command)(reproduce.reproduce)
app.command(cls=Command, no_args_is_help=True)(report.report)
