"""The likelihood of demonstrations: how probable a demonstrator makes what was seen."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from .._common import checks
from .._common.pytrees import pytree
from .._typing import ArrayLike, Scalar
from ..mdp import MDP, Model
from ..planning import Point, fixed_point
from .demonstrations import Demonstrations
from .demonstrator import AnyDemonstrator, Demonstrator, both
from .rewards import Linear, Reward, Table, names_of, rewards_of

__all__ = [
    "Discount",
    "Environment",
    "Question",
    "Seen",
    "check_result",
    "environments_of",
    "log_likelihood",
    "seen_from",
]

Discount: TypeAlias = float | Callable[[jax.Array], Any] | None
"""A discount, or a function that makes one of the parameters; None for the MDP's own."""


@pytree
@dataclasses.dataclass(frozen=True, eq=False)
class Environment:
    """An MDP, and how often each action was taken in each state of it."""

    model: Model
    counts: Any  # [S, A]

    @property
    def available(self) -> jax.Array:
        """`[S, A]`, the actions that can be taken."""
        live = jnp.broadcast_to(~jnp.asarray(self.model.terminal)[:, None], self.counts.shape)
        return live if self.model.allowed is None else live & self.model.allowed


class Question(NamedTuple):
    """What may be a function of the parameters, as a tree that JAX sees through."""

    reward: Any
    demonstrator: Any
    discount: Any

    @classmethod
    def of(cls, reward: Reward, demonstrator: AnyDemonstrator, discount: Discount) -> Self:
        """From the arguments of `fit`: functions are not data, all else is."""
        if not isinstance(reward, Linear | Table):
            if not _is_function(reward):
                rule = "Linear, Table or a function of the parameters"
                checks.instance("reward", reward, Linear | Table, rule)
            reward = jax.tree_util.Partial(reward)
        who: Any = demonstrator
        who = jax.tree_util.Partial(who) if _is_function(who) else both(who)
        if callable(discount):
            discount = jax.tree_util.Partial(discount)
        elif discount is not None:
            discount = checks.real("discount", discount, 0.0, 1.0)
        return cls(reward, who, discount)

    @property
    def more(self) -> bool:
        """Can there be parameters that the reward does not have?"""
        return callable(self.demonstrator) or callable(self.discount)

    def check(self, mdps: Sequence[MDP], parameters: int) -> None:
        """Raise unless the functions give what they should for this many parameters.

        Raises:
            TypeError: for a function that gives something else.
            ValueError: for one that gives arrays of another shape, and for a discount of 1 with an
                MDP that has a policy that never ends.
        """
        with jax.enable_x64(True):
            theta = jax.ShapeDtypeStruct((parameters,), np.dtype(np.float64))
            jax.eval_shape(self.demonstrator_at, theta)
            if callable(self.discount):
                check_result("discount", "a number", self.discount, theta, [()])
            for mdp in mdps:
                n_states, n_actions = mdp.probabilities.shape[:2]
                if not isinstance(self.reward, Linear | Table):
                    rule = f"an array of the shape {(n_states, n_actions)} or {(n_states, 1)}"
                    shapes = [(n_states, n_actions), (n_states, 1)]
                    check_result("reward", rule, self.reward, theta, shapes)
        for mdp in mdps:
            own = self.discount is None or callable(self.discount)
            (mdp if own else dataclasses.replace(mdp, discount=self.discount)).check_ends()

    def demonstrator_at(self, parameters: jax.Array) -> Demonstrator:
        """Who acts under some parameters."""
        who = self.demonstrator
        return both(who(parameters) if callable(who) else who)

    def discount_at(self, parameters: jax.Array, own: Scalar) -> Any:
        """The discount under some parameters, of an MDP with its own."""
        if callable(self.discount):
            return self.discount(parameters)
        return own if self.discount is None else self.discount


def _is_function(one: object) -> bool:
    return callable(one) and not isinstance(one, type)


def check_result(
    name: str,
    rule: str,
    function: Callable[..., Any],
    theta: jax.ShapeDtypeStruct,
    shapes: Sequence[tuple[int, ...]],
) -> None:
    """Raise unless a function gives an array of one of these shapes."""
    given = jax.eval_shape(function, theta)
    if not isinstance(given, jax.ShapeDtypeStruct):
        raise TypeError(f"`{name}` must be a function that gives {rule}, got one of another kind")
    if given.shape not in shapes:
        rule = f"`{name}` must be a function that gives {rule}"
        raise ValueError(f"{rule}, got the shape {given.shape}")


class Seen(NamedTuple):
    """The policy and the plan under some parameters in one MDP."""

    log_policy: jax.Array  # [S, A], 0 for actions that cannot be taken
    point: Point


def seen_from(parameters: jax.Array, environment: Environment, question: Question) -> Seen:
    """The policy of the demonstrator under some parameters."""
    model = environment.model
    who = question.demonstrator_at(parameters)
    rewards = rewards_of(question.reward, parameters, environment.counts.shape)
    discount = question.discount_at(parameters, model.discount)
    moved = dataclasses.replace(model, rewards=model.rewards + rewards, discount=discount)
    point = fixed_point(moved, who.plans)
    available = environment.available
    q = jnp.where(available, point.q, 0.0)
    where = None if model.allowed is None else available | jnp.asarray(model.terminal)[:, None]
    log_policy = who.acts.log_policy(q, where=where)
    return Seen(jnp.where(available, log_policy, 0.0), point)


def environments_of(
    mdp: MDP | Sequence[MDP], demonstrations: Demonstrations | Sequence[Demonstrations]
) -> tuple[list[MDP], list[Demonstrations], list[Environment]]:
    """Checked pairs of an MDP and what was seen in it."""
    mdps = checks.instances("mdp", [mdp] if isinstance(mdp, MDP) else mdp, MDP, "an MDP or several")
    one = isinstance(demonstrations, Demonstrations)
    rule = "Demonstrations, or a list with those of each MDP"
    given = [demonstrations] if one else demonstrations
    listed = checks.instances("demonstrations", given, Demonstrations, rule)
    if not mdps:
        raise ValueError("`mdp` must be an MDP or several, got none")
    if len(mdps) != len(listed):
        raise ValueError(
            f"`demonstrations` must be those of each of {len(mdps)} MDPs, got {len(listed)}"
        )
    pairs = zip(mdps, listed, strict=True)
    return mdps, listed, [Environment(m.model(), seen.counts(m)) for m, seen in pairs]


def log_likelihood(
    parameters: ArrayLike,
    mdp: MDP | Sequence[MDP],
    demonstrations: Demonstrations | Sequence[Demonstrations],
    reward: Reward,
    demonstrator: AnyDemonstrator,
    *,
    discount: Discount = None,
) -> jax.Array:
    """The log-probability of what was seen, as a function that JAX differentiates.

    It is a sum over decisions. For other samplers and optimisers: it may be traced within
    `jax.enable_x64(True)`, as `planning.fixed_point`. Its derivatives are NaN where the inner solve
    has not converged, or is at a fold.

    Args:
        parameters: `[k]`.
        mdp: the MDP, or several; the reward is added to its own.
        demonstrations: what was seen, or a list with that of each MDP.
        reward: `Linear`, `Table`, or a function from the parameters to `[S, A]`.
        demonstrator: a `Softmax`, a `Demonstrator`, or a function from the parameters to one of
            these.
        discount: a number, or a function from the parameters to one; None for the MDP's own.

    Raises:
        TypeError: for an argument of the wrong kind.
        ValueError: for one that is not as above.

    Examples:
        >>> from mellowmax import LogSumExp
        >>> from mellowmax.inverse import zurcher
        >>> buses = zurcher([4])
        >>> arguments = buses.mdp, buses.demonstrations, buses.reward, LogSumExp(1.0)
        >>> print(round(float(log_likelihood([10.0750, 2.2930], *arguments)), 3))
        -163.584
    """
    mdps, _, environments = environments_of(mdp, demonstrations)
    question = Question.of(reward, demonstrator, discount)
    if not isinstance(parameters, jax.core.Tracer):
        parameters = checks.numbers("parameters", parameters)
        checks.finite("parameters", parameters, ["parameter"])
    names = names_of("parameters", parameters.shape, reward, mdps, more=question.more)
    if parameters.ndim != 1:
        raise ValueError(f"`parameters` must be {len(names)} numbers, got one")
    question.check(mdps, len(names))

    def total(parameters: jax.Array) -> jax.Array:
        each = [
            jnp.sum(environment.counts * seen_from(parameters, environment, question).log_policy)
            for environment in environments
        ]
        return jnp.sum(jnp.stack(each))

    if isinstance(parameters, jax.core.Tracer) or jax.config.jax_enable_x64:  # type: ignore[attr-defined]
        return total(jnp.asarray(parameters, float))
    with jax.enable_x64(True):
        return np.asarray(total(jnp.asarray(parameters, float)))  # type: ignore[return-value]
