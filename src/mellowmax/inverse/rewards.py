"""Rewards with parameters: linear in features, one number for each state, or any function."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from .._common import checks
from .._common.pytrees import pytree
from .._typing import ArrayLike
from ..mdp import MDP

__all__ = ["Linear", "Reward", "Table", "names_of", "rewards_of"]


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
        checks.finite("features", given, (*("state", "action")[: given.ndim - 1], "feature"))
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

    def check(self, mdps: Sequence[MDP]) -> None:
        """Raise unless the features are those of the MDPs, and can be told apart there."""
        parts = []
        for mdp in mdps:
            shape = n_states, n_actions = mdp.probabilities.shape[:2]
            own = self.features.shape[:-1]
            if own not in (shape[:1], shape):
                rule = f"features of {n_states} states, or also {n_actions} actions"
                raise ValueError(f"`reward` must have {rule}, got the shape {self.features.shape}")
            by_pair = self.features if len(own) == 2 else self.features[:, None]
            parts.append(np.broadcast_to(by_pair, (*shape, len(self.names)))[mdp.available])
        columns = np.concatenate(parts)
        size = np.linalg.norm(columns, axis=0)
        if (size == 0).any():
            name = self.names[int((size == 0).argmax())]
            raise ValueError(f"`reward` must have features that are not all 0, got {name!r}")
        constant = np.ptp(columns, axis=0) <= 1e-12 * np.abs(columns).max(0)
        if constant.any() and not any(map(_ends, mdps)):
            name = self.names[int(constant.argmax())]
            rule = "`reward` must have features that are not constant where no episode ends"
            raise ValueError(f"{rule}, got {name!r}")
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


Reward: TypeAlias = Linear | Table | Callable[[jax.Array], jax.Array]
"""Rewards with parameters: a function makes `[S, A]` of them."""


def rewards_of(reward: Reward, parameters: jax.Array, shape: tuple[int, int]) -> jax.Array:
    """`[S, A]`, the rewards under some parameters; those of `Linear` and `Table` come first."""
    if isinstance(reward, Table):
        size = shape[0] if reward.by == "state" else shape[0] * shape[1]
        return jnp.broadcast_to(parameters[:size].reshape(shape[0], -1), shape)
    if isinstance(reward, Linear):
        parameters = parameters[: len(reward.names)]
    return jnp.broadcast_to(reward(parameters), shape)


def names_of(
    name: str, shape: tuple[int, ...], reward: Reward, mdps: Sequence[MDP], *, more: bool
) -> tuple[str, ...]:
    """What the parameters are called; those beyond the reward's own have numbers.

    Args:
        name: of the argument that has the parameters.
        shape: of that argument; () for one number that stands for all.
        reward: `Linear`, `Table` or a function.
        mdps: which share it.
        more: may there be more of them than the reward has?

    Raises:
        TypeError: for what is no reward.
        ValueError: for a reward that is not one of the MDPs, or a wrong number of parameters.
    """
    own: tuple[str, ...] = ()
    if isinstance(reward, Linear):
        reward.check(mdps)
        own = reward.names
    elif isinstance(reward, Table):
        if len({mdp.probabilities.shape[:2] for mdp in mdps}) > 1:
            rule = "`reward` must be Linear or a function where MDPs are of different sizes"
            raise ValueError(f"{rule}, got {reward}")
        own = reward.names_for(mdps[0])
    elif not shape:
        rule = f"`{name}` must have an entry for each parameter where `reward` is a function"
        raise ValueError(f"{rule}, got a number")
    elif len(shape) == 1 and shape[0]:
        more = True
    count = shape[0] if len(shape) == 1 else len(own)
    right = count > len(own) if more and count != len(own) else count == len(own)
    if len(shape) > 1 or not count or not right:
        rule = f"a number or {len(own)} numbers" if own else "a number for each parameter"
        raise ValueError(f"`{name}` must be {rule}, got the shape {shape}")
    return own + tuple(f"parameter {i}" for i in range(len(own), count))


def _ends(mdp: MDP) -> bool:
    """Can an episode end?"""
    goes_on = np.append(~mdp.terminal, False)
    leads = np.arange(mdp.n_states) if mdp.successors is None else mdp.successors
    stays = (mdp.probabilities * goes_on[leads]).sum(-1)
    return bool((stays[mdp.available] < 1 - 1e-9).any())
