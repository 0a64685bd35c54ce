"""The problems: the paper's random MDPs, averages of larger ones, and moves along a line.

A problem has 2 to 10 states or anchors and 2 to 5 actions, as the paper's random MDPs have; without
an averager there are four times as many states, and the fine grid has 20 anchors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...._typing import Floats
from ....mdp import MDP, random_mdp

__all__ = ["DISCOUNT", "FINE", "LARGEST", "PROBLEMS"]

DISCOUNT = 0.98
"""The discount of figure 1."""
_TIMES = 4
"""How many states there are for each anchor."""
LARGEST = 10 * _TIMES
"""The most states."""
_WIDTH = 0.25
"""The standard deviation of the Gaussian weights, in a square of side 1."""
FINE = 20
"""Anchors of the fine grid on the line."""
_WAVES = 4
"""Cosines that a smooth function is made of."""


def _sizes(seed: Sequence[int]) -> tuple[np.random.Generator, int, int]:
    """Random numbers, how many anchors there are, and how many actions."""
    rng = np.random.default_rng([*seed, 0])
    return rng, int(rng.integers(2, 11)), int(rng.integers(2, 6))


def _random(seed: Sequence[int]) -> MDP:
    """One of the paper's random MDPs (section 7.1)."""
    return random_mdp(seed, discount=DISCOUNT)


def _large(seed: Sequence[int]) -> MDP:
    """One with as many states as an averager is given."""
    _, n_anchors, n_actions = _sizes(seed)
    return random_mdp(seed, n_states=_TIMES * n_anchors, n_actions=n_actions, discount=DISCOUNT)


def _gaussian(seed: Sequence[int]) -> MDP:
    """A larger random MDP with Gaussian weights of the distances to the anchors."""
    return _averaged(seed, lambda distances: np.exp(-((distances / _WIDTH) ** 2) / 2))


def _nearest(seed: Sequence[int]) -> MDP:
    """A larger random MDP where each state has the value of the nearest anchor."""
    return _averaged(seed, lambda distances: distances == distances.min(1, keepdims=True))


def _averaged(seed: Sequence[int], weight: Callable[[Floats], Floats]) -> MDP:
    """A random MDP whose states lie anywhere in a square; the first ones are the anchors."""
    rng, n_anchors, _ = _sizes(seed)
    places = rng.random((_TIMES * n_anchors, 2))
    distances = np.linalg.norm(places[:, None] - places[:n_anchors], axis=-1)
    weights = weight(distances).astype(np.float64)
    return _large(seed).averaged(weights / weights.sum(1, keepdims=True))


def _coarse_line(seed: Sequence[int]) -> MDP:
    """Moves along a line, with a few anchors."""
    rng, n_anchors, n_actions = _sizes(seed)
    return _line(rng, n_anchors, n_actions)


def _fine_line(seed: Sequence[int]) -> MDP:
    """The same with many anchors."""
    rng, _, n_actions = _sizes(seed)
    return _line(rng, FINE, n_actions)


def _line(rng: np.random.Generator, n_anchors: int, n_actions: int) -> MDP:
    """Moves along [0, 1] between which values are interpolated linearly.

    Where an action leads to, what it earns, and how probably it ends the episode are smooth random
    functions of the place. So an action may pay at once and end, and another one wait.
    """
    places = np.linspace(0, 1, n_anchors)
    waves = np.cos(np.pi * np.arange(_WAVES) * places[:, None])
    coefficients = rng.standard_normal((3, _WAVES, n_actions)) / np.arange(1, _WAVES + 1)[:, None]
    moves, pays, ends = waves @ coefficients
    rewards, end = (1 / (1 + np.exp(-4 * f)) for f in (pays, ends))
    at = np.clip(places[:, None] + moves / 2, 0, 1) * (n_anchors - 1)
    left = np.minimum(at.astype(int), n_anchors - 2)
    right = at - left
    return MDP(
        np.stack([left, left + 1, np.full_like(left, n_anchors)], -1),
        np.stack([(1 - end) * (1 - right), (1 - end) * right, end], -1),
        rewards / 2,  # at most 0.5, as in the paper's random MDPs
        DISCOUNT,
        terminal=np.zeros(n_anchors, np.bool_),
    )


PROBLEMS: dict[str, Callable[[Sequence[int]], MDP]] = {
    "random": _random,
    "large": _large,
    "gaussian": _gaussian,
    "nearest": _nearest,
    "fine line": _fine_line,
    "coarse line": _coarse_line,
}
"""By the names that the tables have for them."""
