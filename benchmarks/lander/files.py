"""The files of both sides."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

ENDS = ("land", "crash", "leave", "time out")
LAND, CRASH, LEAVE, TIME = range(4)
FLIGHT_STEPS = 100
PART = 500
"""The number of episodes in a file of Gymnasium's runs: a stopped run loses at most this many."""
CONTACT_SPARE = 1.25
"""Episodes for each state of contact: some end without any."""


class Plan(NamedTuple):
    """The number of episodes and their seeds."""

    episodes: int
    flights: int
    contacts: int
    first_seed: int

    def parts(self, size: int = PART) -> Iterator[range]:
        """The seeds of the policies' episodes, in parts; the same ones for each policy."""
        last = self.first_seed + self.episodes
        for first in range(self.first_seed, last, size):
            yield range(first, min(first + size, last))

    def flight_seeds(self) -> range:
        """The seeds of the flights."""
        first = self.first_seed + self.episodes
        return range(first, first + self.flights)

    def contact_seeds(self) -> range:
        """The seeds of the episodes from which states of contact are taken."""
        first = self.first_seed + self.episodes + self.flights + 100_000
        return range(first, first + int(CONTACT_SPARE * self.contacts))

    def theirs(self, folder: pathlib.Path, policy: str, seeds: range) -> pathlib.Path:
        """The file of some of Gymnasium's episodes."""
        return folder / f"gymnasium {policy} {seeds.start}-{seeds.stop - 1}.npz"

    def ours(self, folder: pathlib.Path, kind: str, policy: str, seeds: range) -> pathlib.Path:
        """The file of some of our episodes, `paired` on Gymnasium's draws or `alone` on others."""
        return folder / f"ours {kind} {policy} {seeds.start}-{seeds.stop - 1}.npz"

    def of(self, folder: pathlib.Path, part: str) -> pathlib.Path:
        """The file of another part of Gymnasium's side."""
        return folder / f"gymnasium {part}.npz"


def save(path: pathlib.Path, **arrays: Any) -> None:
    """Write a file, completely or not at all."""
    unfinished = path.with_suffix(".tmp.npz")
    np.savez_compressed(unfinished, **arrays)
    os.replace(unfinished, path)


def load(path: pathlib.Path) -> dict[str, np.ndarray]:
    """The arrays of a file."""
    with np.load(path) as file:
        return dict(file)
