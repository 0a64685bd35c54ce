"""Formulas as MathML when the site is built, so that pages need no script from elsewhere."""

from __future__ import annotations

import re
from typing import Any

from latex2mathml.converter import convert


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace `$$...$$` and `$...$`, but for those in code."""
    parts = re.split(r"(```.*?```|`[^`]*`)", markdown, flags=re.DOTALL)
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r"\$\$(.+?)\$\$", _display, parts[i], flags=re.DOTALL)
        parts[i] = re.sub(r"\$([^$]+?)\$", _inline, parts[i])
    return "".join(parts)


def _inline(match: re.Match[str]) -> str:
    return f"<span>{convert(match[1])}</span>"  # a line may not begin with `math` itself


def _display(match: re.Match[str]) -> str:
    return convert(match[1].strip(), display="block")
