"""The optimiser's part of an update, the same for every learner.

optax has two kinds of transformations. A whole optimiser, such as `optax.adam(0.02)`, has its own
learning rate and gives what is to be added to the weights: it descends. A transformation without
one, such as `optax.scale_by_adam()`, gives a direction that still points up the gradient, and the
learner's `learning_rate` says how far to go the other way. Their types do not tell them apart, so
an optimiser is tried out on a gradient when a learner is made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import optax

from .._typing import ArrayLike
from .schedule import Linear, check_rate

__all__ = ["ADAM", "CLIPPED_ADAM", "Weights", "learning_rate_for", "step"]

ADAM = optax.scale_by_adam(np.float32(0.9), np.float32(0.999))  # or JAX's 64 bits would show
"""The optimiser of a learner if no other is given."""
CLIPPED_ADAM = optax.chain(
    optax.clip_by_global_norm(0.5),
    optax.scale_by_adam(np.float32(0.9), np.float32(0.999), np.float32(1e-5)),
)
"""The optimiser of PPO: Adam, for gradients that are no longer than 0.5."""
Weights: TypeAlias = Any
"""A pytree of arrays, such as a network: optax's own type for it leaves out modules."""
TRIES = 100
"""How many updates an optimiser is tried out for until it moves: a schedule may begin with a
learning rate of 0, and gradients may be accumulated over several updates."""


def learning_rate_for(
    optimiser: optax.GradientTransformation,
    learning_rate: ArrayLike | Linear | None,
    default: float,
    weights: Callable[[], Weights],
) -> Any:
    """The learning rate that multiplies the steps of an optimiser; None for a whole optimiser.

    Args:
        optimiser: the one that was chosen.
        learning_rate: the one that was asked for, or None.
        default: the learning rate that None stands for, if the optimiser has none of its own.
        weights: makes a small example of what is trained.

    Raises:
        TypeError: for anything but an optax transformation.
        ValueError: for an optimiser that cannot be used, or for a second learning rate.
    """
    if not isinstance(optimiser, optax.GradientTransformation):
        raise TypeError(f"`optimiser` must be an optax transformation, got {optimiser!r}")
    if learning_rate is not None:
        check_rate(learning_rate)
    usual = optimiser is ADAM or optimiser is CLIPPED_ADAM
    if not usual and _descends(optimiser, jax.eval_shape(weights)):
        if learning_rate is not None:
            rule = "`learning_rate` must be None for an optimiser that has one of its own"
            raise ValueError(f"{rule}, got {learning_rate!r}")
        return None
    if learning_rate is None:
        return default
    return np.asarray(learning_rate) if isinstance(learning_rate, list | tuple) else learning_rate


def step(
    optimiser: optax.GradientTransformation,
    learning_rate: jax.Array | float | None,
    gradient: Weights,
    state: optax.OptState,
    weights: Weights,
) -> tuple[Weights, optax.OptState]:
    """Descend along a gradient.

    Args:
        optimiser: a whole one, or one without a learning rate.
        learning_rate: None for a whole optimiser.
        gradient: the gradient of a loss.
        state: the state of the optimiser.
        weights: the present weights.

    Returns:
        The weights and the state of the optimiser after the step.
    """
    with jax.numpy_dtype_promotion("standard"):  # which optax needs
        change, state = optimiser.update(gradient, state, weights)
    if learning_rate is not None:
        change = jax.tree.map(lambda x: -learning_rate * x, change)
    return optax.apply_updates(weights, change), state


def _descends(optimiser: optax.GradientTransformation, shapes: Weights) -> bool:
    """Do the optimiser's steps lead down a gradient by themselves?"""
    with jax.ensure_compile_time_eval(), jax.numpy_dtype_promotion("standard"):
        ones = jax.tree.map(lambda x: jnp.ones(x.shape, x.dtype), shapes)
        try:
            state = optimiser.init(ones)
            for _ in range(TRIES):
                change, state = optimiser.update(ones, state, ones)
                signs = {float(jnp.sign(x.sum())) for x in jax.tree.leaves(change)} - {0.0}
                if signs:
                    break
        except Exception as error:
            rule = "`optimiser` must make steps of gradients and weights alone"
            said = " ".join(str(error).split())
            raise ValueError(f"{rule}, got one that fails: {said}") from error
    if signs not in ({-1.0}, {1.0}):
        rule = "`optimiser` must move all weights up the gradient, or all of them down"
        moved = "some up and some down" if signs else f"none in {TRIES} updates"
        raise ValueError(f"{rule}, got one that moves {moved}")
    return signs == {-1.0}
