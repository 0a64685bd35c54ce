"""Lists of transitions: out of matrices, and into padded arrays.

Every sparse form of an MDP becomes a list of transitions first. A transition has the number of its
pair of a state and an action, `s * A + a`, its successor, and a probability or a reward.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NotRequired, TypeAlias, TypedDict, cast

import numpy as np
import numpy.typing as npt

from .._common import checks
from .._typing import ArrayLike, Floats, Integers, Mask
from .validate import ROW_SUM_TOLERANCE

if TYPE_CHECKING:
    from scipy.sparse import sparray, spmatrix

__all__ = [
    "Arrays",
    "Branches",
    "Entries",
    "Matrices",
    "SparseMatrix",
    "check_sizes",
    "coordinates",
    "dense",
    "entries_of",
    "is_sparse",
    "matrices_of",
    "matrix_of",
    "padded",
    "pair_numbers",
    "rewards_by_pair",
    "rewards_of",
    "sizes_of",
]


SparseMatrix: TypeAlias = "sparray | spmatrix"
"""One of SciPy's sparse matrices or arrays, in any format."""
Matrix: TypeAlias = "SparseMatrix | Floats"
Matrices: TypeAlias = "SparseMatrix | ArrayLike | Sequence[SparseMatrix | ArrayLike]"
"""A matrix, or one for each action, sparse or dense."""
Branches: TypeAlias = Sequence[tuple[float, int, float] | tuple[float, int, float, bool]]
"""`(probability, successor, reward)` of each branch, or that and whether it ends the episode."""
Indices: TypeAlias = npt.NDArray[np.integer[Any]]


class Arrays(TypedDict):
    """The arguments of `MDP` without the discount."""

    successors: Integers | None
    probabilities: Floats
    rewards: Floats
    allowed: NotRequired[Mask]
    terminal: NotRequired[Mask]


class Entries(NamedTuple):
    """What matrices hold, as a list: `values[i]` is that of `pairs[i]` and `successors[i]`."""

    pairs: Indices
    successors: Indices
    values: Floats
    n_states: int
    n_actions: int


def is_sparse(matrix: object) -> bool:
    """Is it one of SciPy's sparse matrices or arrays?"""
    return hasattr(matrix, "tocoo")


def dense(matrix: Matrix) -> Floats:
    """A matrix as a NumPy array."""
    return np.asarray(matrix if isinstance(matrix, np.ndarray) else matrix.toarray(), np.float64)


def matrix_of(name: str, values: SparseMatrix | ArrayLike) -> Matrix:
    """A sparse matrix as it is, or an array of numbers."""
    return cast("Matrix", values) if is_sparse(values) else checks.numbers(name, values)


def matrices_of(name: str, values: Matrices) -> list[Matrix] | Matrix:
    """A list of matrices, one for each action, or one array or sparse matrix of any shape."""
    if is_sparse(values):
        return cast("Matrix", values)
    if isinstance(values, list | tuple) or getattr(values, "dtype", None) == np.object_:
        items = cast(Sequence[Any], values)  # an array of objects is one too
        parts = [matrix_of(name, part) for part in items]
        if any(part.ndim == 2 for part in parts):
            return parts
    result = checks.numbers(name, values)
    return list(result) if result.ndim == 3 else result


def sizes_of(name: str, matrices: list[Matrix] | Matrix) -> tuple[int, int]:
    """`(n_states, n_actions)` of what `matrices_of` gives."""
    if not isinstance(matrices, list):
        shape = matrices.shape
        if len(shape) != 2 or 0 in shape or shape[0] % shape[1]:
            rule = f"`{name}` must have the shape (states * actions, states)"
            raise ValueError(f"{rule} or be a list of (states, states), got {shape}")
        return shape[1], shape[0] // shape[1]
    shape = matrices[0].shape
    for action, matrix in enumerate(matrices):
        if matrix.shape != shape or len(shape) != 2 or shape[0] != shape[1] or shape[0] == 0:
            rule = f"`{name}` must have a square matrix of one size for each action"
            raise ValueError(f"{rule}, got {matrix.shape} for action {action} and {shape} for 0")
    return shape[0], len(matrices)


def check_sizes(rewards: list[Matrix] | Matrix, n_states: int, n_actions: int) -> None:
    """Rewards that are not by pair must be laid out as the transitions are."""
    if isinstance(rewards, list):
        known, got = True, f"{len(rewards)} matrices of {rewards[0].shape}"
    else:
        known, got = rewards.ndim == 2, f"{rewards.shape}"
    if not known or sizes_of("rewards", rewards) != (n_states, n_actions):
        rule = f"`rewards` must have the shape {(n_states, n_actions)} or that of `transitions`"
        raise ValueError(f"{rule}, got {got}")


def coordinates(name: str, matrix: Matrix) -> tuple[Indices, Indices, Floats]:
    """The rows, columns and values of what is not 0 in a matrix."""
    if isinstance(matrix, np.ndarray):
        rows, columns = np.nonzero(matrix)
        return rows, columns, matrix[rows, columns]
    by_row = matrix.tocsr(copy=True)
    by_row.sum_duplicates()
    entries = by_row.tocoo()
    return entries.row, entries.col, checks.numbers(name, entries.data)


def entries_of(name: str, matrices: list[Matrix] | Matrix) -> Entries:
    """The list of what matrices hold."""
    n_states, n_actions = sizes_of(name, matrices)
    if not isinstance(matrices, list):
        return Entries(*coordinates(name, matrices), n_states, n_actions)
    parts = [coordinates(name, matrix) for matrix in matrices]
    pairs = [
        rows.astype(np.int64) * n_actions + action for action, (rows, _, _) in enumerate(parts)
    ]
    successors = np.concatenate([columns for _, columns, _ in parts])
    values = np.concatenate([values for _, _, values in parts])
    return Entries(np.concatenate(pairs), successors, values, n_states, n_actions)


def rewards_by_pair(rewards: list[Matrix] | Matrix, n_states: int, n_actions: int) -> Floats | None:
    """Rewards `[S]` or `[S, A]` as `[S, A]`; None for those that differ by transition."""
    if isinstance(rewards, list) or rewards.shape not in ((n_states,), (n_states, n_actions)):
        return None
    result = checks.numbers("rewards", dense(rewards))
    return np.broadcast_to(result.reshape(n_states, -1), (n_states, n_actions))


def rewards_of(rewards: Matrices, entries: Entries) -> Floats:
    """The reward of each entry, or `[S, A]` where they are by pair."""
    n_states, n_actions = entries.n_states, entries.n_actions
    given = matrices_of("rewards", rewards)
    by_pair = rewards_by_pair(given, n_states, n_actions)
    if by_pair is not None:
        return by_pair
    check_sizes(given, n_states, n_actions)
    earned = entries_of("rewards", given)
    keys = _keys(earned)
    order = np.argsort(keys)
    keys, values = np.append(keys[order], -1), np.append(earned.values[order], 0.0)
    wanted = _keys(entries)
    at = np.searchsorted(keys[:-1], wanted)
    return np.where(keys[at] == wanted, values[at], 0.0)  # what is not stored is 0


def _keys(entries: Entries) -> Indices:
    """One number for each pair and successor; the end is a successor too."""
    return entries.pairs.astype(np.int64) * (entries.n_states + 1) + entries.successors


def padded(entries: Entries, rewards: Floats) -> Arrays:
    """Arrays `[S, A, K]` from transitions in any order; `rewards` by transition or `[S, A]`.

    The probabilities of equal transitions add up, and their reward is the mean, weighted by them.
    What is no probability or no reward is left alone for `MDP` to find.
    """
    probabilities, n_states, n_actions = entries[2:]
    by_pair = rewards if rewards.ndim == 2 else None
    earned = np.zeros(probabilities.size) if by_pair is not None else rewards
    kept = probabilities != 0  # NaN too
    key = _keys(entries)[kept]
    probabilities, earned = probabilities[kept], earned[kept]
    if (key[1:] < key[:-1]).any():
        order = np.argsort(key, kind="stable")
        key, probabilities, earned = key[order], probabilities[order], earned[order]
    key, probabilities, earned = _merged(key, probabilities, earned)

    pairs, successors = np.divmod(key, n_states + 1)
    counts = np.bincount(pairs, minlength=n_states * n_actions)
    branches = np.arange(key.size) - (np.cumsum(counts) - counts)[pairs]
    if by_pair is None:
        by_pair = _same_in_each(pairs, earned, counts)
    # Branches come first in memory, as `MDP` stores them.
    shape = (max(1, int(counts.max())), n_states, n_actions)

    def scatter(values: npt.NDArray[Any], dtype: type) -> npt.NDArray[Any]:
        result: npt.NDArray[Any] = np.zeros((shape[0], counts.size), dtype)
        result[branches, pairs] = values
        return np.moveaxis(result.reshape(shape), 0, -1)

    return {
        "successors": scatter(successors, np.int32),
        "probabilities": scatter(probabilities, np.float64),
        "rewards": (
            scatter(earned, np.float64) if by_pair is None else by_pair.reshape(n_states, n_actions)
        ),
    }


def _merged(key: Indices, probabilities: Floats, rewards: Floats) -> tuple[Indices, Floats, Floats]:
    """One entry in place of each run of equal keys."""
    good = (probabilities > 0) & (probabilities <= 1 + ROW_SUM_TOLERANCE) & np.isfinite(rewards)
    repeats = (key[1:] == key[:-1]) & good[1:] & good[:-1]
    if not repeats.any():
        return key, probabilities, rewards
    starts = np.flatnonzero(np.append(True, ~repeats))
    sizes = np.diff(starts, append=key.size)
    totals = np.add.reduceat(probabilities, starts)
    single = sizes == 1
    with np.errstate(invalid="ignore"):  # entries that are not good
        weights = probabilities / np.repeat(totals, sizes)
        means = np.add.reduceat(weights * rewards, starts)
    # Rounding must not carry a mean of equal rewards away from them.
    means = np.clip(
        means, np.minimum.reduceat(rewards, starts), np.maximum.reduceat(rewards, starts)
    )
    return key[starts], totals, np.where(single, rewards[starts], means)


def _same_in_each(pairs: Indices, rewards: Floats, counts: Indices) -> Floats | None:
    """The reward of each pair where all its transitions earn the same, or None."""
    result = np.zeros(counts.size)
    result[pairs] = rewards
    return result if (result[pairs] == rewards).all() else None


def pair_numbers(states: Indices, actions: Indices, n_states: int, n_actions: int) -> Indices:
    """The pairs of states and actions, all of which must be there."""
    sizes = {"states": (states, n_states), "actions": (actions, n_actions)}
    for name, (indices, size) in sizes.items():
        bad = (indices < 0) | (indices >= size)
        if bad.any():
            i = int(bad.argmax())
            rule = f"`{name}` must be in [0, {size - 1}]"
            raise ValueError(f"{rule}, got {indices[i]} at position {i}")
    return states.astype(np.int64) * n_actions + actions.astype(np.int64)
