"""What each install can do, and what the others say about it.

All modules that an extra does not bring are hidden from the import; `test_dist.py` has the same in
empty environments.
"""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from test_package import MODULES, imports_of

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

WITH_CORE = """
import mellowmax, mellowmax.cli, mellowmax.environments, mellowmax.mdp
from mellowmax.mdp import MDP, two_state
assert mellowmax.mellowmax([1.0, 2.0, 3.0], 5.0).round(4) == 2.7816
two_state().save("model.npz")
assert MDP.load("model.npz").n_states == 2
assert mellowmax.explorer.page([mellowmax.explorer.taxi()]).count('class="data"') > 0
"""
WITH_JAX = f"""{WITH_CORE}
from mellowmax import Boltzmann, Max, deep, learning, planning
from mellowmax.environments import tabular, taxi, two_state as environment
assert planning.solve(two_state(), Max(), method="shifted").converged
params = environment.params()
assert learning.train(learning.sarsa(Boltzmann(2.0), 0.1), params, steps=4).q.shape == (1, 2, 2)
learner = deep.reinforce(Boltzmann(1.0), batch=2)
result = deep.train(learner, deep.FunctionalEnvironment(environment, params, 4), episodes=2)
assert result.returns.shape == (1, 2)
"""
WITH_GYMNASIUM = f"""{WITH_CORE}
import gymnasium, numpy
from mellowmax.environments.fleet import Fleet
assert MDP.from_gymnasium("FrozenLake-v1", 0.9).n_states == 16
env = gymnasium.make("mellowmax/MultiPassengerTaxi-v0", render_mode="rgb_array")
env.reset(seed=0)
assert env.render().ndim == 3
fleet = Fleet(lambda: gymnasium.make("FrozenLake-v1"), 2, workers=1)  # cloudpickle takes a lambda
assert fleet.reset(seed=0)[0].tolist() == [0, 0]
fleet.close()
"""
WITH_EXPERIMENTS = f"""{WITH_JAX}
import os, sys, mellowmax.report
from mellowmax.experiments import plan
assert plan(["fig2"], "quick", "reproduction")
os.environ["XDG_CACHE_HOME"] = os.getcwd()
sys.argv = ["mellowmax", "solve", "FrozenLake-v1", "--softmax", "max"]
mellowmax.cli.main()
"""
WITH_TORCH = f"""{WITH_CORE}
import torch
q = torch.tensor([[1.0, 2.0, 3.0]], requires_grad=True)
mellowmax.mellowmax_log_policy(q, 5.0)[0, 0].backward()
assert q.grad.shape == q.shape
"""
WORKS = {
    "": WITH_CORE,
    "torch": WITH_TORCH,
    "jax": WITH_JAX,
    "gymnasium": WITH_GYMNASIUM,
    "experiments": WITH_EXPERIMENTS,
}

JAX = [
    ("import mellowmax.planning", "`mellowmax.planning` needs JAX", "jax"),
    ("mellowmax.learning", "`mellowmax.learning` needs JAX", "jax"),
    ("from mellowmax.deep import train", "`mellowmax.deep` needs JAX", "jax"),
    ("mellowmax.environments.taxi", "`mellowmax.environments.taxi` needs JAX", "jax"),
    ("two_state().to_scipy()", "`MDP.to_scipy` needs SciPy", "jax"),
]
GYMNASIUM = [
    ("MDP.from_gymnasium('Taxi-v4', 0.9)", "`Taxi-v4` needs Gymnasium", "gymnasium"),
    (
        "import mellowmax.environments.fleet",
        "`mellowmax.environments.fleet` needs Gymnasium",
        "gymnasium",
    ),
    (
        "from mellowmax.environments.gymnasium import TwoState",
        "`mellowmax.environments.gymnasium` needs Gymnasium",
        "gymnasium",
    ),
]
TORCH = [("import mellowmax.torch", "`mellowmax.torch` needs PyTorch", "torch")]
BOTH = [
    (
        "deep.train(learner, 'CartPole-v1', episodes=2)",
        "`CartPole-v1` needs Gymnasium",
        "gymnasium",
    ),
    (
        "learning.train(learning.sarsa(Boltzmann(2.0), 0.1), 'FrozenLake-v1', steps=4)",
        "`FrozenLake-v1` needs Gymnasium",
        "gymnasium",
    ),
]
EXPERIMENTS = [
    ("import mellowmax.report", "`mellowmax.report` needs PyArrow", "experiments"),
    (
        "mellowmax.experiments.plan",
        "`mellowmax.experiments.plan` needs (JAX|pandas)",
        "experiments",
    ),
]
LACKS = {
    "": [*JAX, *GYMNASIUM, *EXPERIMENTS, *TORCH],
    "torch": [*JAX, *GYMNASIUM, *EXPERIMENTS],
    "jax": [*GYMNASIUM, *BOTH, *EXPERIMENTS, *TORCH],
    "gymnasium": [*JAX, *EXPERIMENTS, *TORCH],
    "experiments": [],
}
"""What is tried where an extra is missing, what is said, and the extra that it names."""

TRY = """
try:
    {code}
except ImportError as error:
    print(error)
else:
    print("nothing")
"""
COMMAND_LINE = """
import mellowmax.cli
mellowmax.cli.main()
"""


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def requirements(texts, extras):
    """Those of some texts that hold here, with the extras that they ask for."""
    for requirement in map(Requirement, texts):
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": e}) for e in {"", *extras}):
            yield normal(requirement.name), requirement.extras


def brought(extras):
    """The distributions that an install with extras ("jax,gymnasium") brings, and all they need."""
    optional = PROJECT["optional-dependencies"]
    found, left = set(), [("mellowmax", frozenset(extras.split(",")) - {""})]
    while left:
        name, extras = left.pop()
        if (name, extras) in found:
            continue
        found.add((name, extras))
        if name == "mellowmax":
            lists = [PROJECT["dependencies"], *(optional[one] for one in extras)]
            texts = [text for one in lists for text in one]
        else:
            try:
                texts = importlib.metadata.requires(name) or []
            except importlib.metadata.PackageNotFoundError:
                continue
        left += [(one, frozenset(more)) for one, more in requirements(texts, extras)]
    return {name for name, _ in found}


def modules_by_distribution():
    found = {}
    for module, names in importlib.metadata.packages_distributions().items():
        for name in names:
            found.setdefault(normal(name), set()).add(module)
    return found


def hide_all_but(extras):
    """Code that hides the modules from import that an install with extras does not bring."""
    modules = modules_by_distribution()
    kept = set().union(*(modules.get(name, set()) for name in brought(extras)))
    hidden = set().union(*modules.values()) - kept - {"mellowmax"}
    return f"""
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {hidden!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Hidden())
"""


def check(python, extra, directory, before=""):
    """An install does what it can, and names the extra for what it cannot."""

    def run(code):
        command = [python, "-c", before + code]
        return subprocess.run(command, capture_output=True, text=True, cwd=directory)

    tried = "".join(TRY.format(code=code) for code, _, _ in LACKS[extra])
    done = run(WORKS[extra] + tried)
    assert done.returncode == 0, done.stderr
    if not LACKS[extra]:
        return
    for said, (_, sentence, missing) in zip(done.stdout.splitlines(), LACKS[extra], strict=True):
        install = re.escape(f": pip install 'mellowmax[{missing}]'")
        assert re.fullmatch(sentence + install, said), said
    done = run(COMMAND_LINE)
    assert done.returncode == 2
    assert done.stdout == ""
    sentence = "mellowmax: `mellowmax` needs Typer: pip install 'mellowmax[experiments]'\n"
    assert done.stderr == sentence


@pytest.mark.parametrize("extra", ["", "jax", "gymnasium"])
def test_an_install_does_what_it_can_and_names_the_extra_for_the_rest(tmp_path, extra):
    check(sys.executable, extra, tmp_path, hide_all_but(extra))


def test_whatever_is_imported_is_declared():
    """By name, and not only because another package happens to need it."""
    lists = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    declared = {normal(Requirement(text).name) for one in lists for text in one}
    modules = modules_by_distribution()
    # Of a package that is not installed here, the module has its name.
    known = set().union(*(modules.get(name, {name}) for name in declared))
    ours = sys.stdlib_module_names | {"mellowmax", "__future__"}
    for module in MODULES:
        for name, _ in imports_of(module):
            root = name.split(".")[0]
            assert root in ours | known, f"{module} imports {name}, which is not declared"
