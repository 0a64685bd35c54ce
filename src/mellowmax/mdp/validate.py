"""What makes arrays an MDP: rows that sum to 1, successors that exist, policies that end.

`available`, `[S, A]`, are the actions that can be taken: those allowed in states that are not
terminal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .._common import checks
from .._common.checks import integers, raise_where
from .._typing import ArrayLike, Bools, Floats, Integers, Mask, Shape

__all__ = [
    "ROW_SUM_TOLERANCE",
    "absorbing",
    "checked",
    "distributions",
    "endless_pair",
    "like",
    "stored",
    "successor_indices",
]

ROW_SUM_TOLERANCE = 1e-6
"""How far from 1 the sum of a row may be; within it, rows are rescaled to sum to 1."""


def checked(
    successors: ArrayLike | None,
    probabilities: ArrayLike,
    rewards: ArrayLike,
    discount: float,
    allowed: Mask = None,
    terminal: Mask = None,
    *,
    name: str = "probabilities",
) -> dict[str, Any]:
    """The fields of an `MDP` from its arguments; `name` is what the caller calls `probabilities`.

    Raises:
        TypeError: for what is no array of numbers.
        ValueError: for arrays that are no MDP.
    """
    p = checks.numbers(name, probabilities)
    if p.ndim != 3 or 0 in p.shape or (successors is None and p.shape[2] != p.shape[0]):
        last = "branches" if successors is not None else "states"
        note = ""
        if successors is None and p.ndim == 3 and p.shape[1] == p.shape[2]:
            note = "; `MDP.from_mdptoolbox` takes (actions, states, states)"
        rule = f"`{name}` must have the shape (states, actions, {last})"
        raise ValueError(f"{rule}, got {p.shape}{note}")
    n_states, shape = len(p), p.shape
    r = checks.numbers("rewards", rewards)
    if r.shape not in (shape[:2], shape):
        rule = f"`rewards` must have the shape {shape[:2]} or {shape}"
        raise ValueError(f"{rule}, got {r.shape}")
    discount = checks.real("discount", discount, 0, 1)
    leads = None if successors is None else successor_indices(successors, shape)
    given = checks.mask("allowed", allowed, shape[:2])
    ends = checks.mask("terminal", terminal, shape[:1])

    available = np.ones(shape[:2], np.bool_) if given is None else given.copy()
    if ends is None:
        ends = absorbing(leads, p, r, available)
    available[ends] = False
    if not available.all():
        p = np.where(available[..., None], p, 0.0)
        r = np.where(like(available, r), r, 0.0)
    distributions(p, available, name)
    if r.ndim == 3:
        r = np.where(p > 0, r, 0.0)  # what cannot happen earns nothing
    checks.finite("rewards", r)
    if given is not None:
        given = given | ends[:, None]
        left = given.sum(1)
        raise_where(left == 0, "`allowed` must leave an action", left)

    sums = p.sum(-1)
    scale = np.where(available & (abs(sums - 1) > 1e-12), sums, 1.0)
    if (scale != 1.0).any():
        p = p / scale[..., None]
    if leads is not None:
        own = np.arange(n_states, dtype=np.int32)[:, None, None]
        leads = stored(np.where(p > 0, leads, own), branches_first=True)
    sparse = leads is not None
    return {
        "successors": leads,
        "probabilities": stored(p, branches_first=sparse),
        "rewards": stored(r, branches_first=sparse and r.ndim == 3),
        "discount": discount,
        "allowed": None if given is None or given.all() else stored(given),
        "terminal": stored(ends),
    }


def stored(array: npt.NDArray[Any], branches_first: bool = False) -> Any:
    """A read-only copy, aligned so that JAX can share it.

    With `branches_first` it is a view of `[S, A, K]` on memory laid out as `[K, S, A]`, so that a
    sweep adds up contiguous arrays `[S, A]`, one for each branch.
    """
    source = np.moveaxis(array, -1, 0) if branches_first else array
    dtype = np.dtype(np.int32) if source.dtype.kind in "iu" else source.dtype
    memory = np.empty(source.size * dtype.itemsize + 64, np.uint8)
    start = -memory.ctypes.data % 64
    copy = memory[start : start + source.size * dtype.itemsize].view(dtype).reshape(source.shape)
    copy[...] = source
    copy.flags.writeable = False
    return np.moveaxis(copy, 0, -1) if branches_first else copy


def successor_indices(values: ArrayLike, shape: Shape) -> Integers:
    """Check where each branch leads: a state, or the number of states for the end."""
    result = integers("successors", values, shape)
    bad = (result < 0) | (result > shape[0])
    raise_where(bad, f"`successors` must be in [0, {shape[0]}]", result)
    return result.astype(np.int32, copy=False)


def distributions(probabilities: Floats, available: Bools, name: str) -> None:
    """Check that the rows of `[S, A, K]` are probabilities, and sum to 1 where available."""
    bad = ~((probabilities >= 0) & (probabilities <= 1 + ROW_SUM_TOLERANCE))  # NaN too
    raise_where(bad, f"`{name}` must be numbers in [0, 1]", probabilities)
    sums = probabilities.sum(-1)
    bad = (abs(sums - 1) > ROW_SUM_TOLERANCE) & available
    raise_where(bad, f"`{name}` must sum to 1", sums)


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
