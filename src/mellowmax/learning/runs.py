"""The runs of a learner: for each one its parameters, its key and its number.

A learner's parameters may be arrays, which broadcast to a grid of settings, or schedules, which are
functions of the number of updates. `runs_of` separates the two: parameters that stay constant are
gathered into arrays with an entry for each run, so that a program can be mapped over them, and
schedules remain functions, which the program calls at every step.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from .._common.parameters import map_parameters, parameter_shapes
from .._common.runs import gather_settings, key_data, setting_of_each_run, settings_shape
from .._typing import ArrayLike, Key, Shape
from ..softmax import Softmax
from .learner import Learner

__all__ = ["Runs", "Schedules", "runs_of", "settings_of"]


class Runs(NamedTuple):
    """Runs as arrays with an entry for each; or one of them."""

    learner: Learner
    """The parameters that stay constant; None where there is a schedule."""
    setting: npt.NDArray[np.int32]
    """`[runs]`, which setting each has, counted along the flattened grid of settings."""
    key: npt.NDArray[np.uint32]
    """`[runs, 2]`, the data of the key of its setting."""
    number: npt.NDArray[np.uint32]
    """`[runs]`, the number of the run, which is folded into the key."""


class Schedules(NamedTuple):
    """Functions of the number of updates; None for what stays constant."""

    softmax: Callable[[jax.Array], Softmax] | None
    learning_rate: Callable[[jax.Array], jax.Array] | None
    settings: Shape
    """The shape of the grid of settings, to which their values broadcast; `()` where there is no
    schedule."""

    def apply(self, runs: Runs, step: jax.Array) -> Learner:
        """The learner of each run after `step` updates."""

        def gather(leaf: ArrayLike, inner: int) -> jax.Array:
            value = jnp.asarray(leaf, jnp.float32)
            own = value.shape[value.ndim - inner :]
            grid = jnp.broadcast_to(value, self.settings + own)
            return grid.reshape(-1, *own)[runs.setting]

        given: dict[str, Any] = {
            name: map_parameters(gather, schedule(step))
            for name, schedule in (("softmax", self.softmax), ("learning_rate", self.learning_rate))
            if schedule is not None
        }
        return dataclasses.replace(runs.learner, **given)


def settings_of(learner: Learner, n_states: int, n_actions: int) -> Shape:
    """The shape of the grid of settings that a learner has, with tables `[S, A]`."""
    now = jax.eval_shape(learner.at, jnp.int32(0)) if _scheduled(learner) else learner
    parameters = parameter_shapes((now.softmax, now.learning_rate, learner.discount))
    initial = np.shape(learner.initial)
    if initial and initial[-2:] != (n_states, n_actions):
        rule = f"`initial` must be a number or have the shape (..., {n_states}, {n_actions})"
        raise ValueError(f"{rule}, got {initial}")
    return settings_shape([*parameters, initial[:-2]])


def _scheduled(learner: Learner) -> bool:
    return callable(learner.learning_rate) or not isinstance(learner.softmax, Softmax)


def runs_of(
    learner: Learner, settings: Shape, numbers: npt.NDArray[np.uint32], seed: int | Key
) -> tuple[Runs, Schedules]:
    """Every run of every setting, the runs of a setting side by side; and the schedules.

    Args:
        learner: with a discount.
        settings: the shape of its grid of settings.
        numbers: of the runs of each setting.
        seed: as for `train`.
    """
    setting = setting_of_each_run(settings, len(numbers))

    def gather(leaf: ArrayLike, inner: int = 0) -> npt.NDArray[np.float32]:
        return gather_settings(leaf, settings, setting, inner)

    assert learner.discount is not None
    softmax, rate = learner.softmax, learner.learning_rate
    constants: dict[str, Any] = {
        "softmax": map_parameters(gather, softmax) if isinstance(softmax, Softmax) else None,
        "learning_rate": None if callable(rate) else gather(rate),
        "discount": gather(learner.discount),
        "initial": gather(learner.initial, inner=2),
    }
    schedules = Schedules(
        None if isinstance(softmax, Softmax) else softmax,
        rate if callable(rate) else None,
        settings if _scheduled(learner) else (),  # a program is compiled for this value
    )
    return Runs(
        dataclasses.replace(learner, **constants),
        setting,
        key_data(seed, settings)[setting],
        np.tile(numbers, len(setting) // len(numbers)),
    ), schedules
