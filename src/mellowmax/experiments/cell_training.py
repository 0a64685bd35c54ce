"""A training within a cell: it reports to the cell, and can be stopped and resumed with it."""

from __future__ import annotations

from typing import Any

from ..deep import DeepResult, TrainProgress, train
from .item import Stopped, Work

__all__ = ["train_in_cell"]


def train_in_cell(work: Work, *arguments: Any, **options: Any) -> DeepResult:
    """`deep.train`, with its checkpoint in the cell's directory.

    Raises:
        Stopped: when the cell was stopped; the directory has what was learned.
    """
    stopped = []

    def callback(progress: TrainProgress) -> bool:
        if work.callback(progress.share):
            stopped.append(True)
        return bool(stopped)

    result = train(*arguments, checkpoint=work.directory, callback=callback, **options)
    if stopped:
        raise Stopped
    return result
