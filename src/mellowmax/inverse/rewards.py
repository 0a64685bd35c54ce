"""Rewards with parameters: linear in features, one number for each state, or any function."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._common import checks
from .._common.pytrees import pytree
from .._typing import ArrayLike
from ..mdp import MDP

__all__ = ["Linear", "Table", "names_of", "rewards_of"]


@pytree
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Linear:
    """Rewards that are linear in their parameters, `features @ parameters`.

    Args:
        features: `[S, k]`, those of states, or `[S, A, k]`, those of states and actions.
        names: what the parameters are called, k of them; None for their numbers.

    Examples:
        >>> Linear([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], ["rocks", "water"])
        Linear(rocks, water)
    """

    features: Any
    names: tuple[str, ...] = dataclasses.field(metadata={"static": True})

    def __init__(self, features: ArrayLike, names: Sequence[str] | None = None) -> None:
        given = checks.numbers("features", features)
        if given.ndim not in (2, 3) or not given.size:
            rule = "`features` must have the shape (states, k) or (states, actions, k)"
            raise ValueError(f"{rule}, got {given.shape}")
        checks.finite("features", given)
        k = given.shape[-1]
        if names is None:
            names = [f"parameter {i}" for i in range(k)]
        called = tuple(checks.instances("names", names, str, "a list of texts"))
        if len(called) != k:
            raise ValueError(f"`names` must have {k} names, got {len(called)}")
        object.__setattr__(self, "features", given)
        object.__setattr__(self, "names", called)

    def __call__(self, parameters: jax.Array) -> jax.Array:
        """`[S, A]`, or `[S, 1]` for features of states."""
        rewards = jnp.asarray(self.features) @ parameters
        return rewards if rewards.ndim == 2 else rewards[:, None]

    def check(self, mdp: MDP) -> None:
        """Raise unless the features are those of an MDP, and can be told apart there."""
        shape = mdp.probabilities.shape[:2]
        own = self.features.shape[:-1]
        if own not in (shape[:1], shape):
            rule = f"`reward` must have features of {shape[0]} states, or also {shape[1]} actions"
            raise ValueError(f"{rule}, got the shape {self.features.shape}")
        by_pair = self.features if len(own) == 2 else self.features[:, None]
        columns = np.broadcast_to(by_pair, (*shape, len(self.names)))[mdp.available]
        size = np.linalg.norm(columns, axis=0)
        if (size == 0).any():
            name = self.names[int((size == 0).argmax())]
            raise ValueError(f"`reward` must have features that are not all 0, got {name!r}")
        _, values, directions = np.linalg.svd(columns / size, full_matrices=False)
        if values[-1] < 1e-10 * values[0] or len(values) < len(size):
            mixed = np.abs(directions[-1]) > 1e-6
            together = ", ".join(repr(n) for n, of in zip(self.names, mixed, strict=True) if of)
            rule = "`reward` must have features of which none is a mixture of others"
            raise ValueError(f"{rule}, got {together}")

    def __repr__(self) -> str:
        return f"Linear({', '.join(self.names)})"


@pytree
@dataclasses.dataclass(frozen=True)
class Table:
    """A reward for each state, or for each state and action: every number is a parameter.

    Examples:
        >>> Table()
        Table(by='state')
    """

    by: str = dataclasses.field(default="state", metadata={"static": True})
    """`"state"` or `"state-action"`."""

    def __post_init__(self) -> None:
        checks.one_of("by", self.by, ("state", "state-action"))

    def names_for(self, mdp: MDP) -> tuple[str, ...]:
        """What the parameters are called."""
        if self.by == "state":
            return tuple(f"state {s}" for s in range(mdp.n_states))
        pairs = np.ndindex(mdp.n_states, mdp.n_actions)
        return tuple(f"state {s}, action {a}" for s, a in pairs)


def rewards_of(reward: Any, parameters: jax.Array, shape: tuple[int, int]) -> jax.Array:
    """`[S, A]`, the rewards under some parameters."""
    if isinstance(reward, Table):
        return jnp.broadcast_to(parameters.reshape(shape[0], -1), shape)
    return jnp.broadcast_to(reward(parameters), shape)


def names_of(reward: Any, mdp: MDP, parameters: int | None) -> tuple[str, ...]:
    """What the parameters of a reward are called; those of a function have numbers.

    `parameters` is how many there are; None where a function's are not known.
    """
    if isinstance(reward, Linear):
        reward.check(mdp)
        return reward.names
    if isinstance(reward, Table):
        return reward.names_for(mdp)
    checks.function("reward", reward, "Linear, Table or a function of the parameters")
    if parameters is None:
        rule = "`initial` must have an entry for each parameter where `reward` is a function"
        raise ValueError(f"{rule}, got a number")
    return tuple(f"parameter {i}" for i in range(parameters))
