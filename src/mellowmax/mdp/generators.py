"""Examples of MDPs: the paper's two, and families of any size.

Every random one is made by `np.random.default_rng(seed)`: the same seed gives the same MDP.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from .._common import checks
from .._typing import Bools, Floats, Integers, Shape
from .model import MDP

__all__ = ["chain", "garnet", "grid_world", "random_mdp", "two_state"]

Seed: TypeAlias = int | Sequence[int] | np.random.SeedSequence | np.random.Generator
"""What `np.random.default_rng` takes."""


def two_state(*, printed: bool = False, discount: float = 0.98) -> MDP:
    """The MDP of figure 1: state 0 is s1, state 1 is s2, where the episode ends.

    | action | reward | stays in s1 | printed reward | printed probability |
    | --- | --- | --- | --- | --- |
    | 0 (a) | 0.12211 | 0.65867 | 0.122 | 0.66 |
    | 1 (b) | 0.03284 | 0.99075 | 0.033 | 0.99 |

    The labels that the figure prints are rounded. With them, Boltzmann's operator has several fixed
    points only for beta from 16.88 to 17.04; figure 4 shows them from 16.50 to 16.78, and the paper
    uses 16.55. The default values are fitted to figure 4; rounded, they are the printed ones.

    Args:
        printed: take the printed labels as they are?
        discount: in [0, 1].

    Examples:
        >>> two_state()
        MDP(states=2, actions=2, dense, discount=0.98, terminal=1)
        >>> print(two_state(printed=True).rewards[0])
        [0.122 0.033]
    """
    rewards = [0.122, 0.033] if printed else [0.12211, 0.03284]
    stays = [0.66, 0.99] if printed else [0.65867, 0.99075]
    transitions = [[[p, 1 - p] for p in stays], [[0.0, 1.0]] * 2]
    return MDP.from_arrays(transitions, [rewards, [0.0, 0.0]], discount, terminal=[False, True])


def random_mdp(
    seed: Seed, *, n_states: int | None = None, n_actions: int | None = None, discount: float = 0.98
) -> MDP:
    """A dense MDP as section 7.1 makes them.

    An entry of the transitions is uniform on [0, 0.01]; with probability 0.5 a Gaussian of mean 1
    and variance 0.1 is added, with probability 0.1 one of mean 100 and variance 1; then rows are
    divided by their sums. Rewards of `(s, a, s')` are made in the same way, divided by the largest
    and multiplied by 0.5. About one entry in 3,000 is negative, which the paper does not mention:
    as a probability it becomes 0 here (and a row of nothing but 0 uniform), as a reward it stays.

    Args:
        seed: of the random numbers.
        n_states: how many states; None to draw it uniformly from 2 to 10.
        n_actions: how many actions; None to draw it uniformly from 2 to 5.
        discount: in [0, 1]. Section 7.1 states none; 0.98 is that of figure 1.

    Examples:
        >>> random_mdp(0)
        MDP(states=9, actions=4, dense, discount=0.98)
        >>> print(random_mdp(0).rewards.max())
        0.5
    """
    rng = checks.generator("seed", seed)
    if n_states is None:
        n_states = int(rng.integers(2, 11))
    if n_actions is None:
        n_actions = int(rng.integers(2, 6))
    n_states = checks.whole("n_states", n_states, 1)
    n_actions = checks.whole("n_actions", n_actions, 1)
    shape = (n_states, n_actions, n_states)
    raw = np.maximum(_raw_entries(rng, shape), 0.0)
    raw[raw.sum(-1) == 0] = 1.0
    rewards = _raw_entries(rng, shape)
    return MDP.from_arrays(
        raw / raw.sum(-1, keepdims=True),
        0.5 * (rewards / rewards.max()),
        discount,
        terminal=np.zeros(n_states, np.bool_),
    )


def _raw_entries(rng: np.random.Generator, shape: Shape) -> Floats:
    entries = rng.uniform(0.0, 0.01, shape)
    entries += (rng.random(shape) < 0.5) * rng.normal(1.0, math.sqrt(0.1), shape)
    entries += (rng.random(shape) < 0.1) * rng.normal(100.0, 1.0, shape)
    return entries


def garnet(
    n_states: int, n_actions: int, branching: int, seed: Seed, *, discount: float = 0.99
) -> MDP:
    """A sparse random MDP of a given size: a Garnet.

    Every state and action has `branching` different successors, every such set as probable as any
    other. Their probabilities are the gaps between `branching - 1` uniform cuts of [0, 1]; rewards
    of `(s, a)` are standard normal.

    Args:
        n_states: how many states.
        n_actions: how many actions.
        branching: how many successors each state and action has, at most `n_states`.
        seed: of the random numbers.
        discount: in [0, 1].

    Examples:
        >>> garnet(1000, 4, 3, seed=0)
        MDP(states=1000, actions=4, branches=3, discount=0.99)

    References:
        Bhatnagar, Sutton, Ghavamzadeh and Lee, "Natural actor-critic algorithms" (2009), the
        appendix; first in Archibald, McKinnon and Thomas (1995).
    """
    n_states = checks.whole("n_states", n_states, 1)
    n_actions = checks.whole("n_actions", n_actions, 1)
    branching = checks.whole("branching", branching, 1, n_states)
    rng = checks.generator("seed", seed)
    shape = (n_states, n_actions, branching)
    successors = _distinct(rng, n_states, n_states * n_actions, branching).reshape(shape)
    cuts = np.sort(rng.random((*shape[:2], branching - 1)), axis=-1)
    return MDP(
        successors,
        np.diff(cuts, prepend=0.0, append=1.0),
        rng.standard_normal(shape[:2]),
        discount,
        terminal=np.zeros(n_states, np.bool_),
    )


def _distinct(rng: np.random.Generator, n_states: int, n_rows: int, size: int) -> Integers:
    """Rows of different states in ascending order, each set of them equally probable.

    Every step treats all states alike, so no set can be more probable than another.
    """
    if 2 * size > n_states:  # repeats would be drawn again and again; a key for each state is quick
        keys = rng.random((n_rows, n_states))
        return np.sort(keys.argsort(1)[:, :size].astype(np.int32), axis=1)
    result = np.sort(rng.integers(n_states, size=(n_rows, size), dtype=np.int32), axis=1)
    rows = np.arange(n_rows)
    while rows.size:
        some = result[rows]
        repeated = some[:, 1:] == some[:, :-1]
        rows, repeated, some = (part[repeated.any(1)] for part in (rows, repeated, some))
        # A new state is no repeat with probability 1/2 or more, so this ends after a few rounds.
        some[:, 1:][repeated] = rng.integers(n_states, size=int(repeated.sum()), dtype=np.int32)
        result[rows] = np.sort(some, axis=1)
    return result


def grid_world(
    layout: Sequence[str] | tuple[int, int],
    *,
    slip: float = 0.2,
    step_reward: float = -1.0,
    goal_reward: float = 0.0,
    discount: float = 0.99,
    walls: float = 0.0,
    seed: Seed = 0,
) -> MDP:
    """A grid to walk in, up, right, down or left (actions 0 to 3), until a goal is entered.

    A move goes where it should with probability `1 - slip`, and otherwise to one of the two sides,
    equally probable; one into a wall or off the grid stays. The states are the cells that are no
    walls, row by row, and their labels are `(row, column)`.

    Args:
        layout: rows of equal length of `#` (wall), `.` (free) and `G` (goal), or `(height, width)`
            for an open grid with the goal in the last corner.
        slip: the probability that a move goes to a side, in [0, 1].
        step_reward: what every step earns.
        goal_reward: what a step into a goal earns on top of that.
        discount: in [0, 1].
        walls: with `(height, width)`, the probability that a cell other than the goal is a wall.
            Nothing makes sure that the goal can be reached from everywhere.
        seed: of the random walls.

    Examples:
        >>> grid_world(["..G", ".#.", "..."])
        MDP(states=8, actions=4, branches=3, discount=0.99, terminal=1)
        >>> grid_world((20, 30), walls=0.1, seed=1)
        MDP(states=543, actions=4, branches=3, discount=0.99, terminal=1)
        >>> grid_world(["..G", ".x."])
        Traceback (most recent call last):
        ...
        ValueError: `layout` must be made of '#', '.' and 'G', got 'x' in row 1, column 1
    """
    slip = checks.real("slip", slip, 0, 1)
    step_reward = checks.real("step_reward", step_reward)
    goal_reward = checks.real("goal_reward", goal_reward)
    walls = checks.real("walls", walls, 0, 1)
    cells = _cells(layout, walls, seed)
    free = cells != "#"
    moves = _moves(free)
    terminal = cells[free] == "G"
    towards = [[a, (a + 1) % 4, (a - 1) % 4] for a in range(4)] if slip else [[a] for a in range(4)]
    successors = moves[:, towards]
    weights = np.array([1 - slip, slip / 2, slip / 2] if slip else [1.0])
    rewards = np.full(moves.shape, step_reward)
    if goal_reward:
        rewards = step_reward + goal_reward * terminal[successors]
    probabilities = np.broadcast_to(weights, successors.shape)
    mdp = MDP(successors, probabilities, rewards, discount, terminal=terminal)
    return mdp.with_labels(states=np.argwhere(free), actions=["up", "right", "down", "left"])


def _cells(
    layout: Sequence[str] | tuple[int, int], walls: float, seed: Seed
) -> npt.NDArray[np.str_]:
    """The characters of the layout, `[height, width]`."""
    if isinstance(layout, str) or not isinstance(layout, Sequence):
        raise TypeError(f"`layout` must be rows of text or (height, width), got {layout!r}")
    if layout and all(isinstance(row, str) for row in layout):
        if walls:
            raise ValueError(f"`walls` must be 0 where `layout` shows them, got {walls:g}")
        return _drawn([str(row) for row in layout])
    if len(layout) != 2 or any(isinstance(size, str) for size in layout):
        raise TypeError(f"`layout` must be rows of text or (height, width), got {layout!r}")
    height, width = (checks.whole("layout", size, 1) for size in layout)
    wall = checks.generator("seed", seed).random((height, width)) < walls
    cells = np.where(wall, "#", ".")
    cells[-1, -1] = "G"
    return cells


def _drawn(rows: Sequence[str]) -> npt.NDArray[np.str_]:
    for i, row in enumerate(rows):
        if len(row) != len(rows[0]):
            rule = f"`layout` must be rows of one length, that of row 0, {len(rows[0])}"
            raise ValueError(f"{rule}, got {row!r} in row {i}")
        wrong = row.strip("#.G")
        if wrong:
            place = f"row {i}, column {row.index(wrong[0])}"
            rule = "`layout` must be made of '#', '.' and 'G'"
            raise ValueError(f"{rule}, got {wrong[0]!r} in {place}")
    cells = np.array([list(row) for row in rows], np.str_)
    if not (cells != "#").any():
        raise ValueError("`layout` must have a cell that is no wall, got none")
    return cells


def _moves(free: Bools) -> Integers:
    """`[S, 4]`, the state that each move leads to when it does not slip."""
    n_states = int(free.sum())
    numbers = np.full((free.shape[0] + 2, free.shape[1] + 2), -1, np.int32)  # with a rim of walls
    numbers[1:-1, 1:-1][free] = np.arange(n_states, dtype=np.int32)
    up, down = numbers[:-2, 1:-1][free], numbers[2:, 1:-1][free]
    left, right = numbers[1:-1, :-2][free], numbers[1:-1, 2:][free]
    next_cell = np.stack([up, right, down, left], axis=1)
    return np.where(next_cell < 0, np.arange(n_states, dtype=np.int32)[:, None], next_cell)


def chain(n_states: int, *, success: float = 0.9, discount: float = 0.99) -> MDP:
    """A line of states to walk along, left or right (actions 0 and 1), with a prize at either end.

    A step goes where it should with probability `success` and the other way otherwise; off an end
    of the line it stays. Action 0 in the first state earns 0.01, action 1 in the last one earns 1,
    everything else nothing: the small prize is near and the large one far, as in Strens's chain
    and in RiverSwim. The episode never ends.

    Args:
        n_states: how long the line is, at least 2.
        success: the probability that a step goes where it should, in [0, 1].
        discount: in [0, 1].

    Examples:
        >>> chain(5)
        MDP(states=5, actions=2, branches=2, discount=0.99)

    References:
        Strens, "A Bayesian framework for reinforcement learning" (2000); Strehl and Littman, "An
        analysis of model-based interval estimation for Markov decision processes" (2008).
    """
    n_states = checks.whole("n_states", n_states, 2)
    success = checks.real("success", success, 0, 1)
    states = np.arange(n_states, dtype=np.int32)
    left, right = np.maximum(states - 1, 0), np.minimum(states + 1, n_states - 1)
    successors = np.stack([np.stack([left, right], -1), np.stack([right, left], -1)], axis=1)
    probabilities = np.broadcast_to([success, 1 - success], successors.shape)
    rewards = np.zeros((n_states, 2))
    rewards[0, 0], rewards[-1, 1] = 0.01, 1.0
    return MDP(successors, probabilities, rewards, discount)
