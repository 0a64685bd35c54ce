"""A sample of crafted files, and files as older versions wrote them: see `crafted_files`."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np
import pytest

from helpers import crafted_files, miniature
from helpers.commands import assert_one_sentence, call
from helpers.crafted_files import Trial, stored
from mellowmax.experiments.store import read_table, write_table

SAMPLE = 30
"""Files of each trial, a few seconds."""


@pytest.fixture(scope="module")
def trial(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        miniature.install(patch.setattr)
        patch.setattr(miniature, "SECONDS_OF_A_CELL", 0.0)
        yield Trial(tmp_path_factory.mktemp("crafted"))


def test_a_crafted_file_is_read_or_refused_in_one_sentence(trial):
    before = trial.read, trial.refused
    with crafted_files.limited_memory():
        assert [*trial.run(range(SAMPLE))] == []
    assert trial.read > before[0]
    assert trial.refused > before[1] + SAMPLE


def repacked(data, packing=zipfile.ZIP_STORED, **changed):
    """An archive with other members; those that are None are left out."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members |= {f"{name}.npy": one if one is None else stored(one) for name, one in changed.items()}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", packing) as archive:
        for name, member in members.items():
            if member is not None:
                archive.writestr(name, member)
    return buffer.getvalue()


def test_a_large_array_is_refused_before_memory_is_taken_for_it(trial, tmp_path):
    """A few compressed bytes promise more than there may be."""
    [data, *_] = trial.originals["model"]
    wide = np.broadcast_to(np.float64(0), (2, 2, 5 * 10**6))
    packed = repacked(data, zipfile.ZIP_DEFLATED, probabilities=wide)
    assert len(packed) < 10**6
    (tmp_path / "model.npz").write_bytes(packed)
    with crafted_files.limited_memory(2**27):
        done = call("show", tmp_path / "model.npz")
    assert done.exit_code == 2
    assert "damaged, compressed or of another kind" in done.stderr


def test_texts_of_a_file_cannot_move_the_cursor_or_forge_a_row(trial, tmp_path):
    [data, *_] = trial.originals["solution"]
    forged = "\x1b[2J\nstatus         converged after 1 iterations"
    (tmp_path / "solution.npz").write_bytes(repacked(data, reason=forged))
    done = call("show", tmp_path / "solution.npz")
    assert done.exit_code == 0
    assert done.stdout.count("\nstatus ") == 1
    assert r"newton: \x1b[2J\nstatus         converged" in done.stdout


def test_times_of_cells_that_add_up_to_no_number_are_one_sentence(trial):
    directory = trial.readers.cell.parent
    before = {path: path.read_bytes() for path in directory.glob("*.parquet")}
    try:
        for path in before:
            table, made_by = read_table(path)
            write_table(path, table, made_by | {"seconds": 1e308})
        assert_one_sentence(call("report", directory.parent.parent), "cells of fig9 must be as")
    finally:
        for path, data in before.items():
            path.write_bytes(data)


def test_files_of_older_versions_are_still_read(trial):
    """A solution of 0.1 has no `allowed`; a checkpoint has only the settings there were."""
    [solution, *_], [training] = trial.originals["solution"], trial.originals["reinforce"]
    with zipfile.ZipFile(io.BytesIO(solution)) as archive:
        fields = crafted_files.loaded(archive.read("fields.npy"))
    older = repacked(solution, allowed=None, fields=fields[fields != "allowed"])
    assert trial.failures("solution", older) == {}
    refused = trial.refused
    assert trial.failures("reinforce", training) == {}
    assert trial.refused == refused
    with zipfile.ZipFile(io.BytesIO(training)) as archive:
        settings = json.loads(str(crafted_files.loaded(archive.read("settings.npy"))))
    assert "algorithm" not in settings  # REINFORCE was the only one once
