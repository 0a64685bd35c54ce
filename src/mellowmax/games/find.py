"""All equilibria of a game under a softmax, as far as they are found.

Every equilibrium lies in a box, that of the payoffs, which the response maps into itself. So the
search is that for the fixed points of any such map (`_fixed_points.search`): Newton's method from
many places, pushed away from what is found, with the sum of the indices as a check. It starts from
the pure profiles and from the equilibrium on the principal branch too. `uniqueness` says where the
equilibria are proved to be all.
"""

from __future__ import annotations

import math

import numpy as np

from .._common import checks
from .._fixed_points.maps import ROUNDING
from .._fixed_points.points import Local
from .._fixed_points.search import Search
from .._typing import Floats
from ..softmax import Softmax
from .equilibrium import Equilibria, Equilibrium, Setting
from .family import family_of, parameter_of
from .game import Game
from .policy_jacobian import check_smooth
from .responses import Response
from .trace import trace
from .uniqueness import all_of_two_by_two, why_only_one

__all__ = ["equilibria"]

_MOST_PROFILES = 256
"""Pure profiles that the search starts from."""


def equilibria(
    game: Game, softmax: Softmax, *, starts: int = 64, seed: int = 0, tolerance: float = 1e-12
) -> Equilibria:
    """The quantal response equilibria of a game, all that are found.

    Args:
        game: the game.
        softmax: how all players choose; with an array of parameters, each player has one.
        starts: how many starts a round of the search has; without effect where there is a proof.
        seed: of the search's own random numbers.
        tolerance: the largest residual of an equilibrium, as a share of the payoffs.

    Returns:
        A sequence of `Equilibrium`, with `complete` and `reason`.

    Raises:
        ValueError: if the softmax has no smooth policy or an argument is out of range.

    Examples:
        A zero-sum game has one logit equilibrium, but can have three of mellowmax:

        >>> from mellowmax import Boltzmann, Mellowmax
        >>> game = Game.zero_sum([[10, -10], [-12, 10], [88, -558]])
        >>> found = equilibria(game, Boltzmann(1.0))
        >>> print(len(found), found.complete, found.reason)
        1 True A zero-sum game has exactly one logit equilibrium.
        >>> for point in equilibria(game, Mellowmax(1.0)):
        ...     print(point.profile[1].round(6), point.values.round(6), point.index)
        [0.48479 0.51521] [-0.874038  0.874038] 1
        [0.514394 0.485606] [-0.627597  0.627597] -1
        [0.521025 0.478975] [-0.536502  0.536502] 1

    References:
        Asadi and Littman (2017), sections 8 and 9.
    """
    checks.instance("game", game, Game, "a Game")
    softmax = check_smooth(softmax)
    starts = checks.whole("starts", starts, 1)
    if not 1e-14 <= checks.real("tolerance", tolerance) < 1:
        raise ValueError(f"`tolerance` must be in [1e-14, 1), got {tolerance}")
    checks.generator("seed", seed)
    setting = Setting.of(game)
    payoffs = setting.payoffs
    size = float(payoffs.size)
    margin = ROUNDING * size
    response = Response(payoffs, softmax)
    search = Search(response, payoffs.low - margin, payoffs.high + margin, tolerance * size)
    principal, failure = _principal(setting, softmax)
    first = np.concatenate([_pure(setting, seed), *principal])
    reason = why_only_one(game, softmax)
    if reason is not None:
        found, complete = search.polished(first)[:1], True
        if not found:
            raise RuntimeError(f"no equilibrium under {softmax} was found within `tolerance`")
        return _as_equilibria(setting, softmax, found, complete, reason)
    proof = all_of_two_by_two(game, payoffs, softmax)
    if proof is None:
        found, reason = search.rounds(starts, seed, np.concatenate([first, search.orbits()]))
        return _as_equilibria(setting, softmax, found, False, reason + failure)
    roots, doubtful = proof
    found = search.polished(np.concatenate([roots, doubtful]))
    if len(doubtful):
        reason = "Not proved: two equilibria meet, or almost, and rounding hides which."
    else:
        reason = "A bound on the second derivative excludes every other equilibrium."
    return _as_equilibria(setting, softmax, found, not len(doubtful), reason)


def _as_equilibria(
    setting: Setting,
    softmax: Softmax,
    found: tuple[Local, ...],
    complete: bool,
    reason: str,
) -> Equilibria:
    parameter = parameter_of(softmax)
    points = (Equilibrium(softmax, parameter, setting, one.value) for one in found)
    size = float(setting.payoffs.size) or 1.0
    ordered = sorted(points, key=lambda point: tuple((point.values / size).round(9).tolist()))
    return Equilibria(tuple(ordered), complete, reason)


def _pure(setting: Setting, seed: int) -> Floats:
    """What pure profiles pay, `[B, D]`: all of them, or some."""
    payoffs, counts = setting.payoffs, setting.game.shape
    if math.prod(counts) <= _MOST_PROFILES:
        profiles = np.array(list(np.ndindex(*counts)))
    else:
        rng = np.random.default_rng(seed)
        profiles = rng.integers(counts, size=(_MOST_PROFILES, len(counts)))
    return payoffs.values(np.eye(max(counts))[profiles])


def _principal(setting: Setting, softmax: Softmax) -> tuple[list[Floats], str]:
    """What the equilibria of the principal branch pay, `[B, D]` if there are any.

    And a sentence, if the branch cannot be followed.
    """
    parameter = parameter_of(softmax)
    if math.isnan(parameter) or parameter == 0:
        return [], ""
    try:
        branch = trace(setting.game, family_of(softmax), [0.0, parameter])
    except (RuntimeError, ValueError) as error:
        return [], f" The principal branch was not followed: {error}."
    return [np.array([point._vector for point in branch.at(parameter)])], ""
