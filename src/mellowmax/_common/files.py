"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

__all__ = ["replacing"]


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """A file to write in place of exactly `path`, once it is whole.

    It is another file in the same directory, flushed to the disk at the end and then renamed. When
    anything fails, or the process is killed, what was at `path` before is still there.

    Raises:
        OSError: when the file cannot be written.
    """
    target = Path(os.path.realpath(path))  # a link keeps pointing where it did
    if not target.parent.is_dir():
        raise FileNotFoundError(f"`path` must be in a directory that exists, got {str(path)!r}")
    aside = target.parent / f".mellowmax-{secrets.token_hex(8)}.tmp"
    try:
        with open(aside, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, target)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    _sync_directory(target.parent)


def _sync_directory(directory: Path) -> None:
    """Make the renaming itself last, where the system can do that for a directory."""
    with contextlib.suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
