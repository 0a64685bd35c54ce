"""What is made when the site is built: formulas, the reference, the explorer, the lessons, run.

So pages need no script from elsewhere, and the explorer is that of this version.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import nbformat
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from mellowmax.explorer import exhibits
from mellowmax.explorer import page as explorer_page

sys.path.insert(0, str(Path(__file__).parent))
import formulas
import lessons
import public_names

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
    """Put in what a lesson printed and drew, docstrings and formulas."""
    if page.file.src_uri in NOTEBOOKS:
        name = page.file.src_uri.removeprefix("tutorial/").removesuffix(".md")
        markdown = lessons.as_page(NOTEBOOKS[page.file.src_uri], name)
    if page.file.src_uri == "reference.md":
        markdown = public_names.on_the_site()
    return formulas.with_mathml(markdown)
