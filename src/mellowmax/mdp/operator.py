"""Transitions that are a function: for models whose probabilities do not fit into memory.

`expectation(v)` is the mean of the values `v [S]` over the next states, `[S, A]`. Sweeps need
nothing else of the transitions, and neither do their bounds. An `Operator` stands where the array
of probabilities does; what needs the probabilities themselves gets an error that says so.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from .._common import checks
from .._common.extras import needed_by
from .._typing import ArrayLike, Bools, Floats, Mask
from . import validate

__all__ = ["Expectation", "Operator", "fields_of"]

Expectation = Callable[[Any], Any]
"""From values `[S]` to their means over the next states, `[S, A]`, in operations of JAX."""
TRIALS = 4
"""How many random values show that an expectation is linear and takes means."""
TOLERANCE = 1e-9
"""How far from linear it may be for values between 0 and 1: rounding is less."""


class Operator:
    """The probabilities of an MDP as an operator: `operator @ v` is the mean of the values."""

    def __init__(self, expectation: Expectation, shape: tuple[int, int, int]) -> None:
        self.expectation = expectation
        self.shape = shape
        """`(S, A, K)`, as an array's; `K` is the most numbers that one mean adds up."""
        self.size = math.prod(shape)
        self.scale = np.ones(shape[:2])
        """`[S, A]`, what the means are multiplied by: 0 in terminal states and for actions that are
        not allowed, and otherwise 1 but for rounding."""

    def __len__(self) -> int:
        return self.shape[0]

    def __matmul__(self, v: ArrayLike) -> Floats:
        with needed_by("MDP.from_operator", "jax"):
            jax = importlib.import_module("jax")
        with jax.enable_x64(True):
            means = np.asarray(self.expectation(jax.numpy.asarray(v, np.float64)))
        if means.shape != self.shape[:2] or means.dtype != np.float64:
            rule = f"`expectation` must give float64 with the shape {self.shape[:2]}"
            raise ValueError(f"{rule}, got {means.dtype} with {means.shape}")
        return self.scale * means

    def __array__(self, *arguments: object, **options: object) -> NoReturn:
        _raise()

    def __getitem__(self, index: object) -> NoReturn:
        _raise()


def _raise() -> NoReturn:
    raise ValueError("`mdp` must have an array of probabilities for this, got one from an operator")


def fields_of(
    expectation: Expectation,
    rewards: ArrayLike,
    discount: float,
    allowed: Mask,
    terminal: Mask,
    branches: int | None,
) -> dict[str, Any]:
    """The fields of an `MDP` from the arguments of `MDP.from_operator`."""
    checks.function("expectation", expectation)
    earned = checks.numbers("rewards", rewards)
    if earned.ndim != 2 or 0 in earned.shape:
        raise ValueError(f"`rewards` must have the shape (states, actions), got {earned.shape}")
    n_states, n_actions = earned.shape
    discount = checks.real("discount", discount, 0, 1)
    given = checks.mask("allowed", allowed, earned.shape)
    ends = checks.mask("terminal", terminal, earned.shape[:1])
    ends = np.zeros(n_states, np.bool_) if ends is None else ends
    k = n_states if branches is None else checks.whole("branches", branches, 1)
    available = np.broadcast_to(~ends[:, None], earned.shape)
    if given is not None:
        given = given | ends[:, None]
        left = given.sum(1)
        checks.raise_where(left == 0, "`allowed` must leave an action", left)
        available = available & given
    earned = np.where(available, earned, 0.0)
    checks.finite("rewards", earned)

    operator = Operator(expectation, (n_states, n_actions, k))
    operator.scale = available.astype(np.float64)
    sums = operator @ np.ones(n_states)
    _check_means(operator, sums)
    rounded = available & (abs(sums - 1) <= validate.ROW_SUM_TOLERANCE)
    operator.scale[rounded] /= sums[rounded]
    return {
        "successors": None,
        "probabilities": operator,
        "rewards": validate.stored(earned),
        "discount": discount,
        "allowed": None if given is None or given.all() else validate.stored(given),
        "terminal": validate.stored(ends),
        "state_labels": None,
        "action_labels": None,
    }


def _check_means(operator: Operator, sums: Floats) -> None:
    """Raise unless it is linear and takes means, as far as a few random values show."""
    high = 1 + validate.ROW_SUM_TOLERANCE
    bad: Bools = np.logical_not((sums >= -TOLERANCE) & (sums <= high))  # NaN too
    checks.raise_where(bad, "`expectation` must give at most 1 for values of 1", sums)
    rng = np.random.default_rng(0)
    for _ in range(TRIALS):
        u, v = rng.random((2, len(operator))) ** rng.choice([1.0, 8.0, 64.0])
        of_u, of_v, of_both = operator @ u, operator @ v, operator @ (u - 2 * v)
        wrong = ~(abs(of_both - (of_u - 2 * of_v)) <= 4 * TOLERANCE)
        checks.raise_where(wrong, "`expectation` must be linear", of_both)
        wrong = ~((of_u >= -TOLERANCE) & (of_u <= sums + TOLERANCE))
        checks.raise_where(wrong, "`expectation` must give means of values from 0 to 1", of_u)
