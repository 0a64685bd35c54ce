"""Crafted files through all that reads one: `make crafted-files` makes 10,000 of them.

Real files are changed: models, solutions, checkpoints, cells of a reproduction, and the small ones
beside them. A field is missing or of another dtype, shape or value; an array's header is malformed
or declares a shape of 10^15; JSON is nested or of another kind; texts have control characters; the
archive is truncated, flipped in a bit, compressed, doubled, or lies about sizes. Each file goes
through every command and function that reads its kind. What comes is a result, or an error of one
sentence: exit code 2 and one line on the command line, a ValueError with the name of the file in
Python. Nothing printed has a control character or a row of the file's making. Memory has a limit.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import resource
import struct
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from helpers import miniature
from helpers.file_readers import RESUMED, Readers, train
from helpers.known_games import OUTCOMES, STAG_HUNT
from mellowmax import Mellowmax
from mellowmax.cli.gif import COMMENT
from mellowmax.cli.pictures import TITLE
from mellowmax.experiments import plan, run
from mellowmax.mdp import MDP, chain, two_state
from mellowmax.planning import Solution, solve

MEMORY = 2**31
"""Bytes that all readers together may take, beyond what was taken before."""
TEXTS = (
    "\x1b[2J\x1b[31mred",
    "\x1b]0;title\x07",
    "one\nstatus         converged after 1 iterations",
    "\u202egnp.exe",
    "\x9b2J",
    "\x7f\x08\x08\r",
    "\u2028\u2066\ufeff",
    "\ud800",
    "`discount` must be 'x'",
    "module:Env-v0",
    "CartPole",
    "x" * 10_000,
    "",
)
NUMBERS = (np.nan, np.inf, -np.inf, -1, 0, 1e308, -1e308, 1e-320, 2**62, -(2**62), 0.5, 7)
DTYPES = ("f2", "f4", ">f8", "g", "c16", "i1", ">i4", "u8", "?", "U5", "S5", "O", "M8[s]", "i4,f8")
HEADERS = (
    "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (100000000, 100000000), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (-2, -3), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (2.0,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': " + "(" * 5000 + ")" * 5000 + ", }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (" + "1" * 5000 + "x,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (" + "1, " * 100 + "), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 1000000000000000), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 0, 0), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (3L,), }",
    "{'descr': '|O', 'fortran_order': False, 'shape': (), }",
    "{'descr': '<U1000000000', 'fortran_order': False, 'shape': (), }",
    "{'descr': '<U0', 'fortran_order': False, 'shape': (1000000000000000,), }",
    "{'descr': '<f3', 'fortran_order': False, 'shape': (), }",
    "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (2,), }",
    "{'descr': '<f8', 'fortran_order': False}",
    "{'descr': __import__('os').getcwd(), 'fortran_order': False, 'shape': (), }",
    "{'descr': '\\d', 'fortran_order': 1 is 1, 'shape': (), }",
    "\x1b[2J\n\n",
    "",
)
JSON_VALUES = (
    *("[]", "{}", "null", "true", '"x"', "-1", "0", "0.5", "1e999", "NaN", "1000000000000000"),
    *(
        str(2**63 - 1),
        str(2**64 - 1),
        "1" + "0" * 400,
        "1" + "0" * 5000,
        "[1]",
        '["x", 1]',
        '{"a": [{}]}',
        "[" * 100_000,
    ),
    *("[" * 500 + "]" * 500, *map(json.dumps, TEXTS)),
)


def originals(directory):
    """Real files of every kind, as bytes, and in the directory what they are read beside."""
    allowed = [[True, True, False]] * 2
    rewards = [[1.0, 2.0, 0.0], [3.0, -4.0, 0.0]]
    dense = MDP.from_arrays(np.full((2, 3, 2), 0.5), rewards, 0.9, allowed=allowed)
    for i, mdp in enumerate((two_state(), chain(3), dense)):
        mdp.save(directory / f"model-{i}.npz")
    q = np.arange(6.0).reshape(3, 2)
    known = {"converged": True, "status": "converged", "iterations": 7, "method": "newton"}
    bounds = {"residual": 1e-9, "error_bound": 1e-8, "suboptimality_bound": np.inf}
    said = {"reason": "why", "softmax": Mellowmax(5.0), "seconds": 1.0}
    Solution(q, q.max(1), **known, **bounds, **said).save(directory / "solution.npz")
    solve(chain(3), Mellowmax(5.0), horizon=2).save(directory / "by-time.npz")
    solve(chain(3), Mellowmax(5.0), average=True).save(directory / "average.npz")
    for algorithm in RESUMED:
        done = train(algorithm, directory / algorithm)
        assert done.exit_code == 0, done.stderr
    [fig9] = plan(["fig9"], "quick", directory / "cells")
    run(fig9, lambda progress: None)
    picture = Image.new("P", (8, 8))
    picture.save(directory / "film.gif", comment=COMMENT)
    STAG_HUNT.save(directory / "game-0.nfg")
    (directory / "game-1.nfg").write_text(OUTCOMES)
    (directory / "decisions.csv").write_text("state,action,episode\n0,1,0\n1,0,0\n2,1,1\n2,0,1\n")
    (directory / "features.csv").write_text(
        "state,action,pay\n0,1,1\n0,0,0\n1,0,0\n1,1,0\n2,1,2\n2,0,0\n"
    )
    readers = Readers(directory, None)
    assert readers.infer(directory / "decisions.csv", directory / "features.csv")
    (directory / "picture.svg").write_text(f"<svg><title>{TITLE}</title></svg>")
    (directory / "run.json").write_text('{"scale": "quick"}')
    (directory / "lock.json").write_text('{"process": 7, "host": "here"}')
    (directory / "seconds.txt").write_text("7.5")
    [cell, *_] = [path for _, path in fig9.cells.values()]
    files = {
        "model": sorted(directory.glob("model-*.npz")),
        "solution": [directory / name for name in ("solution.npz", "by-time.npz", "average.npz")],
        **{name: [directory / name / "runs-00000.npz"] for name in RESUMED},
        "cell": [cell],
        "film": [directory / "film.gif"],
        "record": [directory / "run.json"],
        "lock": [directory / "lock.json"],
        "clock": [directory / "seconds.txt"],
        "game": sorted(directory.glob("game-*.nfg")),
        "picture": [directory / "picture.svg"],
        "estimate": [directory / "e.npz"],
        "decisions": [directory / "decisions.csv"],
        "features": [directory / "features.csv"],
    }
    return {kind: [path.read_bytes() for path in paths] for kind, paths in files.items()}, cell


SHARES = {"model": 30, "solution": 20, "reinforce": 15, "dqn": 15, "cell": 12}
"""How many of a hundred files are of a kind; the others share the rest."""


def crafted(number, seed, every):
    """A crafted file: its kind, its bytes, and what was done to it."""
    rng = np.random.default_rng([seed, number])
    others = [kind for kind in every if kind not in SHARES]
    weights = [*SHARES.values(), *[(100 - sum(SHARES.values())) / len(others)] * len(others)]
    kind = rng.choice([*SHARES, *others], p=np.array(weights) / 100)
    data = every[kind][rng.integers(len(every[kind]))]
    change = change_text
    if kind == "cell":
        change = change_table
    elif kind == "film":
        change = change_picture
    elif kind in ("game", "picture"):
        change = change_tokens
    elif kind in ("decisions", "features"):
        change = change_cells
    elif kind in ("model", "solution", "estimate", *RESUMED):
        change = change_archive
    with np.errstate(all="ignore"):
        data, done = change(rng, data)
    if rng.random() < 0.2:
        data, how = damage(rng, data)
        done = [*done, how]
    return str(kind), data, ", ".join(done)


def one_of(rng, values):
    """One of a sequence, as it is."""
    return values[rng.integers(len(values))]


class Code:
    """What would end this process if it were unpickled."""

    def __reduce__(self):
        return exec, ("raise SystemExit('a file ran code')",)


def stored(values):
    """An array as a member of an archive."""
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(values), allow_pickle=True)
    return buffer.getvalue()


def loaded(member):
    """The array of a member, or None for what is none any more."""
    try:
        return np.lib.format.read_array(io.BytesIO(member), allow_pickle=False)
    except Exception:
        return None


def without(rng, members, name):
    """A field is missing."""
    del members[name]


def another_array(rng, members, name):
    """A field is of another dtype or shape."""
    old = loaded(members[name])
    shape = () if old is None else old.shape
    shapes = [(), (0,), (1,), shape, shape[::-1], (*shape, 1), (2, *shape), shape[:-1], (1,) * 32]
    dtype = np.dtype(one_of(rng, DTYPES))
    if dtype.kind == "O":
        values = np.full(one_of(rng, shapes), Code(), object)
    else:
        values = np.zeros(one_of(rng, shapes), dtype)
    members[name] = stored(values)


def another_value(rng, members, name):
    """A field has other numbers or texts."""
    old = loaded(members[name])
    if old is None or old.dtype.kind not in "fiubU":
        return
    values = TEXTS if old.dtype.kind == "U" else NUMBERS
    new = np.asarray(one_of(rng, values))
    if old.dtype.kind != "U" and rng.random() < 0.8:
        new = new.astype(old.dtype)
    new = np.where(rng.random(old.shape) < rng.choice([0.2, 1.0]), new, old)
    members[name] = stored(np.asfortranarray(new) if rng.random() < 0.1 else new)


def another_header(rng, members, name):
    """The header of an array is malformed."""
    header = one_of(rng, HEADERS).encode("latin1")
    length = len(header) if rng.random() < 0.8 else int(rng.integers(2**16))
    magic = one_of(rng, [b"\x93NUMPY\x01\x00"] * 3 + [b"\x93NUMPY\x02\x00", b"\x93NUMPY\xff\xff"])
    body = members[name][128:] if rng.random() < 0.5 else b""
    end = b"\n" if rng.random() < 0.8 else b""
    members[name] = magic + struct.pack("<H", (length + len(end)) % 2**16) + header + end + body


def another_field(rng, members, name):
    """A field is where another one should be."""
    other = one_of(rng, [*members])
    members[name], members[other] = members[other], members[name]


def another_name(rng, members, name):
    """A field has another name."""
    members[one_of(rng, TEXTS)[:1000].replace("\ud800", "") + ".npy"] = members.pop(name)


def another_length(rng, members, name):
    """An array has too few bytes, or too many."""
    cut = int(rng.integers(len(members[name]) + 1))
    members[name] = members[name][:cut] if rng.random() < 0.5 else members[name] + bytes(cut)


def another_setting(rng, members, name):
    """The settings have other values."""
    if "settings.npy" in members:
        settings = loaded(members["settings.npy"])
        if settings is not None and settings.dtype.kind == "U":
            members["settings.npy"] = stored(changed_json(rng, str(settings)))


def changed_json(rng, text):
    """JSON with another value, without one, or as something else."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not found or rng.random() < 0.1:
        return one_of(rng, JSON_VALUES)
    name = one_of(rng, [*found])
    parts = {key: json.dumps(value) for key, value in found.items()}
    if rng.random() < 0.2:
        del parts[name]
    else:
        parts[name] = one_of(rng, JSON_VALUES)
    if rng.random() < 0.1:
        parts[one_of(rng, TEXTS)] = one_of(rng, JSON_VALUES)
    return "{" + ", ".join(f"{json.dumps(key)}: {value}" for key, value in parts.items()) + "}"


CHANGES = [
    *(without, another_array, another_header, another_field, another_name, another_length),
    *[another_value] * 4,
    *[another_setting] * 4,
]


def change_archive(rng, data):
    """Change some members of an archive, and how they are packed."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    done = []
    for _ in range(rng.integers(4)):
        change, name = one_of(rng, CHANGES), one_of(rng, [*members])
        change(rng, members, name)
        done.append(f"{change.__name__} {name}")
        if not members:
            break
    buffer = io.BytesIO()
    packing = one_of(rng, [zipfile.ZIP_STORED] * 8 + [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
    with zipfile.ZipFile(buffer, "w", packing) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that are there twice
        for name, member in members.items():
            archive.writestr(name, member)
        if members and rng.random() < 0.03:
            archive.writestr(*one_of(rng, [*members.items()]))
            done.append("twice")
        if rng.random() < 0.01:
            archive.writestr("bomb.npy", bytes(10**8), zipfile.ZIP_DEFLATED)
    data = bytearray(buffer.getvalue())
    if rng.random() < 0.1:
        done.append(lie(rng, data))
    return bytes(data), done


ENTRY = {"flags": 8, "method": 10, "checksum": 16, "packed": 20, "size": 24, "name": 28, "at": 42}
"""Where an entry of an archive's directory has what."""


def lie(rng, data):
    """Let the directory of an archive say what is not so."""
    at = data.find(b"PK\x01\x02")
    for _ in range(rng.integers(4)):
        at = max(at, data.find(b"PK\x01\x02", at + 1))
    what = one_of(rng, [*ENTRY])
    if at >= 0:
        number = one_of(rng, [0, 1, 2**16 - 1, 2**31, 2**32 - 1, int(rng.integers(len(data)))])
        wide = what in ("checksum", "packed", "size", "at")
        struct.pack_into(
            "<I" if wide else "<H", data, at + ENTRY[what], number % 2 ** (32 if wide else 16)
        )
    return f"lies about {what}"


def damage(rng, data):
    """Truncate a file, flip bits of it, or put something before or behind it."""
    how = one_of(rng, ["truncated", "flipped", "before", "behind", "twice"])
    if how == "truncated":
        return data[: rng.integers(len(data) + 1)], how
    if how == "flipped" and data:
        flipped = bytearray(data)
        for _ in range(rng.integers(1, 9)):
            flipped[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
        return bytes(flipped), how
    other = rng.bytes(rng.integers(1, 200)) if how != "twice" else data
    return (other + data if how == "before" else data + other), how


def change_text(rng, data):
    """Change a small file of JSON or of one number."""
    texts = [changed_json(rng, data.decode()), *JSON_VALUES, *TEXTS, *map(str, NUMBERS)]
    return one_of(rng, [texts[0]] * len(texts) + texts).encode("utf-8", "surrogatepass"), ["text"]


def change_tokens(rng, data):
    """Change a file of words: some of them are missing, doubled, or others."""
    words = data.decode().split(" ")
    for _ in range(rng.integers(1, 4)):
        at = rng.integers(len(words))
        other = one_of(rng, [*TEXTS, *map(str, NUMBERS), "{", "}", '"', '""', ",", "NFG", "1/0"])
        words[at] = one_of(rng, ["", f"{words[at]} {words[at]}", other, f'"{other}"'])
    return " ".join(words).encode("utf-8", "surrogatepass"), ["words"]


def change_cells(rng, data):
    """Change a table of texts: some cells or lines are missing, doubled, or others."""
    lines = [line.split(",") for line in data.decode().splitlines()]
    for _ in range(rng.integers(1, 4)):
        cells = one_of(rng, lines)
        at = rng.integers(len(cells))
        other = one_of(
            rng, [*TEXTS, *map(str, NUMBERS), '"', "", "\0", "state", "1e999", "x" * 10**6]
        )
        cells[at] = one_of(rng, [other, f"{cells[at]},{other}", f"{cells[at]}\n{other}"])
        if rng.random() < 0.2 and len(lines) > 1:
            lines.remove(cells)
    text = "\n".join(",".join(cells) for cells in lines)
    return text.encode("utf-8", "surrogatepass"), ["cells"]


def change_picture(rng, data):
    """Change the sizes of a picture."""
    data = bytearray(data)
    sizes = [one_of(rng, [0, 1, 8, 2**16 - 1]) for _ in range(2)]
    struct.pack_into("<HH", data, 6, *sizes)
    return bytes(data), [f"sizes {sizes}"]


def change_table(rng, data):
    """Change the columns of a cell, and what it says made it."""
    table = pq.read_table(io.BytesIO(data))
    metadata = {key.decode(): value.decode() for key, value in table.schema.metadata.items()}
    columns, done = {name: table[name] for name in table.column_names}, []
    for _ in range(rng.integers(4)):
        name = one_of(rng, [*columns])
        rows, how = table.num_rows, int(rng.integers(7))
        if how == 0 and len(columns) > 1:
            del columns[name]
        elif how == 1:
            columns[one_of(rng, TEXTS).replace("\ud800", "")] = columns.pop(name)
        elif how == 2:
            columns[name] = pa.chunked_array([strange_column(rng, rows)])
        elif how == 3:
            columns[name] = pa.chunked_array([pa.array([float(one_of(rng, NUMBERS))] * rows)])
        elif how == 4:
            columns[name] = pa.chunked_array([pa.nulls(rows, columns[name].type)])
        elif how == 5:
            text = changed_json(rng, metadata.get("mellowmax", "{}"))
            metadata["mellowmax"] = text.replace("\ud800", "")
        else:
            metadata.pop("mellowmax", None)
        done.append(f"change {how} of {name}")
    changed = pa.table(columns)
    if rng.random() < 0.2:
        indices = rng.integers(table.num_rows, size=one_of(rng, [0, 1, 7, 10_000]))
        changed = changed.take(pa.array(indices))
        done.append(f"{len(indices)} rows")
    buffer = io.BytesIO()
    pq.write_table(changed.replace_schema_metadata(metadata), buffer)
    return buffer.getvalue(), done


def strange_column(rng, rows):
    """A column of another type."""
    lists = pa.array([[1.0, 2.0]] * rows)
    texts = pa.array([one_of(rng, TEXTS).replace("\ud800", "")] * rows, pa.string())
    dates = pa.array([2**62] * rows, pa.timestamp("us"))
    structs = pa.array([{"a": [{"b": 1}]}] * rows)
    return one_of(rng, [lists, texts, dates, structs, pa.array([True] * rows), pa.nulls(rows)])


@contextlib.contextmanager
def limited_memory(most=MEMORY):
    """Within, this process may take no more than this many bytes in addition."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


class Trial:
    """Files of every kind in a directory, crafted and read.

    The originals are read first: everything that is compiled is compiled then.
    """

    def __init__(self, directory, seed=0):
        self.originals, cell = originals(directory)
        self.readers, self.seed = Readers(directory, cell), seed
        self.read = self.refused = 0
        for kind, every in self.originals.items():
            for data in every:
                assert not self.failures(kind, data)
        assert not self.refused

    def failures(self, kind, data):
        """What is wrong with the readers of a file, by their names."""
        failures = {}
        for name, reader in self.readers.of(kind).items():
            try:
                read = reader(data)
            except Exception as error:
                failures[name] = error
            else:
                self.read += read
                self.refused += not read
        return failures

    def run(self, numbers):
        """Craft files, and yield what is wrong with each: its number, what it is, and why."""
        for number in numbers:
            kind, data, done = crafted(number, self.seed, self.originals)
            for reader, error in self.failures(kind, data).items():
                yield f"file {number} ({kind}, {done}), {reader}: {_told(error)}"


def _told(error):
    """The type of an error, where it was raised, and its beginning."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "mellowmax" in frame.filename] or frames
    at = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}"
    return f"{type(error).__name__} at {at}: {str(error)[:300]!r}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first file")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    start, wrong = time.perf_counter(), 0
    warnings.simplefilter("error")
    miniature.install()
    miniature.SECONDS_OF_A_CELL = 0.0
    with tempfile.TemporaryDirectory() as directory:
        trial = Trial(Path(directory), options.seed)
        numbers = range(options.first, options.first + options.files)
        with limited_memory():
            for failure in trial.run(numbers):
                print(failure, flush=True)
                wrong += 1
    readings = trial.read + trial.refused + wrong
    print(f"{options.files:,} files in {time.perf_counter() - start:.0f} s, {readings:,} readings:")
    print(f"{trial.read:,} results, {trial.refused:,} errors of one sentence, {wrong} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
