"""What is made when the site is built: formulas as MathML, the explorer, and the lessons, run.

So pages need no script from elsewhere, and the explorer is that of this version.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import nbformat
from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from mellowmax.explorer import exhibits
from mellowmax.explorer import page as explorer_page

sys.path.insert(0, str(Path(__file__).parent))
import lessons

NOTEBOOKS: dict[str, Any] = {}
"""The lessons that were run, by the address of their page."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the explorer as a page of its own, and the lessons as notebooks."""
    explorer = explorer_page(exhibits())
    files.append(File.generated(config, "explorer/page.html", content=explorer))
    for name, notebook in lessons.run_all().items():
        NOTEBOOKS[f"tutorial/{name}.md"] = notebook
        text = nbformat.writes(notebook)
        files.append(File.generated(config, f"tutorial/{name}.ipynb", content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Put in what a lesson printed and drew; replace `$$...$$` and `$...$`, but not in code."""
    if page.file.src_uri in NOTEBOOKS:
        name = page.file.src_uri.removeprefix("tutorial/").removesuffix(".md")
        markdown = lessons.as_page(NOTEBOOKS[page.file.src_uri], name)
    parts = re.split(r"(```.*?```|`[^`]*`)", markdown, flags=re.DOTALL)
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r"\$\$(.+?)\$\$", _display, parts[i], flags=re.DOTALL)
        parts[i] = re.sub(r"\$([^$]+?)\$", _inline, parts[i])
    return "".join(parts)


def _inline(match: re.Match[str]) -> str:
    return f"<span>{convert(match[1])}</span>"  # a line may not begin with `math` itself


def _display(match: re.Match[str]) -> str:
    return convert(match[1].strip(), display="block")
