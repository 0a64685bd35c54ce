"""Other forms of an MDP to the arguments of `MDP`, and back.

Every sparse form becomes a list of transitions first, and `transitions.padded` makes arrays of it.
"""

from __future__ import annotations

import importlib
import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .._common import checks
from .._common.extras import needed_by
from .._common.gymnasium_ids import make
from .._typing import ArrayLike, Floats, Mask
from .transitions import (
    Arrays,
    Branches,
    Entries,
    Matrices,
    SparseMatrix,
    check_sizes,
    coordinates,
    dense,
    entries_of,
    is_sparse,
    matrices_of,
    matrix_of,
    padded,
    pair_numbers,
    rewards_by_pair,
    rewards_of,
    sizes_of,
)
from .validate import ROW_SUM_TOLERANCE

if TYPE_CHECKING:
    from gymnasium import Env
    from scipy.sparse import csr_array

    from .model import MDP

__all__ = [
    "from_arrays",
    "from_coo",
    "from_function",
    "from_gymnasium",
    "from_mdptoolbox",
    "from_sparse",
    "from_state_actions",
    "to_numpy",
    "to_scipy",
]

MOST_STATES = 2**31 - 2
"""Successors are stored as int32, and one index more is the end."""


def from_arrays(
    transitions: ArrayLike, rewards: ArrayLike, allowed: Mask, terminal: Mask
) -> Arrays:
    """From dense arrays; an action whose reward is -inf is not allowed."""
    probabilities = checks.numbers("transitions", transitions)
    earned = checks.numbers("rewards", rewards)
    possible = earned != -np.inf
    if earned.ndim == 2 and not possible.all():
        ends = checks.mask("terminal", terminal, earned.shape[:1])
        left = possible.sum(1)
        none = left == 0 if ends is None else (left == 0) & ~ends
        checks.raise_where(none, "`rewards` must leave an action that is not -inf", left)
        given = checks.mask("allowed", allowed, earned.shape)
        allowed = possible if given is None else possible & given
    return {
        "successors": None,
        "probabilities": probabilities,
        "rewards": earned,
        "allowed": allowed,
        "terminal": terminal,
    }


def from_sparse(transitions: Matrices, rewards: Matrices) -> Arrays:
    """From one matrix `[S * A, S]`, or from a list of matrices `[S, S]`, one for each action."""
    entries = entries_of("transitions", matrices_of("transitions", transitions))
    return padded(entries, rewards_of(rewards, entries))


def from_mdptoolbox(transitions: Matrices, rewards: Matrices) -> Arrays:
    """From `[A, S, S]` or a list of `A` matrices; dense where none of them is sparse."""
    matrices = matrices_of("transitions", transitions)
    if not isinstance(matrices, list):
        raise ValueError(
            f"`transitions` must have the shape (actions, states, states), got {matrices.shape}"
        )
    if any(is_sparse(matrix) for matrix in matrices):
        return from_sparse(matrices, rewards)
    n_states, n_actions = sizes_of("transitions", matrices)
    given = matrices_of("rewards", rewards)
    by_pair = rewards_by_pair(given, n_states, n_actions)
    if by_pair is None:
        check_sizes(given, n_states, n_actions)
        if isinstance(given, list):
            by_pair = np.stack([dense(matrix) for matrix in given], axis=1)
        else:
            by_pair = dense(given).reshape(n_states, n_actions, n_states)
    probabilities = np.stack([dense(matrix) for matrix in matrices], axis=1)
    return {"successors": None, "probabilities": probabilities, "rewards": by_pair}


def from_state_actions(
    rewards: ArrayLike, transitions: SparseMatrix | ArrayLike, states: ArrayLike, actions: ArrayLike
) -> Arrays:
    """From a row of `transitions` and a reward for each of the pairs listed."""
    rewards = checks.numbers("rewards", rewards)
    if rewards.ndim != 1 or rewards.size == 0:
        raise ValueError(f"`rewards` must have one entry for each pair, got {rewards.shape}")
    matrix = matrix_of("transitions", transitions)
    if matrix.ndim != 2 or matrix.shape[0] != rewards.size or matrix.shape[1] == 0:
        rule = f"`transitions` must have the shape ({rewards.size}, states)"
        raise ValueError(f"{rule}, got {matrix.shape}")
    n_states = matrix.shape[1]
    states = checks.integers("states", states, rewards.shape)
    actions = checks.integers("actions", actions, rewards.shape)
    n_actions = max(1, int(actions.max()) + 1)
    pairs = pair_numbers(states, actions, n_states, n_actions)
    listed = np.bincount(pairs, minlength=n_states * n_actions)
    if (listed > 1).any():
        state, action = divmod(int((listed > 1).argmax()), n_actions)
        rule = "`states` and `actions` must list a pair once"
        raise ValueError(f"{rule}, got state {state}, action {action} more than once")

    possible = rewards != -np.inf
    rows, successors, values = coordinates("transitions", matrix)
    entries = Entries(pairs[rows], successors, values, n_states, n_actions)
    by_pair, allowed = np.zeros(listed.size), np.zeros(listed.size, np.bool_)
    by_pair[pairs[possible]] = rewards[possible]
    allowed[pairs[possible]] = True
    shape = (n_states, n_actions)
    none = ~allowed.reshape(shape).any(1)
    if none.any():
        rule = "`states` and `actions` must list an action that is allowed for every state"
        raise ValueError(f"{rule}, got none for state {int(none.argmax())}")
    return padded(entries, by_pair.reshape(shape)) | {"allowed": allowed.reshape(shape)}


def from_coo(
    states: ArrayLike,
    actions: ArrayLike,
    successors: ArrayLike,
    probabilities: ArrayLike,
    rewards: ArrayLike,
    n_states: int | None = None,
    n_actions: int | None = None,
    terminal: Mask = None,
) -> Arrays:
    """From a list of transitions."""
    states = checks.integers("states", states)
    if states.ndim != 1:
        raise ValueError(f"`states` must have one dimension, got the shape {states.shape}")
    actions = checks.integers("actions", actions, states.shape)
    successors = checks.integers("successors", successors, states.shape)
    values = {
        "probabilities": checks.numbers("probabilities", probabilities),
        "rewards": checks.numbers("rewards", rewards),
    }
    for name, array in values.items():
        if array.shape != states.shape:
            rule = f"`{name}` must have the shape {states.shape} of `states`"
            raise ValueError(f"{rule}, got {array.shape}")
    if states.size == 0 and (n_states is None or n_actions is None):
        raise ValueError(
            "`n_states` and `n_actions` must be given where no transition is, got None"
        )
    if n_states is None:
        n_states = max(1, int(states.max()) + 1, int(successors.max()) + 1)
    if n_actions is None:
        n_actions = max(1, int(actions.max()) + 1)
    n_states = checks.whole("n_states", n_states, 1, MOST_STATES)
    n_actions = checks.whole("n_actions", n_actions, 1)
    pairs = pair_numbers(states, actions, n_states, n_actions)
    bad = (successors < 0) | (successors > n_states)
    if bad.any():
        i = int(bad.argmax())
        place = f"state {states[i]}, action {actions[i]}"
        raise ValueError(f"`successors` must be in [0, {n_states}], got {successors[i]} in {place}")

    entries = Entries(
        pairs, successors.astype(np.int64), values["probabilities"], n_states, n_actions
    )
    result = padded(entries, values["rewards"])
    listed = np.bincount(pairs, minlength=n_states * n_actions).reshape(n_states, n_actions) > 0
    without = listed.sum(1) == 0
    ends = checks.mask("terminal", terminal, (n_states,))
    # A pair that is listed with probability 0 alone is an error, not an action that is not there.
    empty = listed & (result["probabilities"] == 0).all(-1)
    bad = empty if ends is None else empty & ~ends[:, None]
    checks.raise_where(bad, "`probabilities` must sum to 1", np.zeros(bad.shape))
    # The rows of a state without any transition are 0, by which it is found to be terminal.
    result["allowed"] = listed | without[:, None]
    result["terminal"] = None if ends is None else ends | without
    return result


def from_function(
    transition: Callable[[int, int], Branches],
    n_states: int,
    n_actions: int,
    name: str = "transition",
) -> Arrays:
    """From `transition(s, a)`, which lists `(probability, successor, reward)`, or with `ends`."""
    if not callable(transition):
        raise TypeError(f"`{name}` must be a function of a state and an action, got {transition!r}")
    n_states = checks.whole("n_states", n_states, 1, MOST_STATES)
    n_actions = checks.whole("n_actions", n_actions, 1)
    rows: list[tuple[int, int, int, float, float]] = []
    for state in range(n_states):
        for action in range(n_actions):
            branches = transition(state, action)
            rows.extend(_rows_of(branches, state, action, n_states, name))
    columns = zip(*rows, strict=True) if rows else ((),) * 5
    states, actions, successors, probabilities, rewards = map(np.array, columns)
    return from_coo(
        states, actions, successors, probabilities, rewards, n_states=n_states, n_actions=n_actions
    )


def _rows_of(
    branches: Branches, state: int, action: int, n_states: int, name: str
) -> list[tuple[int, int, int, float, float]]:
    """The transitions of a state and an action: where it starts, where it leads, and what for."""
    place = f"in state {state}, action {action}"
    try:
        listed = list(branches)
    except TypeError as error:
        rule = f"`{name}` must give a list, an empty one where the action is not allowed"
        raise TypeError(f"{rule}, got {branches!r} {place}") from error
    rows = []
    for branch in listed:
        try:
            probability, successor, reward, *ends = branch
            if len(ends) > 1:
                raise ValueError("too many")
            leads = n_states if ends and ends[0] else operator.index(successor)
            row = (state, action, leads, float(probability), float(reward))
        except (TypeError, ValueError) as error:
            rule = f"`{name}` must list (probability, successor, reward)"
            raise ValueError(f"{rule} or that and `ends`, got {branch!r} {place}") from error
        if not 0 <= leads <= n_states:
            rule = f"the successors of `{name}` must be in [0, {n_states}]"
            raise ValueError(f"{rule}, got {leads} {place}")
        if not 0 <= row[3] <= 1 + ROW_SUM_TOLERANCE:
            rule = f"the probabilities of `{name}` must be numbers in [0, 1]"
            raise ValueError(f"{rule}, got {probability} {place}")
        if not math.isfinite(row[4]):
            raise ValueError(f"the rewards of `{name}` must be finite, got {reward} {place}")
        rows.append(row)
    total = sum(row[3] for row in rows)
    if rows and abs(total - 1) > ROW_SUM_TOLERANCE:
        rule = f"the probabilities of `{name}` must sum to 1"
        raise ValueError(f"{rule}, got {total:.10g} {place}")
    return rows


def from_gymnasium(environment: Env[Any, Any] | str) -> Arrays:
    """From the table `P` of an environment, or of one made from its id for the purpose."""
    if not isinstance(environment, str):
        return _from_table(environment, repr(environment))
    made = make(environment)
    try:
        return _from_table(made, repr(environment))
    finally:
        made.close()


def _from_table(environment: Env[Any, Any], name: str) -> Arrays:
    model = getattr(environment, "unwrapped", environment)
    table = getattr(model, "P", None)
    n_states = getattr(getattr(model, "observation_space", None), "n", None)
    n_actions = getattr(getattr(model, "action_space", None), "n", None)
    if table is None or n_states is None or n_actions is None:
        rule = "`environment` must have discrete states and actions and its transitions as `P`"
        raise ValueError(f"{rule}, got {name}")

    def transition(state: int, action: int) -> Branches:
        try:
            branches: Branches = table[state][action]
            return branches
        except (LookupError, TypeError) as error:
            place = f"state {state}, action {action}"
            raise ValueError(
                f"`environment.P` must have every pair, got none for {place}"
            ) from error

    return from_function(transition, n_states, n_actions, "environment.P")


def to_numpy(mdp: MDP) -> Floats:
    """The transitions as a new dense array `[S, A, S]`."""
    if mdp.successors is None:
        return np.array(mdp.probabilities)
    states, actions, branches = np.nonzero(
        (mdp.probabilities > 0) & (mdp.successors < mdp.n_states)
    )
    at = (states, actions, branches)
    result = np.zeros((mdp.n_states, mdp.n_actions, mdp.n_states))
    np.add.at(result, (states, actions, mdp.successors[at]), mdp.probabilities[at])
    return result


def to_scipy(mdp: MDP) -> csr_array:
    """The transitions as SciPy's `csr_array`, `[S * A, S]`."""
    with needed_by("MDP.to_scipy", "jax"):
        sparse = importlib.import_module("scipy.sparse")
    states, actions, branches = np.nonzero(mdp.probabilities)
    values = mdp.probabilities[states, actions, branches]
    columns = branches if mdp.successors is None else mdp.successors[states, actions, branches]
    on = columns < mdp.n_states  # not the end
    rows = (states * mdp.n_actions + actions)[on]
    shape = (mdp.n_states * mdp.n_actions, mdp.n_states)
    return sparse.csr_array((values[on], (rows, columns[on])), shape=shape)
