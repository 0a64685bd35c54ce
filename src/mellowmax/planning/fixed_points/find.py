"""All fixed points of planning under a softmax, with their stability.

A non-expansion has one fixed point. Boltzmann's softmax is not one, and can have several fixed
points (section 4): that is why value iteration need not converge under it, and can end in different
places.

With one state that is not terminal the search is complete: it is one equation in one unknown, and
a bound on its second derivative excludes every other root (see `roots`). In general Newton's method
is started from many places, and pushed away from what it has found (deflation: Farrell, Birkisson
and Funke, 2015). What that can miss is checked by degree theory: the indices of all fixed points
sum to +1 unless one of them is degenerate (see `sweep_map`).

`planning.batch` has the search for thousands of small MDPs at once. It shares the sweep, its
Jacobian, the Newton step and the indices with this one, but proves nothing and is quicker: its
Newton's method is not damped, there is no deflation, and starts that do not converge are dropped.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

from ..._common import checks
from ..._typing import Floats
from ...mdp import MDP
from ...softmax import Softmax
from .newton import box, damped_newton, only_fixed_point
from .point import FixedPoint, FixedPoints, distinct, fixed_point
from .roots import all_roots, sign_changes
from .sweep_map import SWEEP_ROUNDING, SweepMap, newton_step

__all__ = ["fixed_points"]

_BATCH = 2**23  # entries of the Jacobians that are solved at once


def fixed_points(
    mdp: MDP, softmax: Softmax, *, starts: int = 64, seed: int = 0, tolerance: float = 1e-12
) -> FixedPoints:
    """The fixed points of `T q = r + discount * P softmax(q)`.

    Args:
        mdp: with at most 2^26 dense transitions, such as 2000 states of 16 actions.
        softmax: any pair of an operator and its policy.
        starts: how many starts a round of the search has; without effect where there is a proof.
        seed: of the search's own random numbers.
        tolerance: the largest residual of a fixed point, relative to the largest possible value.

    Returns:
        A sequence of `FixedPoint`, by the sum of their state values, with `complete` and `reason`.

    Raises:
        ValueError: if the MDP is too large or an argument is out of range.
        RuntimeError: if a softmax that says it is a non-expansion behaves as none.

    Examples:
        >>> from mellowmax import Boltzmann, Mellowmax
        >>> from mellowmax.mdp import two_state
        >>> for point in fixed_points(two_state(), Boltzmann(16.55)):
        ...     print(point.q[0].round(3), round(point.spectral_radius, 3), point.stable)
        [0.491 0.587] 0.989 True
        [0.617 0.777] 1.003 False
        [0.688 0.885] 0.997 True
        >>> points = fixed_points(two_state(), Mellowmax(16.55))
        >>> print(len(points), points.complete, points.reason)
        1 True The softmax is a non-expansion, under which planning has exactly one fixed point.
    """
    checks.instance("softmax", softmax, Softmax, "a Softmax such as Mellowmax(5.0)")
    starts = checks.whole("starts", starts, 1)
    if not 1e-14 <= checks.real("tolerance", tolerance) < 1:
        raise ValueError(f"`tolerance` must be in [1e-14, 1), got {tolerance}")
    checks.generator("seed", seed)
    model = SweepMap.of(mdp)
    if softmax.non_expansion:
        point = fixed_point(model, softmax, only_fixed_point(model, softmax))
        if point.residual > tolerance * abs(model.q(point.value)).max():
            raise RuntimeError(
                f"no fixed point of {softmax} was found with a residual within `tolerance`, "
                f"got {point.residual:g}"
            )
        reason = "The softmax is a non-expansion, under which planning has exactly one fixed point."
        return FixedPoints((point,), True, reason)
    low, high = box(model)
    size = max(abs(low).max(), abs(high).max())
    if (high - low).max() <= 1e-13 * size:
        points = distinct(model, softmax, low[None])
        return FixedPoints(points, True, "Every policy has the same value, so there is but one.")
    margin = np.where(mdp.terminal, 0.0, SWEEP_ROUNDING * size)
    search = _Search(model, softmax, low - margin, high + margin, size, tolerance)
    live = np.flatnonzero(~mdp.terminal)
    return search.line(int(live[0])) if len(live) == 1 else search.rounds(starts, seed)


@dataclasses.dataclass(frozen=True, eq=False)
class _Search:
    """The box of possible values, and the two ways to search it."""

    model: SweepMap
    softmax: Softmax
    low: Floats
    high: Floats
    size: float
    tolerance: float

    def line(self, state: int) -> FixedPoints:
        """Every fixed point, where all states but one are terminal."""
        rewards, stay = self.model.rewards[state], self.model.flow[state, :, state]
        if self.model.allowed is not None:
            rewards, stay = rewards[self.model.allowed[state]], stay[self.model.allowed[state]]
        ends = float(self.low[state]), float(self.high[state])
        # The width of a row is convex in the value, so that it is largest at an end.
        width, turn = max(float(np.ptp(rewards + stay * end)) for end in ends), float(np.ptp(stay))
        bound = self.softmax.curvature(width) * turn**2 if turn else 0.0

        def function(x: Floats) -> tuple[Floats, Floats]:
            v = np.zeros((len(x), len(self.low)))
            v[:, state] = x
            q = self.model.q(v)
            residual = self.model.value(self.softmax, q) - v
            slope = self.model.jacobian(self.softmax, q)[:, state, state] - 1
            return residual[:, state], slope

        noise = (SWEEP_ROUNDING * self.size, SWEEP_ROUNDING * (1 + bound * self.size))
        proof = all_roots(function, *ends, bound, noise)
        roots, doubtful = proof or (sign_changes(function, *ends), np.zeros(0))
        v = np.zeros((len(roots) + len(doubtful), len(self.low)))
        v[:, state] = np.concatenate([roots, doubtful])
        points = self._polished(v)
        if proof is None:
            reason = "Not proved: the softmax gives no useful bound on its second derivative."
        elif len(doubtful):
            reason = (
                "Not proved: two fixed points meet near a value of "
                f"{doubtful.mean():.9g}, or almost, and rounding hides which."
            )
        else:
            reason = "A bound on the second derivative excludes every other value."
        return FixedPoints(points, proof is not None and not len(doubtful), reason)

    def rounds(self, starts: int, seed: int) -> FixedPoints:
        """What Newton's method finds from many starts, pushed away from what it has found."""
        rng = np.random.default_rng(seed)
        orbits = self._orbits()
        points = self._polished(np.concatenate([orbits, self._starts(starts, rng, ())]))
        n_rounds, idle = 1, 0
        while idle < (2 if _index_sum(points) == 1 else 8):
            before = len(points)
            known = np.array([point.value for point in points]).reshape(-1, len(self.low))
            v = self._starts(starts, rng, points)
            points = self._polished(np.concatenate([known, v, self._deflated(v.copy(), known)]))
            n_rounds, idle = n_rounds + 1, 0 if len(points) > before else idle + 1
        done = f"{n_rounds} rounds of {starts} starts, the last {idle} without a new one"
        total = _index_sum(points)
        if any(point.index == 0 for point in points):
            verdict = "one is degenerate, so that their indices say nothing"
        elif total == 1:
            verdict = "their indices sum to +1, as those of all must"
        else:
            verdict = f"their indices sum to {total:+d}, not +1: at least one is missing"
        return FixedPoints(points, False, f"Not proved: {done}; {verdict}.")

    def _starts(self, count: int, rng: np.random.Generator, points: Sequence[FixedPoint]) -> Floats:
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

    def _orbits(self) -> Floats:
        """The values that sweeps pass on their way from the lowest and from the highest values."""
        v, visited = np.stack([self.low, self.high]), []
        for sweep in range(200):
            if sweep in (0, 3, 10, 30, 100, 199):
                visited.append(v)
            v = v + self.model.residual(self.softmax, v)
        return np.concatenate(visited)

    def _deflated(self, v: Floats, known: Floats) -> Floats:
        """Newton's method for the residual times `prod_i (1 + size^2 / |v - known_i|^2)`.

        Its step is Newton's own times a number, which turns it round next to a known fixed point.
        """
        scale = np.linalg.norm(self.high - self.low) ** 2
        for batch in self._batches(v):
            for _ in range(40):
                q = self.model.q(batch)
                residual = self.model.value(self.softmax, q) - batch
                step = newton_step(self.model.jacobian(self.softmax, q), residual)
                away = batch[:, None] - known  # [B, points, S]
                distance = (away**2).sum(-1) + 1e-30
                along = (away * step[:, None]).sum(-1)
                slope = -2 * scale * (along / (distance * (distance + scale))).sum(-1)
                factor = 1 / np.where(slope == 1, np.inf, 1 - slope)
                step *= np.clip(factor, -10, 10)[:, None]
                batch[...] = np.clip(batch + step, self.low, self.high)
        return v

    def _polished(self, v: Floats) -> tuple[FixedPoint, ...]:
        """The fixed points that Newton's method reaches from each of the rows."""
        ends = []
        for batch in self._batches(v):
            values, sizes = damped_newton(self.model, self.softmax, batch, self.low, self.high)
            ends.append(values[sizes <= self.tolerance * self.size])
        return distinct(
            self.model, self.softmax, np.concatenate([np.empty((0, len(self.low))), *ends])
        )

    def _batches(self, v: Floats) -> Iterator[Floats]:
        """Views of the rows, few enough that their Jacobians fit."""
        rows = max(1, _BATCH // v.shape[1] ** 2)
        for start in range(0, len(v), rows):
            yield v[start : start + rows]


def _index_sum(points: Sequence[FixedPoint]) -> int:
    return sum(point.index for point in points)
