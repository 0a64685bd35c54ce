"""The command line called in this process, a terminal for one that is not, and their output."""

from __future__ import annotations

import math
import os
import pty
import re
import select
import time

import pytest
import typer.main
from typer.testing import CliRunner

from mellowmax.cli.app import app

COMMANDS = typer.main.get_command(app)
"""Made once: a runner would make them of their functions' signatures at each call."""


def call(*arguments):
    """Call a command; the result has `exit_code`, `stdout` and `stderr`.

    On a slow machine, too, there is no line of progress every five seconds.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.testing._get_command", lambda app: COMMANDS)
        patch.setattr("mellowmax.cli.progress.SECONDS_BETWEEN_LINES", math.inf)
        return CliRunner().invoke(app, [*map(str, arguments)], env={"COLUMNS": "200"})


def rows(text):
    """The rows of a table that a command has printed, by their names."""
    return {line[:14].strip(): line[15:] for line in text.splitlines()}


def assert_one_sentence(done, sentence, code=2):
    """The command has failed with an error of one line and said nothing else."""
    assert done.exit_code == code, done.stderr
    assert done.stdout == ""
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1


class Terminal:
    """A terminal, for the `stderr` of a process; `shown` is all that it was sent."""

    def __init__(self):
        self.ours, self.theirs = pty.openpty()
        self.shown = b""

    def __enter__(self):
        return self

    def __exit__(self, *error):
        os.close(self.ours)

    def read_until(self, pattern):
        """Wait until what is shown has a pattern, or, for None, until the process has ended."""
        if self.theirs is not None:  # the process has it now
            os.close(self.theirs)
            self.theirs = None
        until = time.monotonic() + 100
        while pattern is None or not re.search(pattern, self.shown):
            assert time.monotonic() < until, self.shown
            if select.select([self.ours], [], [], 1)[0]:
                try:
                    self.shown += os.read(self.ours, 65536)
                except OSError:  # nobody has the other end
                    assert pattern is None, self.shown
                    return
