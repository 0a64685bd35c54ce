"""The arguments that several commands have in common."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable
from typing import Annotated, TypeAlias

import typer

__all__ = [
    "ActionMask",
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
    "paths",
]


def completion(choices: Iterable[str]) -> Callable[[str], list[str]]:
    """What a shell offers for an argument that is one of some words.

    Examples:
        >>> completion(["quick", "paper"])("q")
        ['quick']
    """
    words = list(choices)
    return lambda incomplete: [word for word in words if word.startswith(incomplete)]


def paths(*endings: str) -> Callable[[str], list[str]]:
    """What a shell offers for a path: directories, and files with one of the endings.

    Where nothing is offered, a shell completes files by itself. So it does where a name has to be
    quoted, which Typer leaves out.
    """

    def offered(incomplete: str) -> list[str]:
        found = _paths(incomplete, endings)
        if len(found) == 1 and found[0].endswith("/"):  # two, so that a shell adds no space
            found += _paths(found[0], endings)
        return found if all(shlex.quote(path) == path for path in found) else []

    return offered


def _paths(incomplete: str, endings: tuple[str, ...]) -> list[str]:
    """The paths that begin like an incomplete one."""
    begin = os.path.basename(incomplete)
    directory = incomplete.removesuffix(begin)
    try:
        entries = sorted(os.scandir(directory or "."), key=lambda entry: entry.name)
    except OSError:
        return []
    return [
        f"{directory}{entry.name}{'/' * entry.is_dir()}"
        for entry in entries
        if entry.name.startswith(begin)
        and (begin or not entry.name.startswith("."))
        and (entry.is_dir() or entry.name.endswith(endings))
    ]


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
    float | None, typer.Option(help="The softmax's parameter: epsilon, beta, omega or eta.")
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
ActionMask: TypeAlias = Annotated[
    bool | None,
    typer.Option(
        help="Keep to the actions that the environment allows in `info['action_mask']`.",
        show_default=False,
    ),
]
Workers: TypeAlias = Annotated[
    int | None,
    typer.Option(help="How many processes step the environments; 0 for this process alone."),
]
