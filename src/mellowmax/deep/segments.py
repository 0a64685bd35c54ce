"""What playing hands on to a learner of segments: some steps of a few environments side by side."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from .replay import Transitions

__all__ = ["Segment", "generalised_advantages"]


class Segment(NamedTuple):
    """`T` steps of `E` environments, of one run, in order.

    Episodes begin and end anywhere in a segment. The next observation of a step is the one that it
    led to, also where the episode ended with it and the next step belongs to another.
    """

    steps: Transitions
    """`[T, E, ...]`: the steps."""
    ended: jax.Array
    """`[T, E]`: did an episode end with this step, or was it cut off there?"""


def generalised_advantages(
    segment: Segment,
    values: jax.Array,
    next_values: jax.Array,
    discount: jax.Array | float,
    trace: jax.Array | float,
) -> jax.Array:
    """How much better each action was than the policy, as far as a critic can tell, `[T, E]`.

    The sum of the errors `reward + discount * next value - value` of a step and of later ones of
    the episode, each weighted by a further factor of `discount * trace`. The next value is 0 where
    the episode has terminated. Where it was cut off, or where the segment ends, it stands for all
    that was not played.

    Args:
        segment: the steps.
        values: the critic's values of the observations, `[T, E]`.
        next_values: those of the next observations, `[T, E]`.
        discount: from 0 to 1.
        trace: from 0, which trusts the critic after one step, to 1, which trusts it only where
            nothing more was played.

    Examples:
        >>> nothing, one = jnp.zeros((3, 1)), jnp.ones((3, 1))
        >>> ends = jnp.array([[False], [True], [False]])
        >>> steps = Transitions(nothing, nothing, one, jnp.zeros((3, 1), bool), nothing)
        >>> advantages = generalised_advantages(Segment(steps, ends), nothing, 10 * one, 0.5, 0.5)
        >>> print(advantages[:, 0])  # 6 is 1 + 0.5 * 10
        [7.5 6.  6. ]

    References:
        Schulman, Moritz, Levine, Jordan and Abbeel, "High-dimensional continuous control using
        generalized advantage estimation" (ICLR 2016).
    """
    later_value = jnp.where(segment.steps.terminated, 0, next_values)
    errors = segment.steps.reward + discount * later_value - values
    factors = jnp.where(segment.ended, 0, jnp.asarray(discount * trace, errors.dtype))

    def back(later: jax.Array, now: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        error, factor = now
        advantage = error + factor * later
        return advantage, advantage

    return lax.scan(back, jnp.zeros_like(errors[0]), (errors, factors), reverse=True)[1]
