"""The arguments that several commands have in common."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

__all__ = [
    "AsJson",
    "Discount",
    "Environment",
    "Force",
    "MaxSteps",
    "Parameter",
    "Quiet",
    "Seed",
    "Workers",
]

Environment: TypeAlias = Annotated[
    str,
    typer.Argument(metavar="ENV", help="The id of a Gymnasium environment with discrete actions."),
]
Discount: TypeAlias = Annotated[
    float, typer.Option(help="For a Gymnasium environment; a saved MDP has its own.")
]
Force: TypeAlias = Annotated[
    bool, typer.Option("--force", help="Replace files that this command did not write.")
]
Parameter: TypeAlias = Annotated[
    float | None, typer.Option(help="The softmax's own: epsilon, beta or omega.")
]
AsJson: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")
]
Quiet: TypeAlias = Annotated[
    bool, typer.Option("--quiet", help="Show no progress, and print nothing but `--json`.")
]
Seed: TypeAlias = Annotated[int, typer.Option(help="Of all random numbers.")]
MaxSteps: TypeAlias = Annotated[
    int | None,
    typer.Option(help="Where an episode is cut off; else at the environment's own limit, or 1000."),
]
Workers: TypeAlias = Annotated[
    int | None,
    typer.Option(help="How many processes step the environments; 0 for none but this one."),
]
