"""The commands as one application of Typer's.

Each is a module. They import JAX and what else they need when they run, so that `--help` comes at
once.
"""

from __future__ import annotations

from typing import Annotated

import typer
import typer.core

from .. import __version__
from . import evaluate, explore, report, reproduce, show, solve, train
from .console import output_arrives

__all__ = ["app", "mellowmax"]


class _Commands(typer.core.TyperGroup):
    """The commands; none succeeds unless what it has printed arrives."""

    def invoke(self, ctx: object) -> object:
        """Run a command."""
        with output_arrives():
            return super().invoke(ctx)  # type: ignore[arg-type]

    def parse_args(self, ctx: object, args: list[str]) -> list[str]:
        """Find the command, or print the help or the version."""
        with output_arrives():
            return super().parse_args(ctx, args)  # type: ignore[arg-type]


app = typer.Typer(
    cls=_Commands, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None
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


app.command(no_args_is_help=True)(solve.solve)
app.command(no_args_is_help=True)(train.train)
app.command(no_args_is_help=True)(evaluate.evaluate)
app.command(no_args_is_help=True)(show.show)
app.command()(explore.explore)
app.command()(reproduce.reproduce)
app.command(no_args_is_help=True)(report.report)
