"""The files of a release, `dist/`: what is in them, and what they do in empty environments.

`make dist` builds them and runs this. It takes minutes and needs the package index: each extra is
installed with the newest versions there are, for every Python that is found, and with the oldest
that pyproject.toml allows.
"""

from __future__ import annotations

import email
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest
from packaging.requirements import Requirement

import mellowmax
from test_docs import EXAMPLES
from test_installs import PROJECT, ROOT, WORKS, check, normal

pytestmark = pytest.mark.release

FOR_USERS = ("jax", "gymnasium", "torch", "experiments")
PYTHONS = ("3.11", "3.12", "3.13", "3.14")


def tracked(*folders):
    command = ["git", "ls-files", "-z", *folders]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return {name for name in done.stdout.split("\0") if name}


def built(pattern):
    """The one file of a kind, of this version."""
    [path] = (ROOT / "dist").glob(pattern)
    assert f"mellowmax-{mellowmax.__version__}" in path.name, "`make dist` builds them anew"
    return path


@pytest.fixture(autouse=True)
def as_users(monkeypatch):
    """Without the flags of the tests, and without this checkout's own package."""
    for name in ("PYTHONPATH", "XLA_FLAGS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def wheel():
    return built("*.whl")


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    about = {name for name in names if ".dist-info/" in name}
    assert names - about == {name.removeprefix("src/") for name in tracked("src")}
    assert {name.split("/", 1)[1] for name in about} == {
        "METADATA",
        "WHEEL",
        "entry_points.txt",
        "licenses/LICENSE",
        "RECORD",
    }


def metadata_of(wheel):
    with zipfile.ZipFile(wheel) as file:
        [name] = [name for name in file.namelist() if name.endswith("METADATA")]
        return email.message_from_bytes(file.read(name))


def test_the_metadata_of_the_wheel(wheel):
    metadata = metadata_of(wheel)
    assert metadata["Version"] == mellowmax.__version__
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    assert set(metadata.get_all("Provides-Extra")) == set(PROJECT["optional-dependencies"])


def test_the_description_of_the_wheel_is_the_readme_without_what_is_only_in_a_clone(wheel):
    shown = metadata_of(wheel).get_payload(decode=True).decode()
    readme = (ROOT / "README.md").read_text()
    targets = re.findall(r"\]\(([^)]*)\)", shown) + re.findall(r"(?:src|href)=[\"']?(\S+)", shown)
    assert targets
    assert all(target.startswith("https://") for target in targets), targets
    assert re.findall("^#.*$", shown, re.MULTILINE) == re.findall("^#.*$", readme, re.MULTILINE)
    assert re.findall("```.*?```", shown, re.DOTALL) == re.findall("```.*?```", readme, re.DOTALL)


def test_the_source_holds_all_that_its_tests_need():
    with tarfile.open(built("*.tar.gz")) as file:
        names = {name.split("/", 1)[1] for name in file.getnames()}
    left_out = (".ci", ".github", ".pre-commit", "unfinished")
    kept = {name for name in tracked() if not name.startswith(left_out)}
    assert names - {"PKG-INFO"} == kept


def pythons():
    """The interpreters of this machine, by version."""
    found = {}
    for version in PYTHONS:
        command = [shutil.which(f"python{version}"), "-c", "import sys; print(sys.executable)"]
        if sys.version_info[:2] == tuple(map(int, version.split("."))):
            found[version] = sys.executable
        elif command[0]:
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode == 0:
                found[version] = done.stdout.strip()
    return found


FOUND = pythons()


def lowest():
    """A file of constraints: the oldest versions that pyproject.toml allows."""
    optional = PROJECT["optional-dependencies"]
    lists = [PROJECT["dependencies"], *(optional[extra] for extra in FOR_USERS)]
    for requirement in (Requirement(text) for one in lists for text in one):
        if normal(requirement.name) != "mellowmax":
            [bound] = requirement.specifier
            assert bound.operator == ">=", requirement
            yield f"{requirement.name}=={bound.version}"


def newest():
    """The newest there are, but for PyTorch: the pinned build needs no GPU's libraries."""
    pins = (ROOT / "constraints.txt").read_text()
    yield from re.findall("^torch==.*$", pins, re.MULTILINE)


@pytest.mark.parametrize("extra", WORKS)
@pytest.mark.parametrize(
    ("python", "versions"), [(PYTHONS[0], lowest), *((one, newest) for one in PYTHONS)]
)
def test_the_wheel_in_an_empty_environment(tmp_path, wheel, extra, python, versions):
    if python not in FOUND:
        pytest.skip(f"there is no Python {python} here")
    subprocess.run([FOUND[python], "-m", "venv", tmp_path / "venv"], check=True)
    inside = tmp_path / "venv" / "bin" / "python"
    constraints = tmp_path / "constraints.txt"
    constraints.write_text("\n".join(versions()))
    what = f"{wheel}[{extra}]" if extra else str(wheel)
    install = [inside, "-m", "pip", "install", "--quiet", "--constraint", constraints, what]
    subprocess.run(install, check=True)
    check(inside, extra, tmp_path)
    command = [inside.with_name("mellowmax"), "--version"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == (0 if extra == "experiments" else 2)
    for code, said in EXAMPLES if extra == "experiments" else EXAMPLES[:1]:
        run = [inside, "-W", "ignore", "-c", code]
        done = subprocess.run(run, capture_output=True, text=True, cwd=tmp_path)
        assert done.stdout == said, done.stderr
