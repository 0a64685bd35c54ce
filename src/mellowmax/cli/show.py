"""`mellowmax show`: what is in a file of the library."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .._common import npz
from .console import errors_in_one_sentence
from .describe import (
    SOLUTIONS,
    describe_estimate,
    describe_model,
    describe_solution,
    describe_training,
)
from .options import AsJson, paths
from .result import Result, print_result

__all__ = ["show"]

RULE = "`FILE` must be a solution, a model, an estimate, or the checkpoint of a training"


def show(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A solution, a model, an estimate, or a checkpoint: a directory or a file.",
            autocompletion=paths(".npz"),
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Show a solution, a model, an estimate or a checkpoint.

    Example: mellowmax show solution.npz

    For a small model, the values and the policy of each state are printed. The exit code is 0, and
    2 for any other file.
    """
    with errors_in_one_sentence():
        result = _described(file)
    print_result(result, as_json=as_json)


def _described(path: Path) -> Result:
    if path.is_dir():
        files = sorted(path.glob("runs-*.npz"))
        if not files:
            raise ValueError(f"{RULE}, got the directory {str(path)!r} without runs-*.npz")
        return describe_training(files)
    if not path.is_file():
        raise ValueError(f"{RULE}, got {str(path)!r}, which is not there")
    kind = npz.kind_of(path)
    if kind in SOLUTIONS:
        from ..planning.any_solution import read_fields

        return describe_solution(read_fields(path))
    if kind == "estimate":
        from ..inverse.estimate import read_fields as read_estimate

        return describe_estimate(read_estimate(path))
    if kind == "MDP":
        from ..mdp import MDP

        return describe_model(MDP.load(path))
    if kind == "training":
        return describe_training([path])
    raise ValueError(f"{RULE}, got {str(path)!r}, which is damaged, compressed or of another kind")
