"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import tempfile
import threading
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import BinaryIO

from .sudden_end import before_sudden_end

__all__ = ["check_directory", "check_output", "replacing"]

UNFINISHED: set[Path] = set()
"""Files that are being written beside their target."""
LOCK = threading.RLock()
"""Held while a file gets its name."""


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """A file to write in place of exactly `path`, once it is whole.

    Where the system can do that, it has no name until it is whole and on the disk, so that a
    process that is killed leaves nothing behind; elsewhere it lies beside `path` until then. When
    anything fails, or the process is killed, what was at `path` before is still there.

    Raises:
        OSError: when the file cannot be written; it has the name of the file.
        ValueError: for what is there and not a regular file.
    """
    target = Path(os.path.realpath(path))  # a link keeps pointing where it did
    if not target.parent.is_dir():
        raise FileNotFoundError(f"`path` must be in a directory that exists, got {str(path)!r}")
    _check_regular("path", target)
    aside = target.parent / f".mellowmax-{secrets.token_hex(8)}.tmp"
    try:
        with _without_name(target.parent) or _beside(aside) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            with LOCK:
                if aside not in UNFINISHED:
                    UNFINISHED.add(aside)
                    _give_name(file, aside)
                os.replace(aside, target)
                UNFINISHED.discard(aside)
    except BaseException as error:
        aside.unlink(missing_ok=True)
        UNFINISHED.discard(aside)
        if isinstance(error, OSError) and error.errno is not None and error.filename is None:
            raise type(error)(error.errno, error.strerror, str(path)) from error
        raise
    _sync_directory(target.parent)


@before_sudden_end
def _remove_unfinished() -> None:
    """Remove the files that are being written; from then on no thread can finish one."""
    LOCK.acquire()
    for path in UNFINISHED:
        path.unlink(missing_ok=True)


def _without_name(directory: Path) -> BinaryIO | None:
    """A file without a name in a directory; None where the system has no such thing."""
    if not hasattr(os, "O_TMPFILE") or not os.path.isdir("/proc/self/fd"):
        return None
    try:
        handle = os.open(directory, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o666)
    except OSError:  # of the file system; whatever else it is will show again
        return None
    return os.fdopen(handle, "wb")


def _beside(aside: Path) -> BinaryIO:
    UNFINISHED.add(aside)
    return open(aside, "xb")


def _give_name(file: BinaryIO, path: Path) -> None:
    directory = os.open(path.parent, os.O_RDONLY)
    try:  # with a directory, `os.link` follows the link to the file itself
        os.link(f"/proc/self/fd/{file.fileno()}", path.name, dst_dir_fd=directory)
    finally:
        os.close(directory)


def _sync_directory(directory: Path) -> None:
    """Make the renaming itself last, where the system can do that for a directory."""
    with contextlib.suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _check_regular(name: str, path: Path) -> None:
    """Raise for what is there and not a regular file, such as a directory or a device."""
    if path.exists() and not stat.S_ISREG(path.stat().st_mode):
        raise ValueError(f"`{name}` must be a regular file or a new one, got {str(path)!r}")


def _check_named(name: str, what: str, path: Path) -> None:
    """Raise for `-`, by which other programs mean the standard output."""
    if str(path) == "-":
        rule = f"`{name}` must be the name of a {what}, and not the standard output"
        raise ValueError(f"{rule}, got {str(path)!r}")


def check_output(
    name: str,
    path: Path,
    ours: Callable[[Path], bool],
    *,
    source: str | Path | None = None,
    force: bool = False,
) -> None:
    """Raise unless a file may be written: it is new, or the same command wrote it.

    Args:
        name: of the argument, as the user typed it.
        path: where the file is to be written.
        ours: was this file written by the same command?
        source: what the command reads, which is never replaced.
        force: may it replace any other regular file?

    Raises:
        ValueError: if it may not, or cannot.
    """
    _check_named(name, "file", path)
    if not path.absolute().parent.is_dir():
        raise ValueError(f"`{name}` must be in a directory that exists, got {str(path)!r}")
    target = Path(os.path.realpath(path))
    _check_regular(name, target)
    if target.exists():
        if source is not None and os.path.exists(source) and os.path.samefile(source, target):
            raise ValueError(f"`{name}` must be another file than is read, got {str(path)!r}")
        if not (force or ours(target)):
            rule = f"`{name}` must be a new file, or one that this command wrote, without `--force`"
            raise ValueError(f"{rule}; got {str(path)!r}, which is something else")
    _check_writable(name, "in a directory", path, target.parent)


def check_directory(
    name: str,
    path: Path,
    files: Collection[str],
    ours: Callable[[Path], bool],
    *,
    force: bool = False,
) -> None:
    """Raise unless files may be written in a directory, which may still have to be made.

    Args:
        name: of the argument, as the user typed it.
        path: the directory.
        files: the names of what will be written there.
        ours: is this the directory of the same command? Then it may replace the files.
        force: may it replace files in any directory?

    Raises:
        ValueError: if they may not, or cannot.
    """
    _check_named(name, "directory", path)
    there = next(one for one in (path.absolute(), *path.absolute().parents) if one.exists())
    _check_writable(name, "a directory", path, there)
    known = force or ours(path)
    for file in files:
        _check_regular(name, path / file)
        if not known and (path / file).exists():
            rule = f"`{name}` must be a new directory, or one of this command, without `--force`"
            raise ValueError(f"{rule}; got {str(path)!r}, where {file!r} is something else")


def _check_writable(name: str, what: str, path: Path, directory: Path) -> None:
    try:
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as error:
        rule = f"`{name}` must be {what} that can be written to"
        raise ValueError(f"{rule}, got {str(path)!r}: {error.strerror}") from error
