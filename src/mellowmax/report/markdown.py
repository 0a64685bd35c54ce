"""The report as Markdown, for the documentation: verdicts, claims, deviations, small tables."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

import pyarrow.parquet as pq

from .._common import checks
from .._common.files import replacing
from ..experiments import Finished
from .words import (
    CLAIMS,
    HOLDS,
    MEANINGS,
    PAPER,
    WHOLE,
    at_scale,
    command,
    count,
    in_words,
    scales,
    unfinished,
    verdict_row,
)

__all__ = ["write_markdown"]

VERDICTS = ("Item", "Verdict", "Claims")
"""The head of the table of verdicts: its rows are lines on a narrow screen, too."""


def write_markdown(
    path: str | Path, entries: Sequence[Finished], *, missing: Sequence[str] = (), version: str
) -> None:
    """Write the verdicts, claims, numbered deviations and small tables, whole or not at all.

    Args:
        path: the Markdown file.
        entries: the finished items, in the order of the page.
        missing: the names of items that are not finished.
        version: of the package.

    Raises:
        OSError: when the file cannot be written, or a table cannot be read.
    """
    home = checks.file_path("path", path).parent
    entries = checks.instances("entries", entries, Finished, "a list of finished items")
    missing = checks.instances("missing", missing, str, "a list of the names of items")
    checks.text("version", version)
    rows, lines = [], []
    for entry in entries:
        outcome, held, in_short = verdict_row(entry)
        link = f"[{_plain(entry.plan.name)}](#{entry.plan.name.lower()})"
        cells = (link, str(outcome), held.partition(" claim")[0])
        rows.append([cell.replace(" ", "&nbsp;") for cell in cells])
        lines.append(f"- {link}: {_plain(in_short)}")
    parts = [
        "# Reproduction",
        f"The figures and tables of the [paper]({PAPER}) against what mellowmax {_plain(version)} "
        f"measures. {count(entries)} {MEANINGS}",
        _plain(scales(entries)),
        _pipes(VERDICTS, rows),
        "\n".join(["In short:\n", *lines]) if lines else "",
        unfinished(map(_plain, missing)),
    ]
    for entry in entries:
        plan, item = entry.plan, entry.plan.item
        claims = (
            (*map(_plain, (c.statement, c.paper, c.ours)), HOLDS[c.holds][1])
            for c in entry.verdict.claims
        )
        parts += [
            f"## {_plain(plan.name)}",
            f"**{_plain(item.TITLE)}** ({_plain(item.SOURCE)}), {_plain(at_scale(entry))}: "
            f"**{', '.join(verdict_row(entry)[:2])}**. {_plain(entry.verdict.summary)}",
            *(_figure(entry, name, file, home) for name, file in entry.figures.items()),
            _pipes(CLAIMS, claims),
            f"*The rule.* {_plain(item.RULE)}",
            "*Beside the claims.*" if entry.verdict.beside else "",
            *map(_plain, entry.verdict.beside),
            "*Where this differs from the paper.*" if item.DEVIATIONS else "",
            "\n".join(f"{n}. {_plain(d)}" for n, d in enumerate(item.DEVIATIONS, 1)),
            f"```bash\n{command(entry, home)}\n```",
            *(_table(entry, name, file) for name, file in entry.tables.items()),
        ]
    text = "\n\n".join(filter(None, parts)) + "\n"
    with replacing(path) as file:
        file.write(text.encode())


def _figure(entry: Finished, name: str, path: Path, home: Path) -> str:
    """A figure, which leads to itself at its full size, with its caption."""
    caption = entry.plan.item.CAPTIONS[name]
    place = Path(os.path.relpath(path.resolve(), home.resolve())).as_posix()
    image = f"![{_plain(caption.alt)}]({place})"
    return f"[{image}]({place})\n\n*{_plain(caption.text)}*"


def _table(entry: Finished, name: str, path: Path) -> str:
    """A table that is small, to be unfolded, with what its columns hold."""
    with pq.ParquetFile(path) as file:
        if not 0 < file.metadata.num_rows <= WHOLE:
            return ""
        table = file.read()
    rows = ([_plain(in_words(x)) for x in row.values()] for row in table.to_pylist())
    described = entry.plan.item.COLUMNS.get(name, {})
    holds = "; ".join(f"{_plain(x)}: {_plain(described[x])}" for x in described)
    many = "s" * (table.num_rows != 1)
    return "\n\n".join(
        [
            f'<details markdown="1">\n'
            f"<summary>{_plain(name)}: {table.num_rows} row{many}</summary>",
            _pipes([_plain(column) for column in table.column_names], rows),
            holds and f"*Columns.* {holds}",
            "</details>",
        ]
    )


def _plain(text: str) -> str:
    """Text that Markdown, its tables and the formulas of the documentation leave as it is."""
    text = escape(re.sub(r"\s+", " ", text), quote=False).replace("$", "&#36;")
    return re.sub(r"([\\`*_{}\[\]|])", r"\\\1", text)


def _pipes(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = (head, ["---"] * len(head), *rows)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
