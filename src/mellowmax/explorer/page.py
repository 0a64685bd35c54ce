"""The explorer as one HTML file that needs no other and sends no request.

Its template, its style and its modules lie in `sources`; what Python has computed for it goes in as
JSON, each block an object with a `schema` and a `kind`. The policy of its content names the style
and the script by their hashes and allows nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from string import Template
from typing import TypeAlias

from .. import __version__
from .._common import checks
from .._common.files import replacing
from .inline import inlined, source

__all__ = ["MARK", "SCHEMA", "Block", "is_page", "page", "policy", "write_page"]

SCHEMA = 1
"""The version of the blocks; one of another version is not shown."""
MARK = '<meta name="generator" content="mellowmax explore">'
"""What every page has near its beginning."""

Block: TypeAlias = Mapping[str, object]
"""Data of one kind for the page: what becomes a JSON object."""


def page(blocks: Iterable[Block] = ()) -> str:
    """The page.

    Args:
        blocks: what it shows besides the two-state MDP, such as `mellowmax.explorer.exhibits()`.

    Examples:
        >>> page().count("<script>")
        1
    """
    shown = checks.instances("blocks", blocks, Mapping, "a list of blocks")
    script = f"'use strict';\n{inlined('main')}\n"
    style = source("palette.css") + source("page.css")
    return Template(source("page.html")).substitute(
        policy=policy(script, style),
        style=style,
        script=script,
        version=__version__,
        data="\n".join(map(_data, shown)),
    )


def write_page(path: str | Path, blocks: Iterable[Block] = ()) -> None:
    """Write the page, whole or not at all.

    Raises:
        OSError: when the file cannot be written.
    """
    target, text = checks.file_path("path", path), page(blocks)
    with replacing(target) as file:
        file.write(text.encode())


def is_page(path: Path) -> bool:
    """Was this file written by `write_page`?"""
    try:
        with path.open("rb") as file:
            return MARK.encode() in file.read(1000)
    except OSError:
        return False


def policy(script: str, style: str) -> str:
    """The policy of a page's content: nothing but its script, its style and its icon."""
    names = {"script-src": script, "style-src": style}
    hashes = "; ".join(f"{name} '{_hash(text)}'" for name, text in names.items())
    return f"default-src 'none'; {hashes}; img-src data:; base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _data(block: Block) -> str:
    text = json.dumps({"schema": SCHEMA, **block}, separators=(",", ":"), allow_nan=False)
    inside = text.replace("<", "\\u003c")  # so that no text of it ends the block
    return f'<script type="application/json" class="data">{inside}</script>'
