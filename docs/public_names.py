"""The reference: a table of every public name. `make reference` writes it.

Names are those of each module's `__all__`, and what is said of them is the first line of their
docstrings. On the site the whole docstrings stand below the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import griffe

__all__ = ["SECTIONS", "on_github", "on_the_site"]

ROOT = Path(__file__).parent.parent
SECTIONS = {
    "Operators": "mellowmax.operators",
    "Policies": "mellowmax.policies",
    "Softmaxes": "mellowmax.softmax",
    "PyTorch": "mellowmax.torch",
    "Properties": "mellowmax.properties",
    "MDPs": "mellowmax.mdp",
    "Planning": "mellowmax.planning",
    "Batches of MDPs": "mellowmax.planning.batch",
    "Games": "mellowmax.games",
    "Batches of games": "mellowmax.games.batch",
    "Rewards from demonstrations": "mellowmax.inverse",
    "Any MDP as an environment": "mellowmax.environments.tabular",
    "The two-state MDP": "mellowmax.environments.two_state",
    "The multi-passenger taxi": "mellowmax.environments.taxi",
    "Acrobot": "mellowmax.environments.acrobot",
    "CartPole": "mellowmax.environments.cartpole",
    "Mountain Car": "mellowmax.environments.mountain_car",
    "Lunar Lander": "mellowmax.environments.lunar_lander",
    "Environments in Gymnasium": "mellowmax.environments.gymnasium",
    "Environments of gymnax": "mellowmax.environments.gymnax",
    "Environments of pgx": "mellowmax.environments.pgx",
    "Environments of navix": "mellowmax.environments.navix",
    "Environments of jumanji": "mellowmax.environments.jumanji",
    "Environments of brax": "mellowmax.environments.brax",
    "Environments in processes": "mellowmax.environments.fleet",
    "Learning": "mellowmax.learning",
    "Policy gradient and deep Q-learning": "mellowmax.deep",
    "The explorer": "mellowmax.explorer",
    "Experiments": "mellowmax.experiments",
    "The report": "mellowmax.report",
}
"""The public modules, each under its title."""
START = """# Reference

Every public function and class. Import operators, policies and softmaxes from `mellowmax`, the rest
from the module that is named above their table. `make reference` writes this page.
"""


class Entry(NamedTuple):
    """A public name."""

    name: str
    path: str
    """The dotted path of the definition."""
    file: str
    """The file of the definition, in the repository."""
    summary: str


def on_github() -> str:
    """The page as it is kept: each name leads to the file that defines it."""
    return _page(lambda entry: f"../{entry.file}", lambda entry: "")


def on_the_site() -> str:
    """The page as the input of mkdocstrings: each name leads to its docstring on the page."""
    seen = set()

    def docstring(entry: Entry) -> str:
        if entry.path in seen:  # environments share functions
            return ""
        seen.add(entry.path)
        return f"\n::: {entry.path}\n"

    return _page(lambda entry: f"#{entry.path}", docstring)


def _page(link: Callable[[Entry], str], docstring: Callable[[Entry], str]) -> str:
    package = griffe.load("mellowmax", search_paths=[ROOT / "src"])
    text = START
    for title, path in SECTIONS.items():
        entries = list(_entries(package, path))
        text += f"\n## {title}\n\n`{path}`\n\n| name | what it is |\n| --- | --- |\n"
        for entry in entries:
            text += f"| [`{entry.name}`]({link(entry)}) | {entry.summary} |\n"
        text += "".join(map(docstring, entries))
    return text


def _entries(package: griffe.Module, path: str) -> Iterator[Entry]:
    module = package[path.removeprefix("mellowmax.")]
    for name in module.exports:
        # By where it is imported from: a module may have the name too, as `solve.py` has.
        source = module.imports.get(name, f"{path}.{name}")
        found = package[source.removeprefix("mellowmax.")]
        if found.is_module:  # which has a section of its own
            continue
        found = found.final_target if found.is_alias else found
        first, _, _ = found.docstring.value.partition("\n\n")
        summary = " ".join(first.split()).replace("|", r"\|")
        yield Entry(name, found.path, found.filepath.relative_to(ROOT).as_posix(), summary)


if __name__ == "__main__":
    (ROOT / "docs/reference.md").write_text(on_github())
