"""Function approximation by an averager: the MDP that it makes of another one.

An averager knows the values of `K` anchors and gives any state a weighted mean of them,

    V(s) = sum_k weights[s, k] v[k],   weights >= 0,   sum_k weights[s, k] <= 1,

as interpolation, aggregation of states and nearest neighbours do (Gordon, 1995). Fitted value
iteration sets the values of the anchors by a sweep and those of all other states by the averager,

    v[i] <- f(r(i, .) + discount * sum_t P(t | i, .) sum_k weights[t, k] v[k]),

where `i` stands for the state of anchor `i`. This is a sweep of an MDP whose states are the
anchors: from an anchor it goes to a state `t` as before, and then to anchor `k` with the
probability `weights[t, k]`. What a row lacks to 1 is the probability that the episode ends.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import numpy as np

from .._common import checks
from .._typing import ArrayLike
from .transitions import (
    Arrays,
    Entries,
    Indices,
    Matrix,
    SparseMatrix,
    coordinates,
    is_sparse,
    matrix_of,
    padded,
)
from .validate import ROW_SUM_TOLERANCE

if TYPE_CHECKING:
    from .model import MDP

__all__ = ["averaged"]

NO_END = 1e-12
"""How far rounding may move the sum of a row."""


def averaged(mdp: MDP, weights: ArrayLike | SparseMatrix, anchors: ArrayLike | None) -> Arrays:
    """The MDP over the anchors."""
    averages = _averages(mdp, weights)
    n_anchors = averages.shape[1]
    states = _states(mdp, n_anchors, anchors)
    pairs = (states[:, None] * mdp.n_actions + np.arange(mdp.n_actions)).reshape(-1)
    if mdp.successors is None:
        moves = np.asarray(mdp.probabilities).reshape(-1, mdp.n_states)[pairs]
    else:
        moves = mdp.to_scipy()[0][pairs]
    rows, columns, values = coordinates("weights", moves @ averages)
    rest = 1 - np.bincount(rows, values, minlength=pairs.size)
    ends = np.flatnonzero(rest > NO_END)
    entries = Entries(
        np.append(rows, ends),
        np.append(columns, np.full(ends.size, n_anchors)),
        np.append(values, rest[ends]),
        n_anchors,
        mdp.n_actions,
    )
    arrays = padded(entries, mdp.expected_rewards[states])
    arrays["allowed"] = None if mdp.allowed is None else mdp.allowed[states]
    arrays["terminal"] = mdp.terminal[states]
    return arrays


def _averages(mdp: MDP, weights: ArrayLike | SparseMatrix) -> Matrix:
    """The weights, checked; 0 for terminal states, whose value is 0."""
    matrix = matrix_of("weights", weights)
    if matrix.ndim != 2 or matrix.shape[0] != mdp.n_states or matrix.shape[1] == 0:
        rule = f"`weights` must have the shape ({mdp.n_states}, anchors)"
        raise ValueError(f"{rule}, got {matrix.shape}")
    rows, columns, values = coordinates("weights", matrix)
    bad = ~(values >= 0)  # NaN too
    if bad.any():
        i = int(bad.argmax())
        rule = "`weights` must be numbers of at least 0"
        raise ValueError(f"{rule}, got {values[i]:.10g} in row {rows[i]}, column {columns[i]}")
    sums = np.bincount(rows, values, minlength=mdp.n_states)
    bad = sums > 1 + ROW_SUM_TOLERANCE
    if bad.any():
        row = int(bad.argmax())
        rule = "`weights` must have rows with a sum of at most 1"
        raise ValueError(f"{rule}, got {sums[row]:.10g} in row {row}")
    scale = np.where(sums > 1 - ROW_SUM_TOLERANCE, sums, 1.0)
    values = np.where(mdp.terminal[rows], 0.0, values / scale[rows])
    if is_sparse(matrix):
        sparse = importlib.import_module("scipy.sparse")
        return sparse.csr_array((values, (rows, columns)), shape=matrix.shape)
    result = np.zeros(matrix.shape)
    result[rows, columns] = values
    return result


def _states(mdp: MDP, n_anchors: int, anchors: ArrayLike | None) -> Indices:
    """The state of each anchor."""
    if anchors is None:
        if n_anchors > mdp.n_states:
            rule = f"`weights` must have at most {mdp.n_states} columns, one for each state"
            raise ValueError(f"{rule}, got {n_anchors}")
        return np.arange(n_anchors)
    states = checks.integers("anchors", anchors, (n_anchors,))
    bad = (states < 0) | (states >= mdp.n_states)
    if bad.any():
        i = int(bad.argmax())
        rule = f"`anchors` must be in [0, {mdp.n_states - 1}]"
        raise ValueError(f"{rule}, got {states[i]} at position {i}")
    return states.astype(np.int64)
