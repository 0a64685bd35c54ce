"""The search for all fixed points of a map that takes a box into itself.

Newton's method is started from many places, and pushed away from what it has found (deflation:
Farrell, Birkisson and Funke, 2015). What that can miss is checked by degree theory: the indices of
all fixed points sum to +1 unless one of them is degenerate (see `maps`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

from .._typing import Floats
from .maps import Map, newton_step
from .newton import damped_newton
from .points import Local, distinct

__all__ = ["Search"]

_BATCH = 2**23  # entries of the Jacobians that are solved at once


@dataclasses.dataclass(frozen=True, eq=False)
class Search:
    """A map, the box that it takes into itself, and how exact a fixed point must be."""

    of: Map
    low: Floats  # [D]
    high: Floats  # [D]
    largest: float
    """The largest residual of a fixed point."""

    def rounds(self, starts: int, seed: int, first: Floats) -> tuple[tuple[Local, ...], str]:
        """What many starts find, pushed away from what is found, and what speaks for it being all.

        Args:
            starts: how many a round has.
            seed: of the random starts.
            first: further starts of the first round, `[B, D]`.
        """
        rng = np.random.default_rng(seed)
        points = self.polished(np.concatenate([first, self._starts(starts, rng, ())]))
        n_rounds, idle = 1, 0
        while idle < (2 if _index_sum(points) == 1 else 8):
            before = len(points)
            known = np.array([point.value for point in points]).reshape(-1, len(self.low))
            v = self._starts(starts, rng, points)
            points = self.polished(np.concatenate([known, v, self._deflated(v.copy(), known)]))
            n_rounds, idle = n_rounds + 1, 0 if len(points) > before else idle + 1
        done = f"{n_rounds} rounds of {starts} starts, the last {idle} without a new one"
        total = _index_sum(points)
        if any(point.index == 0 for point in points):
            verdict = "one is degenerate, so that their indices say nothing"
        elif total == 1:
            verdict = "their indices sum to +1, as those of all must"
        else:
            verdict = f"their indices sum to {total:+d}, not +1: at least one is missing"
        return points, f"Not proved: {done}; {verdict}."

    def orbits(self) -> Floats:
        """The vectors that the map passes on its way from the lowest and the highest, `[B, D]`."""
        v, visited = np.stack([self.low, self.high]), []
        for step in range(200):
            if step in (0, 3, 10, 30, 100, 199):
                visited.append(v)
            v = v + self.of.residual(v)
        return np.concatenate(visited)

    def polished(self, v: Floats) -> tuple[Local, ...]:
        """The fixed points that Newton's method reaches from each of the rows."""
        ends = []
        for batch in self._batches(v):
            values, sizes = damped_newton(self.of, batch, self.low, self.high)
            ends.append(values[sizes <= self.largest])
        return distinct(self.of, np.concatenate([np.empty((0, len(self.low))), *ends]))

    def _starts(self, count: int, rng: np.random.Generator, points: Sequence[Local]) -> Floats:
        """Anywhere in the box, near its diagonal, on lines and at crosses of two fixed points."""
        width = self.high - self.low
        anywhere = self.low + width * rng.random((count, len(width)))
        diagonal = self.low + width * rng.random((count, 1))
        kinds = [anywhere, diagonal + 0.1 * width * rng.normal(size=anywhere.shape)]
        if len(points) > 1:
            values = np.array([point.value for point in points])
            one, other = values[rng.integers(len(points), size=(2, count))]
            kinds.append(one + (2 * rng.random((count, 1)) - 0.5) * (other - one))
            kinds.append(np.where(rng.random(one.shape) < 0.5, one, other))
        chosen = rng.integers(len(kinds), size=count)
        return np.clip(np.stack(kinds)[chosen, np.arange(count)], self.low, self.high)

    def _deflated(self, v: Floats, known: Floats) -> Floats:
        """Newton's method for the residual times `prod_i (1 + size^2 / |v - known_i|^2)`.

        Its step is Newton's own times a number, which turns it round next to a known fixed point.
        """
        scale = np.linalg.norm(self.high - self.low) ** 2
        for batch in self._batches(v):
            for _ in range(40):
                residual, jacobian = self.of.linearised(batch)
                step = newton_step(jacobian, residual)
                away = batch[:, None] - known  # [B, points, D]
                distance = (away**2).sum(-1) + 1e-30
                along = (away * step[:, None]).sum(-1)
                slope = -2 * scale * (along / (distance * (distance + scale))).sum(-1)
                factor = 1 / np.where(slope == 1, np.inf, 1 - slope)
                step *= np.clip(factor, -10, 10)[:, None]
                batch[...] = np.clip(batch + step, self.low, self.high)
        return v

    def _batches(self, v: Floats) -> Iterator[Floats]:
        """Views of the rows, few enough that their Jacobians fit."""
        rows = max(1, _BATCH // v.shape[1] ** 2)
        for start in range(0, len(v), rows):
            yield v[start : start + rows]


def _index_sum(points: Sequence[Local]) -> int:
    return sum(point.index for point in points)
