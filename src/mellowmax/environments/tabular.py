"""Any MDP as an environment: pure functions of a key, a state, an action and the parameters.

    >>> import jax
    >>> from mellowmax.environments.tabular import params, reset, step
    >>> from mellowmax.mdp import two_state
    >>> key, parameters = jax.random.key(0), params(two_state())
    >>> state = reset(key, parameters)
    >>> state, reward, terminated = step(key, state, 1, parameters)

They are written for one instance: `jax.vmap` them over keys and states for many. The parameters are
the MDP's own tables, laid out so that a step is one lookup: a uniform number is compared with the
cumulative probabilities of the branches. `start` and `move` are the same functions of that uniform
number, for loops that draw their random numbers in bulk.

Numbers are float32, so the probabilities have an error of up to 6e-8.
"""

from __future__ import annotations

import dataclasses
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .._common import checks
from .._common.extras import needed_by
from .._common.pytrees import pytree
from .._typing import ArrayLike, Floats, Scalar
from ..mdp import MDP
from .initial_states import initial_states
from .step import Step

with needed_by("mellowmax.environments.tabular", "jax"):
    import jax
    import jax.numpy as jnp

__all__ = [
    "Params",
    "Step",
    "cumulative",
    "legal",
    "move",
    "observe",
    "params",
    "reset",
    "start",
    "step",
]


Table: TypeAlias = npt.NDArray[Any] | jax.Array


@pytree
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Params:
    """The tables of an environment with `S` states, `A` actions and `K` branches."""

    successors: Table
    """`[S, A, K]`, int32: where each branch leads; `S` is the end of the episode."""
    cumulative: Table
    """`[S, A, K]`: the probability of this branch or one before it; the last is infinity."""
    rewards: Table
    """`[S, A, K]`"""
    terminated: Table
    """`[S, A, K]`: does the branch end the episode?"""
    allowed: Table | None
    """`[S, A]`: is the action allowed in the state? None if all are."""
    starts: Table
    """`[M]`, int32: the states where an episode can begin."""
    start_cumulative: Table
    """`[M]`: the probability of this one or one before it; the last is infinity."""
    discount: Table | np.float32
    """The discount of a learner that has none of its own."""

    @property
    def n_states(self) -> int:
        """The number of states."""
        return int(self.successors.shape[0])

    @property
    def n_actions(self) -> int:
        """The number of actions."""
        return int(self.successors.shape[1])

    def __repr__(self) -> str:
        return (
            f"Params(states={self.n_states}, actions={self.n_actions}, starts={len(self.starts)})"
        )


def params(mdp: MDP, *, start: ArrayLike | None = None) -> Params:
    """The parameters of an MDP as an environment.

    Args:
        mdp: the model.
        start: the state where episodes begin, or a probability for each state; None for every state
            that is not terminal, with equal probability.

    Examples:
        >>> from mellowmax.mdp import two_state
        >>> params(two_state(), start=0)
        Params(states=2, actions=2, starts=1)
    """
    checks.instance("mdp", mdp, MDP, "an MDP")
    successors, probabilities, rewards = _branches(mdp)
    over = mdp.terminal[:, None, None]
    own = np.arange(mdp.n_states)[:, None, None]
    ends = np.append(mdp.terminal, True)
    successors = np.where(over, own, successors)
    starts, start_probabilities = initial_states(mdp, start)
    return Params(
        successors=successors.astype(np.int32),
        cumulative=cumulative(np.where(over, 1.0, probabilities)),
        rewards=rewards.astype(np.float32),
        terminated=ends[successors],
        allowed=mdp.allowed,
        starts=starts,
        start_cumulative=cumulative(start_probabilities),
        discount=np.float32(mdp.discount),
    )


def _branches(mdp: MDP) -> tuple[npt.NDArray[np.int32], Floats, Floats]:
    """`(successors, probabilities, rewards)`, each `[S, A, K]`, with no more branches than used."""
    probabilities = mdp.probabilities
    shape = probabilities.shape
    every = np.arange(mdp.n_states, dtype=np.int32) if mdp.successors is None else mdp.successors
    successors = np.broadcast_to(every, shape)
    rewards = mdp.rewards if mdp.rewards.ndim == 3 else mdp.rewards[..., None]
    rewards = np.broadcast_to(rewards, shape)
    order = np.argsort(probabilities == 0, axis=-1, kind="stable")
    used = max(1, int((probabilities > 0).sum(-1).max()))
    first = order[..., :used]
    return (
        np.take_along_axis(successors, first, -1),
        np.take_along_axis(probabilities, first, -1),
        np.take_along_axis(rewards, first, -1),
    )


def cumulative(probabilities: ArrayLike) -> npt.NDArray[np.float32]:
    """Cumulative sums along the last axis; infinity from the last positive probability on.

    For a uniform number in [0, 1), `(uniform >= cumulative).sum()` is each index with its
    probability, and never an index whose probability is 0.
    """
    each = checks.numbers("probabilities", probabilities)
    if each.ndim == 0 or each.shape[-1] == 0:
        raise ValueError(f"`probabilities` must have a last axis, got the shape {each.shape}")
    sums = np.cumsum(each, axis=-1)
    after = np.cumsum(each[..., ::-1], axis=-1)[..., ::-1]
    left = np.append(after[..., 1:], np.zeros_like(after[..., :1]), axis=-1)
    return np.where(left > 0, sums, np.inf).astype(np.float32)


def reset(key: jax.Array, params: Params) -> jax.Array:
    """The state where an episode begins.

    Examples:
        >>> import jax
        >>> from mellowmax.mdp import two_state
        >>> print(reset(jax.random.key(0), params(two_state())))
        0
    """
    return start(jax.random.uniform(key, dtype=jnp.float32), params)


def step(key: jax.Array, state: Scalar, action: Scalar, params: Params) -> Step:
    """Take an action in a state.

    Args:
        key: a JAX key.
        state: a state; a terminal one is never left.
        action: an action that is allowed there.
        params: the parameters of the environment.

    Returns:
        The next state (`S` where the episode ends in no state), the reward, and whether the episode
        has ended.

    Examples:
        >>> import jax
        >>> from mellowmax.mdp import two_state
        >>> print(*step(jax.random.key(0), 0, 1, params(two_state())))
        0 0.03284 False
    """
    return move(jax.random.uniform(key, dtype=jnp.float32), state, action, params)


def observe(state: Scalar, params: Params) -> jax.Array:
    """The state as a vector for a network: `[S]`, one-hot; zeros where the episode is over.

    Examples:
        >>> from mellowmax.mdp import two_state
        >>> print(observe(1, params(two_state())))
        [0. 1.]
    """
    return jax.nn.one_hot(state, params.n_states, dtype=jnp.float32)


def legal(state: Scalar, params: Params) -> jax.Array | None:
    """`[A]`: the actions that are allowed in a state; None if all are everywhere.

    Examples:
        >>> from mellowmax.mdp import two_state
        >>> legal(1, params(two_state())) is None
        True
    """
    if params.allowed is None:
        return None
    last = params.n_states - 1  # an episode may end in no state
    return jnp.asarray(params.allowed)[jnp.minimum(jnp.asarray(state, jnp.int32), last)]


def start(uniform: Scalar, params: Params) -> jax.Array:
    """`reset`, from a uniform number in [0, 1)."""
    starts = jnp.asarray(params.starts)
    if len(starts) == 1:
        return starts[0]
    return starts[jnp.searchsorted(jnp.asarray(params.start_cumulative), uniform, side="right")]


def move(uniform: Scalar, state: Scalar, action: Scalar, params: Params) -> Step:
    """`step`, from a uniform number in [0, 1)."""
    state, action = jnp.asarray(state, jnp.int32), jnp.asarray(action, jnp.int32)
    passed = uniform >= jnp.asarray(params.cumulative)[state, action]
    branch = jnp.asarray(passed).sum(dtype=jnp.int32)
    tables = (params.successors, params.rewards, params.terminated)
    return Step(*(jnp.asarray(table)[state, action, branch] for table in tables))
