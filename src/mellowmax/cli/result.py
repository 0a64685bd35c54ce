"""The result of a command: in words for a person, as JSON for a script.

JSON goes to standard output, and nothing else does then. It has null where a number is unknown or
not finite.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from .._common.terminal import columns, say
from .._common.text import visible
from .console import print_rows
from .progress import Bar, ProgressDisplay, progress_display
from .table import Table

__all__ = ["LAST", "Result", "print_result", "progress_unless"]

LAST = 100
"""How many episodes of each run the mean return at the end of a training is taken over."""


@dataclasses.dataclass(frozen=True)
class Result:
    """What a command has found."""

    rows: list[tuple[str, str]]
    """Names and texts."""
    data: Mapping[str, object]
    """What is printed as JSON: texts, numbers, arrays, and lists and dictionaries of them."""
    table: Table | None = None
    """Numbers to print below the rows."""
    last: str = ""
    """A line of its own below all that."""


def print_result(result: Result, *, as_json: bool = False, quiet: bool = False) -> None:
    """Print a result as `--json` and `--quiet` ask for it."""
    if as_json:
        text = json.dumps(_plain(result.data), allow_nan=False)
        print(text.replace("\x7f", "\\u007f"))  # the only control character that JSON leaves
    elif not quiet:
        print_rows(result.rows)
        if result.table is not None:
            print("", *result.table.lines(columns(sys.stdout)), sep="\n")
        if result.last:
            say(visible(result.last))


def _plain(value: object) -> object:
    """A value that JSON can hold."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


@contextlib.contextmanager
def progress_unless(quiet: bool, bars: Sequence[Bar] = (Bar(),)) -> Iterator[ProgressDisplay]:
    """The display of progress, or one that shows nothing."""
    if quiet:
        yield _show_nothing
        return
    with progress_display(bars) as report:
        yield report


def _show_nothing(share: float, text: str, name: str = "") -> None:
    pass
