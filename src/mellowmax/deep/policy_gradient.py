"""The parts of a policy gradient: advantages, objectives, and sums of gradients over many steps.

Sums run over some steps of all episodes at a time, so that memory does not grow with the episodes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy.typing as npt
from jax import lax

from .._common import checks
from .._typing import PyTree
from ..softmax import EpsilonGreedy, Max, Mean, Softmax
from .episodes import CHUNK, Episodes
from .network import Policy
from .observation import unmasked
from .optimiser import Weights
from .schedule import first_of

__all__ = [
    "check_last_layer",
    "error",
    "in_chunks",
    "leave_one_out_mean",
    "n_steps",
    "normalised",
    "objective",
    "sum_of_gradients",
]

STEPS, ACCELERATOR_STEPS = 32, 256
"""A gradient is computed for this many steps of all episodes at a time. Every `padded_length` is a
multiple of them."""


def check_last_layer(softmax: object, learner: str) -> None:
    """Raise unless an object is a softmax whose policy can be the last layer of a network.

    Args:
        softmax: the object.
        learner: the name of the algorithm.
    """
    softmax = first_of(softmax)
    checks.instance("softmax", softmax, Softmax, "a Softmax such as Mellowmax(8.0)")
    if isinstance(softmax, Max | Mean | EpsilonGreedy):
        rule = "`softmax` must have a policy that changes with the network's weights, smoothly"
        reason = f"whose gradient is 0 wherever it exists, so that {learner} learns nothing"
        raise ValueError(f"{rule}; got {softmax!r}, {reason}")


def n_steps(episodes: Episodes) -> jax.Array:
    """The number of steps of all episodes; 1 where a lane has none."""
    return jnp.maximum(1, episodes.lengths.sum(dtype=jnp.int32)).astype(episodes.rewards.dtype)


def leave_one_out_mean(numbers: jax.Array) -> jax.Array:
    """For each step of each episode, `[T, B]`, the mean over the batch's other episodes."""
    return (numbers.sum(1, keepdims=True) - numbers) / max(1, numbers.shape[1] - 1)


def normalised(numbers: jax.Array, mask: jax.Array, count: jax.Array) -> jax.Array:
    """One number for each step, `[T, B]`, scaled to mean 0 and deviation 1; 0 if all are equal.

    Args:
        numbers: 0 outside of the mask.
        mask: `[T, B]`, the steps of the episodes.
        count: how many steps are in the mask.
    """
    centred = jnp.where(mask, numbers - _sum(numbers) / count, 0)
    deviation = jnp.sqrt(_sum(centred * centred) / count)
    return jnp.where(deviation > 0, centred / jnp.where(deviation > 0, deviation, 1), 0)


def objective(
    network: Weights,
    softmax: Softmax,
    observations: PyTree,
    actions: jax.Array,
    advantages: jax.Array,
    divisor: jax.Array,
) -> jax.Array:
    """The sum of the actions' log-probabilities, each times its advantage, over a divisor."""
    log_policy = jax.vmap(Policy(network, softmax).log_probabilities)(observations)
    taken = jnp.take_along_axis(log_policy, actions[:, None], axis=1)[:, 0]
    # Padding may hold an action of probability 0, whose logarithm is -inf.
    return jnp.where(advantages == 0, 0, taken * advantages).sum() / divisor


def error(
    baseline: Weights,
    observations: PyTree,
    targets: jax.Array,
    mask: jax.Array,
    count: jax.Array,
) -> jax.Array:
    """Half the mean squared error of a baseline's predictions, over the `count` steps of a mask."""
    missed = jnp.where(mask, jax.vmap(baseline)(unmasked(observations))[:, 0] - targets, 0)
    return (missed * missed).sum() / (2 * count)


def _chunks(array: jax.Array | npt.NDArray[Any]) -> jax.Array:
    """`[T, B, ...]` as `[chunks, CHUNK * B, ...]`."""
    return jnp.reshape(array, (-1, CHUNK * array.shape[1], *array.shape[2:]))


def in_chunks(function: Callable[[PyTree], jax.Array], arrays: PyTree) -> jax.Array:
    """A function of arrays `[CHUNK * B, ...]` applied to arrays `[T, B, ...]`."""
    result = lax.map(function, jax.tree.map(_chunks, arrays))
    return result.reshape(*jax.tree.leaves(arrays)[0].shape[:2], *result.shape[2:])


def _sum(array: jax.Array) -> jax.Array:
    """The sum over `[T, B]`, added up chunk by chunk."""
    zero = jnp.zeros((), array.dtype)
    return lax.scan(lambda sum, x: (sum + x.sum(), None), zero, _chunks(array))[0]


def sum_of_gradients(
    objective: Callable[..., jax.Array],
    network: Weights,
    lengths: jax.Array | npt.NDArray[Any],
    *data: PyTree,
) -> Weights:
    """The gradient of a sum over steps, added up some steps at a time.

    Args:
        objective: a function of the network and of rows of the data; it is summed over all rows.
        network: what it is differentiated with respect to.
        lengths: the lengths of the episodes. Steps after the longest one are left out.
        data: arrays `[T, B, ...]`, or trees of them.
    """
    steps = STEPS if jax.default_backend() == "cpu" else ACCELERATOR_STEPS

    def add(i: jax.Array, total: Weights) -> Weights:
        def rows_of(x: jax.Array) -> jax.Array:
            part = lax.dynamic_slice_in_dim(x, i * steps, steps)
            return part.reshape(-1, *part.shape[2:])

        rows = jax.tree.map(rows_of, data)
        return jax.tree.map(jnp.add, total, jax.grad(objective)(network, *rows))

    return lax.fori_loop(0, -(-lengths.max() // steps), add, jax.tree.map(jnp.zeros_like, network))
