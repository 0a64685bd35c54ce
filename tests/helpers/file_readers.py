"""All that reads files: every command and function, with what each may do to a crafted file.

It gives a result, or an error of one sentence: exit code 2 and one line on the command line, a
ValueError with the name of the file in Python. Nothing that is printed has a control character, or
a row that the file made up.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import functools
import json
from pathlib import Path

from helpers.commands import call
from mellowmax import deep
from mellowmax.cli.gif import check_film
from mellowmax.cli.pictures import check_picture
from mellowmax.experiments.store import read_cell
from mellowmax.games import Game
from mellowmax.inverse.estimate import read_fields as read_estimate
from mellowmax.mdp import MDP
from mellowmax.planning.any_solution import read_fields

LONGEST = 1000
"""Characters of an error."""
RESUMED = {
    "reinforce": ("--softmax", "boltzmann", "--batch", 2, "--episodes", 4),  # quickly compiled
    "dqn": ("--capacity", 32, "--minibatch", 4, "--learning-starts", 8, "--hidden", 8),
}
"""The trainings whose checkpoints are changed, and which are resumed from them."""


def train(algorithm, directory):
    """A training of a few steps; one whose checkpoint is there is resumed."""
    options = ("--parameter", 5, "--runs", 2, "--workers", 0, "--max-steps", 8, "--episodes", 4)
    words = ("FrozenLake-v1", "--algorithm", algorithm, *options, *RESUMED[algorithm])
    return call("train", *words, "--out", directory, "--quiet")


@dataclasses.dataclass
class Readers:
    """All that reads files."""

    directory: Path
    """Where the originals are."""
    cell: Path
    """The one of them that is changed."""

    def of(self, kind):
        """The readers of a kind of file: functions of its bytes, by name."""
        names = {"reinforce": "checkpoint", "dqn": "checkpoint"}
        begin = names.get(kind, kind) + "_"
        found = [name for name in dir(self) if name.startswith(begin)]
        algorithm = [kind] if kind in RESUMED else []
        return {name: functools.partial(getattr(self, name), *algorithm) for name in found}

    def put(self, data, *names):
        """Write a file, and return its path."""
        path = self.directory.joinpath("read", *names)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def model_load(self, data):
        return said_of(self.put(data, "model.npz"), MDP.load)

    def model_show(self, data):
        return shown(call("show", self.put(data, "model.npz")))

    def model_show_json(self, data):
        return json_shown(call("show", self.put(data, "model.npz"), "--json"))

    def model_solve(self, data):
        path = self.put(data, "model.npz")
        words = ("--parameter", 2, "--max-iterations", 50, "--out", path.with_name("solution.npz"))
        return shown(call("solve", path, *words), failure=1)

    def model_explore(self, data):
        path = self.put(data, "model.npz")
        return shown(call("explore", path, "--save", path.with_suffix(".html")))

    def solution_load(self, data):
        return said_of(self.put(data, "solution.npz"), read_fields)

    def solution_show(self, data):
        return shown(call("show", self.put(data, "solution.npz")))

    def solution_show_json(self, data):
        return json_shown(call("show", self.put(data, "solution.npz"), "--json"))

    def solution_replaced(self, data):
        """By a command that replaces its own files alone."""
        path = self.put(data, "solution.npz")
        done = call("solve", self.directory / "model-0.npz", "--parameter", 2, "--out", path)
        read = shown(done)
        assert (path.read_bytes() == data) != read
        return read

    def game_load(self, data):
        return said_of(self.put(data, "game.nfg"), Game.load)

    def game_play(self, data):
        return shown(call("play", self.put(data, "game.nfg"), "--parameter", 2))

    def game_play_json(self, data):
        return json_shown(call("play", self.put(data, "game.nfg"), "--parameter", 2, "--json"))

    def estimate_load(self, data):
        return said_of(self.put(data, "estimate.npz"), read_estimate)

    def estimate_show(self, data):
        return shown(call("show", self.put(data, "estimate.npz")))

    def estimate_show_json(self, data):
        return json_shown(call("show", self.put(data, "estimate.npz"), "--json"))

    def decisions_infer(self, data):
        return self.infer(self.put(data, "decisions.csv"), self.directory / "features.csv")

    def features_infer(self, data):
        return self.infer(self.directory / "decisions.csv", self.put(data, "features.csv"))

    def infer(self, decisions, features):
        words = ("--features", features, "--max-iterations", 2, "--out", decisions.parent / "e.npz")
        return shown(call("infer", self.directory / "model-1.npz", decisions, *words), failure=1)

    def picture_replaced(self, data):
        path = self.put(data, "picture.svg")
        return said_of(path, lambda path: check_picture("--trace", path, force=False))

    def checkpoint_load(self, algorithm, data):
        path = self.put(data, algorithm, "runs-00000.npz")
        return said_of(path, lambda path: deep.load_policy(path.parent))

    def checkpoint_show(self, algorithm, data):
        return shown(call("show", self.put(data, algorithm, "runs-00000.npz")))

    def checkpoint_show_json(self, algorithm, data):
        return json_shown(
            call("show", self.put(data, algorithm, "runs-00000.npz").parent, "--json")
        )

    def checkpoint_evaluate(self, algorithm, data):
        path = self.put(data, algorithm, "runs-00000.npz")
        return shown(call("evaluate", path, "--episodes", 1, "--max-steps", 3, "--workers", 0))

    def checkpoint_train(self, algorithm, data):
        path = self.put(data, algorithm, "runs-00000.npz")
        done = train(algorithm, path.parent)
        read = shown(done, failure=1)  # it may have diverged
        assert read or path.read_bytes() == data
        return read

    def cell_load(self, data):
        return said_of(self.put(data, "cell.parquet"), read_cell)

    def cell_report(self, data):
        before = self.cell.read_bytes()
        self.cell.write_bytes(data)
        try:
            (self.directory / "cells" / "run.json").write_text('{"scale": "quick"}')
            return shown(call("report", self.directory / "cells"))
        finally:
            self.cell.write_bytes(before)

    def cell_reproduce(self, data):
        before = self.cell.read_bytes()
        self.cell.write_bytes(data)
        try:
            (self.directory / "cells" / "run.json").write_text('{"scale": "quick"}')
            read = shown(call("reproduce", "fig9", "--out", self.directory / "cells", "--quiet"))
            assert self.cell.read_bytes() == data
            return read
        finally:
            self.cell.write_bytes(before)

    def film_replaced(self, data):
        path = self.put(data, "film.gif")
        return said_of(path, lambda path: check_film("--render", path, force=False))

    def record_report(self, data):
        return shown(call("report", self.put(data, "record", "run.json").parent))

    def record_reproduce(self, data):
        """A directory that is not known again is not written to."""
        out = self.put(data, "record", "run.json").parent
        with contextlib.suppress(FileNotFoundError):
            (out / "cells").unlink()
        (out / "cells").symlink_to(self.directory / "cells" / "cells")
        done = call("reproduce", "fig9", "--out", out, "--quiet")
        read = shown(done)
        assert read or (out / "run.json").read_bytes() == data
        return read

    def lock_train(self, data):
        path = self.put(data, "locked", "lock.json")
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            done = train("reinforce", path.parent)
        assert not shown(done)
        return True  # what holds it is said, or that somebody does

    def clock_reproduce(self, data):
        before = self.cell.read_bytes()
        self.cell.unlink()
        part = self.cell.with_suffix(".part")
        part.mkdir(exist_ok=True)
        (part / "seconds.txt").write_bytes(data)
        try:
            (self.directory / "cells" / "run.json").write_text('{"scale": "quick"}')
            read = shown(call("reproduce", "fig9", "--out", self.directory / "cells", "--quiet"))
            assert read == self.cell.exists()
            return read
        finally:
            self.cell.write_bytes(before)


def said_of(path, read):
    """Read a file, or raise unless what is wrong is one sentence with its name."""
    try:
        read(path)
        return True
    except ValueError as error:
        said = str(error)
    one_sentence(said)
    assert path.name in said, f"no name: {said}"
    return False


def one_sentence(text):
    """Raise unless a text is one line that can be printed, and not too long."""
    assert text.isprintable(), f"not printable: {text!r}"
    assert len(text) < LONGEST, f"{len(text)} characters: {text[:300]!r}"


def shown(done, failure=0):
    """Raise unless a command has printed rows, or one sentence with exit code 2."""
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    lines = done.stdout.split("\n")
    assert done.exit_code in (0, failure, 2), f"exit code {done.exit_code}: {done.stderr}"
    assert all(line.isprintable() for line in lines), f"not printable: {done.stdout!r}"
    if done.exit_code == 2 or (done.exit_code and not done.stdout):
        assert not done.stdout
        assert done.stderr.startswith("mellowmax: ")
        assert done.stderr.endswith("\n")
        one_sentence(done.stderr[:-1])
    else:
        assert not done.stderr, f"stderr: {done.stderr!r}"
        names = [line.split("  ")[0] for line in done.stdout.split("\n\n")[0].split("\n") if line]
        assert len(names) == len(set(names)), f"rows twice: {done.stdout!r}"
    return done.exit_code != 2


def json_shown(done):
    """`shown` for a command that prints JSON."""
    read = shown(done)
    if read:
        json.loads(done.stdout, parse_constant=lambda name: 1 / 0)
    return read
