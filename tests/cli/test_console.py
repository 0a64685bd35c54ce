"""What the commands share: a quick start, errors in one sentence, Ctrl-C."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import pytest
import typer

from mellowmax.cli.console import KINDS, errors_in_one_sentence
from mellowmax.experiments import style


def test_help_comes_without_what_a_command_needs():
    code = """
import sys
from mellowmax.cli.app import app
app(["--help"], standalone_mode=False)
heavy = {"jax", "matplotlib", "pandas", "pyarrow", "scipy", "gymnasium"}
print(heavy & set(sys.modules), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    for name in ("solve", "play", "train", "evaluate", "reproduce", "report"):
        assert f" {name} " in done.stdout
    assert done.stderr == "set()\n"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ValueError("a\nb"), 2),
        (OSError("a\nb"), 2),
        (TypeError("a\nb"), 2),
        (KeyError("a\nb"), 1),
        (OSError(errno.ENOSPC, "No space left on device", "a\nb"), 74),
    ],
)
def test_an_error_is_one_sentence(capsys, error, code):
    with pytest.raises(typer.Exit) as exit_, errors_in_one_sentence(KeyError):
        raise error
    assert exit_.value.exit_code == code
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_an_error_of_ours_is_not_hidden():
    with pytest.raises(ZeroDivisionError), errors_in_one_sentence(KeyError):
        _ = 1 / 0


def test_output_that_cannot_be_printed_is_not_success():
    """To nobody, which needs no words, and to a disk that is full."""
    command = [sys.executable, "-m", "mellowmax", "--version"]
    ours, theirs = os.pipe()
    os.close(ours)
    with open("/dev/full", "w") as full:
        for stdout, code, sentence in ((theirs, 141, ""), (full, 74, "No space left")):
            done = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True)
            assert done.returncode == code, done.stderr
            assert sentence in done.stderr
            assert len(done.stderr.splitlines()) == (code != 141)
    os.close(theirs)


def test_a_reader_that_goes_and_an_output_that_was_closed_are_silent():
    """As in a shell: `| true`, the errors through the same pipe, and `>&-`."""
    ours = f"{sys.executable} -m mellowmax"
    for line, code in (
        (f"{ours} train -h | true; exit ${{PIPESTATUS[0]}}", 141),
        (f"{ours} show absent.npz 2>&1 | true; exit ${{PIPESTATUS[0]}}", 141),
        (f"{ours} --version >&-", 0),
    ):
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
        assert (done.returncode, done.stdout, done.stderr) == (code, "", ""), line


def test_every_softmax_that_can_be_named_has_a_colour_of_its_own():
    """`mellowmax train` draws the learning curve of each."""
    colours = [style.COLOURS[name]["color"] for name in KINDS]
    assert len(set(colours)) == len(KINDS)
