"""What the documentation says is so: examples print it, files and names that it names are there.

The pages of docs/ are doctests of their own.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import io
import json
import re
import subprocess
import sys
import textwrap
import tokenize
import xml.etree.ElementTree
from pathlib import Path

import pytest

from mellowmax.experiments.item import ITEMS
from test_installs import PROJECT, hide_all_but
from test_package import MODULES, path_of

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
EXAMPLES = re.findall(
    r"Needs `pip install '?\.(?:\[([\w,]+)\])?'?`:\n\n```python\n(.*?)```\n\n```text\n(.*?)```",
    README,
    re.DOTALL,
)
"""Each example of the README: the extras that it needs, the code, and what it prints."""
RUN = """
import contextlib, io, json, traceback
for code in json.load(sys.stdin):
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        try:
            exec(code, {"__name__": "__main__"})
        except Exception:
            traceback.print_exc(file=sys.stdout)
    print(json.dumps(said.getvalue()))
"""
"""Each example with names of its own, in one process: to start it and JAX takes seconds."""

SOURCES = ("*.py", "*.md", "*.js", "*.html", "*.toml", "*.yml", "Makefile")
FOLDERS = (".ci", ".github", "benchmarks", "docs", "src", "tests")
FILE_NAME = re.compile(r"(?<![\w/.*-])(?:[\w.-]+/)*[\w-]+\.(?:py|md|css|toml|yml|cff)(?![\w(])")
INSIDE = {
    *("cli", "environments"),  # commands; what has a section for each module
    *("environments.initial_states", "environments.render", "environments.render_modes"),
    "environments.step",
}
"""Modules that users do not import from."""
WRITTEN_BY_USERS = {"report.md"}
"""What a command writes, and no file of ours."""


@functools.cache
def sources():
    """Every text file of the project, without what is made or installed."""
    inside = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))
    paths = {path for path in (*ROOT.iterdir(), *inside) if any(map(path.match, SOURCES))}
    return sorted(path for path in paths if "__pycache__" not in path.parts)


@functools.cache
def texts(path):
    """What is there for people to read: a whole page, but of Python the docstrings and comments."""
    text = path.read_text()
    if path.suffix == ".js":
        return re.findall(r"/\*.*?\*/|//[^\n]*", text, re.DOTALL)
    if path.suffix != ".py":
        return [text]
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    comments = [token.string for token in tokens if token.type == tokenize.COMMENT]
    expressions = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Expr))
    values = (node.value for node in expressions if isinstance(node.value, ast.Constant))
    return comments + [str(constant.value) for constant in values]


def indented(docstring):
    """The indented blocks of a docstring."""
    for block in re.findall(r"(?<=\n\n)(?: {4}.*\n|\n(?= {4}))+", docstring + "\n"):
        yield textwrap.dedent(block)


def is_python(text):
    try:
        compile(text, "a docstring", "exec")
    except SyntaxError:
        return False
    return True


def test_the_readme_is_short():
    assert len(README.split()) <= 900


def test_every_example_of_the_readme_says_what_it_needs_and_prints():
    assert len(EXAMPLES) == README.count("```python") == 1
    assert "need only Python and make" in README.split("```sh\n")[0][-90:]


@pytest.fixture(scope="module", params=sorted({extras for extras, _, _ in EXAMPLES}))
def examples(request, tmp_path_factory):
    """Those that need the same extras, with what they print where nothing else is installed."""
    chosen = [(code, said) for extras, code, said in EXAMPLES if extras == request.param]
    result = subprocess.run(
        [sys.executable, "-c", hide_all_but(request.param) + RUN],
        input=json.dumps([code for code, _ in chosen]),
        capture_output=True,
        text=True,
        cwd=tmp_path_factory.mktemp("readme"),
    )
    assert result.returncode == 0, result.stderr
    printed = [json.loads(line) for line in result.stdout.splitlines()]
    return zip(printed, (said for _, said in chosen), strict=True)


def test_an_example_of_the_readme_prints_what_it_says_with_what_it_needs(examples):
    for printed, said in examples:
        assert printed == said


def test_links_of_the_readme_lead_to_files():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert target.startswith("https://") or (ROOT / target).exists(), target


def test_the_readme_has_the_verdicts_of_the_reproduction():
    """The same items, in the same order, with their verdicts and how many of their claims hold."""
    told = re.findall(r"reproduction\.md#(\w+)\) \| .* \| (\w+), (\d+)/(\d+) \|", README)
    page = (ROOT / "docs/reproduction.md").read_text().replace("&nbsp;", " ").replace(r"\_", "_")
    rows = re.findall(r"\| \[(\w+)\]\(#\w+\) \| (\w+).* \| (\d+) of (\d+) \|", page)
    assert told == rows
    assert [name for name, *_ in rows] == [*ITEMS]


def test_the_pythons_that_are_promised_are_those_of_ci():
    """On the page: those that run all tests, then those that try the wheel; and no other."""
    workflow = (ROOT / ".github/workflows/check.yml").read_text()
    gate, dist = workflow.split("  dist:\n")
    all_tests, wheel = (set(re.findall(r"\b3\.\d+\b", part)) for part in (gate, dist))
    assert set(re.findall(r"Python :: (3\.\d+)", str(PROJECT["classifiers"]))) == wheel
    promise = (ROOT / "docs/stability.md").read_text().split("- **Python** ")[1].split("wheel.")[0]
    first, second = promise.split("all tests")
    assert set(re.findall(r"\b3\.\d+\b", first)) == all_tests
    assert set(re.findall(r"\b3\.\d+\b", second)) == wheel - all_tests


@pytest.fixture(scope="module")
def public_names():
    pytest.importorskip("griffe", reason="what builds the site is not installed")
    return module_of_docs("public_names")


def test_the_reference_is_that_of_these_docstrings(public_names):
    message = "`make reference` writes it anew"
    assert (ROOT / "docs/reference.md").read_text() == public_names.on_github(), message


def test_every_public_name_stands_in_the_reference():
    """Every name of `__all__` that is no module, in all that is to be imported from."""
    _, *sections = (ROOT / "docs/reference.md").read_text().split("\n## ")
    tables = {
        re.search("`(.*?)`", section)[1]: set(re.findall(r"^\| \[`(\w+)`\]", section, re.MULTILINE))
        for section in sections
    }
    of_packages = {f"mellowmax.{module}" for module in MODULES if is_public(module)}
    assert of_packages <= set(tables)
    modules = {name: set(find_names(name)) for name in tables}
    for name, names in modules.items():
        within = {other.rpartition(".")[2] for other in tables if other.startswith(f"{name}.")}
        assert tables[name] == names - within, name


def is_public(module):
    """Is it a module that users import from? A package tells what its modules have."""
    outer, _, inner = module.rpartition(".")
    return not inner.startswith("_") and outer in ("", "environments") and module not in INSIDE


def find_names(module):
    """What it has in `__all__`, without an import: PyTorch may be missing."""
    for node in ast.parse(path_of(module.removeprefix("mellowmax.")).read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return ast.literal_eval(node.value)
    raise AssertionError(f"{module} has no `__all__`")


@pytest.fixture(scope="module")
def formulas():
    pytest.importorskip("latex2mathml", reason="what builds the site is not installed")
    return module_of_docs("formulas")


def module_of_docs(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / f"docs/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def elements(formulas, latex):
    """The elements of a formula, as `(tag, text, attributes)`."""
    text = re.search("<math.*</math>", formulas.with_mathml(f"${latex}$"))[0]
    found = xml.etree.ElementTree.fromstring(text).iter()
    return [(one.tag.rpartition("}")[2], one.text, one.attrib) for one in found]


def test_a_prime_is_not_raised_twice(formulas):
    for latex in ("K'(b)", "s_i'", "x''"):
        tags = {text or tag: (tag, room) for tag, text, room in elements(formulas, latex)}
        assert not tags.keys() & {"msup", "msubsup"}, latex
        (prime,) = (tags[text] for text in tags if text in "\u2032\u2033")
        assert prime[0] == "mo", latex
        assert (prime[1]["lspace"], prime[1]["rspace"]) == ("0", "0")


@pytest.mark.parametrize(
    ("latex", "before", "after"),
    [
        (r"2 \log n", True, True),
        (r"\log n", False, True),
        (r"\frac1\omega \log \frac1n", True, True),
        (r"\log(n)", False, False),
    ],
)
def test_the_name_of_a_function_has_room_beside_it(formulas, latex, before, after):
    (room,) = (
        room for tag, text, room in elements(formulas, latex) if (tag, text) == ("mo", "log")
    )
    assert (room["lspace"] != "0", room["rspace"] != "0") == (before, after)


def test_a_formula_has_its_symbols(formulas):
    found = [text for _, text, _ in elements(formulas, r"\omega < \log n") if text]
    assert found == ["\u03c9", "<", "log", "n"]


def test_code_has_no_formulas(formulas):
    page = "`$x$` and\n```sh\necho $HOME $USER\n```\n"
    assert formulas.with_mathml(page) == page


def test_no_source_is_on_the_site():
    pytest.importorskip("mkdocs", reason="what builds the site is not installed")
    code = f"""
from mkdocs.config import load_config
from mkdocs.structure.files import get_files, set_exclusions
config = load_config({str(ROOT / "mkdocs.yml")!r})
files = get_files(config)
set_exclusions(files, config)
print(*(file.src_uri for file in files if file.inclusion.is_included()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "reference.md" in done.stdout.split(), done.stderr
    assert ".py" not in done.stdout


def test_every_file_that_is_named_is_there():
    """In pages, docstrings and comments: by its path, or by the end of it."""
    there = {path.relative_to(ROOT).as_posix() for path in sources()}
    there |= {path.name for path in ROOT.iterdir()}
    there |= {path.relative_to(ROOT).as_posix() for path in (ROOT / "src").rglob("*.css")}
    ends = {"/".join(name.split("/")[i:]) for name in there for i in range(name.count("/") + 1)}
    known = ends | WRITTEN_BY_USERS
    gone = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in sources()
        for text in texts(path)
        for name in FILE_NAME.findall(text)
        if name not in known and not (path.parent / name).exists()
    }
    assert not gone


def test_code_in_the_docstring_of_a_module_is_run():
    """As `>>>`, which the examples of modules are; no other block of it is Python."""
    for path in (ROOT / "src").rglob("*.py"):
        docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
        for block in indented(docstring):
            assert ">>>" in block or not is_python(block), f"{path.relative_to(ROOT)}:\n{block}"


STUMBLING_BLOCKS = {
    "depends on": r"\bhang(s|ing)? on\b",
    "minus": r"(?<!no )(?<!or )\bless (`|\w [/*+-]|(a|an|the|that|its|their|max|min|omega|beta)\b)",
    "name what it does": r"\b[Aa]s ((?!if)[\w.`']+\s){1,3}ha(s|ve)\s(it|them)\b",
    "ignores": r"\bneeds? it not\b",
    "does not exist": r"\bthat there (is|are|was|were) (not|none)\b",
    "this many": r"(?<!, )\bso many (steps|runs|episodes|bytes|lanes|of)\b",
    "the most": r"\b[Uu]p to so many\b",
    "no longer": r"\bthat no more\b",
    "in place of": r"\bin the place of\b",
    "with respect to": r"\b(derivative|gradient)s? (of [^.;,]{1,40} )?by (`|its\b|omega\b|"
    r"the (parameters?|values|weights|prior|result|logarithm|rewards)\b)",
    "the name first": r"\bof (NumPy|PyTorch|JAX|Python|QuantEcon|Gymnasium|Gambit|Typer|Matplotlib)"
    r"'s(?=[.,:;]| (with|or|in)\b)|\bof pandas'",
    "the general path": r"\bthe way of all\b",
    "for some seconds": r"\b(for|after|take|takes|took) so long\b(?! as)",
}
"""What to write, and the pattern of what readers had to read twice."""


def test_sentences_are_taken_in_at_once():
    """As far as a machine can see: some turns of phrase, and descriptions without a noun."""
    found = {
        f"{path.relative_to(ROOT)}: {match[0]!r}; write {better!r}"
        for path in sources()
        if path.name not in ("CHANGELOG.md", "test_docs.py")
        for text in texts(path)
        for better, pattern in STUMBLING_BLOCKS.items()
        for match in re.finditer(pattern, text)
    }
    found |= {
        f"{path.relative_to(ROOT)}: {text!r}; begin with what it is"
        for path in sources()
        if path.suffix == ".py" and "src" in path.parts
        for text in texts(path)
        if re.match(r"(Of|Likewise|Another|Those|That of)\b", text)
    }
    assert not found
