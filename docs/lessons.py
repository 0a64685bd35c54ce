"""The lessons of the tutorial: Markdown pages whose code is run when the site is built.

A page is read as a notebook by jupytext and run by nbclient, in a process of its own. What it
prints and draws goes into the page, and the notebook beside it. If a lesson fails, the build does.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jupytext
from nbclient import NotebookClient
from nbformat import NotebookNode

__all__ = ["LESSONS", "as_page", "run_all"]

FOLDER = Path(__file__).parent / "tutorial"
LESSONS = sorted(path for path in FOLDER.glob("*.md") if path.name != "index.md")


def run_all() -> dict[str, NotebookNode]:
    """Every lesson by its name, run, two at a time."""
    with ThreadPoolExecutor(2) as pool:
        return dict(zip((path.stem for path in LESSONS), pool.map(_run, LESSONS), strict=True))


def _run(path: Path) -> NotebookNode:
    notebook = jupytext.read(path, fmt="md")
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    quiet = ["--IPKernelApp.log_level=40"]
    return NotebookClient(notebook, timeout=300, extra_arguments=quiet).execute()


def as_page(notebook: NotebookNode, name: str) -> str:
    """A lesson that was run, as Markdown with what it printed and drew."""
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
        else:
            parts.append(f"```python\n{cell.source}\n```")
            parts += _shown(cell.outputs, cell.metadata.get("alt", ""))
    title, text = "\n\n".join(parts).split("\n", 1)
    return f"{title}\n\n[This lesson as a notebook]({name}.ipynb)\n{text}"


def _shown(outputs: list[NotebookNode], alt: str) -> Iterator[str]:
    """What a cell printed, as one block, and then its pictures."""
    # Progress and notices, on `stderr`, are no part of the lesson.
    said = "".join(one.text for one in outputs if one.get("name") == "stdout")
    if said:
        yield f"```text\n{said.rstrip()}\n```"
    for output in outputs:
        if "image/png" in output.get("data", {}):
            picture = output.data["image/png"].replace("\n", "")
            yield f'<img alt="{alt}" src="data:image/png;base64,{picture}">'
