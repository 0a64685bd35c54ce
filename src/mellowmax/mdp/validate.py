"""What makes arrays an MDP: rows that sum to 1, successors that exist, policies that end."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .._common.checks import integers, raise_where

__all__ = [
    "ROW_SUM_TOLERANCE",
    "absorbing",
    "distributions",
    "endless",
    "like",
    "successor_indices",
]

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
ROW_SUM_TOLERANCE = 1e-6
"""How far from 1 the sum of a row may be; within it, rows are rescaled to sum to 1."""


def successor_indices(values: Any, shape: tuple[int, ...]) -> npt.NDArray[np.int32]:
    """Where each branch leads: a state, or the number of states for the end."""
    result = integers("successors", values, shape)
    bad = (result < 0) | (result > shape[0])
    raise_where(bad, f"`successors` must be in [0, {shape[0]}]", result)
    return result.astype(np.int32, copy=False)


def distributions(probabilities: Floats, there: Bools) -> None:
    """Rows of `[S, A, K]` that are there hold probabilities that sum to 1; the others hold 0."""
    bad = ~((probabilities >= 0) & (probabilities <= 1 + ROW_SUM_TOLERANCE))  # NaN too
    raise_where(bad, "`probabilities` must be numbers in [0, 1]", probabilities)
    sums = probabilities.sum(-1)
    bad = (abs(sums - 1) > ROW_SUM_TOLERANCE) & there
    raise_where(bad, "`probabilities` must sum to 1", sums)


def like(rows: Bools, values: npt.NDArray[Any]) -> Bools:
    """`[S, A]` so that it broadcasts against `[S, A]` or `[S, A, K]`."""
    return rows if values.ndim == 2 else rows[..., None]


def absorbing(
    successors: npt.NDArray[np.int32] | None, probabilities: Floats, rewards: Floats, there: Bools
) -> Bools:
    """States where every action stays or ends, with no reward: worth 0, as terminal ones are."""
    n_states = len(probabilities)
    leads = np.arange(n_states) if successors is None else successors
    leaves = (leads != np.arange(n_states)[:, None, None]) & (leads != n_states)
    goes_on = (leaves & (probabilities != 0)).any(-1)
    earns = rewards != 0 if rewards.ndim == 2 else ((rewards != 0) & (probabilities != 0)).any(-1)
    result: Bools = ~((goes_on | earns) & there).any(1) & there.any(1)
    # Rows that are neither distributions nor empty must not hide here: they are errors.
    rows, ignored = probabilities[result], ~there[result]
    with np.errstate(invalid="ignore"):
        sums = rows.sum(-1)
    full = (rows >= 0).all(-1) & (abs(sums - 1) <= ROW_SUM_TOLERANCE)
    empty = (rows == 0).all(-1)
    result[result] = (full | ignored).all(1) | (empty | ignored).all(1)
    return result


def endless(
    successors: npt.NDArray[np.int32] | None, probabilities: Floats, usable: Bools
) -> tuple[int, int] | None:
    """A state and an action from which some policy never ends, or None.

    Strikes out the pairs that can lead to where every policy ends, then the states whose every pair
    is struck out, and so on backwards; each transition is looked at once.
    """
    n_states, n_actions = usable.shape
    state, action, branch = np.nonzero(probabilities)
    lead = branch if successors is None else successors[state, action, branch]
    order = np.argsort(lead, kind="stable")
    sources = (state * n_actions + action)[order]
    starts = np.searchsorted(lead[order], np.arange(n_states + 2))

    alive = usable.reshape(-1).copy()
    left = usable.sum(1)
    ended = np.append(np.flatnonzero(left == 0), n_states)
    while ended.size:
        counts = starts[ended + 1] - starts[ended]
        skipped = np.cumsum(counts) - counts
        into = np.arange(counts.sum()) + np.repeat(starts[ended] - skipped, counts)
        struck = np.unique(sources[into])
        struck = struck[alive[struck]]
        alive[struck] = False
        touched, how_many = np.unique(struck // n_actions, return_counts=True)
        left[touched] -= how_many
        ended = touched[left[touched] == 0]
    if not alive.any():
        return None
    first = int(alive.argmax())
    return first // n_actions, first % n_actions
