"""Weights of actions, and sums of gradients over the steps of a batch, some steps at a time."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax

from ..softmax import Softmax
from .episodes import CHUNK, Episodes
from .network import Network, Policy

__all__ = [
    "error",
    "in_chunks",
    "mean_of_others",
    "n_steps",
    "normalised",
    "objective",
    "sum_of_gradients",
]

STEPS, ACCELERATOR_STEPS = 32, 256
"""How many steps of all episodes a gradient is computed of at a time: `padded_length` is a multiple
of them."""


def n_steps(episodes: Episodes) -> jax.Array:
    """The steps of all episodes; 1 where a lane has none."""
    return jnp.maximum(1, episodes.lengths.sum(dtype=jnp.int32)).astype(episodes.rewards.dtype)


def mean_of_others(numbers: jax.Array) -> jax.Array:
    """For each episode, `[T, B]`, the mean of the other ones at the same step."""
    return (numbers.sum(1, keepdims=True) - numbers) / max(1, numbers.shape[1] - 1)


def normalised(numbers: jax.Array, live: jax.Array, count: jax.Array) -> jax.Array:
    """Numbers of steps, `[T, B]`, brought to mean 0 and deviation 1; 0 if all are equal.

    Args:
        numbers: 0 where a step does not count.
        live: which steps count.
        count: how many they are.
    """
    centred = jnp.where(live, numbers - _sum(numbers) / count, 0)
    deviation = jnp.sqrt(_sum(centred * centred) / count)
    return jnp.where(deviation > 0, centred / jnp.where(deviation > 0, deviation, 1), 0)


def objective(
    network: Network,
    softmax: Softmax,
    observations: jax.Array,
    actions: jax.Array,
    advantages: jax.Array,
    share: jax.Array,
) -> jax.Array:
    """The log-probabilities of actions, weighed with their advantages."""
    log_policy = jax.vmap(Policy(network, softmax).log_probabilities)(observations)
    taken = jnp.take_along_axis(log_policy, actions[:, None], axis=1)[:, 0]
    # An action that was not taken may have the probability 0, and its logarithm.
    return jnp.where(advantages == 0, 0, taken * advantages).sum() / share


def error(
    baseline: Network,
    observations: jax.Array,
    targets: jax.Array,
    live: jax.Array,
    count: jax.Array,
) -> jax.Array:
    """Half the mean squared error of what a baseline predicts."""
    missed = jnp.where(live, jax.vmap(baseline)(observations)[:, 0] - targets, 0)
    return (missed * missed).sum() / (2 * count)


def _chunks(array: jax.Array) -> jax.Array:
    """`[T, B, ...]` as `[chunks, CHUNK * B, ...]`."""
    return array.reshape(-1, CHUNK * array.shape[1], *array.shape[2:])


def in_chunks(function: Callable[[jax.Array], jax.Array], array: jax.Array) -> jax.Array:
    """A function of `[CHUNK * B, ...]` applied to `[T, B, ...]`."""
    result: jax.Array = lax.map(function, _chunks(array))
    return result.reshape(*array.shape[:2], *result.shape[2:])


def _sum(array: jax.Array) -> jax.Array:
    """The sum of `[T, B]`, chunk by chunk."""
    zero = jnp.zeros((), array.dtype)
    total: jax.Array = lax.scan(lambda sum, x: (sum + x.sum(), None), zero, _chunks(array))[0]
    return total


def sum_of_gradients(
    objective: Callable[..., jax.Array], network: Network, lengths: jax.Array, *data: jax.Array
) -> Network:
    """The gradient of the sum of an objective over `data`, each `[T, B, ...]`.

    It is added up some steps at a time, up to the end of the longest episode.
    """
    steps = STEPS if jax.default_backend() == "cpu" else ACCELERATOR_STEPS

    def add(i: jax.Array, total: Network) -> Network:
        parts = (lax.dynamic_slice_in_dim(x, i * steps, steps) for x in data)
        rows = (x.reshape(-1, *x.shape[2:]) for x in parts)
        more: Network = jax.tree.map(jnp.add, total, jax.grad(objective)(network, *rows))
        return more

    total: Network = lax.fori_loop(
        0, -(-lengths.max() // steps), add, jax.tree.map(jnp.zeros_like, network)
    )
    return total
