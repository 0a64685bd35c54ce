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
from .flags import in_usage

__all__ = ["app", "mellowmax"]


class _Command(typer.core.TyperCommand):
    """A command; in its usage line `<NAME>` is required, and `[NAME]` is not."""

    def collect_usage_pieces(self, ctx: object) -> list[str]:
        """What follows the name of the command in the usage line."""
        arguments = [one for one in self.params if one.param_type_name == "argument"]
        return [self.options_metavar or "", *map(in_usage, arguments)]


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
    cls=_Commands,
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


app.command(cls=_Command, no_args_is_help=True)(solve.solve)
app.command(cls=_Command, no_args_is_help=True)(train.train)
app.command(cls=_Command, no_args_is_help=True)(evaluate.evaluate)
app.command(cls=_Command, no_args_is_help=True)(show.show)
app.command(cls=_Command)(explore.explore)
app.command(cls=_Command)(reproduce.reproduce)
app.command(cls=_Command, no_args_is_help=True)(report.report)
