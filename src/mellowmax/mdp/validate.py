"""What makes arrays an MDP: rows that sum to 1, successors that exist, policies that end.

`available`, `[S, A]`, are the actions that can be taken: those allowed in states that are not
terminal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .._common.checks import integers, raise_where
from .._typing import ArrayLike, Bools, Floats, Integers, Shape

__all__ = [
    "ROW_SUM_TOLERANCE",
    "absorbing",
    "distributions",
    "endless_pair",
    "like",
    "successor_indices",
]

ROW_SUM_TOLERANCE = 1e-6
"""How far from 1 the sum of a row may be; within it, rows are rescaled to sum to 1."""


def successor_indices(values: ArrayLike, shape: Shape) -> Integers:
    """Check where each branch leads: a state, or the number of states for the end."""
    result = integers("successors", values, shape)
    bad = (result < 0) | (result > shape[0])
    raise_where(bad, f"`successors` must be in [0, {shape[0]}]", result)
    return result.astype(np.int32, copy=False)


def distributions(probabilities: Floats, available: Bools) -> None:
    """Check that the rows of `[S, A, K]` are probabilities, and sum to 1 where available."""
    bad = ~((probabilities >= 0) & (probabilities <= 1 + ROW_SUM_TOLERANCE))  # NaN too
    raise_where(bad, "`probabilities` must be numbers in [0, 1]", probabilities)
    sums = probabilities.sum(-1)
    bad = (abs(sums - 1) > ROW_SUM_TOLERANCE) & available
    raise_where(bad, "`probabilities` must sum to 1", sums)


def like(rows: Bools, values: npt.NDArray[Any]) -> Bools:
    """Rows `[S, A]`, with one more axis where values have one: `[S, A]` or `[S, A, K]`."""
    return rows if values.ndim == 2 else rows[..., None]


def absorbing(
    successors: Integers | None, probabilities: Floats, rewards: Floats, allowed: Bools
) -> Bools:
    """`[S]`: states where every action stays or ends the episode, and none earns a reward.

    They are worth 0, as terminal states are.
    """
    n_states = len(probabilities)
    leads = np.arange(n_states) if successors is None else successors
    leaves = (leads != np.arange(n_states)[:, None, None]) & (leads != n_states)
    moves = (leaves & (probabilities != 0)).any(-1)
    earns = rewards != 0 if rewards.ndim == 2 else ((rewards != 0) & (probabilities != 0)).any(-1)
    result: Bools = ~((moves | earns) & allowed).any(1) & allowed.any(1)
    # Not where a row is neither a distribution nor empty: that is an error to be found.
    rows, ignored = probabilities[result], ~allowed[result]
    with np.errstate(invalid="ignore"):
        sums = rows.sum(-1)
    full = (rows >= 0).all(-1) & (abs(sums - 1) <= ROW_SUM_TOLERANCE)
    empty = (rows == 0).all(-1)
    result[result] = (full | ignored).all(1) | (empty | ignored).all(1)
    return result


def endless_pair(
    successors: Integers | None, probabilities: Floats, available: Bools
) -> tuple[int, int] | None:
    """A state and an action from which some policy never ends, or None.

    It goes backwards from the end. A pair of a state and an action from which the end can be
    reached is struck out; a state whose every pair is struck out counts as an end from then on.
    Each transition is looked at once. What is left at last are the pairs of a policy that never
    ends.
    """
    n_states, n_actions = available.shape
    state, action, branch = np.nonzero(probabilities)
    lead = branch if successors is None else successors[state, action, branch]
    order = np.argsort(lead, kind="stable")
    sources = (state * n_actions + action)[order]
    starts = np.searchsorted(lead[order], np.arange(n_states + 2))

    alive = available.reshape(-1).copy()
    left = available.sum(1)
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
