"""docs/howto/command_line.md: every command is run, and prints what the page says."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys

import pytest

from test_docs import ROOT

pytestmark = pytest.mark.release  # `make pages` runs it

PAGE = (ROOT / "docs/howto/command_line.md").read_text()
COMMANDS = re.findall(r"```console\n\$ (.*?)\n(.*?)```", PAGE, re.DOTALL)
ALIKE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """One directory for all, with the page's files: later commands read what earlier ones wrote."""
    directory = tmp_path_factory.mktemp("here")
    shown = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    names = re.findall(r"such as `(\w+\.\w+)`", PAGE)
    for name, text in zip(names, shown, strict=True):
        (directory / name).write_text(text)
    [code] = re.findall(r"```py\n(.*?)```", PAGE, re.DOTALL)
    subprocess.run([sys.executable, "-c", code], cwd=directory, check=True)
    return directory


@pytest.mark.parametrize(("command", "said"), COMMANDS, ids=[command for command, _ in COMMANDS])
def test_a_command_prints_what_the_page_says(here, command, said):
    name, *arguments = shlex.split(command)
    assert name == "mellowmax"
    environment = {**os.environ, "COLUMNS": "100", "XDG_CACHE_HOME": str(here)}
    environment.pop("XLA_FLAGS", None)  # as users compile
    done = subprocess.run(
        [sys.executable, "-m", "mellowmax", *arguments],
        cwd=here,
        env=environment,
        capture_output=True,
        text=True,
    )
    got = done.stderr if done.returncode else done.stdout
    assert doctest.OutputChecker().check_output(said, got, ALIKE), got


def test_the_page_has_every_command():
    from mellowmax.cli.app import app

    shown = {shlex.split(command)[1] for command, _ in COMMANDS}
    assert {function.callback.__name__ for function in app.registered_commands} <= shown
