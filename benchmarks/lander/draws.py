"""The random numbers of an episode, made from its seed alone.

They are those that Gymnasium's lander draws after `reset(seed=seed)`, in the same order, so that
either side can be run by itself, on another machine, and an episode is still the same on both.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

LIMIT = 1000
"""The limit of steps of an episode, which Gymnasium's wrapper enforces."""


class Draws(NamedTuple):
    """The random numbers of an episode's start and of its engines."""

    start: np.ndarray
    """`[16]`, in [0, 1): 12 heights, the push, and where the gusts begin."""
    dispersion: np.ndarray
    """`[1 + LIMIT, 2]`, in [-1, 1): for the step that `reset` takes and for all others."""


class Choices(NamedTuple):
    """The random numbers of a random policy in an episode."""

    actions: np.ndarray
    """`[LIMIT]`, each from 0 to 3."""
    coins: np.ndarray
    """`[LIMIT]`, heads or tails."""


def draws_of(seed: int, wind: bool = False) -> Draws:
    """The random numbers that Gymnasium's lander draws in the episode of a seed."""
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
    start = np.full(16, 0.5)
    start[:14] = rng.random(14)
    if wind:
        # The middle of what becomes the same whole number.
        start[14:] = [(rng.integers(-9999, 9999) + 9999.5) / 19998 for _ in range(2)]
    dispersion = 2 * rng.random((1 + LIMIT, 2)) - 1
    return Draws(start.astype(np.float32), dispersion.astype(np.float32))


def choices_of(seed: int) -> Choices:
    """The random numbers that a random policy draws in the episode of a seed."""
    rng = np.random.default_rng([seed, 1])
    actions, coins = rng.random((2, LIMIT))
    return Choices((4 * actions).astype(np.int8), coins < 0.5)
