"""The library's error messages, with its arguments named as the flags of a command."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .._common.private_names import click

if TYPE_CHECKING:
    from .._common.private_names import click_core

__all__ = ["in_usage", "name_of", "with_flags"]

OTHER_NAMES = {
    "checkpoint": ["out"],
    "omega": ["parameter"],
    "beta": ["parameter"],
    "epsilon": ["parameter"],
    "path": ["file", "model", "mdp", "checkpoint", "directory", "out"],
    "environment": ["model", "mdp"],
    "demonstrator": ["softmax"],
    "mdp": ["model"],
    "reward": ["features"],
}
"""Arguments of the library whose flags have other names; a command has one of those."""


def in_usage(argument: click_core.Parameter) -> str:
    """An argument as the usage line shows it: `<MODEL>` if it is required, else `[MODEL]`."""
    name = f"<{name_of(argument)}>" if argument.required else f"[{name_of(argument)}]"
    return name if argument.nargs == 1 else f"{name}..."


def name_of(parameter: click_core.Parameter) -> str:
    """The name of an option or an argument, as the help shows it."""
    if parameter.param_type_name == "option":
        return str(parameter.opts[0])
    return str(parameter.metavar or parameter.name.upper())


def with_flags(sentence: str) -> str:
    """A sentence with the flags of the running command in place of the library's arguments.

    "`learning_rate` must be ..." becomes "`--learning-rate` must be ...".
    """
    context = click("globals").get_current_context(silent=True)
    flags: dict[str, str] = {}
    for parameter in [] if context is None else context.command.params:
        flags[parameter.name] = name_of(parameter)

    def flag(match: re.Match[str]) -> str:
        names = [match[1], *OTHER_NAMES.get(match[1], [])]
        return f"`{next((flags[name] for name in names if name in flags), match[1])}`"

    return re.sub(r"`(\w+)`", flag, sentence)
