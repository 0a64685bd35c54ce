"""What the commands share: a quick start, errors in one sentence, Ctrl-C."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
import typer

from mellowmax.cli.console import catch_ctrl_c, errors_in_one_sentence


def test_help_comes_without_what_a_command_needs():
    code = """
import sys
from mellowmax.cli.app import app
app(["--help"], standalone_mode=False)
heavy = {"jax", "matplotlib", "pandas", "pyarrow", "scipy", "gymnasium"}
print(heavy & set(sys.modules), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    for name in ("solve", "train", "evaluate", "reproduce", "report"):
        assert f" {name} " in done.stdout
    assert done.stderr == "set()\n"


@pytest.mark.parametrize(
    ("error", "code"),
    [(ValueError("a\nb"), 2), (OSError("a\nb"), 2), (TypeError("a\nb"), 2), (KeyError("a\nb"), 1)],
)
def test_an_error_is_one_sentence(capsys, error, code):
    with pytest.raises(typer.Exit) as exit_, errors_in_one_sentence(KeyError):
        raise error
    assert exit_.value.exit_code == code
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_an_error_of_ours_is_not_hidden():
    with pytest.raises(ZeroDivisionError), errors_in_one_sentence(KeyError):
        _ = 1 / 0


def test_ctrl_c_is_noticed_and_the_second_one_interrupts(capsys):
    before = signal.getsignal(signal.SIGINT)
    with catch_ctrl_c("cell") as pressed:
        assert not pressed.is_set()
        signal.raise_signal(signal.SIGINT)
        assert pressed.is_set()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert "at the end of this cell; press Ctrl-C again" in capsys.readouterr().err
    assert signal.getsignal(signal.SIGINT) is before
