"""Markov decision processes as arrays that have been checked.

An MDP has states `0 .. S-1`, actions `0 .. A-1` and a discount. From a state and an action the
next state is one of `K` branches: branch `k` has the probability `probabilities[s, a, k]` and leads
to `successors[s, a, k]`. The successor `S`, one past the last state, is the end of the episode. A
dense MDP has no `successors`: branch `k` leads to state `k`. Branches of probability 0 are padding.

A terminal state has the value 0 and no transitions. An action that is not allowed in a state is as
if it were not there: operators do not count it, policies give it probability 0.

The probabilities can be an `Operator` instead, a function that takes means (`from_operator`).

The arrays are checked once, when the MDP is made, and are read-only from then on.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._common import checks, npz
from .._common.schema import Field
from .._common.shown import shown
from .._typing import ArrayLike, Bools, Floats, Integers, Mask
from . import averager, convert, labels, operator, validate
from .arrays import Model
from .labels import Labels, named
from .operator import Expectation, Operator
from .transitions import Branches, Matrices, SparseMatrix

if TYPE_CHECKING:
    from gymnasium import Env
    from quantecon.markov import DiscreteDP
    from scipy.sparse import csr_array

__all__ = ["MDP"]

SCHEMA = {
    "probabilities": Field("number", "S A K"),
    "successors": Field("whole number", "S A K", optional=True),
    "rewards": Field("number", "S A or S A K"),
    "discount": Field("number"),
    "allowed": Field("boolean", "S A", optional=True),
    "terminal": Field("boolean", "S", optional=True),
    "state_labels": Field("value", "S or S D", optional=True),
    "action_labels": Field("value", "A or A E", optional=True),
}
"""The fields of an MDP in a file."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False, init=False)
class MDP:
    """A finite Markov decision process (section 2), dense or sparse.

    Most models come through one of the `from_` methods; this constructor takes padded arrays.

    Args:
        successors: `[S, A, K]`, where each branch leads: a state, or `S` for the end of the
            episode; None for a dense MDP, where `K` is `S` and branch `k` leads to state `k`.
        probabilities: `[S, A, K]`, not negative; every row sums to 1.
        rewards: `[S, A]`, or `[S, A, K]` for a reward of each branch.
        discount: in [0, 1]; values without a horizon need one below 1 unless every policy ends.
        allowed: `[S, A]`, the actions there are; None for all.
        terminal: `[S]`, the states where an episode ends; None for those where every action stays
            or ends it, and none earns a reward. Their rows are ignored.
        state_labels: what the states are called (`with_labels`); None for their numbers.
        action_labels: the same for actions.

    Raises:
        TypeError: for what is no array of numbers.
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

    successors: Integers | None
    probabilities: Floats
    rewards: Floats
    discount: float
    allowed: Bools | None
    terminal: Bools
    state_labels: Labels
    action_labels: Labels

    def __init__(
        self,
        successors: ArrayLike | None,
        probabilities: ArrayLike,
        rewards: ArrayLike,
        discount: float,
        allowed: Mask = None,
        terminal: Mask = None,
        state_labels: object = None,
        action_labels: object = None,
    ) -> None:
        fields = validate.checked(successors, probabilities, rewards, discount, allowed, terminal)
        n_states, n_actions = fields["probabilities"].shape[:2]
        fields["state_labels"] = labels.checked("state_labels", state_labels, n_states)
        fields["action_labels"] = labels.checked("action_labels", action_labels, n_actions)
        self._fill(fields)

    def _fill(self, fields: dict[str, Any]) -> Self:
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        return self

    @classmethod
    def _of_transitions(cls, *, discount: float, **arrays: Any) -> Self:
        """An MDP whose caller has given its probabilities as `transitions`."""
        fields = validate.checked(**arrays, discount=discount, name="transitions")
        return object.__new__(cls)._fill(fields | {"state_labels": None, "action_labels": None})

    def with_labels(self, *, states: object = None, actions: object = None) -> Self:
        """This MDP, with what its states and actions are called in tables, plots and errors.

        Args:
            states: `[S]`, a number, a text or a tuple for each; None to leave them as they are.
            actions: `[A]`, the same for actions.

        Examples:
            >>> from mellowmax.mdp import chain
            >>> mdp = chain(3).with_labels(states=["low", "middle", "high"], actions=["up", "back"])
            >>> print(mdp.state_labels)
            ['low' 'middle' 'high']
        """
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        if states is not None:
            fields["state_labels"] = labels.checked("states", states, self.n_states)
        if actions is not None:
            fields["action_labels"] = labels.checked("actions", actions, self.n_actions)
        return object.__new__(type(self))._fill(fields)

    @property
    def n_states(self) -> int:
        """How many states there are."""
        return len(self.probabilities)

    @property
    def n_actions(self) -> int:
        """How many actions there are."""
        return int(self.probabilities.shape[1])

    @property
    def n_branches(self) -> int:
        """How many branches the transitions of a state and an action have at most."""
        return int(self.probabilities.shape[2])

    @property
    def available(self) -> Bools:
        """`[S, A]`, the actions that can be taken: allowed ones in states that are not terminal."""
        live = np.broadcast_to(~self.terminal[:, None], self.probabilities.shape[:2])
        return live.copy() if self.allowed is None else live & self.allowed

    @property
    def expected_rewards(self) -> Floats:
        """`[S, A]`, the mean of the reward over the branches."""
        if self.rewards.ndim == 2:
            return self.rewards
        return np.einsum("sak,sak->sa", self.probabilities, self.rewards)

    @functools.cached_property
    def goes_on(self) -> Floats:
        """`[S, A]`, the probability of a step to a state that is not terminal."""
        live = np.append(~self.terminal, False)  # the end is one past the last state
        if self.successors is None:
            result: Floats = self.probabilities @ live[:-1]
        else:
            result = np.zeros(self.probabilities.shape[:2])
            for branch in range(self.n_branches):
                result += self.probabilities[..., branch] * live[self.successors[..., branch]]
        result.setflags(write=False)  # it is kept, as all that an MDP has
        return result

    def name_of_state(self, state: int) -> str:
        """What a state is called in an error: its number, and its label where it has one."""
        return named("state", state, self.state_labels)

    def check_ends(self) -> None:
        """Raise where the discount is 1 and a policy never ends: its return has no limit.

        Raises:
            ValueError: with a state and an action from which some policy never ends.
        """
        if self.discount == 1 and self._endless_pair is not None:
            state, action = self._endless_pair
            raise ValueError(
                "`discount` must be below 1 unless every policy ends, got 1 and a policy that "
                f"never ends from {self.name_of_state(state)} with "
                f"{named('action', action, self.action_labels)}"
            )

    @functools.cached_property
    def _endless_pair(self) -> tuple[int, int] | None:
        return validate.endless_pair(self.successors, self.probabilities, self.available)

    def __repr__(self) -> str:
        parts = [f"states={self.n_states}", f"actions={self.n_actions}"]
        if isinstance(self.probabilities, Operator):
            parts.append("operator")
        else:
            parts.append("dense" if self.successors is None else f"branches={self.n_branches}")
        parts.append(f"discount={self.discount:g}")
        if self.terminal.any():
            parts.append(f"terminal={self.terminal.sum()}")
        return f"MDP({', '.join(parts)})"

    @classmethod
    def from_arrays(
        cls,
        transitions: ArrayLike,
        rewards: ArrayLike,
        discount: float,
        *,
        allowed: Mask = None,
        terminal: Mask = None,
    ) -> Self:
        """A dense MDP from arrays.

        Args:
            transitions: `[S, A, S]`, the probability of each next state.
            rewards: `[S, A]`, or `[S, A, S]` for a reward of each transition. An action whose
                reward `[S, A]` is -inf is not allowed, as in QuantEcon's product form.
            discount: in [0, 1].
            allowed: `[S, A]`, the actions there are; None for all.
            terminal: `[S]`, the states where an episode ends; None to find them.

        Examples:
            >>> MDP.from_arrays([[[0.9, 0.1]], [[0.0, 1.0]]], [[1.0], [0.0]], 0.95)
            MDP(states=2, actions=1, dense, discount=0.95, terminal=1)
        """
        arrays = convert.from_arrays(transitions, rewards, allowed, terminal)
        return cls._of_transitions(**arrays, discount=discount)

    @classmethod
    def from_sparse(
        cls,
        transitions: Matrices,
        rewards: Matrices,
        discount: float,
        *,
        allowed: Mask = None,
        terminal: Mask = None,
    ) -> Self:
        """An MDP from SciPy's sparse matrices.

        Args:
            transitions: one matrix `[S * A, S]` with the row `s * A + a` for action `a` in state
                `s`, or a list of matrices `[S, S]`, one for each action.
            rewards: `[S, A]`, or matrices like `transitions`.
            discount: in [0, 1].
            allowed: `[S, A]`, the actions there are; None for all.
            terminal: `[S]`, the states where an episode ends; None to find them.

        Examples:
            >>> import scipy.sparse
            >>> MDP.from_sparse([scipy.sparse.eye_array(3)], [[1.0]] * 3, 0.9)
            MDP(states=3, actions=1, branches=1, discount=0.9)
        """
        arrays = convert.from_sparse(transitions, rewards)
        arrays["allowed"], arrays["terminal"] = allowed, terminal
        return cls._of_transitions(**arrays, discount=discount)

    @classmethod
    def from_operator(
        cls,
        expectation: Expectation,
        rewards: ArrayLike,
        discount: float,
        *,
        allowed: Mask = None,
        terminal: Mask = None,
        branches: int | None = None,
    ) -> Self:
        """An MDP whose transitions are a function, for models that do not fit into memory.

        It is planned in by sweeps and by Newton's method, on one device, with the bounds of any
        MDP. Its `probabilities` are no array: what needs one says so.

        Args:
            expectation: from values `[S]` to their means over the next states, `[S, A]`, by
                operations of JAX. What the mean of values of 1 lacks to 1 ends the episode. Arrays
                that it needs are best given by `functools.partial(function, arrays)`.
            rewards: `[S, A]`.
            discount: in [0, 1); 1 with a horizon.
            allowed: `[S, A]`, the actions there are; None for all.
            terminal: `[S]`, the states where an episode ends; None for none.
            branches: the most numbers that one mean adds up, which a bound on rounding follows
                from; None for the number of states.

        Raises:
            ValueError: for what is no expectation, as far as a few values show.

        Examples:
            A walk to and fro, without its matrix:

            >>> import jax.numpy as jnp
            >>> def expectation(v):
            ...     left, right = jnp.roll(v, 1), jnp.roll(v, -1)
            ...     return jnp.stack([0.9 * left + 0.1 * v, 0.9 * right + 0.1 * v], axis=1)
            >>> MDP.from_operator(expectation, [[0.0, 0.0]] * 9 + [[1.0, 1.0]], 0.95, branches=2)
            MDP(states=10, actions=2, operator, discount=0.95)
        """
        fields = operator.fields_of(expectation, rewards, discount, allowed, terminal, branches)
        return object.__new__(cls)._fill(fields)

    @classmethod
    def from_coo(
        cls,
        states: ArrayLike,
        actions: ArrayLike,
        successors: ArrayLike,
        probabilities: ArrayLike,
        rewards: ArrayLike,
        discount: float,
        *,
        n_states: int | None = None,
        n_actions: int | None = None,
        terminal: Mask = None,
    ) -> Self:
        """An MDP from a list of transitions.

        Transitions that are listed twice add up. An action that a state has no transition for is
        not allowed there, and a state without any is terminal.

        Args:
            states: `[N]`, where each transition starts.
            actions: `[N]`, by which action.
            successors: `[N]`, where it leads; `n_states` for the end of the episode.
            probabilities: `[N]`, how probable it is.
            rewards: `[N]`, the reward of each.
            discount: in [0, 1].
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
    def from_mdptoolbox(cls, transitions: Matrices, rewards: Matrices, discount: float) -> Self:
        """An MDP laid out as in MDPtoolbox, actions first.

        Args:
            transitions: `[A, S, S]`, or a list of `A` matrices, dense or sparse.
            rewards: `[S]`, `[S, A]`, or laid out like `transitions`.
            discount: in [0, 1].

        Examples:
            >>> import numpy as np
            >>> MDP.from_mdptoolbox(np.full((3, 2, 2), 0.5), np.ones((2, 3)), 0.9)
            MDP(states=2, actions=3, dense, discount=0.9)
        """
        arrays = convert.from_mdptoolbox(transitions, rewards)
        return cls._of_transitions(**arrays, discount=discount)

    @classmethod
    def from_state_actions(
        cls,
        rewards: ArrayLike,
        transitions: SparseMatrix | ArrayLike,
        discount: float,
        states: ArrayLike,
        actions: ArrayLike,
    ) -> Self:
        """An MDP in QuantEcon's form: a list of state-action pairs.

        Args:
            rewards: `[L]`, the reward of each pair.
            transitions: `[L, S]`, dense or sparse.
            discount: in [0, 1].
            states: `[L]`, the state of each pair.
            actions: `[L]`, its action. A pair that is not listed, or whose reward is -inf, is not
                allowed.

        Examples:
            >>> transitions = [[1, 0], [0, 1], [0, 1]]
            >>> MDP.from_state_actions([1.0, 2.0, 0.5], transitions, 0.9, [0, 0, 1], [0, 1, 0])
            MDP(states=2, actions=2, branches=1, discount=0.9)
        """
        arrays = convert.from_state_actions(rewards, transitions, states, actions)
        return cls._of_transitions(**arrays, discount=discount)

    @classmethod
    def from_quantecon(cls, ddp: DiscreteDP) -> Self:
        """The MDP of QuantEcon's `DiscreteDP`, in its product form or by state-action pairs.

        Args:
            ddp: the model, dense or sparse. Its `beta` is the discount.

        Raises:
            TypeError: for what has no such arrays.
        """
        names = ("R", "Q", "beta", "s_indices", "a_indices")
        if not all(hasattr(ddp, name) for name in names):
            raise TypeError(f"`ddp` must be a DiscreteDP of QuantEcon's, got {shown(ddp)}")
        rewards, transitions, discount, states, actions = (getattr(ddp, name) for name in names)
        if states is None:
            return cls.from_arrays(transitions, rewards, discount)
        return cls.from_state_actions(rewards, transitions, discount, states, actions)

    @classmethod
    def from_gymnasium(cls, environment: Env[Any, Any] | str, discount: float) -> Self:
        """The exact model of a Gymnasium environment that carries its transitions as `P`.

        Args:
            environment: an environment, or the id to make one from: FrozenLake, Taxi, CliffWalking.
            discount: in [0, 1].

        Examples:
            >>> MDP.from_gymnasium("FrozenLake-v1", 0.99)
            MDP(states=16, actions=4, branches=3, discount=0.99, terminal=5)
        """
        return cls(**convert.from_gymnasium(environment), discount=discount)

    @classmethod
    def from_function(
        cls,
        transition: Callable[[int, int], Branches],
        n_states: int,
        n_actions: int,
        discount: float,
    ) -> Self:
        """An MDP from a Python function.

        Args:
            transition: `transition(s, a)` gives a list of `(probability, successor, reward)`, or of
                `(probability, successor, reward, ends)`, as in Gymnasium's tables; an empty list
                where the action is not allowed. A state without actions is terminal.
            n_states: how many states there are.
            n_actions: how many actions.
            discount: in [0, 1].

        Examples:
            >>> def walk(s, a):
            ...     step = (-1, 1)[a]
            ...     return [(0.8, s + step, 1.0), (0.2, s - step, 0.0)] if 0 < s < 4 else []
            >>> MDP.from_function(walk, n_states=5, n_actions=2, discount=1.0)
            MDP(states=5, actions=2, branches=2, discount=1, terminal=2)
        """
        return cls(**convert.from_function(transition, n_states, n_actions), discount=discount)

    def averaged(self, weights: ArrayLike | SparseMatrix, anchors: ArrayLike | None = None) -> MDP:
        """The MDP that fitted value iteration solves if an averager approximates the values.

        Its states are the anchors, and its fixed points are the values of the anchors. A state of
        this MDP has the value `weights @ value`, unless it is terminal: it has 0.

        Args:
            weights: `[S, K]`, dense or sparse: the weight of each anchor in the value of each
                state, not negative. What the sum of a row lacks to 1 ends the episode.
            anchors: `[K]`, the state that each anchor is; None for the first `K` states.

        Examples:
            The states of a chain in pairs:

            >>> import numpy as np
            >>> from mellowmax.mdp import chain
            >>> chain(6).averaged(np.kron(np.eye(3), [[1], [1]]), anchors=[0, 2, 4])
            MDP(states=3, actions=2, branches=2, discount=0.99)

        References:
            Gordon, "Stable function approximation in dynamic programming" (1995).
        """
        return MDP(**averager.averaged(self, weights, anchors), discount=self.discount)

    def model(self) -> Model:
        """The arrays alone, for functions that are differentiated, such as `fixed_point`.

        Examples:
            >>> from mellowmax.mdp import two_state
            >>> two_state().model()
            Model(dense, rewards (2, 2))
        """
        return Model(
            rewards=self.expected_rewards,
            probabilities=np.asarray(self.probabilities),  # which an operator does not have
            successors=self.successors,
            discount=self.discount,
            allowed=self.allowed,
            terminal=self.terminal,
        )

    def to_numpy(self) -> tuple[Floats, Floats]:
        """`(transitions [S, A, S], rewards [S, A])`.

        The probability that the episode ends is 1 minus the sum of a row.
        """
        return convert.to_numpy(self), self.expected_rewards.copy()

    def to_scipy(self) -> tuple[csr_array, Floats]:
        """`(transitions [S * A, S] in CSR, rewards [S, A])`, with the row `s * A + a`."""
        return convert.to_scipy(self), self.expected_rewards.copy()

    def save(self, path: str | Path) -> None:
        """Write the MDP to an `.npz` file, whole or not at all."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        npz.write(checks.file_path("path", path), "MDP", fields)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read an MDP that `save` wrote.

        Raises:
            ValueError: for a file that is truncated, of another kind, or of a newer version, and
                for one that has no MDP.
        """
        with npz.reading(checks.file_path("path", path), "MDP", SCHEMA) as fields:
            return cls(**{"successors": None} | fields)
