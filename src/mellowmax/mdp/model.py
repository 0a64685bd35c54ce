"""What an MDP is: the arrays, and the checks they have passed.

An MDP has states `0 .. S-1`, actions `0 .. A-1` and a discount. From a state and an action the next
state is one of `K` branches: branch `k` has the probability `probabilities[s, a, k]` and leads to
`successors[s, a, k]`. The successor `S`, one past the last state, is the end of the episode. A dense
MDP has no `successors`: branch `k` leads to state `k`. Branches of probability 0 are padding.

A terminal state has the value 0 and no transitions. An action that is not allowed in a state is as
if it were not there: operators do not count it, policies give it probability 0.

The arrays are checked once, when the MDP is made, and are read-only from then on.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from . import convert, files

__all__ = ["MDP"]

Floats = npt.NDArray[np.float64]
ROW_SUM_TOLERANCE = 1e-6
"""How far from 1 the sum of a row may be; within it, rows are rescaled to sum to 1."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class MDP:
    """A finite Markov decision process (section 2), dense or sparse.

    Most models come through one of the `from_` methods; this constructor takes padded arrays.

    Args:
        successors: `[S, A, K]`, where each branch leads: a state, or `S` for the end of the
            episode; None for a dense MDP, where `K` is `S` and branch `k` leads to state `k`.
        probabilities: `[S, A, K]`, not negative; every row sums to 1.
        rewards: `[S, A]`, or `[S, A, K]` for a reward of each branch.
        discount: in [0, 1); 1 is allowed where every policy ends.
        allowed: `[S, A]`, the actions there are; None for all.
        terminal: `[S]`, the states where an episode ends; None for those that no action leaves and
            none earns a reward in. Their rows are ignored.

    Raises:
        ValueError: for arrays that are no MDP; it says what is wrong, and where.

    Examples:
        A coin that pays 1 until it falls on its other side:

        >>> mdp = MDP([[[0, 1]], [[1, 1]]], [[[0.5, 0.5]], [[1.0, 0.0]]], [[1.0], [0.0]], 0.9)
        >>> mdp
        MDP(states=2, actions=1, branches=2, discount=0.9, terminal=1)
        >>> MDP(None, [[[0.5, 0.4]]] * 2, [[1.0], [0.0]], 0.9)
        Traceback (most recent call last):
        ...
        ValueError: `probabilities` must sum to 1, got 0.9 in state 0, action 0
    """

    successors: npt.NDArray[np.int32] | None
    probabilities: Floats
    rewards: Floats
    discount: float
    allowed: npt.NDArray[np.bool_] | None = None
    terminal: npt.NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        probabilities = _numbers("probabilities", self.probabilities)
        if probabilities.ndim != 3 or 0 in probabilities.shape:
            raise ValueError(
                "`probabilities` must have the shape (states, actions, branches), "
                f"got {probabilities.shape}"
            )
        n_states, n_actions, n_branches = shape = probabilities.shape
        if self.successors is None and n_branches != n_states:
            raise ValueError(
                f"`probabilities` must have a branch for each of the {n_states} states where "
                f"`successors` is None, got the shape {shape}"
            )
        rewards = _numbers("rewards", self.rewards)
        if rewards.shape not in (shape[:2], shape):
            raise ValueError(f"`rewards` must have the shape {shape[:2]} or {shape}, got {rewards.shape}")
        if not (isinstance(self.discount, int | float | np.number) and 0 <= self.discount <= 1):
            raise ValueError(f"`discount` must be in [0, 1], got {self.discount!r}")
        successors = None if self.successors is None else _indices(self.successors, shape)
        allowed = _mask("allowed", self.allowed, shape[:2])
        terminal = _mask("terminal", self.terminal, shape[:1])

        there = np.ones(shape[:2], np.bool_) if allowed is None else allowed.copy()
        if terminal is None:
            terminal = _absorbing(successors, probabilities, rewards, there)
        there[terminal] = False
        _check_probabilities(probabilities, there)
        _raise_where(~np.isfinite(rewards) & _like(there, rewards), "`rewards` must be finite", rewards)
        if allowed is not None:
            allowed = allowed | terminal[:, None]
            _raise_where(~allowed.any(1), "`allowed` must leave an action", allowed.sum(1))

        sums = probabilities.sum(-1)
        scale = np.where(there & (abs(sums - 1) > 1e-12), sums, 1.0)
        sparse = successors is not None
        if not there.all() or (scale != 1.0).any():
            probabilities = np.where(there[..., None], probabilities / scale[..., None], 0.0)
            rewards = np.where(_like(there, rewards), rewards, 0.0)
        if successors is not None:
            own = np.arange(n_states, dtype=np.int32)[:, None, None]
            successors = _stored(np.where(probabilities > 0, successors, own), branches_first=True)
        self._set("successors", successors)
        self._set("probabilities", _stored(probabilities, branches_first=sparse))
        self._set("rewards", _stored(rewards, branches_first=sparse and rewards.ndim == 3))
        self._set("discount", float(self.discount))
        self._set("allowed", None if allowed is None or allowed.all() else _stored(allowed))
        self._set("terminal", _stored(terminal))
        if self.discount == 1:
            self._check_that_every_policy_ends()

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    @property
    def n_states(self) -> int:
        """How many states there are."""
        return self.probabilities.shape[0]

    @property
    def n_actions(self) -> int:
        """How many actions there are."""
        return self.probabilities.shape[1]

    @property
    def n_branches(self) -> int:
        """How many branches the transitions of a state and an action have at most."""
        return self.probabilities.shape[2]

    @property
    def expected_rewards(self) -> Floats:
        """`[S, A]`, the mean of the reward over the branches."""
        if self.rewards.ndim == 2:
            return self.rewards
        return np.einsum("sak,sak->sa", self.probabilities, self.rewards)

    def __repr__(self) -> str:
        parts = [f"states={self.n_states}", f"actions={self.n_actions}"]
        parts.append("dense" if self.successors is None else f"branches={self.n_branches}")
        parts.append(f"discount={self.discount:g}")
        if self.terminal is not None and self.terminal.any():
            parts.append(f"terminal={self.terminal.sum()}")
        return f"MDP({', '.join(parts)})"

    def _check_that_every_policy_ends(self) -> None:
        """The largest set of states in which some policy can stay for ever must be empty."""
        within = ~self.terminal if self.terminal is not None else np.ones(self.n_states, np.bool_)
        usable = np.ones(self.probabilities.shape[:2], np.bool_) if self.allowed is None else self.allowed
        while True:
            if self.successors is None:
                leaves = self.probabilities @ ~within > 0
            else:
                leads = np.append(within, False)[self.successors]  # the end is not within
                leaves = (~leads & (self.probabilities > 0)).any(-1)
            stays = usable & ~leaves & within[:, None]
            remaining = stays.any(1)
            if (remaining == within).all():
                break
            within = remaining
        if within.any():
            state = int(within.argmax())
            raise ValueError(
                "`discount` must be below 1 unless every policy ends, got 1 and a policy that never "
                f"ends from state {state} with action {int(stays[state].argmax())}"
            )

    @classmethod
    def from_arrays(
        cls, transitions: Any, rewards: Any, discount: float, *, allowed: Any = None, terminal: Any = None
    ) -> Self:
        """A dense MDP from arrays.

        Args:
            transitions: `[S, A, S]`, the probability of each next state.
            rewards: `[S, A]`, or `[S, A, S]` for a reward of each transition.
            discount: in [0, 1); 1 where every policy ends.
            allowed: `[S, A]`, the actions there are; None for all.
            terminal: `[S]`, the states where an episode ends; None to find them.

        Examples:
            >>> MDP.from_arrays([[[0.9, 0.1]], [[0.0, 1.0]]], [[1.0], [0.0]], 0.95)
            MDP(states=2, actions=1, dense, discount=0.95, terminal=1)
        """
        return cls(None, transitions, rewards, discount, allowed, terminal)

    @classmethod
    def from_sparse(
        cls, transitions: Any, rewards: Any, discount: float, *, allowed: Any = None, terminal: Any = None
    ) -> Self:
        """An MDP from SciPy's sparse matrices.

        Args:
            transitions: one matrix `[S * A, S]` with the row `s * A + a` for action `a` in state
                `s`, or a list of matrices `[S, S]`, one for each action.
            rewards: `[S, A]`, or matrices like `transitions`.
            discount: in [0, 1); 1 where every policy ends.
            allowed: `[S, A]`, the actions there are; None for all.
            terminal: `[S]`, the states where an episode ends; None to find them.

        Examples:
            >>> import scipy.sparse
            >>> MDP.from_sparse([scipy.sparse.eye_array(3)], [[1.0]] * 3, 0.9)
            MDP(states=3, actions=1, branches=1, discount=0.9)
        """
        return cls(**convert.from_sparse(transitions, rewards), discount=discount, allowed=allowed, terminal=terminal)

    @classmethod
    def from_coo(
        cls,
        states: Any,
        actions: Any,
        successors: Any,
        probabilities: Any,
        rewards: Any,
        discount: float,
        *,
        n_states: int | None = None,
        n_actions: int | None = None,
        terminal: Any = None,
    ) -> Self:
        """An MDP from a list of transitions.

        Transitions that are listed twice add up. An action that a state has no transition for is not
        allowed there, and a state without any is terminal.

        Args:
            states: `[N]`, where each transition starts.
            actions: `[N]`, by which action.
            successors: `[N]`, where it leads; `n_states` for the end of the episode.
            probabilities: `[N]`, how probable it is.
            rewards: `[N]`, what it earns.
            discount: in [0, 1); 1 where every policy ends.
            n_states: how many states there are; None for the largest index and one more.
            n_actions: the same for actions.
            terminal: `[S]`, further states where an episode ends.

        Examples:
            >>> MDP.from_coo([0, 0], [0, 0], [0, 1], [0.9, 0.1], [1.0, 0.0], 0.9)
            MDP(states=2, actions=1, branches=2, discount=0.9, terminal=1)
        """
        arrays = convert.from_coo(
            states, actions, successors, probabilities, rewards, n_states, n_actions, terminal
        )
        return cls(**arrays, discount=discount)

    @classmethod
    def from_mdptoolbox(cls, transitions: Any, rewards: Any, discount: float) -> Self:
        """An MDP laid out as in MDPtoolbox, actions first.

        Args:
            transitions: `[A, S, S]`, or a list of `A` matrices, dense or sparse.
            rewards: `[S]`, `[S, A]`, or laid out like `transitions`.
            discount: in [0, 1); 1 where every policy ends.

        Examples:
            >>> import numpy as np
            >>> MDP.from_mdptoolbox(np.full((3, 2, 2), 0.5), np.ones((2, 3)), 0.9)
            MDP(states=2, actions=3, dense, discount=0.9)
        """
        return cls(**convert.from_mdptoolbox(transitions, rewards), discount=discount)

    @classmethod
    def from_state_actions(
        cls, rewards: Any, transitions: Any, discount: float, states: Any, actions: Any
    ) -> Self:
        """An MDP in QuantEcon's form: a list of the pairs of a state and an action that there are.

        Args:
            rewards: `[L]`, the reward of each pair.
            transitions: `[L, S]`, dense or sparse.
            discount: in [0, 1); 1 where every policy ends.
            states: `[L]`, the state of each pair.
            actions: `[L]`, its action. A pair that is not listed, or whose reward is -inf, is not
                allowed.

        Examples:
            >>> MDP.from_state_actions([1.0, 2.0, 0.5], [[1, 0], [0, 1], [0, 1]], 0.9, [0, 0, 1], [0, 1, 0])
            MDP(states=2, actions=2, branches=1, discount=0.9)
        """
        arrays = convert.from_state_actions(rewards, transitions, states, actions)
        return cls(**arrays, discount=discount)

    @classmethod
    def from_gymnasium(cls, environment: Any, discount: float) -> Self:
        """The exact model of a Gymnasium environment that carries its transitions as `P`.

        Args:
            environment: an environment, or the id to make one from: FrozenLake, Taxi, CliffWalking.
            discount: in [0, 1); 1 where every policy ends.

        Examples:
            >>> MDP.from_gymnasium("FrozenLake-v1", 0.99)
            MDP(states=16, actions=4, branches=3, discount=0.99, terminal=5)
        """
        return cls(**convert.from_gymnasium(environment), discount=discount)

    @classmethod
    def from_function(
        cls, transition: Callable[[int, int], Any], n_states: int, n_actions: int, discount: float
    ) -> Self:
        """An MDP from a Python function.

        Args:
            transition: `transition(s, a)` gives a list of `(probability, successor, reward)`, or
                of `(probability, successor, reward, ends)` as Gymnasium has it; an empty one or None
                where the action is not allowed. A state without actions is terminal.
            n_states: how many states there are.
            n_actions: how many actions.
            discount: in [0, 1); 1 where every policy ends.

        Examples:
            >>> def walk(s, a):
            ...     return [(0.8, s + (-1, 1)[a], 1.0), (0.2, s, 0.0)] if 0 < s < 4 else None
            >>> MDP.from_function(walk, n_states=5, n_actions=2, discount=1.0)
            MDP(states=5, actions=2, branches=2, discount=1, terminal=2)
        """
        return cls(**convert.from_function(transition, n_states, n_actions), discount=discount)

    def to_numpy(self) -> tuple[Floats, Floats]:
        """`(transitions [S, A, S], rewards [S, A])`; what ends an episode is not in a row's sum."""
        return convert.to_numpy(self), self.expected_rewards

    def to_scipy(self) -> tuple[Any, Floats]:
        """`(transitions [S * A, S] in CSR, rewards [S, A])`, with the row `s * A + a`."""
        return convert.to_scipy(self), self.expected_rewards

    def save(self, path: str | Path) -> None:
        """Write the MDP to an `.npz` file, whole or not at all."""
        files.save(path, {field.name: getattr(self, field.name) for field in dataclasses.fields(self)})

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read an MDP that `save` wrote.

        Raises:
            ValueError: for a file that is truncated, of another kind, or of a newer version.
        """
        return cls(**files.load(path))


def _numbers(name: str, values: Any) -> Floats:
    try:
        array = np.asarray(values)
    except ValueError as error:  # rows of different lengths
        raise ValueError(f"`{name}` must be an array of numbers, got a ragged list") from error
    if array.dtype.kind not in "fiub":
        raise ValueError(f"`{name}` must be an array of numbers, got one of {array.dtype}")
    return array.astype(np.float64, copy=False)


def _mask(name: str, values: Any, shape: tuple[int, ...]) -> npt.NDArray[np.bool_] | None:
    if values is None:
        return None
    array = np.asarray(values)
    if array.shape != shape or array.dtype != np.bool_:
        raise ValueError(
            f"`{name}` must be boolean with the shape {shape}, got {array.dtype} with {array.shape}"
        )
    return array


def _indices(successors: Any, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    array = np.asarray(successors)
    if array.shape != shape or array.dtype.kind not in "iu":
        raise ValueError(
            f"`successors` must be integers with the shape {shape} of `probabilities`, "
            f"got {array.dtype} with {array.shape}"
        )
    bad = (array < 0) | (array > shape[0])
    _raise_where(bad, f"`successors` must be in [0, {shape[0]}]", array)
    return array


def _check_probabilities(probabilities: Floats, there: npt.NDArray[np.bool_]) -> None:
    real = there[..., None]
    rule = "`probabilities` must be numbers in [0, 1]"
    bad = ~((probabilities >= 0) & (probabilities <= 1 + ROW_SUM_TOLERANCE))  # NaN too
    _raise_where(bad & real, rule, probabilities)
    sums = probabilities.sum(-1)
    _raise_where((abs(sums - 1) > ROW_SUM_TOLERANCE) & there, "`probabilities` must sum to 1", sums)


def _raise_where(bad: npt.NDArray[np.bool_], rule: str, values: npt.NDArray[Any]) -> None:
    """Raise for the first bad entry: the rule, the value got, and where."""
    if bad.any():
        at = np.unravel_index(int(bad.argmax()), bad.shape)
        names = ("state", "action", "branch")
        place = ", ".join(f"{name} {int(i)}" for name, i in zip(names, at, strict=False))
        raise ValueError(f"{rule}, got {values[at]:g} in {place}")


def _like(rows: npt.NDArray[np.bool_], values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """`[S, A]` so that it broadcasts against `[S, A]` or `[S, A, K]`."""
    return rows if values.ndim == 2 else rows[..., None]


def _absorbing(
    successors: npt.NDArray[Any] | None,
    probabilities: Floats,
    rewards: Floats,
    there: npt.NDArray[np.bool_],
) -> npt.NDArray[np.bool_]:
    """States that every action keeps, with no reward: they are worth 0, as terminal ones are."""
    n_states = len(probabilities)
    own = np.arange(n_states)[:, None, None]
    leads = np.arange(n_states) if successors is None else successors
    leaves = ((leads != own) & (probabilities != 0)).any(-1)
    earns = rewards != 0 if rewards.ndim == 2 else ((rewards != 0) & (probabilities != 0)).any(-1)
    return ~((leaves | earns) & there).any(1) & there.any(1)


def _stored(array: npt.NDArray[Any], branches_first: bool = False) -> Any:
    """A read-only copy, aligned so that JAX can share it.

    With `branches_first` a view of `[S, A, K]` on memory laid out as `[K, S, A]`: a sweep then adds
    up whole arrays, one for each branch, which is what it does fastest.
    """
    source = np.moveaxis(array, -1, 0) if branches_first else array
    dtype = np.dtype(np.int32) if source.dtype.kind in "iu" else source.dtype
    memory = np.empty(source.size * dtype.itemsize + 64, np.uint8)
    start = -memory.ctypes.data % 64
    copy = memory[start : start + source.size * dtype.itemsize].view(dtype).reshape(source.shape)
    copy[...] = source
    copy.flags.writeable = False
    return np.moveaxis(copy, 0, -1) if branches_first else copy
