"""The README prints what it says; the pages of docs/ are doctests of their own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = re.findall(
    r"```python\n(.*?)```\n\n```text\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL
)
RUN = """
import contextlib, io, json, sys, traceback
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


def test_the_readme_has_examples():
    assert len(EXAMPLES) == 6


@pytest.fixture(scope="module")
def printed_here():
    result = subprocess.run(
        [sys.executable, "-c", RUN],
        input=json.dumps([code for code, _ in EXAMPLES]),
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.parametrize("number", range(6))
def test_an_example_of_the_readme_prints_what_it_says(number, printed_here):
    assert printed_here[number] == EXAMPLES[number][1]


def test_links_of_the_readme_lead_to_files():
    text = (ROOT / "README.md").read_text()
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert target.startswith("https://") or (ROOT / target).exists(), target
