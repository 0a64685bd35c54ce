"""What is made when the site is built: formulas as MathML, and the explorer.

So pages need no script from elsewhere, and the explorer is that of this version.
"""

from __future__ import annotations

import re
from typing import Any

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from mellowmax.explorer import exhibits, page


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the explorer as a page of its own, beside the one that tells of it."""
    files.append(File.generated(config, "explorer/page.html", content=page(exhibits())))
    return files


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
