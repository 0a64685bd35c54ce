"""What the package as a whole promises: a light import, layers, names, one version."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import mellowmax

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "mellowmax"

# A module imports only from modules of a smaller layer.
LAYERS = {
    "_libraries": 0.0,
    "_files": 0.0,
    "_npz": 0.1,
    "_registration": 0.0,
    "_threads": 0.0,
    "_worker": 0.1,
    "_rowwise": 0.0,
    "_gaps": 0.1,
    "_one_pass": 0.0,
    "_rows": 0.1,
    "_distributions": 0.2,
    "operators": 0.3,
    "_temperature": 1.0,
    "policies": 1.1,
    "softmax": 2.0,
    "properties": 2.1,
    "mdp._checks": 3.0,
    "mdp._entries": 3.1,
    "mdp.convert": 3.2,
    "mdp.model": 3.3,
    "mdp.generators": 3.4,
    "mdp.taxi": 3.4,
    "mdp": 3.5,
    "_lanes": 3.6,
    "planning.solution": 4.0,
    "planning.policy": 4.0,
    "planning.backup": 4.0,
    "planning.iteration": 4.1,
    "planning.bounds": 4.1,
    "planning.sweeps": 4.2,
    "planning.corrections": 4.1,
    "planning.corrected": 4.2,
    "planning.drive": 4.3,
    "planning.solver": 4.4,
    "planning.dense": 4.0,
    "planning.roots": 4.1,
    "planning.points": 4.2,
    "planning.curves": 4.1,
    "planning.continuation": 4.3,
    "planning.field": 4.3,
    "planning": 4.5,
    "environments._start": 4.0,
    "environments.tabular": 4.1,
    "environments.taxi": 4.2,
    "environments.two_state": 4.2,
    "environments.render": 4.0,
    "environments.gymnasium": 4.1,
    "environments.fleet": 4.1,
    "environments": 4.5,
    "learning.learner": 5.0,
    "learning.record": 5.0,
    "learning.training": 5.0,
    "learning.program": 5.1,
    "learning.train": 5.2,
    "learning.drive": 5.3,
    "learning": 5.4,
    "deep.episodes": 5.0,
    "deep.network": 5.0,
    "deep.reinforce": 5.1,
    "deep.source": 5.2,
    "deep.training": 5.1,
    "deep.checkpoint": 5.3,
    "deep.functional": 5.3,
    "deep.vector": 5.3,
    "deep.train": 5.4,
    "deep.evaluate": 5.5,
    "deep": 5.6,
    "experiments.item": 6.0,
    "experiments.paper": 6.0,
    "experiments.printed": 6.0,
    "experiments.style": 6.0,
    "experiments.store": 6.1,
    "experiments.intervals": 6.1,
    "experiments.fields": 6.2,
    "experiments.batch": 6.1,
    "experiments.gvi": 6.2,
    "experiments.search": 6.2,
    "experiments.fig11": 6.3,
    "experiments.fig2": 6.3,
    "experiments.fig3": 6.3,
    "experiments.fig4": 6.3,
    "experiments.fig5": 6.3,
    "experiments.fig6": 6.3,
    "experiments.fig7": 6.3,
    "experiments.fig9": 6.3,
    "experiments.table1": 6.3,
    "experiments.runner": 6.5,
    "experiments": 6.6,
    "report": 7.0,
    "measurement": 7.1,
    "practice": 7.1,
    "reproduction": 7.1,
    "cli": 7.2,
}
IMPORTABLE = {"numpy", "array_api_compat"}


def path_of(module):
    path = PACKAGE.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def imports_of(module):
    """The absolute names a module imports at its top level, and those inside functions."""
    tree = ast.parse(path_of(module).read_text())
    top = set(ast.walk(ast.Module(body=tree.body, type_ignores=[])))
    for node in tree.body:
        for inner in ast.walk(node):
            if isinstance(inner, ast.FunctionDef):
                top -= set(ast.walk(inner)) - {inner}
    for node in ast.walk(tree):  # an import for the type checker alone is none
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    package = ["mellowmax", *module.split(".")]
    if path_of(module).name != "__init__.py":
        package.pop()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node in top
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            base = ".".join([*base, *(node.module or "").split(".")]).strip(".")
            for alias in node.names:
                name = f"{base}.{alias.name}"
                yield name if name.removeprefix("mellowmax.") in LAYERS else base, node in top


def modules():
    paths = [path.relative_to(PACKAGE).with_suffix("") for path in PACKAGE.rglob("*.py")]
    names = (".".join(path.parts).removesuffix("__init__").rstrip(".") for path in paths)
    return sorted(name for name in names if name)


def test_every_module_has_a_layer():
    assert set(modules()) == set(LAYERS)


@pytest.mark.parametrize("module", modules())
def test_a_module_imports_only_from_smaller_layers(module):
    for name, _ in imports_of(module):
        if name.startswith("mellowmax."):
            layer = LAYERS[name.removeprefix("mellowmax.")]
            assert layer < LAYERS[module], f"{module} imports {name}"


@pytest.mark.parametrize("module", [m for m in modules() if LAYERS[m] < 3])
def test_the_foundation_needs_numpy_and_array_api_compat_alone(module):
    for name, at_top in imports_of(module):
        root = name.split(".")[0]
        if at_top and root not in sys.stdlib_module_names | {"mellowmax", "__future__"}:
            assert root in IMPORTABLE, f"{module} imports {name}"


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


@pytest.mark.parametrize("module", modules())
def test_all_is_what_a_module_defines_in_public(module):
    loaded = importlib.import_module(f"mellowmax.{module}")
    if not hasattr(loaded, "__all__"):
        assert module.split(".")[-1].startswith("_"), f"{module} has no __all__"
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
