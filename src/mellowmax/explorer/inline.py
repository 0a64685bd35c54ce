"""The page's modules as one script.

A browser loads the imports of a module from files of their own, which a page that is one file does
not have. So each module becomes a function that is called once and returns its exports, in the
order in which they need one another; an import reads from what the earlier ones returned:

    import { value } from "./operators.js";     const { value } = $operators;

That is all of the language of modules that the sources use: named exports of functions, classes and
constants, and named imports, each on lines of its own.
"""

from __future__ import annotations

import re
from importlib import resources

__all__ = ["inlined", "source"]

IMPORT = re.compile(r'^import (\{[\w\s,]*\}) from "\./(\w+)\.js";$', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const) (\w+))", re.MULTILINE)


def source(name: str) -> str:
    """The text of a file of the page, such as `"sweeps.js"`."""
    return resources.files(__package__).joinpath("sources", name).read_text(encoding="utf-8")


def inlined(*entries: str) -> str:
    """A script with some modules and all that they import, each a constant: a `$` and its name.

    Args:
        entries: the names of the modules, such as `"sweeps"`.

    Raises:
        ValueError: for modules that need one another in a circle, or other words of the language.

    Examples:
        >>> script = inlined("broken_mdp")
        >>> script.index("const $fixed_points =") < script.index("const $broken_mdp =")
        True
        >>> "import {" in script or "export " in script
        False
    """
    done: dict[str, str] = {}
    for entry in entries:
        _add(entry, done, ())
    return "\n".join(done.values())


def _add(name: str, done: dict[str, str], above: tuple[str, ...]) -> None:
    if name in done:
        return
    if name in above:
        raise ValueError(f"modules must not need one another, got {' > '.join((*above, name))}")
    text = source(f"{name}.js")
    for match in IMPORT.finditer(text):
        _add(match[2], done, (*above, name))
    exports = ", ".join(match[1] for match in EXPORT.finditer(text))
    body = EXPORT.sub("", IMPORT.sub(lambda match: f"const {match[1]} = ${match[2]};", text))
    if left := re.search(r"^(import|export)\b.*", body, re.MULTILINE):
        raise ValueError(f"imports and exports of {name}.js must be named ones, got {left[0]!r}")
    done[name] = f"const ${name} = (() => {{\n{body}\nreturn {{ {exports} }};\n}})();"
