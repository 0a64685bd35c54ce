"""Arrays on disk: NumPy's `.npz` without pickle, with the kind of file and its version inside."""

from __future__ import annotations

import errno
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from .files import replacing

__all__ = ["kind_of", "read", "write"]

VERSION = 1
# What NumPy and zipfile raise for a file that is damaged or of another kind.
UNREADABLE = (
    ValueError,
    EOFError,
    KeyError,
    OSError,  # a seek to before the beginning of the file
    NotImplementedError,
    RuntimeError,
    OverflowError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)


def write(path: str | Path, kind: str, fields: dict[str, Any]) -> None:
    """Write arrays to exactly `path`, whole or not at all.

    Args:
        path: the file; one that is there is replaced.
        kind: what the file holds, in words.
        fields: the arrays by name; those that are None are left out.

    Raises:
        OSError: when the file cannot be written; what was there before is still there then.
    """
    arrays = {name: values for name, values in fields.items() if values is not None}
    with replacing(path) as file:
        np.savez(file, format=f"mellowmax {kind}", version=VERSION, fields=[*arrays], **arrays)


def read(path: str | Path, kind: str) -> dict[str, npt.NDArray[Any]]:
    """Read what `write` wrote.

    Args:
        path: the file.
        kind: what it must hold.

    Returns:
        The arrays by name, without those that were left out.

    Raises:
        ValueError: for a file that is truncated, of another kind, or of a newer version.
        OSError: when there is no such file, or it cannot be opened.
    """
    if not Path(path).exists():
        raise FileNotFoundError(f"`path` must be a file that exists, got {str(path)!r}")
    with open(path, "rb") as file:
        try:
            return _members(file, kind)
        except _WrongVersionError as error:
            raise ValueError(f"`path` must hold {error} in {str(path)!r}") from None
        except UNREADABLE as error:
            if isinstance(error, OSError) and error.errno != errno.EINVAL:
                raise  # the disk's fault, not the file's
            raise ValueError(
                f"`path` must be a saved {kind}, got {str(path)!r}, "
                "which is damaged or of another kind"
            ) from error


def kind_of(path: str | Path) -> str | None:
    """What a file holds that `write` wrote, or None for any other file.

    Raises:
        OSError: when there is no such file, or it cannot be opened.
    """
    with open(path, "rb") as file:
        try:
            with _archive(file) as members:
                text = str(_member(members, "format").item())
        except UNREADABLE as error:
            if isinstance(error, OSError) and error.errno != errno.EINVAL:
                raise  # the disk's fault, not the file's
            return None
    return text.removeprefix("mellowmax ") if text.startswith("mellowmax ") else None


class _WrongVersionError(Exception):
    pass


def _archive(file: BinaryIO) -> np.lib.npyio.NpzFile:
    loaded = np.load(file, allow_pickle=False)
    if not isinstance(loaded, np.lib.npyio.NpzFile):
        raise ValueError("a single array")
    return loaded


def _members(file: BinaryIO, kind: str) -> dict[str, npt.NDArray[Any]]:
    with _archive(file) as members:
        if _member(members, "format").item() != f"mellowmax {kind}":
            raise ValueError("another format")
        version = _member(members, "version").item()
        if version != VERSION:
            raise _WrongVersionError(f"version {VERSION} of the format, got version {version}")
        return {name: _member(members, name) for name in _member(members, "fields").tolist()}


def _member(members: np.lib.npyio.NpzFile, name: str) -> npt.NDArray[Any]:
    array = members[name]
    if not isinstance(array, np.ndarray):  # any other file in the archive
        raise ValueError("no array")
    return array
