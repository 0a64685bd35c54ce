"""The command line: `mellowmax solve`, `train`, `evaluate`, `reproduce` and `report`.

Each command is a module. They import JAX and what else they need when they run, so that `--help`
comes at once.
"""

import sys

try:
    import typer
except ImportError:  # the library alone does not need it
    sys.exit("mellowmax: the command line needs `pip install 'mellowmax[experiments]'`")

from . import evaluate, report, reproduce, solve, train

__all__ = ["app", "main"]

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Softmax operators for reinforcement learning (Asadi and Littman, ICML 2017).",
)
app.command(no_args_is_help=True)(solve.solve)
app.command(no_args_is_help=True)(train.train)
app.command(no_args_is_help=True)(evaluate.evaluate)
app.command()(reproduce.reproduce)
app.command(no_args_is_help=True)(report.report)


def main() -> None:
    """Run the command line."""
    app()
