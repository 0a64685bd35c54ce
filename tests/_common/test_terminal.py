"""Lines as wide as the terminal: nothing is lost, and no word is broken."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import termios

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mellowmax._common.terminal import columns, say, wrapped

WORDS = st.lists(st.text("abc,.最\u0301", min_size=1, max_size=30), min_size=1, max_size=30)


@pytest.fixture
def terminal():
    """A terminal of 40 columns: what is written to it, and what it shows."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 10, 40, 0, 0))
    with open(theirs, "w") as file:
        yield file, ours
    os.close(ours)


@given(words=WORDS, width=st.integers(1, 60), indent=st.integers(0, 40))
def test_lines_are_no_wider_than_the_terminal_and_words_stay_whole(words, width, indent):
    lines = wrapped(" ".join(words), width, indent).split("\n")
    assert " ".join(lines).split() == words
    for line in lines:
        cells = len(line) + line.count("最") - line.count("\u0301")
        assert cells <= width or len(line.split()) == 1
        assert line == line.rstrip()


@given(words=WORDS, indent=st.integers(0, 40))
def test_what_is_no_terminal_has_lines_of_any_width(words, indent):
    text = " ".join(words)
    assert wrapped(text, None, indent) == text


def test_the_width_is_that_of_the_terminal_or_of_the_environment(terminal, monkeypatch):
    file, _ = terminal
    monkeypatch.delenv("COLUMNS", raising=False)
    assert columns(file) == columns(file.fileno()) == 40
    monkeypatch.setenv("COLUMNS", "72")
    assert columns(file) == 72
    monkeypatch.setenv("COLUMNS", "wide")
    assert columns(file) == 40
    with open(os.devnull, "w") as nowhere:
        assert columns(nowhere) is None
    assert columns(nowhere) is None  # it is closed
    assert columns(io.StringIO()) is None
    assert columns(None) is None


def test_a_row_goes_on_below_its_text(terminal, monkeypatch):
    file, ours = terminal
    monkeypatch.delenv("COLUMNS", raising=False)
    say("status         converged after 6 iterations", indent=15, file=file)
    shown = b""
    while shown.count(b"\n") < 2:
        shown += os.read(ours, 1000)
    assert shown == b"status         converged after 6\r\n               iterations\r\n"
