"""Sentences on a terminal: lines as wide as it is, broken between words.

Anywhere else, in a pipe or a file, a sentence is one line.
"""

from __future__ import annotations

import os
import sys
import unicodedata
from typing import TextIO

from .text import visible

__all__ = ["columns", "say", "say_error", "wrapped"]

LEAST = 24
"""The fewest columns beside an indentation; on a narrower terminal it shrinks."""


def columns(file: TextIO | int | None) -> int | None:
    """How wide a terminal is; None for what is not a terminal, or does not know."""
    try:
        descriptor = file if isinstance(file, int) else file.fileno()  # type: ignore[union-attr]
        if not os.isatty(descriptor):
            return None
        asked = os.environ.get("COLUMNS", "")
        if asked.isdecimal() and int(asked) > 0:
            return int(asked)
        return os.get_terminal_size(descriptor).columns or None
    except (AttributeError, OSError, ValueError):  # closed, or no file of the system's
        return None


def wrapped(text: str, width: int | None, indent: int = 0) -> str:
    """A text in lines, broken at spaces.

    Args:
        text: without line breaks.
        width: of the lines. A word that is longer has a line of its own. None for a single line.
        indent: how far all lines but the first are indented.

    Examples:
        >>> print(wrapped("status         converged after 6 iterations", 40, 15))
        status         converged after 6
                       iterations
    """
    if width is None:
        return text
    space = " " * (indent if width >= indent + LEAST else 2 * (indent > 0))
    lines, line, used = [], "", 0
    for count, word in enumerate(text.split(" ")):
        size = _cells(word)
        if line.strip() and used + 1 + size > width:
            lines.append(line.rstrip())
            line, used = space + word, len(space) + size
        else:
            line, used = (f"{line} {word}", used + 1 + size) if count else (word, size)
    return "\n".join([*lines, line])


def _cells(text: str) -> int:
    """How many columns a text takes: some letters take two, and marks on letters none."""
    return sum(
        0 if unicodedata.combining(one) else 1 + (unicodedata.east_asian_width(one) in "WF")
        for one in text
    )


def say(text: str, *, indent: int = 0, file: TextIO | None = None) -> None:
    """Print a text without line breaks, in as many lines as the terminal needs.

    Args:
        text: what to print.
        indent: how far all lines but the first are indented on a terminal.
        file: where to; by default the standard output.
    """
    file = sys.stdout if file is None else file
    print(wrapped(text, columns(file), indent), file=file, flush=True)


def say_error(text: str) -> None:
    """Print a sentence to the standard error, after the name of the program."""
    say(f"mellowmax: {visible(text)}", file=sys.stderr)
