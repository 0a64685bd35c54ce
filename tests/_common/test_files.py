"""Files that are written whole or not at all, whose they are, and locks that end with a process."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from mellowmax._common import files
from mellowmax._common.files import check_directory, check_output, replacing
from mellowmax._common.locks import only_one


@pytest.mark.parametrize("unnamed", [True, False])
def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch, unnamed):
    """Also where the system has no files without a name."""
    if not unnamed:
        monkeypatch.setattr(files, "_without_name", lambda directory: None)
    path = tmp_path / "file"
    for text in (b"one", b"other"):
        with replacing(path) as file:
            file.write(text)
        assert path.read_bytes() == text
    with pytest.raises(TypeError), replacing(path) as file:
        file.write("text")
    with replacing(path) as file:
        file.write(b"whole")
        file.flush()
        assert len(os.listdir(tmp_path)) == (1 if unnamed else 2)
    assert path.read_bytes() == b"whole"
    assert os.listdir(tmp_path) == ["file"]


def test_a_file_is_on_the_disk_before_it_has_its_name_and_its_name_after(tmp_path, monkeypatch):
    """Without the second, a power cut can undo the renaming."""
    path, synced, fsync = tmp_path / "file", [], os.fsync
    path.write_bytes(b"old")

    def look(handle):
        fsync(handle)
        is_directory = os.path.samestat(os.fstat(handle), tmp_path.stat())
        synced.append(("directory" if is_directory else "file", path.read_bytes()))

    monkeypatch.setattr(os, "fsync", look)
    with replacing(path) as file:
        file.write(b"new")
    assert synced == [("file", b"old"), ("directory", b"new")]


def test_an_error_has_the_name_of_the_file(tmp_path):
    path = tmp_path / "file"
    with pytest.raises(OSError, match=r"No space left on device: '.*file'"), replacing(path):
        raise OSError(28, "No space left on device")


def test_what_is_no_regular_file_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for path in ("/dev/null", tmp_path, tmp_path / "pipe", tmp_path / "link"):
        with pytest.raises(ValueError, match="must be a regular file or a"), replacing(path):
            pass


def test_an_output_is_new_or_ours_or_forced_and_never_what_is_read(tmp_path):
    path = tmp_path / "file"
    check_output("--out", path, lambda path: False)
    path.write_text("text")
    check_output("--out", path, lambda path: path.read_text() == "text")
    check_output("--out", path, lambda path: False, force=True)
    with pytest.raises(ValueError, match=r"`--out` must be a new file, .* which is something else"):
        check_output("--out", path, lambda path: False)
    os.link(path, tmp_path / "same")
    with pytest.raises(ValueError, match=r"`--out` must be another file than is read, got"):
        check_output("--out", path, lambda path: True, source=tmp_path / "same", force=True)
    assert sorted(os.listdir(tmp_path)) == ["file", "same"]


def test_a_directory_is_new_or_ours_or_forced(tmp_path):
    new = tmp_path / "not" / "there"
    check_directory("--out", new, ("file",), lambda path: False)
    check_directory("--out", tmp_path, ("file",), lambda path: False)
    (tmp_path / "file").write_text("text")
    check_directory("--out", tmp_path, ("other",), lambda path: False)
    for options in ({"ours": lambda path: True}, {"ours": lambda path: False, "force": True}):
        check_directory("--out", tmp_path, ("file",), **options)
    with pytest.raises(ValueError, match=r"`--out` must be a new directory, .* where 'file' is so"):
        check_directory("--out", tmp_path, ("file",), lambda path: False)
    with pytest.raises(ValueError, match=r"`--out` must be a directory that can be written to"):
        check_directory("--out", tmp_path / "file" / "out", ("x",), lambda path: False)
    assert not new.parent.exists()


def test_a_lock_ends_with_its_process_and_says_whose_it_is(tmp_path):
    code = """
import sys
from pathlib import Path
from mellowmax._common.locks import only_one
with only_one("x", Path(sys.argv[1])):
    print("locked", flush=True)
    sys.stdin.read()
"""
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "locked\n"
        holder = f"where process {process.pid} on {socket.gethostname()} does"
        rule = "`y` must be a directory in which no other process works"
        with pytest.raises(ValueError, match=f"{rule}, .*{holder}"), only_one("y", tmp_path):
            pass
        process.kill()
    for _ in range(2):
        ours = pytest.raises(ValueError, match=f"process {os.getpid()} on")
        with only_one("y", tmp_path), ours, only_one("y", tmp_path):
            pass
    assert not os.listdir(tmp_path)
