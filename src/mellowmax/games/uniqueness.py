"""What is proved about how many equilibria there are.

- Where no policy moves with the values, each player has one answer to whatever the others do.
- A logit response to values that move by at most `s`, in the range of their differences, moves by
  at most `beta s / 2` in the sum of absolute differences. If player j's policy moves by `t` in that
  sum, player i's values move by at most `k_ij t / 2`, with the largest interaction `k_ij` of their
  actions. If the matrix `beta k_ij / 4` has a spectral radius below 1, the response contracts. For
  mellowmax with two actions the bound is half of that with omega for beta; with more actions none
  is proved.
- The logit equilibria of a zero-sum game are the saddle points of the payoff and the entropies,
  which is strictly concave for one player and strictly convex for the other: there is one. Payoffs
  that depend on the other player's action alone change nothing.
- In a game of two players with two actions each an equilibrium is a root of one equation, in the
  difference of the first player's values. If one player wants to do the same as the other, and the
  other the opposite, it falls, so that there is one root. In general bounds on its second
  derivative exclude every root but those found.

The probability of the first of two actions is `h(x)` with the difference `x` of their values: for
logit `1 / (1 + exp(-beta x))`, with `|h'| <= beta / 4` and `|h''| <= beta^2 / (6 sqrt 3)`. For
mellowmax it is the mean of that over all inverse temperatures from 0 to omega, so that
`|h'| <= omega / 8` and `|h''| <= omega^2 / (18 sqrt 3)`. A prior adds a number to every exponent,
which changes no bound, and another entropy, relative to the prior.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from .._fixed_points.maps import ROUNDING
from .._fixed_points.roots import all_roots
from .._typing import Floats
from ..softmax import Mean, Mellowmax, Softmax
from .game import Game
from .policy_jacobian import LOGIT, policy_and_jacobian
from .responses import Payoffs

__all__ = ["all_of_two_by_two", "why_only_one"]


def why_only_one(game: Game, softmax: Softmax) -> str | None:
    """Why there is exactly one equilibrium, if that is proved."""
    strength = _strength(game, softmax)
    if strength is None:
        return None
    if strength == 0:
        return "No policy moves with the action values, so there is but one equilibrium."
    if _contracts(game, strength):
        return "The responses contract at so small a parameter, so there is but one equilibrium."
    if isinstance(softmax, LOGIT) and _is_zero_sum(game):
        return "A zero-sum game has exactly one logit equilibrium."
    if game.shape == (2, 2) and math.prod(_interactions(game.payoffs)) <= 0:
        return "Only one of two players wants to do as the other, so there is but one equilibrium."
    return None


def _strength(game: Game, softmax: Softmax) -> float | None:
    """The `beta` of a logit response that moves no less; None if none is proved."""
    if isinstance(softmax, Mean):
        return 0.0
    if not isinstance(softmax, (*LOGIT, Mellowmax)):
        return None
    size = softmax.omega if isinstance(softmax, Mellowmax) else softmax.beta
    if not isinstance(size, float):
        return None
    if isinstance(softmax, LOGIT) or size == 0:
        return abs(size)
    return abs(size) / 2 if set(game.shape) == {2} else None


def _contracts(game: Game, beta: float) -> bool:
    n = len(game.payoffs)
    bounds = np.zeros((n, n))
    for i, j in itertools.permutations(range(n), 2):
        rows = np.moveaxis(game.payoffs[i], (i, j), (0, 1))
        bounds[i, j] = np.ptp(rows[:, None] - rows[None, :], axis=2).max() * beta / 4
    return bool(abs(np.linalg.eigvals(bounds)).max() < 1 - ROUNDING)


def _is_zero_sum(game: Game) -> bool:
    """Are there two players, of whom one loses what the other gains by any change of actions?"""
    if len(game.payoffs) != 2:
        return False
    row, column = game.payoffs
    both = row + column
    left = both - both.mean(0, keepdims=True) - both.mean(1, keepdims=True) + both.mean()
    return bool(abs(left).max() <= ROUNDING * max(abs(row).max(), abs(column).max()))


def _interactions(payoffs: tuple[Floats, ...]) -> tuple[float, float]:
    """How much more each player gains by the first action if the other takes the first too."""
    signs = np.array([[1.0, -1.0], [-1.0, 1.0]])
    row, column = (float((payoff * signs).sum()) for payoff in payoffs)
    return row, column


def all_of_two_by_two(
    game: Game, payoffs: Payoffs, softmax: Softmax
) -> tuple[Floats, Floats] | None:
    """The equilibria of a two-by-two game, as vectors `[K, 4]`.

    Returns:
        The equilibria, and places where two meet or almost do, and rounding hides which; None where
        nothing is proved.
    """
    beta = _strength(game, softmax)
    if game.shape != (2, 2) or beta is None:
        return None
    bend = beta**2 / (6 * math.sqrt(3)) * (1 if isinstance(softmax, LOGIT) else 4 / 3)
    to_row, to_column = (abs(x) for x in _interactions(game.payoffs))
    bound = to_row * bend * (to_column * beta / 4) ** 2 + to_row * beta / 4 * to_column * bend
    pairs = payoffs.pairs(np.zeros((2, 2)))
    from_row, from_column = pairs[2:, :2], pairs[:2, 2:]

    def column(x: Floats) -> tuple[Floats, Floats]:
        """The column player's values if those of the row player differ by x, and their slopes."""
        values = np.stack([x, -x], axis=-1) / 2
        policy, jacobian = policy_and_jacobian(softmax, values, None)
        slope = jacobian @ np.array([0.5, -0.5])
        return policy @ from_row.T, slope @ from_row.T

    def function(x: Floats) -> tuple[Floats, Floats]:
        values, slopes = column(x)
        policy, jacobian = policy_and_jacobian(softmax, values, None)
        answer = policy @ from_column.T
        slope = (jacobian @ slopes[..., None])[..., 0] @ from_column.T
        return answer[:, 0] - answer[:, 1] - x, slope[:, 0] - slope[:, 1] - 1

    size = float(payoffs.size)
    low, high = 2 * payoffs.low[0] - ROUNDING * size, 2 * payoffs.high[0] + ROUNDING * size
    noise = (ROUNDING * size, ROUNDING * (1 + bound * size))
    proof = all_roots(function, float(low), float(high), bound, noise)
    if proof is None:
        return None

    def vectors(x: Floats) -> Floats:
        return np.concatenate([np.stack([x, -x], axis=-1) / 2, column(x)[0]], axis=-1)

    return vectors(proof[0]), vectors(proof[1])
