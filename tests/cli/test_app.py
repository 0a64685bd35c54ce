"""The commands together: the version, completion, and help that can be read at 80 columns."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

import commands
import mellowmax
from commands import assert_one_sentence
from mellowmax.cli.app import app
from mellowmax.planning.methods import METHODS
from mellowmax.softmax import SOFTMAXES

COMMANDS = typer.main.get_command(app).commands


def call(*arguments):
    done = CliRunner().invoke(app, [*arguments], env={"COLUMNS": "80"}, prog_name="mellowmax")
    assert done.exit_code == 0, done.stderr
    return done.stdout


def test_the_version():
    assert call("--version") == f"mellowmax {mellowmax.__version__}\n"


@pytest.mark.parametrize("name", [(), *((name,) for name in COMMANDS)])
def test_help_cuts_nothing_at_80_columns_and_has_an_example(name):
    text = call(*name, "--help")
    assert f"  Example: {' '.join(['mellowmax', *name])} " in text
    assert "…" not in text
    assert not re.search(r"\w\.\.\.", text.replace("items...", ""))
    assert max(map(len, text.splitlines())) <= 80
    words = text.split()
    for command in [COMMANDS[one] for one in name]:
        for parameter in command.params:
            names = [one for one in (*parameter.opts, *parameter.secondary_opts) if one[:1] == "-"]
            for option in names:
                assert (option in words) is not parameter.hidden


@pytest.mark.parametrize("name", [(), *((name,) for name in COMMANDS)])
def test_h_is_help(name):
    assert call(*name, "-h") == call(*name, "--help")


@pytest.mark.parametrize(
    ("name", "usage"),
    [
        ((), "[OPTIONS] <COMMAND> [ARGS]..."),
        (("solve",), "[OPTIONS] <MODEL>"),
        (("train",), "[OPTIONS] <ENV>"),
        (("evaluate",), "[OPTIONS] <CHECKPOINT> [ENV]"),
        (("show",), "[OPTIONS] <FILE>"),
        (("explore",), "[OPTIONS] [MODEL]"),
        (("reproduce",), "[OPTIONS] [ITEM]..."),
        (("report",), "[OPTIONS] <DIR>"),
    ],
)
def test_the_usage_line_tells_what_is_required(name, usage):
    assert call(*name, "--help").splitlines()[0] == " ".join(["Usage: mellowmax", *name, usage])


@pytest.mark.parametrize(
    "arguments",
    [
        ("solve", "FrozenLake-v1", "--softmax", "max", "--out", "-"),
        ("train", "CartPole-v1", "--parameter", 5, "--out", "-"),
        ("reproduce", "fig3", "--out", "-"),
        ("explore", "--save", "-"),
    ],
)
def test_a_dash_is_not_the_name_of_an_output(tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    rule = f"`{arguments[-2]}` must be the name of a "
    assert_one_sentence(commands.call(*arguments), rule)
    assert not any(tmp_path.iterdir())


def test_an_argument_has_the_name_of_the_help():
    sentence = "`ENV` must be the id of a Gymnasium environment, got 'Nowhere-v0'"
    assert_one_sentence(commands.call("train", "Nowhere-v0", "--parameter", 5), sentence)


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("sol", {"solve"}),
        ("solve FrozenLake-v1 --softmax ", set(SOFTMAXES)),
        ("solve FrozenLake-v1 --method ", {"auto", *METHODS}),
        ("train CartPole-v1 --softmax m", {"max", "mean", "mellowmax"}),
        ("train CartPole-v1 --algorithm ", {"reinforce", "dqn"}),
        ("reproduce fig2 fig1", {"fig11"}),
        ("reproduce fig2 --scale ", {"quick", "paper"}),
    ],
)
def test_a_shell_gets_its_completion(typed, offered):
    command = [sys.executable, "-m", "mellowmax"]
    words = ["mellowmax", *typed.split(" ")]
    asked = {
        "_MELLOWMAX_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }
    done = subprocess.run(command, env=os.environ | asked, capture_output=True, text=True)
    assert set(done.stdout.split()) == offered, done.stderr
