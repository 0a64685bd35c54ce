"""Write both files of the report into the directory of a reproduction."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .. import __version__
from .._common import checks
from ..experiments import ITEMS, Finished
from .markdown import write_markdown
from .page import write_page

__all__ = ["write"]


def write(finished: Sequence[Finished], out: str | Path) -> Path:
    """Write the report of a reproduction, `report.html` and `report.md`.

    Items of the paper that are not among those finished are named as missing.

    Args:
        finished: the items, from `experiments.reproduce`, or from `experiments.assemble_all` for
            every item of the directory.
        out: the directory of the reproduction.

    Returns:
        The path of `report.html`.

    Raises:
        OSError: when a file cannot be written, or a figure or table cannot be read.
    """
    finished = checks.instances("finished", finished, Finished, "a list of finished items")
    names = {one.plan.name for one in finished}
    missing = [name for name in ITEMS if name not in names]
    page = checks.file_path("out", out) / "report.html"
    write_page(page, finished, missing=missing, version=__version__)
    write_markdown(Path(out) / "report.md", finished, missing=missing, version=__version__)
    return page
