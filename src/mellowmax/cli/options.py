"""The arguments that several commands have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
    "completion",
]


def completion(choices: Iterable[str]) -> Callable[[str], list[str]]:
    """What a shell offers for an argument that is one of some words.

    Examples:
        >>> completion(["quick", "paper"])("q")
        ['quick']
    """
    words = list(choices)
    return lambda incomplete: [word for word in words if word.startswith(incomplete)]


Environment: TypeAlias = Annotated[
    str,
    typer.Argument(metavar="ENV", help="The id of a Gymnasium environment with discrete actions."),
]
Discount: TypeAlias = Annotated[
    float, typer.Option(help="The discount of a Gymnasium environment; a saved MDP has its own.")
]
Force: TypeAlias = Annotated[
    bool, typer.Option("--force", help="Replace files that this command did not write.")
]
Parameter: TypeAlias = Annotated[
    float | None, typer.Option(help="The softmax's parameter: epsilon, beta or omega.")
]
AsJson: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")
]
Quiet: TypeAlias = Annotated[
    bool, typer.Option("--quiet", help="Show no progress, and print nothing but `--json`.")
]
Seed: TypeAlias = Annotated[int, typer.Option(help="The seed of all random numbers.")]
MaxSteps: TypeAlias = Annotated[
    int | None,
    typer.Option(help="The step limit of an episode; by default the environment's, or 1000."),
]
Workers: TypeAlias = Annotated[
    int | None,
    typer.Option(help="How many processes step the environments; 0 for this process alone."),
]
