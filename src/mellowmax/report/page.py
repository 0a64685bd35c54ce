"""The report: every finished item of the paper on one page, a file that needs no other.

`write_page` fills `page.html`, with `page.css`, the figures and the explorer inside it. The same
entries give the same bytes.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources
from pathlib import Path
from string import Template

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from .._common import checks
from .._common.files import replacing
from ..experiments import Finished
from ..experiments.item import Outcome
from ..explorer import exhibits
from ..explorer import page as explorer_page
from ..explorer.inline import source
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
    settings,
    unfinished,
    verdict_row,
)

__all__ = ["write_page"]

VERDICTS = ("Item", "Verdict", "In short")
"""The head of the table of verdicts."""
ROWS = 8
"""How many rows of a long table are shown."""
INSIDE = 40_000
"""The most bytes, as CSV, of a table that lies in the page itself."""
SHAPES = {  # in a box of 16: a tick, a half-filled circle, a cross, a question mark
    Outcome.REPRODUCED: ("good", '<path d="M3 8.5 6.5 12 13 4.5"/>'),
    Outcome.PARTLY: (
        "half",
        '<circle cx="8" cy="8" r="5.5"/><path class="full" d="M8 2.5a5.5 5.5 0 0 1 0 11z"/>',
    ),
    Outcome.NOT: ("bad", '<path d="m4 4 8 8m0-8-8 8"/>'),
    Outcome.UNDECIDED: (
        "open",
        '<path d="M4.8 5.6a3.2 3.2 0 1 1 4.6 2.9C8.4 9 8 9.5 8 10.5"/><path d="M8 13v.6"/>',
    ),
}


def write_page(
    path: str | Path, entries: Sequence[Finished], *, missing: Sequence[str] = (), version: str
) -> None:
    """Write the page, whole or not at all.

    Args:
        path: the HTML file.
        entries: the items, in the order of the page.
        missing: the names of items that are not finished.
        version: of the package.

    Raises:
        OSError: when the file cannot be written, or a figure or table cannot be read.
    """
    home = checks.file_path("path", path).parent
    entries = checks.instances("entries", entries, Finished, "a list of finished items")
    missing = checks.instances("missing", missing, str, "a list of the names of items")
    checks.text("version", version)
    listed = unfinished(f"<code>{escape(name)}</code>" for name in missing)
    page = Template(_part("page.html")).substitute(
        style=source("palette.css") + _part("page.css"),
        paper=PAPER,
        version=escape(version),
        about=_part("about.html"),
        explorer=escape(explorer_page(exhibits())),
        links="".join(f"<li>{_contents(entry)}</li>" for entry in entries),
        count=count(entries),
        scales=escape(scales(entries)),
        meanings=MEANINGS,
        verdicts=_verdicts(entries),
        missing=f'<p class="note">{listed}</p>' if missing else "",
        items="\n".join(_item(entry, home) for entry in entries),
    )
    with replacing(path) as file:
        file.write(page.encode())


def _part(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _anchor(entry: Finished) -> str:
    return f'<a href="#{_id(entry)}">{escape(entry.plan.name)}</a>'


def _contents(entry: Finished) -> str:
    """A link of the table of contents, with the verdict as its sign."""
    kind, icon = _icon(entry.verdict.outcome)
    said = f'<span class="unseen">: {entry.verdict.outcome}</span>'
    link = f'<a href="#{_id(entry)}" title="{entry.verdict.outcome}">'
    return f'{link}<span class="sign {kind}">{icon}</span>{escape(entry.plan.name)}{said}</a>'


def _id(entry: Finished) -> str:
    return "item-" + re.sub(r"[^a-z0-9]+", "-", entry.plan.name.lower())


def _icon(outcome: Outcome) -> tuple[str, str]:
    """The kind of an outcome and its sign."""
    kind, shape = SHAPES[outcome]
    return kind, f'<svg viewBox="0 0 16 16" aria-hidden="true">{shape}</svg>'


def _badge(outcome: Outcome, words: str) -> str:
    kind, icon = _icon(outcome)
    return f'<span class="badge {kind}">{icon}{escape(words)}</span>'


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], label: str, kind: str) -> str:
    """A table in a box of its own that scrolls; `rows` are HTML, their first cell is a header."""
    top = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    body = ""
    for first, *rest in rows:
        cells = zip(head[1:], rest, strict=True)
        data = "".join(f'<td data-label="{escape(name)}">{cell}</td>' for name, cell in cells)
        body += f'<tr><th scope="row">{first}</th>{data}</tr>\n'
    return f"""<div class="scroll" role="region" aria-label="{escape(label)}" tabindex="0">
<table class="{kind}"><thead><tr>{top}</tr></thead>
<tbody>
{body}</tbody></table></div>"""


def _verdicts(entries: Sequence[Finished]) -> str:
    rows = (
        (_anchor(e), f"<div>{_with_count(outcome, claims)}</div>", escape(in_short))
        for e in entries
        for outcome, claims, in_short in [verdict_row(e)]
    )
    return _table(VERDICTS, rows, "Verdicts", "stack")


def _with_count(outcome: Outcome, claims: str) -> str:
    return f'{_badge(outcome, outcome)} <span class="count">{claims}</span>'


def _item(entry: Finished, out: Path) -> str:
    """The section of an item, on a page in the directory `out`."""
    item, home = entry.plan.item, out.resolve()
    claims = (
        (*map(escape, (c.statement, c.paper, c.ours)), _badge(*HOLDS[c.holds]))
        for c in entry.verdict.claims
    )
    config = ((escape(name), escape(in_words(value))) for name, value in settings(entry).items())
    figures = "\n".join(_figure(entry, name, path, home) for name, path in entry.figures.items())
    tables = "\n".join(_preview(entry, name, path, home) for name, path in entry.tables.items())
    deviations = "".join(
        f'<li id="{_id(entry)}-deviation-{number}">{escape(text)}</li>'
        for number, text in enumerate(item.DEVIATIONS, 1)
    )
    listed = f"<ol>{deviations}</ol>" if deviations else "<p>Nowhere.</p>"
    beside = "\n".join(f"<p>{escape(text)}</p>" for text in entry.verdict.beside)
    outcome, count_of_claims, _ = verdict_row(entry)
    return f"""<section class="item" id="{_id(entry)}">
<h2><span class="name">{escape(entry.plan.name)}</span> {escape(item.TITLE)}</h2>
<p class="source">{escape(item.SOURCE)} {_with_count(outcome, count_of_claims)}</p>
<p class="summary">{escape(entry.verdict.summary)}</p>
{figures}
<h3>Claims</h3>
{_table(CLAIMS, claims, f"Claims of {entry.plan.name}", "stack")}
<p><strong>The rule.</strong> {escape(item.RULE)}</p>
{beside and f"<h3>Beside the claims</h3>{beside}"}
<h3>Where this differs from the paper</h3>
{listed}
<h3>How it was made</h3>
<p>A{escape(at_scale(entry)[1:])}. What was made for it in this directory took
{_duration(entry.seconds)}, on {escape(entry.device)}.</p>
<pre tabindex="0"><code>{escape(command(entry, out))}</code></pre>
{_table(("Setting", "Value"), config, f"Settings of {entry.plan.name}", "config")}
{tables and f"<h3>Tables</h3>{tables}"}
</section>"""


def _figure(entry: Finished, name: str, path: Path, home: Path) -> str:
    data = path.read_bytes()
    size = re.search(rb'<svg[^>]*?\swidth="([0-9.]+)pt"', data)
    width = round(float(size[1]) * 4 / 3) if size else 640  # pixels
    caption = entry.plan.item.CAPTIONS[name]
    source = f"data:image/svg+xml;base64,{base64.b64encode(data).decode()}"
    label = escape(f"Figure {name}")
    wide = f' class="wide" style="--width: {width}px"' if width > 600 else ""
    return f"""<figure{wide}>
<div class="frame" role="region" aria-label="{label}" tabindex="0">
<img src="{source}" alt="{escape(caption.alt)}" width="{width}"></div>
<figcaption>{escape(caption.text)} <span class="file">{_file(path, home)}</span></figcaption>
</figure>"""


def _file(path: Path, home: Path) -> str:
    """The path of a file from the page; no link, since a page may be sent alone."""
    relative = os.path.relpath(path.resolve(), home)
    shown = path.name if relative.startswith(os.pardir) else Path(relative).as_posix()
    return f"<code>{escape(shown)}</code>"


def _preview(entry: Finished, name: str, path: Path, home: Path) -> str:
    with pq.ParquetFile(path) as file:
        count, names = file.metadata.num_rows, file.schema_arrow.names
        batch = next(file.iter_batches(batch_size=WHOLE if count <= WHOLE else ROWS), None)
    kept = [] if batch is None else batch.to_pylist()
    rows = [[escape(in_words(row[column])) for column in names] for row in kept]
    holds = "".join(
        f"<dt>{escape(column)}</dt><dd>{escape(text)}</dd>"
        for column, text in entry.plan.item.COLUMNS.get(name, {}).items()
        if column in names
    )
    shown = f"The first {len(rows)} of {count:,} rows. " if count > len(rows) else ""
    inside = _download(path)
    return f"""<details>
<summary>{escape(name)}: {count:,} rows of {len(names)} columns</summary>
<dl>{holds}</dl>
{_table(names, rows, f"Rows of {name}", "stack data")}
<p>{shown}{inside}As a file, in the directory of this reproduction: {_file(path, home)}.</p>
</details>"""


def _download(path: Path) -> str:
    """A link to a small table, which lies in the page as CSV."""
    buffer = pa.BufferOutputStream()
    csv.write_csv(pq.read_table(path), buffer)
    data = buffer.getvalue().to_pybytes()
    if len(data) > INSIDE:
        return ""
    name = escape(path.with_suffix(".csv").name)
    source = f"data:text/csv;base64,{base64.b64encode(data).decode()}"
    return f'<a href="{source}" download="{name}">Save all rows as {name}</a>. '


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.2g} s"
