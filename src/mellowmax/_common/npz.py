"""Arrays in files: NumPy's `.npz` without pickle, with a kind and a version inside.

A file is read by a schema. An array is read only if its kind and shape are those of the schema and
its bytes are there: a file cannot make its reader take more memory than it holds. Its header is
compared with what NumPy writes and never evaluated.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
import re
import struct
import sys
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from .files import replacing
from .schema import Field, Schema, matching
from .shown import shown

__all__ = ["kind_of", "reading", "write"]

VERSION = 1
HEAD = {"format": Field("text"), "version": Field("whole number"), "fields": Field("text", "N")}
"""The fields that every file has: its kind, its version, and the names of all other fields."""
SUFFIX = ".npy"
"""The ending of an array's name in the archive."""
MAGIC = b"\x93NUMPY\x01\x00"
"""How an array begins, in the only version of its format that our arrays need."""
HEADER = re.compile(
    r"\{'descr': '(\|O|[<>|][fiubUSVcMm][1-9][0-9]{0,9})', 'fortran_order': (True|False), "
    r"'shape': \(((?:[0-9]{1,18}, ?)*(?:[0-9]{1,18})?)\), \} *\n"
)
UNREADABLE = (
    ValueError,
    EOFError,
    KeyError,
    IndexError,
    OSError,  # a seek to before the beginning of the file
    NotImplementedError,
    RuntimeError,
    OverflowError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)
"""What zipfile raises for a file that is damaged or of another kind."""


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


@contextlib.contextmanager
def reading(path: str | Path, kind: str, schema: Schema) -> Iterator[dict[str, Any]]:
    """Read what `write` wrote: arrays, and single values as Python objects, by name.

    What is left out of the file is left out here. A TypeError or ValueError that is raised within
    is about the contents of the file, and is said of the file.

    Args:
        path: the file.
        kind: what it must hold.
        schema: its fields.

    Raises:
        ValueError: for a file that is truncated, of another kind, of a newer version, or not as the
            schema says.
        OSError: when there is no such file, or it cannot be opened.
    """
    if not Path(path).exists():
        raise FileNotFoundError(f"`path` must be a file that exists, got {str(path)!r}")
    rule = f"`path` must be a saved {kind}, got {str(path)!r}"
    with open(path, "rb") as file:
        try:
            fields = _fields(file, kind, schema)
        except _WrongVersionError as error:
            raise ValueError(f"`path` must hold {error} in {str(path)!r}") from None
        except _DamagedError as error:
            raise ValueError(f"{rule}, which is damaged, compressed or of another kind") from error
        except ValueError as error:
            raise ValueError(f"{rule}: {error}") from None
    try:
        yield fields
    except (TypeError, ValueError) as error:
        # What it calls an argument is a field here, and no flag of a command.
        raise ValueError(f"{rule}: {str(error).replace('`', chr(39))}") from error


def kind_of(path: str | Path) -> str | None:
    """What a file holds that `write` wrote, or None for any other file.

    Raises:
        OSError: when there is no such file, or it cannot be opened.
    """
    with open(path, "rb") as file:
        try:
            with _opened(file) as archive:
                text = str(_read(archive, {"format": HEAD["format"]})["format"])
        except (_DamagedError, ValueError):
            return None
    return text.removeprefix("mellowmax ") if text.startswith("mellowmax ") else None


class _WrongVersionError(Exception):
    pass


class _DamagedError(Exception):
    """The file is not an archive of arrays, or not a whole one."""


@contextlib.contextmanager
def _damage() -> Iterator[None]:
    """Within, an error of zipfile means a damaged file, unless it is due to the disk."""
    try:
        yield
    except UNREADABLE as error:
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise
        raise _DamagedError from error


def _fields(file: BinaryIO, kind: str, schema: Schema) -> dict[str, Any]:
    with _opened(file) as archive:
        try:
            head = _read(archive, HEAD)
        except ValueError as error:
            raise _DamagedError from error
        if head["format"] != f"mellowmax {kind}":
            raise _DamagedError
        if head["version"] != VERSION:
            had = head["version"]
            raise _WrongVersionError(f"version {VERSION} of the format, got version {had}")
        fields = _read(archive, schema)
        lost = [name for name in head["fields"].tolist() if name + SUFFIX not in archive.NameToInfo]
        if lost:
            raise ValueError(f"field {shown(lost[0])} must be there, got none")
        return fields


@contextlib.contextmanager
def _opened(file: BinaryIO) -> Iterator[zipfile.ZipFile]:
    """The archive in a file: different entries, all of which are within the file."""
    with _damage():
        archive = zipfile.ZipFile(file)
    with archive:
        entries = archive.infolist()
        whole = sum(entry.compress_size for entry in entries) <= os.fstat(file.fileno()).st_size
        if not whole or len(entries) != len(archive.NameToInfo):
            raise _DamagedError
        yield archive


def _read(archive: zipfile.ZipFile, schema: Schema) -> dict[str, Any]:
    """The fields of a schema: arrays, and single values as Python objects."""
    names = [name.removesuffix(SUFFIX) for name in archive.NameToInfo if name.endswith(SUFFIX)]
    sizes: dict[str, int] = {}
    result = {}
    for name, field in matching(schema, names):
        values = _array(archive, name, field, sizes)
        field.check_values(name, values)
        result[name] = values if field.axes else values.item()
    return result


def _array(
    archive: zipfile.ZipFile, name: str, field: Field, sizes: dict[str, int]
) -> npt.NDArray[Any]:
    """An array, which is not read before its form has been checked."""
    entry = archive.getinfo(name + SUFFIX)
    if entry.compress_type != zipfile.ZIP_STORED:  # a small one could hold a large array
        raise _DamagedError
    with contextlib.ExitStack() as held:
        with _damage():
            member = held.enter_context(archive.open(entry))
            begin = member.read(len(MAGIC) + 2)
            text = member.read(int.from_bytes(begin[len(MAGIC) :], "little")).decode("latin1")
        header = HEADER.fullmatch(text)
        if header is None or not begin.startswith(MAGIC):
            rule = f"field {shown(name)} must begin as NumPy begins an array"
            raise ValueError(f"{rule}, got {shown(begin + text.encode('latin1'))}")
        try:
            dtype = np.dtype(header[1])
        except TypeError:  # one of three bytes, say
            raise field.error(name, shown(header[1]), sizes) from None
        shape = tuple(int(size) for size in header[3].split(",") if size.strip())
        field.check_form(name, dtype, shape, sizes)
        needed = math.prod(shape) * dtype.itemsize
        there = min(entry.file_size, entry.compress_size) - len(begin) - len(text)
        if needed != there:
            rule = f"field {shown(name)} must have the {needed} bytes of its shape {shape}"
            raise ValueError(f"{rule}, got {there}")
        with _damage():
            data = member.read(needed) + member.read()  # the end is where the checksum is compared
    if len(data) != needed:
        raise _DamagedError
    values = np.ndarray(shape, dtype, data, order="F" if header[2] == "True" else "C")
    return _sound(name, values)


def _sound(name: str, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """An array that Python and JAX can take: native, with booleans and characters that exist."""
    values = values.astype(values.dtype.newbyteorder("="), copy=False)
    if values.dtype.kind == "b":
        values = np.not_equal(values.view(np.uint8), 0)
    if values.dtype.kind == "U" and values.size:
        largest = np.ascontiguousarray(values).reshape(-1).view(np.uint32).max()
        if largest > sys.maxunicode:
            rule = f"field {shown(name)} must have characters of Unicode"
            raise ValueError(f"{rule}, got the code {largest:#x}")
    return values
