"""A reproduction: items that were run in one directory, and what is finished there.

out/run.json            the scale of the last `reproduce`
out/cells/<item>/...    finished cells, see `store`
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from .._common import checks
from .._common.files import replacing
from .._common.schema import Field, json_object
from .item import ITEMS, SCALES
from .runner import CellProgress, Finished, assemble, check_names, plan, run

__all__ = ["RECORD", "assemble_all", "begun", "record_scale", "recorded_scale", "reproduce"]

RECORD = "run.json"


def reproduce(
    items: Sequence[str],
    scale: str,
    out: str | Path,
    *,
    callback: Callable[[CellProgress], bool | None] = lambda progress: None,
) -> list[Finished]:
    """Reproduce items: make the cells that are missing, then the tables, figures and verdicts.

    A finished cell is saved. After an interruption, the same call resumes where it stopped.

    Args:
        items: the names of the items, such as `["fig5"]`; none for all.
        scale: `"quick"`, minutes for all items, or `"paper"`, the paper's own counts.
        out: the directory; it is made if it does not exist.
        callback: called after each cell, and within one that takes long; it may return True to
            stop.

    Returns:
        The items that are finished: all of them, unless the callback stopped the work or another
        process is making a cell. `mellowmax.report.write` makes a report of them.

    Raises:
        ValueError: for an item or a scale that does not exist.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as out:
        ...     [fig5] = reproduce(["fig5"], "quick", out)
        >>> print(fig5.verdict.outcome)
        partly reproduced
        >>> print(fig5.verdict.claims[0].ours)
        2 stable, at (0.587, 0.491) and (0.885, 0.688); 1 unstable, at (0.777, 0.617)
    """
    checks.function("callback", callback)
    plans = plan(check_names("items", items), scale, out)
    record_scale(out, scale)
    stopped = []

    def report(progress: CellProgress) -> bool:
        if callback(progress):
            stopped.append(True)
        return bool(stopped)

    for one in plans:
        run(one, report)
        if stopped:
            break
    return [assemble(one, out) for one in plans if not one.missing]


def assemble_all(directory: str | Path) -> list[Finished]:
    """Assemble every item of a directory whose cells are all there, in the order of the paper.

    An item whose cells are all there at the quick scale alone is assembled at that scale. An item
    that has no cells is not even imported.

    Args:
        directory: the `out` of a reproduction.

    Raises:
        ValueError: for a directory without a reproduction, or cells that are not as the items make
            them.
    """
    scale = recorded_scale(directory)
    finished = []
    for name in begun(directory):
        [one] = plan([name], scale, directory)
        if one.missing and scale != "quick":
            [one] = plan([name], "quick", directory)
        if not one.missing:
            finished.append(assemble(one, directory))
    return finished


def begun(out: str | Path) -> list[str]:
    """The items that have cells in a directory, in the order of the paper."""
    return [name for name in ITEMS if (Path(out) / "cells" / name).is_dir()]


def record_scale(out: str | Path, scale: str) -> None:
    """Note the scale of a reproduction in its directory, which is made if it does not exist."""
    Path(out).mkdir(parents=True, exist_ok=True)
    with replacing(Path(out) / RECORD) as file:
        file.write(json.dumps({"scale": scale}).encode())


def recorded_scale(directory: str | Path) -> str:
    """The scale that was noted in a directory.

    Raises:
        ValueError: for a directory without one.
    """
    path = checks.file_path("directory", directory) / RECORD
    try:
        scale = json_object(RECORD, path.read_bytes(), {"scale": Field("text", among=SCALES)})
        return str(scale["scale"])
    except (OSError, ValueError) as error:
        rule = "`directory` must be the directory of a reproduction"
        raise ValueError(f"{rule}, got {str(directory)!r}") from error
