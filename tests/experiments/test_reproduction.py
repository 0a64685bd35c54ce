"""The reproduction survives: real processes are killed, run side by side, and start again."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from mellowmax.cli.app import app
from mellowmax.experiments import ITEMS, Claim, Outcome, Verdict, load, plan
from mellowmax.experiments.intervals import share_interval
from mellowmax.experiments.items import fig9
from mellowmax.experiments.store import Store, read_table, write_table
from mellowmax.mdp import MDP

# Figure 9 in miniature: eight cells.
SMALL = """
import os, resource, sys
if "LARGEST_FILE" in os.environ:  # a disk that is full, as far as this process can tell
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(os.environ["LARGEST_FILE"]),) * 2)
from mellowmax.experiments import fig9
small = fig9.Config((0.1, 0.2), (1.0, 2.0, 3.0), (0.1, 0.4), 1280, int(os.environ["RUNS"]))
fig9.SCALES = {"quick": small, "paper": small}
fig9.VERSION += int(os.environ["VERSION"])
from mellowmax.cli import main
sys.argv = ["mellowmax", "reproduce", *sys.argv[1:]]
main()
"""
N_CELLS = 8


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def start(cache):
    """Start the command line in a process of its own."""
    processes = []

    def starter(out, *arguments, runs=3, version=0, environment=None):
        code = [sys.executable, "-c", SMALL, "fig9", "--out", str(out), *arguments]
        own = {"RUNS": str(runs), "VERSION": str(version), "XDG_CACHE_HOME": str(cache)}
        process = subprocess.Popen(
            code,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | own | (environment or {}),
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


def cells_of(out):
    return sorted((out / "cells" / "fig9").glob("*.parquet"))


def bytes_of(out):
    return {path.name: path.read_bytes() for path in sorted((out / "tables").iterdir())}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, cache):
    """The tables of a run that nothing happened to."""
    out = tmp_path_factory.mktemp("undisturbed")
    environment = os.environ | {"RUNS": "3", "VERSION": "0", "XDG_CACHE_HOME": str(cache)}
    command = [sys.executable, "-c", SMALL, "fig9", "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == str(out / "report.html")
    assert "8 of 8 cells" in done.stderr
    return out


def wait_for_cells(out, process, count):
    deadline = time.monotonic() + 100
    while len(cells_of(out)) < count and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_stopped_in_any_way_it_goes_on_and_ends_with_the_same_tables(tmp_path, start, undisturbed):
    """By a full disk, by being killed at some moment, by ctrl-C, and killed again."""
    _, stderr = finish(start(tmp_path, environment={"LARGEST_FILE": "2000"}), code=2)
    assert "mellowmax: " in stderr
    assert "File too large" in stderr
    assert not list(tmp_path.rglob("*.tmp"))  # nothing is half written
    assert not cells_of(tmp_path)

    known: dict[Path, int] = {}
    for count, stop in ((1, signal.SIGKILL), (3, signal.SIGINT), (6, signal.SIGKILL)):
        process = start(tmp_path)
        wait_for_cells(tmp_path, process, count)
        time.sleep(0.05 * count)  # somewhere within the next cell
        process.send_signal(stop)
        if stop == signal.SIGINT:
            _, stderr = finish(process, code=130)
            assert "the same command goes on from there" in stderr
            assert count <= len(cells_of(tmp_path)) < N_CELLS
        process.wait()
        for path in cells_of(tmp_path):
            read_table(path)  # whole
            assert known.setdefault(path, path.stat().st_mtime_ns) == path.stat().st_mtime_ns
    assert known
    finish(start(tmp_path))
    assert len(cells_of(tmp_path)) == N_CELLS
    for path, written in known.items():
        assert path.stat().st_mtime_ns == written  # nothing was made twice
    assert bytes_of(tmp_path) == bytes_of(undisturbed)


def test_two_at_once_end_with_the_same_tables(tmp_path, start, undisturbed):
    both = [start(tmp_path), start(tmp_path)]
    for process in both:
        finish(process)
    assert bytes_of(tmp_path) == bytes_of(undisturbed)


def test_cells_of_another_version_or_config_are_not_mixed_in(tmp_path, start, undisturbed):
    out = tmp_path / "out"
    shutil.copytree(undisturbed, out)
    first = {path: path.read_bytes() for path in cells_of(out)}
    _, stderr = finish(start(out, version=1))
    assert "8 cells in" in stderr
    assert "made by another version or config" in stderr
    assert len(cells_of(out)) == 2 * N_CELLS
    assert bytes_of(out) == bytes_of(undisturbed)  # the same code, after all
    _, stderr = finish(start(out, runs=2))
    assert "16 cells in" in stderr
    assert bytes_of(out) != bytes_of(undisturbed)
    assert {path: path.read_bytes() for path in first} == first


def test_two_processes_with_two_devices_each_give_the_tables_of_one(tmp_path, start, undisturbed):
    with socket.socket() as free:
        free.bind(("localhost", 0))
        address = f"localhost:{free.getsockname()[1]}"
    shared = {"JAX_COORDINATOR_ADDRESS": address, "JAX_NUM_PROCESSES": "2"}
    both = [
        start(tmp_path, "--devices", "2", environment=shared | {"JAX_PROCESS_ID": str(i)})
        for i in range(2)
    ]
    for process in both:
        finish(process)
    made = [read_table(path)[1]["device"] for path in cells_of(tmp_path)]
    assert {device.split(" x ")[0] for device in made} == {"2"}
    assert bytes_of(tmp_path) == bytes_of(undisturbed)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fig1"], "`ITEM` must be one of fig2, .*, got 'fig1'"),
        (["--scale", "huge"], "`--scale` must be one of quick, paper, got 'huge'"),
        (["--devices", "0"], "`--devices` must be at least 1, got 0"),
    ],
)
def test_a_bad_argument_is_one_sentence(tmp_path, arguments, message):
    out = tmp_path / "out"
    done = CliRunner().invoke(app, ["reproduce", *arguments, "--out", str(out)])
    assert done.exit_code == 2
    assert re.search(message, done.stderr)
    assert not out.exists()


def test_report_makes_the_report_again(undisturbed):
    page = undisturbed / "report.html"
    before = page.read_text()
    page.unlink()

    command = [sys.executable, "-c", SMALL.replace('"reproduce"', '"report"'), str(undisturbed)]
    environment = os.environ | {"RUNS": "3", "VERSION": "0"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert page.read_text() == before
    bad = CliRunner().invoke(app, ["report", str(undisturbed / "none")])
    assert bad.exit_code == 2
    assert "`DIR` must be the directory of a reproduction" in bad.stderr


def test_the_key_of_a_cell_is_all_that_determines_it(tmp_path):
    store = Store(tmp_path)
    path = store.path("fig9", 1, "cell", {"steps": 10})
    assert path == store.path("fig9", 1, "cell", {"steps": 10})
    others = [
        store.path("fig9", 2, "cell", {"steps": 10}),
        store.path("fig9", 1, "cell", {"steps": 11}),
        store.path("fig2", 1, "cell", {"steps": 10}),
    ]
    assert len({path, *others}) == 4


def test_tables_come_back_and_a_damaged_one_is_named(tmp_path):
    table = pd.DataFrame({"a": [1, 2], "b": [0.5, np.nan], "c": ["x", "y"]})
    path = tmp_path / "cells" / "t.parquet"
    write_table(path, table, {"seconds": 1.5})
    again, made_by = read_table(path)
    pd.testing.assert_frame_equal(again, table)
    assert made_by == {"seconds": 1.5}
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match=r"must be a Parquet file .* delete it to make it again"):
        read_table(path)


def test_a_verdict_is_what_its_claims_add_up_to():
    yes, no = Claim("a", "b", "c", True), Claim("a", "b", "c", False)
    assert Verdict((yes, yes), "").outcome is Outcome.REPRODUCED
    assert Verdict((yes, no), "").outcome is Outcome.PARTLY
    assert Verdict((no, no), "").outcome is Outcome.NOT


def test_intervals_against_their_definitions():
    """Clopper and Pearson's ends are where a tail of the binomial is 2.5 %."""
    from scipy import stats

    share, low, high = share_interval(3, 200)
    assert share == 0.015
    np.testing.assert_allclose(stats.binom.sf(2, 200, low), 0.025, rtol=1e-6)
    np.testing.assert_allclose(stats.binom.cdf(3, 200, high), 0.025, rtol=1e-6)


@pytest.mark.parametrize("name", ITEMS)
def test_an_item_has_all_that_the_report_needs(name, tmp_path):
    item = load(name)
    assert item.TITLE
    assert item.SOURCE
    assert item.RULE
    assert set(item.SCALES) == {"quick", "paper"}
    for scale in item.SCALES:
        (one,) = plan([name], scale, tmp_path)
        assert one.missing
        for spec, path in one.cells.values():
            assert spec
            assert path.suffix == ".parquet"


def test_the_average_reward_of_a_chain():
    """Two states that alternate and then end: rewards 1, 2 and 6 in turn."""
    steps = MDP([[[1]], [[2]], [[3]]], [[[1.0]]] * 3, [[1.0], [2.0], [6.0]], 0.9)
    assert fig9.average_reward(steps, np.ones((3, 1))) == pytest.approx(3.0)
