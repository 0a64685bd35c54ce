"""The page with all of its gallery, in one browser for the tests of a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from browser import browser
from mellowmax.explorer import taxi, write_page


@pytest.fixture(scope="session")
def recorded():
    """An episode of Lunar Lander."""
    return json.loads(Path(__file__).with_name("landing.json").read_text())


@pytest.fixture(scope="module")
def file(tmp_path_factory, recorded):
    path = tmp_path_factory.mktemp("explorer") / "page.html"
    write_page(path, [taxi(), recorded])
    return path


@pytest.fixture(scope="module")
def browsing():
    with browser() as tab:
        yield tab


@pytest.fixture
def tab(browsing):
    """The tab, which must have nothing to complain of when a test is done."""
    yield browsing
    assert browsing.complaints() == []
