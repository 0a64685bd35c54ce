"""What the package as a whole promises: a light import, layers, names, one version."""

from __future__ import annotations

import ast
import functools
import graphlib
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import mellowmax
from helpers.libraries import torch

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "mellowmax"

IMPORTABLE = {"numpy", "array_api_compat"}

# The packages in order: a module imports from its own package and from those on earlier lines.
ORDER = (
    {"_typing"},
    {"_common"},
    {"_fixed_points"},
    {"_rows"},
    {"operators"},
    {"policies"},
    {"softmax"},
    {"properties", "mdp", "torch"},
    {"planning", "environments"},
    {"learning", "deep", "games", "inverse"},
    {"experiments", "explorer"},
    {"report"},
    {"cli"},
    {"__main__"},
)
RANK = {package: rank for rank, packages in enumerate(ORDER) for package in packages}
SHARED = {"_typing", "_rows", "_common", "_fixed_points"}
"""Private to mellowmax as a whole, not to a package of it."""
FOUNDATION = RANK["properties"]


def path_of(module):
    path = PACKAGE.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def modules():
    paths = [path.relative_to(PACKAGE).with_suffix("") for path in PACKAGE.rglob("*.py")]
    names = (".".join(path.parts).removesuffix("__init__").rstrip(".") for path in paths)
    return sorted(name for name in names if name)


MODULES = modules()
WITHOUT_TORCH = set() if torch else {"torch"}
"""What cannot be imported here."""


def package_of(module):
    return module.split(".")[0]


@functools.cache
def imports_of(module):
    """What a module imports, as `(name, at the top level?)`; ours without "mellowmax."."""
    tree = ast.parse(path_of(module).read_text())
    for node in ast.walk(tree):  # an import for the type checker alone is none
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    inner = {
        inside
        for node in ast.walk(tree)
        if isinstance(node, functions)
        for inside in ast.walk(node)
    }
    package = ["mellowmax", *module.split(".")]
    if path_of(module).name != "__init__.py":
        package.pop()
    found = set()
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            base = ".".join([*base, *(node.module or "").split(".")]).strip(".")
            for alias in node.names:
                name = f"{base}.{alias.name}"
                names.append(name if name.removeprefix("mellowmax.") in MODULES else base)
        found |= {(name, node not in inner) for name in names}
    return found


def ours(module):
    """The modules of this package that a module imports."""
    names = (name for name, _ in imports_of(module) if name.split(".")[0] == "mellowmax")
    return {name.removeprefix("mellowmax").lstrip(".") for name in names} - {""}


def test_every_package_has_a_place_in_the_order():
    assert {package_of(module) for module in MODULES} <= set(RANK)


def of_every(modules):
    """One test of all modules: to report one for each would take longer than to run them."""

    def together(check):
        def test():
            for module in modules:
                try:
                    check(module)
                except Exception as error:
                    error.add_note(f"of mellowmax.{module}")
                    raise

        test.__name__, test.__doc__ = check.__name__, check.__doc__
        return test

    return together


@of_every(MODULES)
def test_nothing_imports_upwards(module):
    own = package_of(module)
    for name in ours(module):
        other = package_of(name)
        assert other == own or RANK[other] < RANK[own], f"{module} imports {name}"


@pytest.mark.parametrize("package", sorted(RANK))
def test_no_cycle_inside_a_package(package):
    inside = {module for module in MODULES if package_of(module) == package}
    graphlib.TopologicalSorter({m: ours(m) & inside for m in inside}).prepare()


@of_every(MODULES)
def test_no_private_module_is_imported_across_packages(module):
    for name in ours(module):
        parent = name.rpartition(".")[0]
        private = any(part.startswith("_") for part in name.split("."))
        if private and package_of(name) not in SHARED:
            assert module.startswith(parent), f"{module} imports {name}"


@of_every(sorted(set(MODULES) - {"_common.private_names"}))
def test_private_names_of_other_packages_stand_in_one_module(module):
    """Imported, as attributes of what is imported, and as text."""
    said, others = set(), {"jax", "torch", "typer"}
    for node in ast.walk(ast.parse(path_of(module).read_text())):
        if isinstance(node, ast.Import | ast.ImportFrom) and not getattr(node, "level", 0):
            base = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            said |= {base + alias.name for alias in node.names}
            others |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, ast.Attribute):
            said.add(ast.unparse(node))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            said.add(node.value)
    others -= sys.stdlib_module_names
    for name in said:
        if re.fullmatch(r"\w+(\.\w+)+", name) and name.split(".")[0] in others:
            assert not re.search(r"\._(?!_)", name), f"{module} uses {name}"


@pytest.mark.parametrize("module", [m for m in MODULES if RANK[package_of(m)] < FOUNDATION])
def test_the_foundation_needs_numpy_and_array_api_compat_alone(module):
    if package_of(module) == "_common":  # what the later packages share
        return
    for name, at_top in imports_of(module):
        root = name.split(".")[0]
        if at_top and root not in sys.stdlib_module_names | {"mellowmax", "__future__"}:
            assert root in IMPORTABLE, f"{module} imports {name}"


def test_a_process_of_environments_does_not_import_jax():
    code = "import sys, mellowmax.environments.fleet.worker; print('jax' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.strip() == "False", result.stderr


def test_the_import_works_and_is_light_without_jax_and_torch():
    code = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"jax", "jaxlib", "torch", "scipy", "matplotlib", "gymnasium"}:
            raise ImportError(f"{name} is hidden")

sys.meta_path.insert(0, Hidden())
before = set(sys.modules)
import mellowmax
loaded = {name.split(".")[0] for name in set(sys.modules) - before}
print(sorted(loaded - set(sys.stdlib_module_names)))
print(mellowmax.Mellowmax(5.0).policy([1.0, 2.0, 3.0]).round(4))
print(mellowmax.properties.probe(mellowmax.Mean()).non_expansion.holds)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    loaded, policy, holds = result.stdout.splitlines()
    assert set(ast.literal_eval(loaded)) <= {"array_api_compat", "mellowmax", "numpy"}
    assert policy == "[0.0305 0.1574 0.8121]"
    assert holds == "True"


@of_every(sorted(set(MODULES) - WITHOUT_TORCH))
def test_all_is_what_a_module_defines_in_public(module):
    loaded = importlib.import_module(f"mellowmax.{module}")
    if not hasattr(loaded, "__all__"):
        empty = len(ast.parse(path_of(module).read_text()).body) == 1
        assert empty, f"{module} has no __all__"
        return
    assert len(set(loaded.__all__)) == len(loaded.__all__)
    for name in loaded.__all__:
        assert hasattr(loaded, name)
    if not module.split(".")[-1].startswith("_"):
        for name in loaded.__all__:
            thing = getattr(loaded, name)
            is_ours = getattr(thing, "__module__", "").startswith("mellowmax")
            assert thing.__doc__ or not is_ours, f"{module}.{name} has no docstring"
        defined = {
            node.name
            for node in ast.parse(path_of(module).read_text()).body
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
        }
        assert defined <= set(loaded.__all__)


def test_the_tests_mirror_the_packages():
    """Every folder of tests is named after the package that it tests, but for what helps."""
    folders = {
        path.parent.relative_to(ROOT / "tests") for path in ROOT.glob("tests/*/**/test_*.py")
    }
    assert not {folder.as_posix() for folder in folders if not (PACKAGE / folder).is_dir()}


def test_the_promised_names():
    operators = {"maximum", "mean", "epsilon_greedy", "boltzmann", "mellowmax"}
    kinds = ("greedy", "uniform", "epsilon_greedy", "boltzmann", "mellowmax")
    policies = {f"{kind}_policy" for kind in kinds} | {"mellowmax_temperature"}
    pairs = {"Max", "Mean", "EpsilonGreedy", "Boltzmann", "Mellowmax"}
    assert operators | policies | pairs <= set(mellowmax.__all__)
    for name in mellowmax.__all__:
        assert hasattr(mellowmax, name)
    from mellowmax.mdp import MDP

    for name in ("from_arrays", "from_sparse", "from_gymnasium", "load", "save"):
        assert hasattr(MDP, name)
    for name in ("solve", "fixed_points", "trace_fixed_points", "vector_field"):
        assert callable(getattr(mellowmax.planning, name))
    with pytest.raises(AttributeError, match="no attribute 'minimum'"):
        _ = mellowmax.minimum


def test_every_public_subpackage_loads_on_first_use_and_completion_shows_the_public_names():
    modules = {"operators", "policies", "softmax", "properties"}
    packages = {"mdp", "planning", "games", "inverse", "environments", "learning", "deep"}
    packages |= {"experiments", "explorer", "report", "torch"}
    assert set(dir(mellowmax)) == {*mellowmax.__all__, *modules, *packages}
    public = {m for m in MODULES if "." not in m and not m.startswith("_")} - {"cli"}
    assert public == modules | packages
    for name in modules | packages - WITHOUT_TORCH:
        assert getattr(mellowmax, name) is importlib.import_module(f"mellowmax.{name}")


def test_the_package_runs_as_a_command():
    command = [sys.executable, "-m", "mellowmax", "--help"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "solve" in result.stdout


ANY_IS_THE_TRUTH = {
    "_typing.Array": "the operators of an array take whatever its library does",
    "_typing.Namespace.asarray": "a device is a library's own, without a class in the standard",
}


def parameters_that_are_any(module):
    """`module.Class.function` of each parameter that is annotated with `Any` alone."""

    def visit(node, place):
        for child in ast.iter_child_nodes(node):
            inside = f"{place}.{child.name}" if hasattr(child, "name") else place
            if isinstance(child, ast.arguments):
                given = [node for node in ast.walk(child) if isinstance(node, ast.arg)]
                texts = (ast.unparse(arg.annotation) for arg in given if arg.annotation)
                yield from (place for text in texts if text in ("Any", "Any | None"))
            else:
                yield from visit(child, inside)

    return list(visit(ast.parse(path_of(module).read_text()), module))


@pytest.mark.parametrize(
    "module", [m for m in MODULES if RANK[package_of(m)] <= RANK["softmax"]] + ["properties"]
)
def test_a_parameter_of_the_foundation_has_a_type(module):
    """mypy sees to it that there is an annotation; here, that it says something."""
    if package_of(module) == "_common" and module != "_common.checks":
        return
    for place in parameters_that_are_any(module):
        assert any(place.startswith(known) for known in ANY_IS_THE_TRUTH), place


def test_few_parameters_are_of_any_type():
    """A bare `Any` is for what no type says, and hides what is passed from mypy."""
    trees = (ast.parse(path_of(module).read_text()) for module in MODULES)
    functions = [
        node.args
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    parameters = [
        parameter
        for args in functions
        for parameter in (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg)
        if parameter is not None and parameter.annotation is not None
    ]
    bare = [one for one in parameters if ast.unparse(one.annotation) == "Any"]
    assert len(parameters) > 5000
    assert len(bare) < 60


def test_one_version():
    version = mellowmax.__version__
    assert f"version: {version}" in (ROOT / "CITATION.cff").read_text()
    newest = re.search(r"^## \[?([0-9.]+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert newest.group(1) == version


def test_every_pin_is_allowed_by_the_ranges():
    """constraints.txt pins what pyproject.toml asks for, and torch to the exact CPU build."""
    pins = dict(
        line.split("==") for line in (ROOT / "constraints.txt").read_text().split() if "==" in line
    )
    text = (ROOT / "pyproject.toml").read_text()
    for name, least in re.findall(r'"([a-z0-9-]+)(?:\[[a-z0-9]+\])?>=([0-9.]+)"', text):
        assert name in pins, f"{name} has no pin"
        pinned, lowest = (tuple(map(int, v.split("."))) for v in (pins[name], least))
        assert pinned >= lowest, f"{name}: {pins[name]} is below {least}"
    assert pins["torch"] == "2.13.0"
