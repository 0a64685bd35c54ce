"""The page with all of its gallery, in one browser for the tests of a file."""

from __future__ import annotations

import pytest

from helpers.browser import browser
from mellowmax.explorer import exhibits, write_page


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("explorer") / "page.html"
    write_page(path, exhibits())
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
