"""All fixed points of planning under a softmax, with their stability.

A non-expansion has one fixed point. Boltzmann's softmax is not one, and can have several fixed
points (section 4): that is why value iteration need not converge under it, and can end in different
places.

With one state that is not terminal the search is complete: it is one equation in one unknown, and
a bound on its second derivative excludes every other root. In general Newton's method is started
from many places, and pushed away from what it has found; the indices of what is found show whether
one is missing (`Search`).

`planning.batch` has the search for thousands of small MDPs at once. It shares the sweep, its
Jacobian, the Newton step and the indices with this one, but proves nothing and is quicker: its
Newton's method is not damped, there is no deflation, and starts that do not converge are dropped.
"""

from __future__ import annotations

import numpy as np

from ..._common import checks
from ..._fixed_points.maps import ROUNDING
from ..._fixed_points.points import distinct, local
from ..._fixed_points.roots import all_roots, sign_changes
from ..._fixed_points.search import Search
from ..._typing import Floats
from ...mdp import MDP
from ...softmax import Softmax
from .newton import box, only_fixed_point
from .point import FixedPoints, fixed_point, fixed_points_of
from .sweep_map import Sweep, SweepMap

__all__ = ["fixed_points"]


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
    sweep = model.under(softmax)
    if softmax.non_expansion:
        point = fixed_point(sweep, local(sweep, only_fixed_point(model, softmax)))
        if point.residual > tolerance * abs(model.q(point.value)).max():
            raise RuntimeError(
                f"no fixed point of {softmax} was found with a residual within `tolerance`, "
                f"got {point.residual:g}"
            )
        reason = "The softmax is a non-expansion, under which planning has exactly one fixed point."
        return FixedPoints((point,), True, reason)
    low, high, proved = box(model, softmax)
    size = max(abs(low).max(), abs(high).max())
    if proved and (high - low).max() <= 1e-13 * size:
        points = fixed_points_of(sweep, distinct(sweep, low[None]))
        return FixedPoints(points, True, "Every policy has the same value, so there is but one.")
    margin = np.where(mdp.terminal, 0.0, ROUNDING * size)
    search = Search(sweep, low - margin, high + margin, tolerance * size)
    live = np.flatnonzero(~mdp.terminal)
    if len(live) == 1:
        return _on_a_line(sweep, search, int(live[0]), size, proved)
    found, reason = search.rounds(starts, seed, search.orbits())
    return FixedPoints(fixed_points_of(sweep, found), False, reason)


def _on_a_line(sweep: Sweep, search: Search, state: int, size: float, proved: bool) -> FixedPoints:
    """Every fixed point, where all states but one are terminal; `proved`: that the box has all."""
    model, softmax = sweep.model, sweep.softmax
    rewards, stay = model.rewards[state], model.flow[state, :, state]
    if model.allowed is not None:
        rewards, stay = rewards[model.allowed[state]], stay[model.allowed[state]]
    ends = float(search.low[state]), float(search.high[state])
    # The width of a row is convex in the value, so that it is largest at an end.
    width, turn = max(float(np.ptp(rewards + stay * end)) for end in ends), float(np.ptp(stay))
    bound = softmax.curvature(width) * turn**2 if turn else 0.0

    def function(x: Floats) -> tuple[Floats, Floats]:
        v = np.zeros((len(x), len(search.low)))
        v[:, state] = x
        residual, jacobian = sweep.linearised(v)
        return residual[:, state], jacobian[:, state, state] - 1

    noise = (ROUNDING * size, ROUNDING * (1 + bound * size))
    proof = all_roots(function, *ends, bound, noise)
    roots, doubtful = proof or (sign_changes(function, *ends), np.zeros(0))
    v = np.zeros((len(roots) + len(doubtful), len(search.low)))
    v[:, state] = np.concatenate([roots, doubtful])
    points = fixed_points_of(sweep, search.polished(v))
    if proof is None:
        reason = "Not proved: the softmax gives no useful bound on its second derivative."
    elif not proved:
        reason = "Not proved: the softmax gives no bound on its bonus."
    elif len(doubtful):
        reason = (
            "Not proved: two fixed points meet near a value of "
            f"{doubtful.mean():.9g}, or almost, and rounding hides which."
        )
    else:
        reason = "A bound on the second derivative excludes every other value."
    complete = proved and proof is not None and not len(doubtful)
    return FixedPoints(points, complete, reason)
