"""A directory that one process at a time may work in."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from .schema import Field, json_object
from .sudden_end import before_sudden_end, forget
from .text import shortened, visible

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["LOCK_FILE", "BusyError", "only_one"]

LOCK_FILE = "lock.json"
HOLDER = {"process": Field("whole number"), "host": Field("text")}


class BusyError(ValueError):
    """Raised where another process works in a directory that only one may work in at a time."""


@contextlib.contextmanager
def only_one(name: str, directory: Path) -> Iterator[None]:
    """Within, no other process is in the same directory.

    The system drops the lock when the process ends, in whatever way: a file `lock.json` that is
    left by a process that was killed holds nobody up. On Windows, which has no such locks, nothing
    is locked.

    Args:
        name: of the argument that the directory was given by.
        directory: it must exist.

    Raises:
        BusyError: if another process is there; it says which one.
    """
    if fcntl is None:
        yield
        return
    path = directory / LOCK_FILE
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            rule = f"`{name}` must be a directory in which no other process works"
            raise BusyError(f"{rule}, got {str(directory)!r}, where {_holder(path)} does") from None
        except OSError:  # a file system without locks
            os.close(handle)
            yield
            return
        if _is(handle, path):
            break
        os.close(handle)  # its holder has just removed it, and someone may have made another

    def release() -> None:
        path.unlink(missing_ok=True)
        os.close(handle)

    before_sudden_end(release)
    try:
        os.ftruncate(handle, 0)
        os.write(
            handle, json.dumps({"process": os.getpid(), "host": socket.gethostname()}).encode()
        )
        yield
    finally:
        forget(release)
        release()


def _is(handle: int, path: Path) -> bool:
    """Is that open file the one at a path?"""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _holder(path: Path) -> str:
    """The process that holds a lock, in words."""
    try:
        holder = json_object(LOCK_FILE, path.read_bytes(), HOLDER)
        return f"process {holder['process']} on {visible(shortened(holder['host']))}"
    except (OSError, ValueError):  # it is just coming or going
        return "another process"
