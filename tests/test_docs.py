"""The README prints what it says; the pages of docs/ are doctests of their own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = re.findall(
    r"```python\n(.*?)```\n\n```text\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL
)


def test_the_readme_has_examples():
    assert len(EXAMPLES) == 6


@pytest.mark.parametrize(("code", "printed"), EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_of_the_readme_prints_what_it_says(code, printed):
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout == printed, result.stderr


def test_links_of_the_readme_lead_to_files():
    text = (ROOT / "README.md").read_text()
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert target.startswith("https://") or (ROOT / target).exists(), target
