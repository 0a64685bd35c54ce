"""The commands together: the version, completion, and help that can be read at 80 columns."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

import mellowmax
from helpers import commands
from helpers.commands import assert_one_sentence
from mellowmax.cli.app import app
from mellowmax.cli.console import KINDS
from mellowmax.planning.methods import METHODS

COMMANDS = typer.main.get_command(app).commands


def call(*arguments, columns=80):
    environment = {"COLUMNS": str(columns)}
    done = CliRunner().invoke(app, [*arguments], env=environment, prog_name="mellowmax")
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


@pytest.mark.parametrize("columns", [40, 60, 120])
@pytest.mark.parametrize("name", [(), *((name,) for name in COMMANDS)])
def test_help_has_the_same_words_on_any_terminal(name, columns):
    """None is cut, and none is broken."""
    text = call(*name, "--help", columns=columns)
    assert max(map(len, text.splitlines())) <= columns
    assert text.split() == call(*name, "--help").split()


@pytest.mark.parametrize("name", [(), *((name,) for name in COMMANDS)])
def test_h_is_help(name):
    assert call(*name, "-h") == call(*name, "--help")


@pytest.mark.parametrize(
    ("name", "usage"),
    [
        ((), "[OPTIONS] <COMMAND> [ARGS]..."),
        (("solve",), "[OPTIONS] <MODEL>"),
        (("play",), "[OPTIONS] <GAME>"),
        (("infer",), "[OPTIONS] <MODEL> <DEMONSTRATIONS>"),
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
        ("solve", "FrozenLake-v1", "--softmax", "max", "--csv", "-"),
        ("infer", "FrozenLake-v1", "seen.csv", "--features", "features.csv", "--csv", "-"),
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


def asked(typed):
    """The environment in which bash asks for the completion of what is typed."""
    words = ["mellowmax", *typed.split(" ")]
    return {
        "_MELLOWMAX_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("sol", {"solve"}),
        ("solve FrozenLake-v1 --softmax ", set(KINDS)),
        ("solve FrozenLake-v1 --method ", {"auto", *METHODS}),
        ("train CartPole-v1 --softmax m", {"max", "mean", "mellowmax"}),
        ("train CartPole-v1 --algorithm ", {"reinforce", "dqn", "ppo", "sac"}),
        ("reproduce fig2 fig1", {"fig11"}),
        ("reproduce fig2 --scale ", {"quick", "paper"}),
        ("solve ", {"cart/", "lake.npz", "results/"}),
        ("play ", {"cart/", "hunt.nfg", "results/"}),
        ("play hunt.nfg --trace ", {"cart/", "hunt.svg", "results/"}),
        ("infer lake.npz lake.csv --errors ", {"hessian", "outer", "sandwich"}),
        ("infer lake.npz --features ", {"cart/", "lake.csv", "results/"}),
        ("explore l", {"lake.npz"}),
        ("show ", {"cart/", "lake.npz", "results/"}),
        ("show c", {"cart/", "cart/runs-00000.npz"}),
        ("show ./r", {"./results/"}),
        ("evaluate cart/", {"cart/runs-00000.npz"}),
        ("evaluate cart --render ", {"cart/", "lake.gif", "results/"}),
        ("report ", {"cart/", "results/"}),
        ("solve lake.npz --csv ", {"cart/", "lake.csv", "results/"}),
        ("solve lake.npz --out ", {"cart/", "lake.npz", "results/"}),
        ("train CartPole-v1 --out ", {"cart/", "results/"}),
        ("reproduce --out r", {"results/"}),
        ("explore --save ", {"cart/", "page.html", "results/"}),
        ("show two", set()),  # names to be quoted: the shell completes them itself
        ("show absent/", set()),
    ],
)
def test_a_shell_gets_its_completion(tmp_path, monkeypatch, typed, offered):
    monkeypatch.chdir(tmp_path)
    for name in ("cart", "results"):
        (tmp_path / name).mkdir()
    files = (
        "hunt.nfg",
        "hunt.svg",
        "cart/runs-00000.npz",
        "lake.npz",
        "lake.csv",
        "lake.gif",
        "page.html",
        ".hidden.npz",
    )
    for name in (*files, *(["two words.npz"] if "two" in typed else [])):
        (tmp_path / name).touch()
    done = CliRunner().invoke(app, env=asked(typed), prog_name="mellowmax")
    assert set(done.stdout.split()) == offered, done.stderr


def test_a_process_answers_a_shell(tmp_path):
    (tmp_path / "lake.npz").touch()
    command = [sys.executable, "-m", "mellowmax"]
    environment = os.environ | asked("show ")
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "lake.npz\n"
