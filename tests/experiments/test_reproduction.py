"""The reproduction survives: real processes are killed, run side by side, and start again."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from helpers import miniature
from helpers.commands import assert_one_sentence, call
from mellowmax.cli.reproduce import to_be_made
from mellowmax.experiments import assemble_all, plan, reproduce
from mellowmax.experiments.items import fig9
from mellowmax.experiments.store import read_table
from mellowmax.report import write


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Compiled programs are kept between the processes of this file."""
    return os.environ | {"XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache"))}


@pytest.fixture
def start(environment):
    """Start the command line in a process of its own."""
    processes = []

    def starter(out, *arguments, **variables):
        process = subprocess.Popen(
            [
                sys.executable,
                miniature.__file__,
                "reproduce",
                "fig9",
                "--out",
                str(out),
                *arguments,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment | variables,
        )
        processes.append(process)
        return process

    yield starter
    for process in processes:
        with process:  # which closes its pipes
            process.kill()


def finish(process, code=0):
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == code, stderr
    assert "Traceback" not in stderr, stderr
    return stdout, stderr


@pytest.fixture(scope="module", autouse=True)
def small():
    """Figure 9 in miniature in this process, too."""
    with pytest.MonkeyPatch.context() as patch:
        miniature.install(patch.setattr)
        yield


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, small):
    """What a run that nothing happened to has written."""
    out = tmp_path_factory.mktemp("undisturbed")
    done = call("reproduce", "fig9", "--out", out)
    assert done.exit_code == 0, done.stderr
    verdict, path = done.stdout.splitlines()  # of the one item that was asked for
    assert verdict.startswith("fig9 ")
    assert path == str(out / "report.html")
    assert "8 of 8 cells" in done.stderr
    return out


def cells_of(out):
    return sorted((out / "cells" / "fig9").glob("*.parquet"))


def bytes_of(out):
    return {path.name: path.read_bytes() for path in sorted((out / "tables").iterdir())}


def wait_for_cells(out, process, count):
    deadline = time.monotonic() + 100
    while len(cells_of(out)) < count and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_stopped_in_any_way_it_resumes_and_ends_with_the_same_tables(tmp_path, start, undisturbed):
    """By a full disk, by being killed at some moment, and by ctrl-C."""
    _, stderr = finish(start(tmp_path, LARGEST_FILE="2000"), code=74)
    assert "mellowmax: " in stderr
    assert "File too large" in stderr
    assert not list(tmp_path.rglob("*.tmp"))  # nothing is half written
    assert not cells_of(tmp_path)

    known: dict[Path, int] = {}
    for count, stop in ((1, signal.SIGKILL), (4, signal.SIGINT)):
        process = start(tmp_path)
        wait_for_cells(tmp_path, process, count)
        time.sleep(0.03 * count)  # somewhere within the next cell
        process.send_signal(stop)
        if stop == signal.SIGINT:
            _, stderr = finish(process, code=130)
            assert "the same command resumes from there" in stderr
            assert count <= len(cells_of(tmp_path)) < miniature.N_CELLS
        process.wait()
        for path in cells_of(tmp_path):
            read_table(path)  # whole
            assert known.setdefault(path, path.stat().st_mtime_ns) == path.stat().st_mtime_ns
    assert known
    finish(start(tmp_path))
    assert len(cells_of(tmp_path)) == miniature.N_CELLS
    for path, written in known.items():
        assert path.stat().st_mtime_ns == written  # nothing was made twice
    assert bytes_of(tmp_path) == bytes_of(undisturbed)


def test_two_at_once_end_with_the_same_tables(tmp_path, start, undisturbed):
    both = [start(tmp_path), start(tmp_path)]
    for process in both:
        finish(process)
    assert bytes_of(tmp_path) == bytes_of(undisturbed)


@pytest.mark.release
def test_two_processes_with_two_devices_each_give_the_tables_of_one(tmp_path, start):
    """With SARSA in earnest."""
    alone, shared = tmp_path / "alone", tmp_path / "shared"
    with pytest.MonkeyPatch.context() as patch:
        miniature.install(patch.setattr, real=True)
        done = call("reproduce", "fig9", "--out", alone)
    assert done.exit_code == 0, done.stderr
    with socket.socket() as free:
        free.bind(("localhost", 0))
        address = f"localhost:{free.getsockname()[1]}"
    variables = {"JAX_COORDINATOR_ADDRESS": address, "JAX_NUM_PROCESSES": "2", "REAL": "yes"}
    both = [
        start(shared, "--devices", "2", **variables, JAX_PROCESS_ID=str(number))
        for number in range(2)
    ]
    for process in both:
        finish(process)
    made = [read_table(path)[1]["device"] for path in cells_of(shared)]
    assert {device.split(" x ")[0] for device in made} == {"2"}
    assert bytes_of(shared) == bytes_of(alone)


def test_cells_of_another_version_or_config_are_not_mixed_in(tmp_path, monkeypatch, undisturbed):
    out = tmp_path / "out"
    shutil.copytree(undisturbed, out)
    first = {path: path.read_bytes() for path in cells_of(out)}
    monkeypatch.setattr(fig9, "VERSION", fig9.VERSION + 1)
    done = call("reproduce", "fig9", "--out", out)
    assert done.exit_code == 0, done.stderr
    assert "8 cells in" in done.stderr
    assert "made by another version or config" in done.stderr
    assert len(cells_of(out)) == 2 * miniature.N_CELLS
    assert bytes_of(out) == bytes_of(undisturbed)  # the same code, after all
    fewer = dataclasses.replace(miniature.SMALL, runs=2)
    monkeypatch.setattr(fig9, "SCALES", {"quick": fewer, "paper": fewer})
    done = call("reproduce", "fig9", "--out", out)
    assert done.exit_code == 0, done.stderr
    assert "16 cells in" in done.stderr
    assert bytes_of(out) != bytes_of(undisturbed)
    assert {path: path.read_bytes() for path in first} == first


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["fig1"], "`ITEM` must be one of fig2, fig3, "),
        (["--scale", "huge"], "`--scale` must be one of quick, paper, got 'huge'"),
        (["--devices", "0"], "`--devices` must be from 1 to 256, got 0"),
        (["--devices", "100000"], "`--devices` must be from 1 to 256, got 100000"),
        (["fig11", "--scale", "paper"], "`--yes` must be given to start fig11 where nobody can be"),
    ],
)
def test_a_bad_argument_is_one_sentence(tmp_path, arguments, sentence):
    out = tmp_path / "out"
    assert_one_sentence(call("reproduce", *arguments, "--out", out), sentence)
    assert not out.exists()


def test_no_to_the_question_is_not_success_and_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("mellowmax.cli.reproduce._ask", lambda sentence: False)
    out = tmp_path / "out"
    done = call("reproduce", "fig11", "--scale", "paper", "--out", out)
    assert_one_sentence(done, "skipped at your request: fig11", code=1)
    assert not out.exists()


@pytest.mark.parametrize("name", ["run.json", "report.html", "report.md"])
def test_files_of_others_are_not_replaced(tmp_path, name):
    (tmp_path / name).write_text("{}")
    done = call("reproduce", "fig9", "--out", tmp_path)
    assert_one_sentence(done, f"without `--force`; got {str(tmp_path)!r}, where {name!r} is some")
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert call("reproduce", "fig9", "--out", tmp_path, "--force").exit_code == 0


def test_what_takes_weeks_is_asked_about_first(tmp_path):
    asked = []
    plans = plan(["fig5", "fig11"], "paper", tmp_path)
    agreed = to_be_made(plans, lambda sentence: bool(asked.append(sentence)))
    assert [one.name for one in agreed] == ["fig5"]
    assert len(asked) == 1
    assert "fig11 takes about 28 days" in asked[0]
    assert to_be_made(plans, lambda sentence: True) == plans


def test_report_makes_the_report_again(tmp_path, undisturbed):
    page = undisturbed / "report.html"
    before = page.read_text()
    page.unlink()
    done = call("report", undisturbed)
    assert done.exit_code == 0, done.stderr
    verdict, path = done.stdout.splitlines()
    assert verdict.startswith("fig9 ")
    assert path == str(page)
    assert page.read_text() == before
    for command in (("report", undisturbed), ("reproduce", "fig9", "--out", undisturbed)):
        data = json.loads(call(*command, "--json").stdout)
        assert verdict.split(maxsplit=1)[1].startswith(data["items"]["fig9"]["verdict"])
        assert (data["missing"], data["report"]) == ([], str(page))
        assert call(*command, "--quiet").output == ""
    bad = call("report", tmp_path / "none")
    assert_one_sentence(bad, "`DIR` must be the directory of a reproduction")


def test_python_is_stopped_and_resumes_and_makes_what_the_command_makes(tmp_path, undisturbed):
    reports = []

    def stop_after_two(progress):
        reports.append(progress.done)
        return progress.done >= 2

    assert reproduce(["fig9"], "quick", tmp_path, callback=stop_after_two) == []
    assert reports == [1, 2]
    assert assemble_all(tmp_path) == []
    [finished] = reproduce(["fig9"], "quick", tmp_path)
    assert finished.plan.name == "fig9"
    assert bytes_of(tmp_path) == bytes_of(undisturbed)
    [again] = assemble_all(tmp_path)
    assert again.verdict == finished.verdict
    page = write([finished], tmp_path)
    before = page.read_bytes(), (tmp_path / "report.md").read_bytes()
    assert call("report", tmp_path).exit_code == 0
    assert (page.read_bytes(), (tmp_path / "report.md").read_bytes()) == before


def test_a_directory_without_a_reproduction_has_nothing_to_assemble(tmp_path):
    with pytest.raises(ValueError, match="`directory` must be the directory of a reproduction"):
        assemble_all(tmp_path)


def test_no_other_item_is_planned(tmp_path, monkeypatch, undisturbed):
    """Nor is a module of another item imported."""
    from mellowmax.experiments import runner

    out = tmp_path / "out"
    shutil.copytree(undisturbed, out)
    loaded = []
    load = runner.load
    monkeypatch.setattr(runner, "load", lambda name: [loaded.append(name), load(name)][1])
    done = call("reproduce", "fig9", "--out", out)
    assert done.exit_code == 0, done.stderr
    assert set(loaded) == {"fig9"}
    loaded.clear()
    assert call("report", out).exit_code == 0
    assert set(loaded) == {"fig9"}


def test_an_item_that_has_begun_is_named_as_not_finished(tmp_path, undisturbed):
    """It is in the report as missing, beside those that have not begun; they are not printed."""
    out = tmp_path / "out"
    shutil.copytree(undisturbed, out)
    cells_of(out)[0].unlink()
    done = call("report", out)
    assert done.stdout.splitlines() == ["fig9       not finished", str(out / "report.html")]
    assert "Missing or not finished: fig2, fig3, " in (out / "report.md").read_text()


def test_an_item_is_shown_at_the_quick_scale_where_that_alone_is_whole(
    tmp_path, monkeypatch, undisturbed
):
    out = tmp_path / "out"
    shutil.copytree(undisturbed, out)
    (out / "run.json").write_text('{"scale": "paper"}')
    monkeypatch.setattr(fig9, "SCALES", {"quick": miniature.SMALL, "paper": fig9.Config()})
    done = call("report", out)
    assert done.stdout.startswith("fig9 ")
    assert "not finished" not in done.stdout
    assert "at the quick scale" in (out / "report.md").read_text()
