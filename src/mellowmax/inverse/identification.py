"""Why no demonstrations tell some directions of the parameters.

Four things can be moved without any decision becoming more or less probable, whatever the softmax,
since a shift of all values of a state changes no policy:

- a constant is added to all rewards, where no episode ends,
- a reward gains `discount * E phi(s') - phi(s)` for a potential `phi` of states: shaping,
- the rewards are `c` times as large, and the parameter of the softmax is divided by `c`,
- the discount rises by `e`, and the rewards fall by `e * E v(s')`.

The third and the fourth leave room for shaping, too. A direction is one of these if what it does to
rewards, discount and parameter is a mixture of them.

References:
    Ng, Harada and Russell (1999), Policy invariance under reward transformations.
    Cao, Cohen and Szpruch (2021), Identifiability in inverse reinforcement learning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Floats
from ..mdp import MDP
from .likelihood import Environment, Question, seen_from
from .rewards import rewards_of

__all__ = ["why_not_identified"]

MOST_STATES = 500
"""In larger MDPs a cause is not looked for."""
SAME = 1e-5
"""The part of a vector that may be left where it is a mixture of others."""


class _Moved(NamedTuple):
    """What the policy of a demonstrator comes from, or how it moves along some directions."""

    rewards: Floats  # [pairs, m], of the actions that can be taken in every MDP
    discount: Floats  # [m]
    softmax: Floats  # [n, m], all parameters of the demonstrator

    @property
    def whole(self) -> Floats:
        """`[pairs + 1 + n, m]`."""
        return np.concatenate([self.rewards, self.discount[None], self.softmax])


def why_not_identified(
    question: Question,
    mdps: Sequence[MDP],
    environments: Sequence[Environment],
    parameters: Floats,
    null: Floats,
) -> str:
    """Name the causes of directions `[k, m]` along which no policy moves, in one sentence."""
    left = null.shape[1]
    causes: list[str] = []
    if sum(mdp.n_states for mdp in mdps) <= MOST_STATES:
        left, causes = _causes(question, mdps, environments, parameters, null)
    if left:
        several = "direction" if left == 1 else "directions"
        causes.append(f"{left} {'other ' if causes else ''}{several} of the parameters")
    return f"no decision depends on {', nor on '.join(causes)}"


def _causes(
    question: Question,
    mdps: Sequence[MDP],
    environments: Sequence[Environment],
    parameters: Floats,
    null: Floats,
) -> tuple[int, list[str]]:
    """The number of directions without a cause, and the causes of the others."""
    moved = _moved_along(question, environments, parameters, null)
    rewards, ahead, shaping, softmax = _at(question, mdps, environments, parameters)
    none = np.zeros_like(softmax)
    still = np.append(np.zeros(1), none)
    potentials = np.concatenate([shaping, np.zeros((len(still), shaping.shape[1]))])
    causes = []
    constant = _is_mixture(np.append(np.ones(len(rewards)), still), moved.whole)
    if constant:
        causes.append("a constant that is added to all rewards")
    of_potentials = _shared(moved.whole, potentials)
    if of_potentials > constant:
        causes.append("shaping (a potential that every state gains or loses)")
    found = of_potentials + (constant and not _is_mixture(np.ones(len(rewards)), shaping))
    both = np.concatenate([moved.whole, potentials], 1)
    if _is_mixture(np.concatenate([rewards, [0.0], -softmax]), both) and softmax.any():
        causes.append("the scale of the rewards, against the parameter of the softmax")
        found += 1
    if _is_mixture(np.concatenate([-ahead, [1.0], none]), both):
        causes.append("the discount, against the rewards")
        found += 1
    return null.shape[1] - found, causes


def _moved_along(
    question: Question, environments: Sequence[Environment], parameters: Floats, null: Floats
) -> _Moved:
    """How everything moves along the directions."""

    def all_of(theta: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        rewards = [
            jnp.ravel(rewards_of(question.reward, theta, each.counts.shape))
            for each in environments
        ]
        discount = question.discount(theta) if callable(question.discount) else 0.0 * theta[0]
        return jnp.concatenate(rewards), jnp.asarray(discount), _parameters(question, theta)

    with jax.enable_x64(True):
        by = jax.jacfwd(all_of)(jnp.asarray(parameters))
    rewards, discount, softmax = (np.asarray(each) @ null for each in by)
    available = np.concatenate([np.ravel(each.available) for each in environments])
    return _Moved(rewards[available], discount, softmax)


def _parameters(question: Question, theta: jax.Array) -> jax.Array:
    """All parameters of the softmaxes of a demonstrator."""
    leaves = jax.tree.leaves(question.demonstrator_at(theta))
    return jnp.concatenate([jnp.zeros(0), *(jnp.ravel(jnp.asarray(one, float)) for one in leaves)])


def _at(
    question: Question,
    mdps: Sequence[MDP],
    environments: Sequence[Environment],
    parameters: Floats,
) -> tuple[Floats, Floats, Floats, Floats]:
    """Rewards, expected values ahead, shaping for each potential, and the softmaxes."""
    rewards, ahead, shaping = [], [], []
    with jax.enable_x64(True):
        theta = jnp.asarray(parameters)
        softmax = np.asarray(_parameters(question, theta))
        for mdp, environment in zip(mdps, environments, strict=True):
            seen = seen_from(theta, environment, question)
            discount = question.discount_at(theta, mdp.discount)
            added = rewards_of(question.reward, theta, environment.counts.shape)
            there = mdp.available
            transitions, _ = mdp.to_numpy()
            rewards.append((mdp.expected_rewards + np.asarray(added))[there])
            ahead.append((transitions @ np.asarray(seen.point.value))[there])
            of_each = float(discount) * transitions - np.eye(mdp.n_states)[:, None]
            shaping.append(of_each[there][:, ~mdp.terminal])
    blocks = np.zeros((sum(map(len, shaping)), sum(each.shape[1] for each in shaping)))
    row = column = 0
    for each in shaping:
        blocks[row : row + len(each), column : column + each.shape[1]] = each
        row, column = row + len(each), column + each.shape[1]
    return np.concatenate(rewards), np.concatenate(ahead), blocks, softmax


def _is_mixture(vector: Floats, of: Floats) -> bool:
    """Is a vector a mixture of the columns of a matrix?"""
    found, *_ = np.linalg.lstsq(of, vector, rcond=SAME**2)
    return bool(np.linalg.norm(of @ found - vector) <= SAME * np.linalg.norm(vector))


def _shared(one: Floats, other: Floats) -> int:
    """The dimension of what the columns of two matrices have in common."""
    ranks = (
        np.linalg.matrix_rank(each, SAME * max(1e-300, np.abs(each).max(initial=0.0)))
        for each in (one, other, np.concatenate([one, other], 1))
    )
    of_one, of_other, of_both = map(int, ranks)
    return of_one + of_other - of_both
